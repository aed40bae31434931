"""One gRPC stream of a resource manager: requests go in one after another, answers come out beside."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from threading import Lock

import grpc
import grpc.aio
import structlog

from rm_service.facades.si.answer_feed import AnswerFeed, AnswerStream, End
from rm_service.facades.si.failures import UNREADABLE, Failure, Fault, failure_of
from rm_service.facades.si.intake import BadMessageError, Intake, Method, parse
from rm_service.facades.si.proto import si_v0_pb2 as si_v0
from rm_service.facades.si.rendering import MOST_ROWS, Response, render
from rm_service.services.si.requests import Dialect

UNDER_WAY = 64
"""Requests of one stream that may wait for their commit; the next is read when one of them has it."""

SHORT = 4096
"""Bytes of a request that takes no longer to take in than to hand to a thread: about ten asks."""

LAST_SECONDS = 1.0
"""How long a message that is being written may take when the stream ends."""

STATUS = {
    Fault.BAD_MESSAGE: grpc.StatusCode.INVALID_ARGUMENT,
    Fault.REFUSED: grpc.StatusCode.INVALID_ARGUMENT,
    Fault.NOT_REGISTERED: grpc.StatusCode.FAILED_PRECONDITION,
    Fault.UNAUTHORIZED: grpc.StatusCode.UNAUTHENTICATED,
    Fault.AWAY: grpc.StatusCode.UNAVAILABLE,
    Fault.OUTCOME_UNKNOWN: grpc.StatusCode.UNAVAILABLE,
    Fault.STOPPING: grpc.StatusCode.UNAVAILABLE,
    Fault.REGISTERED_ANEW: grpc.StatusCode.ABORTED,
    Fault.DEFECT: grpc.StatusCode.INTERNAL,
}

Context = grpc.aio.ServicerContext[bytes, bytes]

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Wish:
    """What a stream's metadata says."""

    rm_id: str = ""
    """`rm-id`: whose it is, before it has said anything. Else its first request says so."""
    after: int | None = None
    """`rm-after`: the row behind which the answers are to go on."""


