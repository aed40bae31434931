"""One HTTP/1.1 connection: uvicorn's protocol with the limits on size and time that it leaves to others."""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from rm_service.hosting.answer import Answer, latin_1, problem

LAST_SECONDS = 0.5  # when the server stops: the time for a request to begin and, if it has, to be complete
WASTE = 8  # bytes read for each byte of body that is allowed: chunked framing, the rest of a refused body
CONNECTION = "rm_service.connection"  # the ASGI extension that carries the request's `Connection`


@dataclass(frozen=True, slots=True)
class Limits:
    """`head` and `body` in bytes; a request has `request_seconds` from its first byte to its last."""

    head: int = 64 * 2**10
    body: int = 4 * 2**20
    request_seconds: float = 30.0


class HeadTooLargeError(Exception):
    """Ends the parsing of a request whose target and headers exceed the limit."""


class Connection(HttpToolsProtocol):
    """Use `limited` to make the class for uvicorn's `http` setting."""

    limits = Limits()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._in_head = False
        self._head_size = 0
        self._received = 0
        self._last_request = False
        self._lingers = False
        self._deadline: float | None = self._due()
        self.on_lost: Callable[[], None] | None = None

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self.on_lost is not None:
            self.on_lost()

    @contextmanager
    def answering(self, scope: Mapping[str, Any]) -> Iterator[None]:
        """Around the last part of an answer. If it comes before its request is complete, and is the
        connection's last, the rest of the request is read away: a client that is reset while it still sends
        may never read the answer.
        """
        cycle: RequestResponseCycle = self.cycle
        expects = any(name == b"expect" for name, _ in self.headers)  # then it does not send the rest
        if cycle.scope is not scope or cycle.keep_alive or expects or _is_complete(cycle):
            yield
            return
        cycle.keep_alive = self._lingers = True  # the answer has said "close" already
        yield
        if _is_complete(cycle):
            self.transport.close()
        elif not self.transport.is_closing():
            self.transport.write_eof()

    def cut(self) -> None:
        """Closes at once; what was written and not sent is lost."""
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as exc:
            self._decline_upgrade(data[exc.args[0] :])
        except httptools.HttpParserError:
            self._refuse(self._unreadable())
        if self._deadline is not None:
            self._received += len(data)
            if self._in_head and self._received > self.limits.head:
                self._refuse(self._unreadable())
            elif self._received > self.limits.head + WASTE * self.limits.body:
                self.transport.abort()

    def _decline_upgrade(self, rest: bytes) -> None:
        """Reads the request again without its offer of another protocol: the parser takes the body for that.

        Java's HttpClient offers HTTP/2 in the first request of a connection; uvicorn loses that one's body.
        """
        method = self.parser.get_method()
        if method == b"CONNECT":
            self._refuse(problem(HTTPStatus.BAD_REQUEST, "malformed_request", "This server is no proxy."))
            return
        version = self.parser.get_http_version().encode()
        lines = [name + b": " + value for name, value in self.headers if name != b"upgrade"]
        head = b"\r\n".join([method + b" " + self.url + b" HTTP/" + version, *lines, b"", b""])
        self.parser = httptools.HttpRequestParser(self)
        self.data_received(head + rest)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["extensions"] = {CONNECTION: self}  # type: ignore[dict-item]
        self._in_head = True
        self._head_size = 0
        self._received = 0
        self._deadline = self._due()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # a trailer must not pose as a header
            self._head_size += len(name) + len(value)
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if self._head_size + len(self.url) > self.limits.head:
            raise HeadTooLargeError
        if self.parser.should_upgrade():
            return
        self._in_head = False
        super().on_headers_complete()
        if self._last_request:
            self.cycle.keep_alive = False

    def on_message_complete(self) -> None:
        if self._in_head:
            return  # of a request that will be read again
        super().on_message_complete()
        answered = self.cycle.response_complete  # a refused body that was read to its end
        self._deadline = self._due() if answered else None
        if self._lingers and answered:
            self.transport.close()

    def expire(self, now: float) -> None:
        """Ends a connection whose request did not arrive in time. `now` is monotonic seconds."""
        if self._deadline is None or now < self._deadline or self.transport.is_closing():
            return
        self._deadline = None
        if self._in_head or self._is_served():
            detail = f"The request was not complete within {self.limits.request_seconds:g} s."
            self._refuse(problem(HTTPStatus.REQUEST_TIMEOUT, "request_timeout", detail))
        else:
            self.transport.close()

    def shutdown(self) -> None:
        """The server stops: one more answer, if a request is under way or comes in the next moment.

        A client that keeps its connection busy therefore reads "Connection: close", not a reset.
        """
        if self._last_request:
            return
        self._last_request = True
        if self._is_served() and not self._in_head:
            self.cycle.keep_alive = False
        if self._deadline is not None or not self._is_served():
            self._deadline = self._due()

    def _due(self) -> float:
        return time.monotonic() + (LAST_SECONDS if self._last_request else self.limits.request_seconds)

    def _is_served(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete

    def _unreadable(self) -> Answer:
        if self._in_head and max(self._received, self._head_size + len(self.url)) > self.limits.head:
            detail = f"The target and the headers exceed {self.limits.head} bytes."
            return problem(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "head_too_large", detail)
        return problem(HTTPStatus.BAD_REQUEST, "malformed_request", "This is not a valid HTTP request.")

    def _refuse(self, answer: Answer) -> None:
        if self._lingers:
            self.transport.close()
            return
        if self._is_served() and not self.cycle.more_body:
            # An earlier request is still being answered: that answer is the connection's last.
            self.cycle.keep_alive = False
            self.flow.pause_reading()
            return
        lines = [name + b": " + value + b"\r\n" for name, value in latin_1(answer.headers)]
        self.transport.write(
            b"".join([STATUS_LINE[answer.status], *lines, b"Connection: close\r\n\r\n", answer.body])
        )
        self.transport.close()


def _is_complete(cycle: RequestResponseCycle) -> bool:
    """Whether all of a request has been read."""
    return not cycle.more_body


def limited(limits: Limits) -> type[Connection]:
    """The connection class with these limits; uvicorn makes the connections, without settings of ours."""
    return type("LimitedConnection", (Connection,), {"limits": limits})
