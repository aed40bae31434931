"""The HTTP twin of the Scheduler Interface: the same messages as JSON, below /si/v1.

Each method is a POST that is answered when all of it is committed; the answers to a resource manager are one
stream of lines. It needs no web framework: requests come from the HTTP server's own routes.
"""

import time
from collections.abc import Callable
from http import HTTPStatus
from threading import Lock
from urllib.parse import parse_qsl

from rm_service.facades.si.answer_feed import AnswerFeed, AnswerStream, End, RowAheadError
from rm_service.facades.si.failures import Failure, Fault, failure_of
from rm_service.facades.si.intake import HTTP_STREAM, METHODS, REGISTER, BadMessageError, Intake
from rm_service.facades.si.json_mapping import MessageJsonError, parse_json, to_json
from rm_service.facades.si.proto import si_pb2 as si
from rm_service.facades.si.proto import si_v0_pb2 as si_v0
from rm_service.facades.si.rendering import MOST_ROWS, Response, own_fields, render
from rm_service.hosting.answer import Answer, problem
from rm_service.hosting.authentication import CHALLENGE, NOBODY, Authentication
from rm_service.hosting.request_log import NO_ROUTE, RequestLog
from rm_service.hosting.streams import Stream, StreamRequest, StreamRoute
from rm_service.services.si.requests import Dialect

ROOT = "/si/v1/"
RESPONSES = "responses/"
JSON = "application/json"
HEADERS = (
    ("Content-Type", "application/x-ndjson"),
    ("Cache-Control", "no-store"),
    ("X-Accel-Buffering", "no"),  # a proxy must not collect what is meant to be seen at once
    ("X-Content-Type-Options", "nosniff"),
)
KEEP_ALIVE = b"\n"
BUFFER_LIMIT = 64 * 2**20
"""Bytes: more than the lines that are pushed at a time can have."""


RESYNC = b'{"RESYNC":{"reason":"the resource manager has registered again since"}}\n'
"""The last line of the newer dialects when the resource manager is to begin anew."""


class HttpTwin:
    """Answers everything below /si/v1. `route` is what the HTTP server is given."""

    def __init__(
        self, intake: Intake, feed: AnswerFeed, authentication: Authentication, request_log: RequestLog
    ) -> None:
        self.route = StreamRoute(lambda request: request.path.startswith(ROOT), self._open)
        self._intake = intake
        self._feed = feed
        self._authentication = authentication
        self._request_log = request_log

    def _open(self, request: StreamRequest) -> Stream | Answer:
        """On a request thread, which for a POST waits for the commit."""
        began, caller = time.perf_counter(), NOBODY
        name = request.path.removeprefix(ROOT)

        def ended() -> None:
            seconds = time.perf_counter() - began
            self._request_log.stream_ended(path=request.path, seconds=seconds, caller=caller)

        try:
            caller = self._authentication.caller(request.headers.get("authorization"))
            answer = self._answer(name, request, ended)
        except Exception as error:  # noqa: BLE001 - every error has its problem document
            answer = _problem(failure_of(error, _received(name)))
        self._request_log.answered(
            method=request.method,
            path=request.path,
            route=_route(request.method, name),
            status=int(HTTPStatus.OK if isinstance(answer, Stream) else answer.status),
            seconds=time.perf_counter() - began,
            caller=caller,
        )
        return answer

    def _answer(self, name: str, request: StreamRequest, ended: Callable[[], None]) -> Stream | Answer:
        if name.startswith(RESPONSES):
            return _only("GET", request) or self._responses(name.removeprefix(RESPONSES), request, ended)
        if name == REGISTER or name in METHODS:
            return _only("POST", request) or self._take(name, request)
        return problem(HTTPStatus.NOT_FOUND, "not_found", "nothing is under this path")

    def _take(self, name: str, request: StreamRequest) -> Answer:
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
            detail = f"The body must be {JSON}."
            return problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", detail)
        try:
            if name == REGISTER:
                self._intake.register(parse_json(si.RegisterResourceManagerRequest, request.body))
            else:
                message = parse_json(METHODS[name].request, request.body)
                self._intake.update(METHODS[name], message).result()
        except MessageJsonError as error:
            raise BadMessageError(error.reason, error.field) from error
        headers = [("Content-Type", JSON), ("Content-Length", "2"), ("Cache-Control", "no-store")]
        return Answer(HTTPStatus.OK, headers, b"{}")

    def _responses(self, rm_id: str, request: StreamRequest, ended: Callable[[], None]) -> Stream:
        after = _after(request.query)
        lines = _Lines(self._intake, self._feed, ended)
        try:
            lines.open(rm_id, after)
        except RowAheadError as error:
            raise BadMessageError(str(error), "after") from error
        return lines.stream