class RequestStream:
    """One stream, from its first message to its end. On the event loop; `threads` do what may block."""

    def __init__(
        self, method: Method, context: Context, intake: Intake, feed: AnswerFeed, threads: Executor
    ) -> None:
        self._method = method
        self._context = context
        self._intake = intake
        self._feed = feed
        self._threads = threads
        self._loop = asyncio.get_running_loop()
        self._wish = Wish()
        self._rm_id = ""
        self._binding = Lock()
        self._answers: AnswerStream | None = None
        self._closed = False
        self._ready = asyncio.Event()
        self._writing = False
        self._room = asyncio.Semaphore(UNDER_WAY)
        self._ended: asyncio.Future[Failure | None] = self._loop.create_future()

    async def serve(self, wish: Wish) -> None:
        """Returns, or aborts the call, when it has ended."""
        self._wish = wish
        # Else the first message takes them along; if that is interrupted, grpcio sends them twice, and fails.
        await self._context.send_initial_metadata(())
        taking = asyncio.create_task(self._take_requests())
        giving = asyncio.create_task(self._give_answers())
        try:
            failure = await self._ended
        finally:
            taking.cancel()
            self.end(None)
            self._ready.set()
            await asyncio.wait([giving], timeout=LAST_SECONDS)
            giving.cancel()
            await asyncio.gather(taking, giving, return_exceptions=True)
            self._close_answers()
        if failure is not None:
            await self._refuse(failure)

    def end(self, failure: Failure | None) -> None:
        """Have it end so; None: well."""
        if not self._ended.done():
            self._ended.set_result(failure)

    async def _refuse(self, failure: Failure) -> None:
        _log.info("si_stream_ended", rm_id=self._rm_id, method=self._method.name, reason=failure.reason)
        anew = failure.fault is Fault.REGISTERED_ANEW
        if anew and self._method.dialect is Dialect.OLD and not self._writing:
            await self._write(si_v0.UpdateResponse(action=si_v0.UpdateResponse.RESYNC))
        else:
            await self._context.abort(STATUS[failure.fault], failure.reason)

    async def _write(self, message: Response) -> None:
        self._writing = True  # and so it stays if this is cancelled: the client has not read all of it
        await self._context.write(message.SerializeToString())
        self._writing = False

    async def _take_requests(self) -> None:
        try:
            if self._wish.rm_id:
                await self._loop.run_in_executor(self._threads, self._bind, self._wish.rm_id)
            while True:
                data: object = await self._context.read()
                if not isinstance(data, bytes):
                    break  # the client has no more to say, and listens
                await self._room.acquire()
                handed_in = self._take_at_once(data)
                if handed_in is None:
                    handed_in = await self._loop.run_in_executor(self._threads, self._hand_in, data)
                handed_in.add_done_callback(partial(self._call, self._committed))
            if self._answers is None:
                self.end(None)
        except grpc.aio.InternalError:
            self.end(None)  # the client has left
        except Exception as error:  # noqa: BLE001 - every error has its status
            self._fail(error)

    def _take_at_once(self, data: bytes) -> Future[None] | None:
        """One request, if it is short and waits for nothing: a thread would only take longer."""
        if len(data) > SHORT:
            return None
        message = parse(self._method.request, data)
        if message.rmID != self._rm_id or self._intake.waits(message):
            return None
        return self._intake.update(self._method, message)

    def _hand_in(self, data: bytes) -> Future[None]:
        """One request, on a thread."""
        message = parse(self._method.request, data)
        self._bind(message.rmID)
        return self._intake.update(self._method, message)

    def _bind(self, rm_id: str) -> None:
        """The first request says whose stream it is; any other must be of the same resource manager."""
        if rm_id and rm_id == self._rm_id:
            return
        if not rm_id:
            raise BadMessageError("must not be empty", "rmID")
        if self._rm_id:
            raise BadMessageError(f'this stream is that of "{self._rm_id}", not of "{rm_id}"', "rmID")
        ready = partial(self._call, self._look)
        answers = self._feed.open(rm_id, self._method.stream, ready, self._wish.after)
        with self._binding:
            if not self._closed:
                self._answers, self._rm_id = answers, rm_id
                ready()
                return
        answers.close()  # the stream has ended meanwhile

    def _close_answers(self) -> None:
        with self._binding:
            self._closed = True
        if self._answers is not None:
            self._answers.close()

    def _call(self, then: Callable[..., object], *args: object) -> None:
        """From any thread: have `then` called on the event loop."""
        with suppress(RuntimeError):  # the loop has ended, and with it the stream
            self._loop.call_soon_threadsafe(then, *args)

    def _committed(self, handed_in: Future[None]) -> None:
        self._room.release()
        error = handed_in.exception()
        if error is not None:
            self._fail(error)

    def _look(self) -> None:
        """There are answers to give, or it is the end of them, even while the client reads nothing."""
        self._ready.set()
        end = self._answers.end if self._answers is not None else None
        if end is End.UNREADABLE:
            self.end(UNREADABLE)
        elif end is End.REGISTERED_ANEW:
            reason = f'RESYNC: RmID "{self._rm_id}" has registered again'
            self.end(Failure(Fault.REGISTERED_ANEW, reason))

    async def _give_answers(self) -> None:
        try:
            while not self._ended.done():
                await self._ready.wait()
                self._ready.clear()
                answers = self._answers
                while answers is not None and (rows := answers.take(MOST_ROWS)):
                    for message in render(rows, self._dialect(answers)):
                        await self._write(message)
                        answers.handed_on(message.rmRow)
                        if self._ended.done():
                            return
        except grpc.aio.InternalError:
            self.end(None)  # the client has left
        except Exception as error:  # noqa: BLE001 - every error has its status
            self._fail(error)

    def _dialect(self, answers: AnswerStream) -> Dialect:
        known = answers.standing.dialect if answers.standing is not None else None
        return self._method.dialect or self._intake.dialect(self._rm_id, known)

    def _fail(self, error: BaseException) -> None:
        self.end(failure_of(error, self._method.request.DESCRIPTOR.name))
