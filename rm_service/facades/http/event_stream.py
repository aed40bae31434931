"""The live stream of events: `GET /api/v1/events` with `Accept: text/event-stream` (server-sent events).

A stream begins with a subscription of its own, paced by its reader, until it has caught up. From then on all
streams share one: each event is encoded once, and each filter judged once, however many look on.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Any
from urllib.parse import parse_qsl

from sqlalchemy.exc import SQLAlchemyError

from rm_service.domain.events import Event
from rm_service.domain.selectors import Operator, Selector
from rm_service.facades.http.endpoints import API
from rm_service.facades.http.json_text import write_json
from rm_service.facades.http.problems import ProblemError, invalid_fields
from rm_service.facades.http.reading import load
from rm_service.facades.http.request_schemas import EventsQuery
from rm_service.hosting.answer import Answer
from rm_service.hosting.streams import Stream, StreamRequest, StreamRoute
from rm_service.ledger.queries.events import LabelledEvent
from rm_service.ledger.tailer import Subscription, Tailer

PATH = f"{API}/events"
MEDIA_TYPE = "text/event-stream"
HEADERS = (
    ("Content-Type", f"{MEDIA_TYPE}; charset=utf-8"),
    ("Cache-Control", "no-store"),
    ("X-Accel-Buffering", "no"),  # a proxy must not collect what is meant to be seen at once
    ("X-Content-Type-Options", "nosniff"),
)
FIRST = b"retry: 1000\n\n"
"""Milliseconds after which a client that was cut off comes back."""
KEEP_ALIVE = b": keep-alive\n\n"
BUFFER_LIMIT = 4 * 2**20
"""Bytes that may wait for a slow reader: more than any page, and shared with the other streams."""

Authorize = Callable[[StreamRequest], object]
"""Raises ProblemError (401) unless the request may be answered."""
EventJson = Callable[[LabelledEvent], bytes]


@dataclass(frozen=True)
class Filter:
    """Which events a stream shows."""

    selector: Selector
    kind: str
    """How their kind begins."""

    @cached_property
    def pair(self) -> tuple[str, str] | None:
        """A tag that every event shown has, if the selector says so by `key=value`."""
        for each in self.selector.requirements:
            if each.operator is Operator.IN and len(each.values) == 1:
                return each.key, each.values[0]
        return None

    def shows(self, event: Event) -> bool:
        return event.kind.startswith(self.kind) and self.selector.matches(event.tags or {})


class _Page:
    """Events as one stream or many send them, each encoded when the first one shows it."""

    def __init__(self, events: Sequence[LabelledEvent], event_json: EventJson) -> None:
        self._events = events
        self._event_json = event_json
        self._frames: dict[int, bytes] = {}

    def chunk(self, chosen: Filter, after: int = 0) -> bytes:
        """The events after number `after` that the filter shows."""
        candidates = self._events if chosen.pair is None else self._with_tag.get(chosen.pair)
        if not candidates:
            return b""
        shown = [each for each in candidates if each.event.seq > after and chosen.shows(each.event)]
        return b"".join([self._frame(each) for each in shown])

    @cached_property
    def _with_tag(self) -> Mapping[tuple[str, str], list[LabelledEvent]]:
        """So that a thousand streams, each about another user, need not look at every event each."""
        found: dict[tuple[str, str], list[LabelledEvent]] = defaultdict(list)
        for each in self._events:
            for pair in (each.event.tags or {}).items():
                found[pair].append(each)
        return found

    def _frame(self, each: LabelledEvent) -> bytes:
        event = each.event
        frame = self._frames.get(event.seq)
        if frame is None:
            head = f"id: {event.seq}\nevent: {event.kind.value}\ndata: ".encode()
            frame = self._frames[event.seq] = head + self._event_json(each) + b"\n\n"
        return frame


class _Reader:
    """A stream and what it shows; `subscription` is its own until it has caught up."""

    def __init__(self, streams: "EventStreams", chosen: Filter, after: int) -> None:
        self._streams = streams
        self.chosen = chosen
        self.stream = Stream(
            HEADERS,
            keep_alive=KEEP_ALIVE,
            buffer_limit=BUFFER_LIMIT,
            on_drain=self._on_drain,
            on_close=lambda: streams.remove(self),
        )
        # It is fed from its first drain on: what is sent now, before anything else, is drained first.
        self.subscription: Subscription = streams.tailer.subscribe(self._feed, after, paused=True)
        self.stream.push(FIRST)

    def _feed(self, events: Sequence[LabelledEvent]) -> None:
        chunk = _Page(events, self._streams.event_json).chunk(self.chosen)
        if chunk:
            self.subscription.pause()  # before the push: it may be drained before that returns
            self.stream.push(chunk)

    def _on_drain(self) -> None:
        if self.subscription.paused and not self.subscription.closed:
            self.subscription.resume()


class EventStreams:
    """All open streams of events. `route` is what the HTTP server is given."""

    def __init__(self, tailer: Tailer, *, authorize: Authorize, event_json: EventJson) -> None:
        self.tailer = tailer
        self.event_json = event_json
        self.route = StreamRoute(_matches, self._open)
        self._authorize = authorize
        self._lock = Lock()
        self._common: Subscription | None = None
        self._catching_up: set[_Reader] = set()
        self._live: dict[Filter, set[_Reader]] = defaultdict(set)

    def remove(self, reader: _Reader) -> None:
        """Forget a stream that has ended; after the last one nothing is followed any more."""
        reader.subscription.close()
        with self._lock:
            self._catching_up.discard(reader)
            self._live[reader.chosen].discard(reader)
            if not self._live[reader.chosen]:
                del self._live[reader.chosen]
            if self._common is not None and not (self._live or self._catching_up):
                self._common.close()
                self._common = None

    def _open(self, request: StreamRequest) -> Stream | Answer:
        try:
            self._authorize(request)
            chosen, after = _read(request)
            head = self.tailer.head()
        except ProblemError as error:
            return answer_to(error)
        except SQLAlchemyError:
            return answer_to(database_away())
        if after is not None and after > head:
            return answer_to(
                invalid_fields({"after": [f"no event has this number yet; the last one is {head}"]})
            )
        with self._lock:
            if self._common is None or self._common.closed:
                self._common = self.tailer.subscribe(self._spread, head)
            reader = _Reader(self, chosen, head if after is None else after)
            self._catching_up.add(reader)
        return reader.stream

    def _spread(self, events: Sequence[LabelledEvent]) -> None:
        """Give a page to all who have caught up, and take in who has since. On the tailer's thread."""
        try:
            page = _Page(events, self.event_json)
            with self._lock:
                live = [(chosen, tuple(readers)) for chosen, readers in self._live.items()]
            for chosen, readers in live:
                chunk = page.chunk(chosen)
                for reader in readers if chunk else ():
                    reader.stream.push(chunk)
            self._take_in(events, page)
        except Exception:
            self._end_all()
            raise

    def _take_in(self, events: Sequence[LabelledEvent], page: _Page) -> None:
        """Whoever stands within this page gets the rest of it, and from now on what all get."""
        first, last = events[0].event.seq, events[-1].event.seq
        with self._lock:
            caught_up = [
                reader for reader in self._catching_up if first - 1 <= reader.subscription.cursor <= last
            ]
            for reader in caught_up:
                reader.subscription.close()
                self._catching_up.discard(reader)
                self._live[reader.chosen].add(reader)
        for reader in caught_up:
            chunk = page.chunk(reader.chosen, reader.subscription.cursor)
            if chunk:
                reader.stream.push(chunk)

    def _end_all(self) -> None:
        """A defect: the clients come back and go on where they were, instead of waiting in vain."""
        with self._lock:
            readers = [*self._catching_up, *(reader for group in self._live.values() for reader in group)]
        for reader in readers:
            reader.stream.close()


