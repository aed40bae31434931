"""The Scheduler Interface against its floor: an ask alone, many on a stream, one a call, and the engine."""

import statistics
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import overload

from benchmarks import si_scene, traffic
from benchmarks.flight import WARM_UP
from benchmarks.floor import Floor
from benchmarks.http_load import Address, Asked, load, request
from benchmarks.report import Findings, Ratio, Table
from benchmarks.rounds import Load, alternate, p50, p99, rate
from benchmarks.service import serving
from benchmarks.setting import Setting
from benchmarks.si_engine import asker, batches_in_flight
from benchmarks.si_floor import ALONE as ECHO_ALONE
from benchmarks.si_floor import SIDES, TRANSACTIONS, echoes, echoing
from benchmarks.si_load import Streamer, stream, stream_per_ask
from rm_service.api_client import ApiClient
from rm_service.commands.audit import verdict_text
from tests.postgres import free_port

RM, POSTING = "bench", "bench-post"
SEVERAL = 8
"""Callers at the same time; with a stream an ask each needs a resource manager of its own."""
MANY = 32
"""Callers that post at the same time."""
ASKS, IN_FLIGHT = 100, 8
SHARE, TIMES = 0.6, 4.0

ENGINE = f"ledger without gRPC, {IN_FLIGHT} batches of {ASKS} in flight"
STREAM = f"one stream, {IN_FLIGHT} messages of {ASKS} asks in flight"
ECHO = f"an echo, {ECHO_ALONE}"
ALONE = "one stream, one ask at a time"
PLAIN = "plain transaction, alone"
PER_ASK = "a stream an ask, {} at a time"
POST = "a POST an ask, {} at a time"

PATH = "/si/v1/UpdateAllocation"
AUDIT_SECONDS = 600.0


def measure(setting: Setting) -> Findings:
    """One ask alone, then asks by the hundred, by a stream each, by a POST each."""
    with ExitStack() as stack:
        enter = stack.enter_context
        floor = Floor(setting, enter(setting.database()))
        echo = enter(echoing())
        http, grpc = enter(scheduler(enter(setting.database()), setting.folder))
        client = enter(ProcessPoolExecutor(1, mp_context=get_context("spawn")))
        several = [f"{RM}-{number}" for number in range(SEVERAL)]
        for rm_id in (RM, POSTING, *several):
            si_scene.set_up(grpc, rm_id)
        own = asker(enter(closing(traffic.open_ledger(enter(setting.database())))), RM)
        seconds = setting.seconds

        def there(job: Callable[..., Load], *arguments: object) -> Callable[[], Load]:
            """In the process of the clients."""
            return lambda: client.submit(job, *arguments).result()

        def posts(callers: int) -> Callable[[], Load]:
            return there(load, http, Asked(Posts(POSTING), b"HTTP/1.1 200 "), callers, WARM_UP, seconds)

        sides: dict[str, Callable[[], Load]] = {
            PLAIN: partial(floor.lonely, seconds),
            ECHO: there(echoes, echo, SIDES[ECHO_ALONE], seconds),
            ALONE: there(stream, [Streamer(grpc, RM)], seconds),
            ENGINE: partial(batches_in_flight, own, ASKS, IN_FLIGHT, seconds),
            STREAM: there(stream, [Streamer(grpc, RM, ASKS, IN_FLIGHT)], seconds),
            PER_ASK.format(1): there(stream_per_ask, grpc, [RM], seconds),
            PER_ASK.format(SEVERAL): there(stream_per_ask, grpc, several, seconds),
            POST.format(1): posts(1),
            POST.format(MANY): posts(MANY),
        }
        measured = alternate(sides, setting.rounds)
        verdict = audit(http)
    rows = [(name, rate(loads), p50(loads), p99(loads)) for name, loads in measured.items()]
    return Findings(
        "The Scheduler Interface",
        [Table(("side", "asks/s", "p50 ms", "p99 ms"), rows)],
        _ratios(measured),
        [
            "An ask counts when its grant has come to its resource manager; a POST when it is answered.",
            f"Where {SEVERAL} open streams at the same time, each is a resource manager of its own.",
            verdict,
        ],
    )


def _ratios(measured: dict[str, list[Load]]) -> list[Ratio]:
    rounds = zip(measured[ALONE], measured[ECHO], measured[PLAIN], strict=True)
    above = statistics.median((ask.p50 - echo.p50) / plain.p50 for ask, echo, plain in rounds)
    streaming = rate(measured[STREAM])
    return [
        Ratio(
            "one ask at a time: p50 above that of the echo",
            above,
            TRANSACTIONS,
            at_least=False,
            unit="transactions",
        ),
        Ratio("a stream to the ledger without gRPC", streaming / rate(measured[ENGINE]), SHARE),
        *(
            Ratio(f"a stream to {way}", streaming / rate(measured[way]), TIMES)
            for way in (PER_ASK.format(1), PER_ASK.format(SEVERAL), POST.format(1), POST.format(MANY))
        ),
    ]


@dataclass(frozen=True, slots=True)
class Posts(Sequence[bytes]):
    """More requests of one ask than anybody sends, each made when it is chosen: no two have the same key."""

    rm_id: str

    def __len__(self) -> int:
        return 10**16 - 1

    @overload
    def __getitem__(self, number: int) -> bytes: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[bytes]: ...
    def __getitem__(self, number: int | slice) -> bytes | Sequence[bytes]:
        assert isinstance(number, int), "they are sent one by one"
        text = str(number).zfill(len(si_scene.NUMBER)).encode()
        return request("POST", PATH, si_scene.numbered(si_scene.json_body(self.rm_id), text))


@contextmanager
def scheduler(url: str, folder: Path) -> Iterator[tuple[Address, str]]:
    """A service's addresses for HTTP and for gRPC, as long as the body runs; the database may be new."""
    traffic.open_ledger(url).close()
    grpc = f"127.0.0.1:{free_port()}"
    with serving(url, folder, grpc_bind=grpc) as http:
        yield http, grpc


def audit(http: Address) -> str:
    """The audit's verdict in words. A difference is an error."""
    client = ApiClient("http://{}:{}".format(*http), timeout=AUDIT_SECONDS)
    try:
        verdict = client.get("/audit")
    finally:
        client.close()
    assert verdict["consistent"], verdict["differences"][:5]
    return f"Audited at the end: {verdict_text(verdict)}."
