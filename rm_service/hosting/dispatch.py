"""The server's ASGI application: streams stay on the event loop, everything else goes to WSGI on threads."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from rm_service.hosting.answer import Answer, latin_1, problem
from rm_service.hosting.connection import CONNECTION, Connection
from rm_service.hosting.request_pool import RequestPool, SaturatedError
from rm_service.hosting.streams import LongPoll, Send, Stream, StreamHub, StreamRequest, StreamRoute
from rm_service.hosting.wsgi_bridge import call_wsgi

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

log = logging.getLogger(__name__)

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


class BodyTooLargeError(Exception):
    """The body is, or says that it is, longer than `limit` bytes."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"the body exceeds {limit} bytes")
        self.limit = limit


class ClientGoneError(Exception):
    """The client left before its request was complete."""


class Dispatcher:
    """Answers every request of one event loop. A body is read whole before a thread is taken for it."""

    def __init__(
        self,
        application: "WSGIApplication",
        routes: Sequence[StreamRoute],
        *,
        pool: RequestPool,
        hub: StreamHub,
        max_body: int,
    ) -> None:
        self._application = application
        self._routes = routes
        self._pool = pool
        self._hub = hub
        self._max_body = max_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection: Connection = scope["extensions"][CONNECTION]
        try:
            result = await self._result(scope, receive, connection)
            if isinstance(result, Stream):
                await self._hub.serve(result, send, connection)
            else:
                headers = latin_1(result.headers)
                await send({"type": "http.response.start", "status": result.status, "headers": headers})
                with connection.answering(scope):
                    await send({"type": "http.response.body", "body": result.body})
        except ClientGoneError:
            return
        except asyncio.CancelledError:
            log.warning("%s %s was cut off: the grace of the stop is over", scope["method"], scope["path"])
            connection.cut()

    async def _result(self, scope: Scope, receive: Receive, connection: Connection) -> Answer | Stream:
        try:
            body = await read_body(scope, receive, self._max_body)
        except BodyTooLargeError as exc:
            route, _ = self._claim(scope, b"")
            return _too_large(scope, exc, None if route is None else route.too_large)
        try:
            route, request = self._claim(scope, body)
            if route is None:
                return await self._pool.run(partial(call_wsgi, self._application, scope, body))
            if scope["http_version"] == "1.0":
                detail = "A stream has no length beforehand, which needs HTTP/1.1."
                return problem(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, "http_version", detail)
            return await self._open(route, request, connection)
        except SaturatedError as exc:
            detail = f"{exc.accepted} requests are being served or wait already."
            return problem(HTTPStatus.SERVICE_UNAVAILABLE, "overloaded", detail, [("Retry-After", "1")])

    async def _open(
        self, route: StreamRoute, request: StreamRequest, connection: Connection
    ) -> Answer | Stream:
        opened = await self._pool.run(partial(route.open, request))
        if not isinstance(opened, LongPoll):
            return opened
        if not await self._hub.wait(opened, connection):
            raise ClientGoneError
        return await self._pool.run(opened.render)

    def _claim(self, scope: Scope, body: bytes) -> tuple[StreamRoute | None, StreamRequest]:
        request = StreamRequest(
            method=scope["method"],
            path=scope["path"],
            query=scope["query_string"].decode("latin-1"),
            headers={name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]},
            body=body,
            remote_address=scope["client"][0] if scope["client"] else "",
        )
        return next((route for route in self._routes if route.matches(request)), None), request


async def read_body(scope: Scope, receive: Receive, limit: int) -> bytes:
    """The whole body. Raises `BodyTooLargeError`, before reading if possible, and `ClientGoneError`."""
    announced = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
    if int(announced) > limit:
        raise BodyTooLargeError(limit)
    chunks: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        chunks.append(message["body"])
        size += len(message["body"])
        more = message["more_body"]
        if size > limit:
            raise BodyTooLargeError(limit)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _too_large(scope: Scope, error: BodyTooLargeError, said: Answer | None) -> Answer:
    """What the route says of it, or a problem document."""
    # The connection reads the rest of the body away, so that the client gets to read this answer. A client
    # that waits for "100 Continue" sends no rest: its next request would be taken for it.
    expects = any(name == b"expect" for name, _ in scope["headers"])
    headers = [("Connection", "close")] if expects else []
    if said is not None:
        return Answer(said.status, [*said.headers, *headers], said.body)
    detail = f"The body exceeds {error.limit} bytes."
    return problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "body_too_large", detail, headers)
