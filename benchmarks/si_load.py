"""Load over the Scheduler Interface, from a process of its own: asks go out, grants are counted."""

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import grpc
import grpc.aio

from benchmarks import si_scene
from benchmarks.flight import WARM_UP
from benchmarks.rounds import Load
from rm_service.facades.si.proto import si_pb2 as si

METHOD = "/si.v1.Scheduler/UpdateAllocation"
NO_LIMIT = (("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1))

Call = grpc.aio.StreamStreamCall[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Streamer:
    """A resource manager that keeps so many messages under way on one stream."""

    address: str
    rm_id: str
    asks: int = 1
    in_flight: int = 1


@dataclass(slots=True)
class Span:
    """A stretch of load; what is granted in it counts, with how long (ms) its message took."""

    begin: float
    end: float
    granted: int = 0
    latencies: list[float] = field(default_factory=list)

    @classmethod
    def of(cls, seconds: float) -> "Span":
        """It begins after a warm-up."""
        begin = time.perf_counter() + WARM_UP
        return cls(begin, begin + seconds)

    def count(self, now: float, granted: int) -> None:
        if self.begin <= now < self.end:
            self.granted += granted

    def took(self, sent: float, now: float) -> None:
        if self.begin <= now < self.end:
            self.latencies.append((now - sent) * 1e3)

    def load(self) -> Load:
        """The rate is that of granted asks."""
        return Load(self.granted / (self.end - self.begin), sorted(self.latencies))


def stream(streamers: Sequence[Streamer], seconds: float) -> Load:
    """All of these at the same time, a stream each."""

    async def run() -> Load:
        span = Span.of(seconds)
        await asyncio.gather(*(_stream(each, span) for each in streamers))
        return span.load()

    return asyncio.run(run())


def stream_per_ask(address: str, rm_ids: Sequence[str], seconds: float) -> Load:
    """Each of these opens a stream for one ask, waits for what is granted, closes it, and so on."""

    async def run() -> Load:
        span = Span.of(seconds)
        async with grpc.aio.insecure_channel(address) as channel:
            await asyncio.gather(*(_stream_per_ask(channel, rm_id, span) for rm_id in rm_ids))
        return span.load()

    return asyncio.run(run())


async def _stream(streamer: Streamer, span: Span) -> None:
    template = si_scene.message(streamer.rm_id, streamer.asks)
    async with grpc.aio.insecure_channel(streamer.address, options=NO_LIMIT) as channel:
        asking = _Asking(_open(channel, streamer.rm_id), template)
        sent: deque[float] = deque()
        for _ in range(streamer.in_flight):
            sent.append(await asking.ask())
        missing = streamer.asks  # of the oldest message that is under way
        while sent:
            granted = await asking.granted()
            now = time.perf_counter()
            span.count(now, granted)
            missing -= granted
            while missing <= 0 and sent:
                span.took(sent.popleft(), now)
                missing += streamer.asks
                if now < span.end:
                    sent.append(await asking.ask())
        asking.leave()


async def _stream_per_ask(channel: grpc.aio.Channel, rm_id: str, span: Span) -> None:
    template = si_scene.message(rm_id, 1)
    while (begun := time.perf_counter()) < span.end:
        asking = _Asking(_open(channel, rm_id), template)
        await asking.ask()
        while not (granted := await asking.granted()):
            pass
        now = time.perf_counter()
        span.count(now, granted)
        span.took(begun, now)
        asking.leave()


def _open(channel: grpc.aio.Channel, rm_id: str) -> Call:
    call: Call = channel.stream_stream(METHOD, bytes, bytes)(None, metadata=(("rm-id", rm_id),))
    return call


class _Asking:
    """One stream on which asks go out and grants come in."""

    def __init__(self, call: Call, template: bytes) -> None:
        self._call = call
        self._template = template
        self._numbers = si_scene.numbers()
        self._first = ""

    async def ask(self) -> float:
        """Send one message; when that was."""
        number = next(self._numbers)
        self._first = self._first or number.decode()
        sent = time.perf_counter()
        await self._call.write(si_scene.numbered(self._template, number))
        return sent

    async def granted(self) -> int:
        """How much of what was asked for here the next response grants. A refusal is an error."""
        data: object = await self._call.read()
        assert isinstance(data, bytes), "the stream has ended"
        response = si.AllocationResponse.FromString(data)
        assert not response.rejected, response.rejected[0]
        assert not response.rejectedAllocations, response.rejectedAllocations[0]
        new = response.new
        if not new or new[0].allocationKey >= self._first:
            return len(new)
        return sum(each.allocationKey >= self._first for each in new)  # else an earlier stream's last ones

    def leave(self) -> None:
        self._call.cancel()
