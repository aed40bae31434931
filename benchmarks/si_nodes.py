"""Many nodes: what an ask that needs one costs through the ledger, and how long it takes to register all."""

import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from functools import partial

from benchmarks import si_scene, traffic
from benchmarks.report import Cell, Findings, Ratio, Table
from benchmarks.rounds import Load, alternate, p50, rate
from benchmarks.setting import Setting
from benchmarks.si import audit, scheduler
from benchmarks.si_engine import Asker, asker, batches_in_flight
from rm_service.commands.si_streams import SiStreams

FEW, MANY = 100, 10_000
SORTS = ("fair", "binpacking")
ASKS, IN_FLIGHT = 100, 8
TIMES, SECONDS = 2.0, 10.0


def measure(setting: Setting) -> Findings:
    """Clusters of two sizes in a ledger each, and one that is registered over gRPC by one message."""
    seconds, verdict = registering(setting)
    sides: dict[str, Callable[[], Load]] = {}
    with ExitStack() as stack:
        for sort in SORTS:
            for nodes in (FEW, MANY):
                ledger = stack.enter_context(
                    closing(traffic.open_ledger(stack.enter_context(setting.database())))
                )
                own = asker(ledger, "bench", nodes=nodes, sort=sort)
                sides |= _sides(own, f"{sort}, {nodes:,} nodes", setting.seconds)
        measured = alternate(sides, setting.rounds)
    rows: list[tuple[Cell, ...]] = [(name, rate(loads), p50(loads)) for name, loads in measured.items()]
    return Findings(
        "Many nodes",
        [
            Table(("side", "asks/s", "p50 ms"), rows),
            Table(("what", "s"), [(f"registering {MANY:,} nodes by one message", seconds)]),
        ],
        [
            *_ratios(measured),
            Ratio(f"registering {MANY:,} nodes by one message", seconds, SECONDS, at_least=False, unit="s"),
        ],
        [verdict],
    )


def registering(setting: Setting) -> tuple[float, str]:
    """Seconds until the last node is accepted, and the audit's verdict."""
    with setting.database() as url, scheduler(url, setting.folder) as (http, grpc):
        streams = SiStreams(grpc, "bench")
        streams.register(si_scene.CONFIG.format(sort=SORTS[0]), {})
        request = si_scene.nodes_request("bench", [si_scene.node_name(number) for number in range(MANY)])
        begun, accepted = time.perf_counter(), 0
        streams.nodes.send(request)
        while accepted < MANY:
            answer = streams.nodes.receive()
            assert not answer.rejected, answer.rejected[0]
            accepted += len(answer.accepted)
        seconds = time.perf_counter() - begun
        streams.close()
        return seconds, audit(http)


def _sides(own: Asker, name: str, seconds: float) -> dict[str, Callable[[], Load]]:
    return {
        f"{name}, {IN_FLIGHT} batches of {ASKS}": partial(batches_in_flight, own, ASKS, IN_FLIGHT, seconds),
        f"{name}, one ask at a time": partial(batches_in_flight, own, 1, 1, seconds),
    }


def _ratios(measured: dict[str, list[Load]]) -> list[Ratio]:
    return [
        Ratio(
            f"an ask on {MANY:,} nodes to one on {FEW:,}, {sort}, {way}",
            rate(measured[f"{sort}, {FEW:,} nodes, {way}"])
            / rate(measured[f"{sort}, {MANY:,} nodes, {way}"]),
            TIMES,
            at_least=False,
        )
        for sort in SORTS
        for way in (f"{IN_FLIGHT} batches of {ASKS}", "one ask at a time")
    ]
