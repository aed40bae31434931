"""`rm-service replay`: drive a service with a cluster trace."""

import sys
from pathlib import Path
from typing import Any

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from rm_service.api_client import (
    ApiClient,
    ProblemError,
    UnexpectedAnswerError,
    UnreachableError,
    host_of,
)
from rm_service.commands.connection import REFUSED, client_options, end_with, json_option, print_json
from rm_service.commands.replay_classes import ClassDriver, ClassReplay
from rm_service.commands.replay_drivers import DriveError, EmbeddedDriver, HttpDriver
from rm_service.commands.replay_messages import TOGETHER, MessageReplay
from rm_service.commands.replay_report import describe, report
from rm_service.commands.replay_run import Replay, Walk, first_created, steps_of
from rm_service.commands.tables import make_console
from rm_service.commands.trace import TraceError, TraceNode, TraceTask, read_nodes, read_tasks

ATTEMPTS = 5
GRPC_PORT = 8311
HTTP, SI = "http", "si"

csv_file = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.argument("trace_dir", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--nodes", "node_file", type=csv_file, help="The nodes; default: *node*.csv in TRACE_DIR.")
@click.option(
    "--applications", "task_file", type=csv_file, help="The tasks; default: *pod*.csv in TRACE_DIR."
)
@click.option(
    "--speed",
    type=click.FloatRange(min=0, min_open=True),
    help="Seconds of the trace in one second; default: as fast as possible.",
)
@click.option("--limit", type=click.IntRange(min=1), help="Only the tasks that are created first, so many.")
@click.option("--embedded", is_flag=True, help="Use a ledger in this process, on a database that goes away.")
@click.option(
    "--classes",
    is_flag=True,
    help="With --embedded: GPUs are devices that tasks ask for by resource class, and what the classes say "
    "is compared with a recomputation after every hundredth step.",
)
@click.option(
    "--via",
    type=click.Choice([HTTP, SI]),
    default=HTTP,
    show_default=True,
    help="The native API, or the Scheduler Interface over gRPC.",
)
@click.option(
    "--grpc", metavar="HOST:PORT", help=f"Where gRPC is, with --via si; default: port {GRPC_PORT} of --url."
)
@click.option(
    "--together",
    type=click.IntRange(1, 1000),
    help=f"Steps of the trace in one message, with --via si; default: {TOGETHER}.",
)
@client_options
@json_option
def replay(  # noqa: PLR0913 - the options of a command
    trace_dir: Path | None,
    node_file: Path | None,
    task_file: Path | None,
    *,
    speed: float | None,
    limit: int | None,
    embedded: bool,
    classes: bool,
    via: str,
    grpc: str | None,
    together: int | None,
    url: str,
    token: str | None,
    as_json: bool,
) -> None:
    """Register a trace's nodes, then apply, use and release for its tasks in the order of their times.

    The files are those of the openb format (docs/replay.md). One operation at a time, so the same trace on
    nodes that hold nothing else gives the same grants, and the same digest of them. Exits with 1 if the
    audit at the end finds a difference.

    With --via si a resource manager sends messages of several asks and releases instead; --url is asked for
    the audit alone.
    """
    if via != SI and (grpc or together):
        raise click.UsageError("--grpc and --together are for --via si")
    if classes and (via == SI or not embedded):
        raise click.UsageError("--classes needs --embedded, and is not for --via si")
    node_file = node_file or _find(trace_dir, "*node*.csv", "--nodes")
    task_file = task_file or _find(trace_dir, "*pod*.csv", "--applications")
    try:
        nodes, tasks = read_nodes(node_file), first_created(read_tasks(task_file), limit)
    except (TraceError, OSError) as error:
        raise click.ClickException(str(error)) from error
    try:
        run = _open(
            node_file.stem,
            via=via,
            embedded=embedded,
            classes=classes,
            grpc=grpc,
            together=together,
            url=url,
            token=token,
            speed=speed,
        )
        try:
            _run(run, nodes, tasks)
        finally:
            run.driver.close()
    except (ProblemError, UnreachableError, UnexpectedAnswerError, DriveError) as error:
        end_with(error, as_json=as_json)
    _print(run, as_json=as_json)
    if not run.record.audit["consistent"]:
        sys.exit(REFUSED)


def _find(folder: Path | None, pattern: str, option: str) -> Path:
    """The one file of the folder that fits the pattern."""
    if folder is None:
        raise click.UsageError(f"name a TRACE_DIR, or the file with {option}")
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        names = ", ".join(file.name for file in found) or "none"
        raise click.UsageError(f"{folder} holds {names} as {pattern}: name the one with {option}")
    return found[0]


def _open(  # noqa: PLR0913 - the options of a command
    trace: str,
    *,
    via: str,
    embedded: bool,
    classes: bool,
    grpc: str | None,
    together: int | None,
    url: str,
    token: str | None,
    speed: float | None,
) -> Walk[Any]:
    """The replay of this trace; close its driver."""
    if classes:
        return ClassReplay(ClassDriver(), trace, speed=speed)
    if via == HTTP:
        driver = EmbeddedDriver() if embedded else HttpDriver(ApiClient(url, token, attempts=ATTEMPTS))
        return Replay(driver, trace, speed=speed)
    # Only here: what speaks gRPC takes a while to be loaded.
    from rm_service.commands import replay_si  # noqa: PLC0415

    address = grpc or f"{_in_brackets(host_of(url))}:{GRPC_PORT}"
    carrier = replay_si.embedded() if embedded else replay_si.served(address, ApiClient(url, token), token)
    return MessageReplay(carrier, trace, together or TOGETHER, speed=speed)


def _in_brackets(host: str) -> str:
    """As a host stands before a port."""
    return f"[{host}]" if ":" in host else host


def _run(run: Walk[Any], nodes: list[TraceNode], tasks: list[TraceTask]) -> None:
    """The whole replay, with a bar for each of its parts where somebody looks."""
    steps = steps_of(tasks)
    console = make_console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as bars:
        registering = bars.add_task("nodes", total=len(nodes))
        run.register(nodes, lambda count: bars.advance(registering, count))
        walking = bars.add_task("steps", total=len(steps))
        run.walk(steps, lambda count: bars.advance(walking, count))
        auditing = bars.add_task("audit", total=1)
        run.audit()
        bars.advance(auditing)


def _print(run: Walk[Any], *, as_json: bool) -> None:
    if as_json:
        print_json(report(run.record))
        return
    console = make_console()
    for part in describe(run.record):
        console.print(part)