def answer_to(error: ProblemError) -> Answer:
    """A problem as an answer outside of Flask."""
    body = write_json(error.document())
    own = [("Content-Type", "application/problem+json"), ("Content-Length", str(len(body)))]
    return Answer(error.status, [*own, *error.headers.items()], body)


def database_away() -> ProblemError:
    """The 503 of a stream that cannot begin."""
    return ProblemError("unavailable", "the database cannot be reached", headers={"Retry-After": "1"})


def _matches(request: StreamRequest) -> bool:
    return (
        request.path == PATH and request.method == "GET" and MEDIA_TYPE in request.headers.get("accept", "")
    )


def read_given(request: StreamRequest) -> dict[str, str]:
    """The query's parameters as texts. Raises ProblemError."""
    given: dict[str, str] = {}
    for name, value in parse_qsl(request.query, keep_blank_values=True):
        if name in given:
            raise invalid_fields({name: ["is given twice"]})
        given[name] = value
    return given


def _read(request: StreamRequest) -> tuple[Filter, int | None]:
    """What is to be shown, and after which number: None is from now on. `Last-Event-ID` wins over `after`."""
    given = read_given(request)
    query: Mapping[str, Any] = load(EventsQuery(), given)
    return Filter(query["selector"], query.get("kind", "")), _after(request, query, given)


def _after(request: StreamRequest, query: Mapping[str, Any], given: Mapping[str, str]) -> int | None:
    for name, text in (
        ("Last-Event-ID", request.headers.get("last-event-id")),
        ("cursor", query.get("cursor")),
    ):
        if text:
            if not (text.isascii() and text.isdecimal() and len(text) < 19):
                raise invalid_fields({name: ["is not the number of an event"]})
            return int(text)
    return int(query["after"]) if "after" in given else None
