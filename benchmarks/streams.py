"""What 2,000 idle event streams cost everybody else."""

import multiprocessing
import resource
import socket
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, closing, contextmanager

from benchmarks import traffic
from benchmarks.http_load import Address, Asked, WrongAnswerError, load, request
from benchmarks.http_single import applications
from benchmarks.report import Findings, Ratio, Table
from benchmarks.rounds import Load, p50, p99, rate
from benchmarks.service import serving
from benchmarks.setting import Setting

STREAMS = 2_000
CLIENTS = 8
TARGET = 1.2
SETTLE = 1.0
"""Seconds of load before a stretch counts: streams that were just opened have joined the others by then."""

IDLE = "/api/v1/events?selector=user%3Dnobody"
"""A stream of the events of somebody to whom nothing happens."""

READING, APPLYING = "reading a node", "applying"


def measure(setting: Setting) -> Findings:
    """Latencies of ordinary requests without and with idle streams, in turns."""
    _allow_files(2 * STREAMS + 1_000)
    measured: dict[str, list[Load]] = {}
    with ExitStack() as stack:
        enter = stack.enter_context
        url = enter(setting.database())
        traffic.open_ledger(url, traffic.SPREAD).close()
        client = enter(ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")))
        service = enter(serving(url, setting.folder))
        asked = {
            READING: Asked([request("GET", f"/api/v1/nodes/{traffic.node(0)}")], b"HTTP/1.1 200 "),
            APPLYING: applications(traffic.SPREAD),
        }
        for _ in range(setting.rounds):
            for streams in (0, STREAMS):
                with idle_streams(service, streams):
                    for what, requests in asked.items():
                        its_load = client.submit(load, service, requests, CLIENTS, SETTLE, setting.seconds)
                        measured.setdefault(_side(what, streams), []).append(its_load.result())
    rows = [(name, rate(loads), p50(loads), p99(loads)) for name, loads in measured.items()]
    ratios = [
        Ratio(
            f"p99 with {STREAMS:,} idle streams to p99 with none, {what}",
            p99(measured[_side(what, STREAMS)]) / p99(measured[_side(what, 0)]),
            TARGET,
            at_least=False,
        )
        for what in (READING, APPLYING)
    ]
    return Findings(
        f"Idle event streams, {CLIENTS} clients",
        [Table(("side", "requests/s", "p50 ms", "p99 ms"), rows)],
        ratios,
        ["Applying makes events; the streams ask for the events of a user who has none."],
    )


@contextmanager
def idle_streams(address: Address, count: int) -> Iterator[None]:
    """So many event streams, each answered by the service and then left alone."""
    asking = request("GET", IDLE, Accept="text/event-stream")
    with ExitStack() as stack:
        for _ in range(count):
            stream = stack.enter_context(closing(socket.create_connection(address)))
            stream.sendall(asking)
            answer = stream.recv(4096)
            if not answer.startswith(b"HTTP/1.1 200 ") or b"text/event-stream" not in answer:
                raise WrongAnswerError(answer)
        yield


def _side(what: str, streams: int) -> str:
    return f"{what}, {streams:,} streams"


def _allow_files(wanted: int) -> None:
    """Let this process and those that it starts open so many files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted if hard < 0 else min(wanted, hard), hard))
