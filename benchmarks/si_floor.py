"""The floor of the Scheduler Interface: what gRPC costs when an answer is the request itself.

`python -m benchmarks.si_floor` is the server, a process of its own: grpc.aio, bytes as they came, no
messages taken apart. What the interface costs above it is ours.
"""

import asyncio
import contextlib
import subprocess
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial

import grpc
import grpc.aio

from benchmarks.flight import WARM_UP
from benchmarks.floor import Floor
from benchmarks.report import Findings, Table
from benchmarks.rounds import Load, alternate, p50, p99, rate
from benchmarks.setting import Setting

SERVICE = "benchmarks.Echo"
UNARY, STREAM = f"/{SERVICE}/Unary", f"/{SERVICE}/Stream"
ASK_BYTES = 300
"""About as long as an ask with a resource of three dimensions and some tags, and as the answer to it."""
ASKS = 100
"""Asks of a long message."""
IN_FLIGHT = 32
START_SECONDS = 30.0
STOP_SECONDS = 10.0
TRANSACTIONS = 3
"""What the service may take for one ask above the echo, in plain transactions."""

Call = grpc.aio.StreamStreamCall[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Side:
    """One way to ask."""

    method: str
    in_flight: int
    asks: int = 1


ALONE = "one stream, one ask at a time"
PLAIN = "plain transaction, alone"
SIDES = {
    "unary calls, one at a time": Side(UNARY, 1),
    f"unary calls, {IN_FLIGHT} in flight": Side(UNARY, IN_FLIGHT),
    ALONE: Side(STREAM, 1),
    f"one stream, {IN_FLIGHT} messages of one ask in flight": Side(STREAM, IN_FLIGHT),
    f"one stream, {IN_FLIGHT} messages of {ASKS} asks in flight": Side(STREAM, IN_FLIGHT, ASKS),
}


def measure(setting: Setting) -> Findings:
    """An echo by unary calls and on a stream, and a plain transaction beside it."""
    with setting.database() as url, echoing() as address:
        floor = Floor(setting, url)
        sides: dict[str, Callable[[], Load]] = {
            name: partial(echoes, address, side, setting.seconds) for name, side in SIDES.items()
        }
        sides[PLAIN] = partial(floor.lonely, setting.seconds)
        measured = alternate(sides, setting.rounds)
    asks = {name: side.asks for name, side in SIDES.items()}
    rows = [
        (name, rate(loads) * asks.get(name, 1), p50(loads), p99(loads)) for name, loads in measured.items()
    ]
    allowed = p50(measured[ALONE]) + TRANSACTIONS * p50(measured[PLAIN])
    return Findings(
        "The floor of the Scheduler Interface: an echo over gRPC",
        [Table(("side", "asks/s", "p50 ms", "p99 ms"), rows)],
        notes=[
            f"One ask at a time may take an echo and {TRANSACTIONS} plain transactions: {allowed:.2f} ms.",
            "The echo hands out bytes as they came; nothing is taken apart or put together.",
        ],
    )


def echoes(address: str, side: Side, seconds: float) -> Load:
    """The rate of echoes (messages a second) and their latencies, after a warm-up."""
    return asyncio.run(_echoes(address, side, seconds))


async def _echoes(address: str, side: Side, seconds: float) -> Load:
    message = bytes(ASK_BYTES * side.asks)
    async with grpc.aio.insecure_channel(address) as channel:
        begin = time.perf_counter() + WARM_UP
        end = begin + seconds
        if side.method == STREAM:
            call: Call = channel.stream_stream(STREAM, bytes, bytes)(None)
            latencies = await _stream(call, message, side.in_flight, begin, end)
        else:
            ask: Callable[[bytes], Awaitable[bytes]] = channel.unary_unary(UNARY, bytes, bytes)
            callers = [_unary(ask, message, begin, end) for _ in range(side.in_flight)]
            latencies = [latency for found in await asyncio.gather(*callers) for latency in found]
    return Load(len(latencies) / seconds, sorted(latencies))


async def _unary(
    ask: Callable[[bytes], Awaitable[bytes]], message: bytes, begin: float, end: float
) -> list[float]:
    latencies = []
    while (before := time.perf_counter()) < end:
        answer = await ask(message)
        after = time.perf_counter()
        assert len(answer) == len(message)
        if begin <= after < end:
            latencies.append((after - before) * 1e3)
    return latencies


async def _stream(call: Call, message: bytes, in_flight: int, begin: float, end: float) -> list[float]:
    """Each answer that comes is followed by the next message, so that so many are under way."""
    sent: deque[float] = deque()
    latencies = []
    for _ in range(in_flight):
        sent.append(time.perf_counter())
        await call.write(message)
    while sent:
        answer = await call.read()
        after = time.perf_counter()
        assert isinstance(answer, bytes)
        assert len(answer) == len(message)
        before = sent.popleft()
        if begin <= after < end:
            latencies.append((after - before) * 1e3)
        if after < end:
            sent.append(time.perf_counter())
            await call.write(message)
    await call.done_writing()
    return latencies


@contextlib.contextmanager
def echoing() -> Iterator[str]:
    """The address of an echo server that lives as long as the body runs."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.si_floor"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.stdin.close()  # that is what it waits for
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


async def _echo_stream(
    requests: AsyncIterator[bytes], _context: grpc.aio.ServicerContext[bytes, bytes]
) -> AsyncIterator[bytes]:
    async for request in requests:
        yield request


async def _echo(request: bytes, _context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
    return request


async def serve() -> None:
    """Echo on a free port, which is printed, until standard input ends."""
    server = grpc.aio.server()
    handlers = {
        "Unary": grpc.unary_unary_rpc_method_handler(_echo),
        "Stream": grpc.stream_stream_rpc_method_handler(_echo_stream),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(f"127.0.0.1:{port}", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await server.stop(None)


if __name__ == "__main__":
    asyncio.run(serve())
