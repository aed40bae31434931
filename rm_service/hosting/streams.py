"""Answers without an end (events, watches, long polls), served on the event loop instead of a request thread.

A `StreamRoute` claims a request and opens a `Stream`; from then on any thread pushes chunks into it. The
`StreamHub` delivers them.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from rm_service.hosting.answer import Answer, latin_1
from rm_service.hosting.connection import Connection

TURNS = 64  # keep-alives go to a part of the streams at a time: to all at once would hold up every request

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class StreamRequest:
    """A request as stream routes see it: the path decoded, the query not, header names in lower case."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes
    remote_address: str


class Stream:
    """One answer that stays open. `push` and `close` may be called from any thread, also before it is served.

    At most `buffer_limit` bytes wait for a slow reader: beyond that the connection is cut, and the client
    resumes where it stopped. A feeder with much to say (a resume from long ago) paces itself by `on_drain`,
    called whenever all that was pushed has been handed on. `on_close` is called once, however the stream
    ends. `keep_alive` is sent once in each period of the server's one timer; it may be made anew each time.
    All three are called on the event loop and must not block.
    """

    def __init__(
        self,
        headers: Sequence[tuple[str, str]],
        *,
        keep_alive: bytes | Callable[[], bytes] = b"",
        buffer_limit: int = 2**20,
        on_drain: Callable[[], None] | None = None,
        on_close: Callable[[], None] | None = None,
    ) -> None:
        self.headers = headers
        self.keep_alive = keep_alive
        self.on_drain = on_drain
        self.on_close = on_close
        self.closed = False  # nothing more is taken; what was pushed before `close` is still delivered
        self.overflowed = False  # closed because its reader was too slow
        self._buffer_limit = buffer_limit
        self._lock = threading.Lock()
        self._chunks: list[bytes] = []
        self._size = 0
        self._changed: Callable[[Stream], None] | None = None

    def push(self, chunk: bytes) -> bool:
        """Whether the chunk was taken: False once the stream is closed, by whichever side."""
        with self._lock:
            if self.closed:
                return False
            self._size += len(chunk)
            self.overflowed = self.closed = self._size > self._buffer_limit
            if self.overflowed:
                self._chunks.clear()
            else:
                self._chunks.append(chunk)
            taken = not self.overflowed
        self._tell()
        return taken

    def close(self) -> None:
        """Ends the answer cleanly, after what was pushed."""
        with self._lock:
            self.closed = True
        self._tell()

    def attach(self, changed: Callable[["Stream"], None]) -> None:
        """For the hub: `changed` is called, on any thread, when there is something to take or it closed."""
        self._changed = changed

    def take(self) -> bytes:
        """For the hub: everything pushed since the last time."""
        with self._lock:
            taken = b"".join(self._chunks)
            self._chunks.clear()
            self._size = 0
        return taken

    def discard(self) -> None:
        """For the hub: the client has gone, nothing can be delivered."""
        with self._lock:
            self.closed = True
            self._chunks.clear()
        self._tell()

    def _tell(self) -> None:
        if self._changed is not None:
            self._changed(self)


class LongPoll:
    """One whole answer that is still to come: rendered on a request thread when there is reason to.

    That is when `wake` was called (by any thread), after `seconds`, or when the server stops. `on_close` is
    called on the event loop when the waiting is over, also because the client has left.
    """

    def __init__(
        self, render: Callable[[], Answer], *, seconds: float, on_close: Callable[["LongPoll"], object]
    ) -> None:
        self.render = render
        self.seconds = seconds
        self.on_close = on_close
        self.woken: Future[None] = Future()

    def wake(self) -> None:
        """Have it answered now. More than once does nothing more."""
        with suppress(InvalidStateError):
            self.woken.set_result(None)