class _Lines:
    """One stream of responses. Its lines are made on the feed's threads, as many as its reader has read."""

    def __init__(self, intake: Intake, feed: AnswerFeed, ended: Callable[[], None]) -> None:
        self.stream = Stream(
            HEADERS,
            keep_alive=KEEP_ALIVE,
            buffer_limit=BUFFER_LIMIT,
            on_drain=self._on_drain,
            on_close=self._on_close,
        )
        self._intake = intake
        self._feed = feed
        self._ended = ended
        self._answers: AnswerStream | None = None
        self._making = Lock()
        self._lock = Lock()
        self._pushed: int | None = None
        """The last row of the lines that were pushed and not handed on yet."""

    def open(self, rm_id: str, after: int | None) -> None:
        """As AnswerFeed.open."""
        self._answers = self._feed.open(rm_id, HTTP_STREAM, self._make_soon, after)
        self._make_soon()

    def _make_soon(self) -> None:
        self._feed.run(self._make)

    def _make(self) -> None:
        answers = self._answers
        if answers is None:
            return
        with self._making:
            if self._pushed is not None:
                return
            rows = answers.take(MOST_ROWS)
            if rows:
                dialect = self._dialect(answers)
                lines = b"".join([_line(own_fields(each, dialect)) for each in render(rows, dialect)])
                with self._lock:
                    self._pushed = rows[-1][0]
                    self.stream.push(lines)
            elif answers.end is not None:
                if answers.end is End.REGISTERED_ANEW:
                    old = self._dialect(answers) is Dialect.OLD
                    resync = si_v0.UpdateResponse(action=si_v0.UpdateResponse.RESYNC)
                    self.stream.push(_line(resync) if old else RESYNC)
                self.stream.close()

    def _on_drain(self) -> None:
        with self._lock:
            pushed, self._pushed = self._pushed, None
        if pushed is not None and self._answers is not None:
            self._answers.handed_on(pushed)
            self._make_soon()

    def _on_close(self) -> None:
        if self._answers is not None:
            self._answers.close()
        self._ended()

    def _dialect(self, answers: AnswerStream) -> Dialect:
        known = None if answers.standing is None else answers.standing.dialect
        return self._intake.dialect(answers.rm_id, known)


def _line(message: Response) -> bytes:
    return f'{{"{message.DESCRIPTOR.name}":{to_json(message)}}}\n'.encode()


def _received(name: str) -> str:
    """What a client has sent, by the name of the message."""
    return METHODS[name].request.DESCRIPTOR.name if name in METHODS else name.partition("/")[0]


def _route(method: str, name: str) -> str:
    """The row that answers it, under which it is counted: it names no resource manager."""
    if method == "GET" and name.startswith(RESPONSES):
        return f"{ROOT}{RESPONSES}<rmID>"
    if method == "POST" and (name == REGISTER or name in METHODS):
        return f"{ROOT}{name}"
    return NO_ROUTE


def _only(method: str, request: StreamRequest) -> Answer | None:
    if request.method == method:
        return None
    detail = f"allowed here: {method}"
    return problem(HTTPStatus.METHOD_NOT_ALLOWED, "method_not_allowed", detail, [("Allow", method)])


def _after(query: str) -> int | None:
    """The row behind which the answers are to go on. Raises BadMessageError."""
    given = parse_qsl(query, keep_blank_values=True)
    for name, text in given:
        if name != "after":
            raise BadMessageError("is no parameter of this path", name)
        if not (text.isascii() and text.isdecimal() and len(text) < 19):
            raise BadMessageError("is not the number of a row", name)
    if len(given) > 1:
        raise BadMessageError("is given twice", "after")
    return int(given[0][1]) if given else None


def _problem(failure: Failure) -> Answer:
    if failure.fault is Fault.BAD_MESSAGE and not failure.field:
        return problem(HTTPStatus.BAD_REQUEST, "malformed_json", failure.reason)
    status, code, headers = _PROBLEMS[failure.fault]
    errors = {failure.field: [failure.reason.removeprefix(f"{failure.field}: ")]} if failure.field else None
    return problem(status, code, failure.reason, headers, errors)


_LATER = (("Retry-After", "1"),)
_PROBLEMS = {
    Fault.BAD_MESSAGE: (HTTPStatus.UNPROCESSABLE_ENTITY, "invalid_fields", ()),
    Fault.REFUSED: (HTTPStatus.UNPROCESSABLE_ENTITY, "registration_refused", ()),
    Fault.NOT_REGISTERED: (HTTPStatus.NOT_FOUND, "not_registered", ()),
    Fault.UNAUTHORIZED: (HTTPStatus.UNAUTHORIZED, "unauthorized", (("WWW-Authenticate", CHALLENGE),)),
    Fault.AWAY: (HTTPStatus.SERVICE_UNAVAILABLE, "unavailable", _LATER),
    Fault.OUTCOME_UNKNOWN: (HTTPStatus.SERVICE_UNAVAILABLE, "outcome_unknown", _LATER),
    Fault.STOPPING: (HTTPStatus.SERVICE_UNAVAILABLE, "closing", _LATER),
    Fault.DEFECT: (HTTPStatus.INTERNAL_SERVER_ERROR, "internal", ()),
}
