"""A whole service in this process, on a database that goes away with it."""

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rm_service.app import Service
from rm_service.ledger.database import reader_engine
from rm_service.ledger.schema import migrate
from rm_service.services.books import Books
from rm_service.settings import read_settings
from rm_service.telemetry import set_up_logging

ANY_PORT = "127.0.0.1:0"


class EmbeddedService:
    """Serves from its making to `close`, only to this machine; `grpc_address` is `host:port`."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="rm-embedded-"))
        environment = {
            "RM_DATABASE_URL": f"sqlite:///{self._folder / 'rm.db'}",
            "RM_HTTP_BIND": ANY_PORT,
            "RM_GRPC_BIND": ANY_PORT,
        }
        settings = read_settings(None, environment)
        set_up_logging("warning", settings.log_format)
        engine = reader_engine(settings.database_url)
        migrate(engine)
        engine.dispose()
        self._service = Service(settings)
        self._service.start()
        address = self._service.scheduler_interface.address
        assert address is not None  # noqa: S101 - it was not switched off
        self.grpc_address = f"{address[0]}:{address[1]}"

    def audit(self) -> Mapping[str, Any]:
        """The audit's verdict, in the shape of `GET /api/v1/audit`."""
        return asdict(Books(self._service.ledger).audit())

    def close(self) -> None:
        self._service.stop()
        shutil.rmtree(self._folder)
