"""`rm-service serve` and `rm-service migrate`."""

import signal
import sys
import threading
from pathlib import Path
from types import FrameType

import click
import structlog
from sqlalchemy import make_url
from sqlalchemy.exc import SQLAlchemyError

from rm_service.app import NoTokenError, Service, check_database
from rm_service.commands.settings_option import config_option, settings_or_exit
from rm_service.commands.workers import Workers, watch_parent
from rm_service.facades.http.system_pages import DOCS
from rm_service.ledger.database import reader_engine
from rm_service.ledger.errors import LedgerUnavailableError
from rm_service.ledger.schema import WrongRevisionError
from rm_service.ledger.schema import migrate as bring_to_newest
from rm_service.process import set_up_process
from rm_service.settings import Settings
from rm_service.telemetry import set_up_logging

_log = structlog.get_logger(__name__)


@click.command()
@config_option
@click.option("--worker", is_flag=True, hidden=True, help="One more process beside another that started it.")
def serve(config: Path | None, *, worker: bool) -> None:
    """Serve the API until SIGTERM or SIGINT; what was accepted by then is answered."""
    settings = settings_or_exit(config)
    set_up_logging(settings.log_level, settings.log_format)
    _log.info("settings", **settings.shown())
    ended = threading.Event()
    _end_on_signals(ended)
    if worker:
        watch_parent(ended)
    service = _started(settings)
    set_up_process()
    host, port = service.server.address
    grpc = service.scheduler_interface.address
    binds = {"RM_HTTP_BIND": f"{_host(host)}:{port}"}
    if grpc is not None:
        binds["RM_GRPC_BIND"] = f"{_host(grpc[0])}:{grpc[1]}"
    workers = Workers(settings.workers - 1 if not worker else 0, config, binds)
    workers.start()
    if not worker:
        _say_where(host, port, binds.get("RM_GRPC_BIND"))
    ended.wait()
    _log.info("stopping")
    workers.stop()
    service.stop()
    _log.info("stopped")


@click.command()
@config_option
def migrate(config: Path | None) -> None:
    """Bring the database to the schema that this version works with."""
    settings = settings_or_exit(config)
    set_up_logging(settings.log_level, settings.log_format)
    url = make_url(settings.database_url)
    if url.get_backend_name() == "sqlite":
        Path(url.database or "").parent.mkdir(parents=True, exist_ok=True)
    engine = reader_engine(settings.database_url)
    try:
        revision = bring_to_newest(engine)
    except SQLAlchemyError as error:
        click.echo(f"the database could not be migrated: {str(error).splitlines()[0]}", err=True)
        sys.exit(1)
    finally:
        engine.dispose()
    click.echo(f"{url.render_as_string(hide_password=True)} is at revision {revision}")


def _started(settings: Settings) -> Service:
    try:
        check_database(settings)
        service = Service(settings)
        service.start()
    except (WrongRevisionError, NoTokenError, LedgerUnavailableError, OSError, ValueError) as error:
        click.echo(f"rm-service cannot start: {error}", err=True)
        sys.exit(1)
    except SQLAlchemyError as error:
        reason = str(getattr(error, "orig", error)).strip()
        click.echo(f"rm-service cannot start: the database cannot be reached: {reason}", err=True)
        sys.exit(1)
    return service


def _end_on_signals(ended: threading.Event) -> None:
    def end(_number: int, _frame: FrameType | None) -> None:
        ended.set()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)


def _say_where(host: str, port: int, grpc: str | None) -> None:
    address = f"http://{_host(host)}:{port}"
    click.echo(f"HTTP  {address}/api/v1")
    click.echo(f"Docs  {address}{DOCS}")
    if grpc is not None:
        click.echo(f"gRPC  {grpc}")
    sys.stdout.flush()


def _host(host: str) -> str:
    return f"[{host}]" if ":" in host else host