@dataclass(frozen=True, slots=True)
class StreamRoute:
    """Claims the requests that it answers with a stream.

    `matches` is asked on the event loop for every request: it must be quick and must not block. `open` runs
    on a request thread, so it may read the database; it returns a stream, a long poll, or an `Answer` to
    refuse (400, 401) or because there is nothing to wait for. `too_large` answers a request whose body is
    longer than the server reads; `matches` is then asked without it.
    """

    matches: Callable[[StreamRequest], bool]
    open: Callable[[StreamRequest], Stream | LongPoll | Answer]
    too_large: Answer | None = None


class StreamHub:
    """Serves the open streams of a loop: one wake-up for many pushes, one timer for all keep-alives."""

    def __init__(self, loop: asyncio.AbstractEventLoop, keep_alive_seconds: float) -> None:
        self._loop = loop
        self._keep_alive_seconds = keep_alive_seconds
        self._open: dict[Stream, tuple[asyncio.Event, Connection]] = {}
        self._polls: set[LongPoll] = set()
        self._ending = False
        self._lock = threading.Lock()
        self._marked: set[Stream] = set()
        self._turns: deque[set[Stream]] = deque(set() for _ in range(TURNS))
        self._tick()

    def __len__(self) -> int:
        return len(self._open) + len(self._polls)

    def end(self) -> None:
        """Closes every stream cleanly, and a later one as soon as it opens; answers the long polls."""
        self._ending = True
        for poll in self._polls:
            poll.wake()
        for stream in list(self._open):
            stream.close()

    async def serve(self, stream: Stream, send: Send, connection: Connection) -> None:
        """Returns when the stream has ended."""
        changed = asyncio.Event()
        changed.set()
        self._open[stream] = (changed, connection)
        turn = self._turns[-1]  # the one that was just served: its next is a whole period away
        turn.add(stream)
        stream.attach(self._mark)
        connection.on_lost = stream.discard
        if connection.transport.is_closing():
            stream.discard()  # the client has left while the stream was opened
        if self._ending:
            stream.close()
        try:
            await send({"type": "http.response.start", "status": 200, "headers": latin_1(stream.headers)})
            await self._deliver(stream, changed, send)
            if stream.overflowed:
                connection.cut()
            else:
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            connection.on_lost = None
            stream.discard()
            del self._open[stream]
            turn.discard(stream)
            if stream.on_close is not None:
                stream.on_close()

    async def wait(self, poll: LongPoll, connection: Connection) -> bool:
        """Returns when the poll is to be answered; False if its client has left."""
        self._polls.add(poll)
        connection.on_lost = poll.wake
        if self._ending or connection.transport.is_closing():
            poll.wake()
        woken = asyncio.wrap_future(poll.woken, loop=self._loop)
        try:
            await asyncio.wait([woken], timeout=poll.seconds)
        finally:
            woken.cancel()
            connection.on_lost = None
            self._polls.discard(poll)
            poll.on_close(poll)
        return not connection.transport.is_closing()

    async def _deliver(self, stream: Stream, changed: asyncio.Event, send: Send) -> None:
        while True:
            await changed.wait()
            changed.clear()
            last = stream.closed  # read before taking: a chunk pushed before `close` must not be left behind
            chunk = stream.take()
            if chunk:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            if last:
                return
            if chunk and stream.on_drain is not None:
                stream.on_drain()

    def _mark(self, stream: Stream) -> None:
        with self._lock:
            first = not self._marked
            self._marked.add(stream)
        if first:
            try:
                self._loop.call_soon_threadsafe(self._wake)
            except RuntimeError:
                return  # the loop has ended, and with it every stream

    def _wake(self) -> None:
        with self._lock:
            marked, self._marked = self._marked, set()
        for stream in marked:
            if stream not in self._open:
                continue
            changed, connection = self._open[stream]
            changed.set()
            if stream.overflowed:
                connection.cut()  # its task may be stuck on the slow reader; this frees it

    def _tick(self) -> None:
        self._loop.call_later(self._keep_alive_seconds / TURNS, self._tick)
        self._turns.rotate(-1)
        for stream in self._turns[-1]:
            chunk = stream.keep_alive() if callable(stream.keep_alive) else stream.keep_alive
            if chunk:
                stream.push(chunk)
