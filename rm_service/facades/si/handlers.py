"""The methods of `si.v1.Scheduler` for the gRPC server. Bytes in, bytes out: each reads its own messages."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import grpc
import grpc.aio
import structlog

from rm_service.facades.si.answer_feed import AnswerFeed
from rm_service.facades.si.failures import STOPPED, failure_of
from rm_service.facades.si.intake import METHODS, REGISTER, BadMessageError, Intake, Method, parse
from rm_service.facades.si.proto import si_pb2 as si
from rm_service.facades.si.streams import STATUS, Context, RequestStream, Wish
from rm_service.hosting.authentication import Authentication

SERVICE = "si.v1.Scheduler"
THREADS = 16
"""How many requests are taken in at the same time: none of them waits there for its commit."""

_log = structlog.get_logger(__name__)


class SchedulerHandlers:
    """What the gRPC server is given: `handler`, and `end_streams` for when it stops."""

    def __init__(self, intake: Intake, feed: AnswerFeed, authentication: Authentication) -> None:
        self._intake = intake
        self._feed = feed
        self._authentication = authentication
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="si-intake")
        self._streams: set[RequestStream] = set()
        self._ending = False
        self.handler = grpc.method_handlers_generic_handler(
            SERVICE,
            {
                REGISTER: grpc.unary_unary_rpc_method_handler(self._register),
                **{name: self._method(method) for name, method in METHODS.items()},
            },
        )

    def __len__(self) -> int:
        return len(self._streams)

    def end_streams(self) -> None:
        """The service stops: every stream ends, and none begins. On the event loop."""
        self._ending = True
        for stream in tuple(self._streams):
            stream.end(STOPPED)

    def stop(self) -> None:
        """After the server has stopped."""
        self._threads.shutdown()

    async def _register(self, data: bytes, context: Context) -> bytes:
        try:
            authorization, _ = _metadata(context)
            await self._run(partial(self._take_registration, data, authorization))
        except Exception as error:  # noqa: BLE001 - every error has its status
            failure = failure_of(error, REGISTER)
            _log.info("si_registration_refused", reason=failure.reason)
            await context.abort(STATUS[failure.fault], failure.reason)
        return si.RegisterResourceManagerResponse().SerializeToString()

    def _take_registration(self, data: bytes, authorization: str | None) -> None:
        self._authentication.caller(authorization)
        self._intake.register(parse(si.RegisterResourceManagerRequest, data))

    def _method(self, method: Method) -> "grpc.RpcMethodHandler[bytes, bytes]":
        async def update(_requests: object, context: Context) -> None:
            stream = RequestStream(method, context, self._intake, self._feed, self._threads)
            try:
                authorization, wish = _metadata(context)
                await self._run(partial(self._authentication.caller, authorization))
            except Exception as error:  # noqa: BLE001 - every error has its status
                failure = failure_of(error, method.name)
                await context.abort(STATUS[failure.fault], failure.reason)
            self._streams.add(stream)
            try:
                if self._ending:
                    stream.end(STOPPED)
                await stream.serve(wish)
            finally:
                self._streams.discard(stream)

        return grpc.stream_stream_rpc_method_handler(update)

    async def _run(self, job: Callable[[], object]) -> None:
        await asyncio.get_running_loop().run_in_executor(self._threads, job)


def _metadata(context: Context) -> tuple[str | None, Wish]:
    """The token, and what a stream is wished to be. Raises BadMessageError."""
    given = {name: value for name, value in context.invocation_metadata() or () if isinstance(value, str)}
    after = given.get("rm-after")
    if after is not None and not (after.isascii() and after.isdecimal() and len(after) < 19):
        raise BadMessageError("is not the number of a row", "rm-after")
    wish = Wish(given.get("rm-id", ""), None if after is None else int(after))
    return given.get("authorization"), wish
