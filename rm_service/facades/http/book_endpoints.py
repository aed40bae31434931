"""The books over HTTP: usage, labels, events, the audit."""

import time
from dataclasses import asdict, dataclass

from rm_service.domain.application import SECOND
from rm_service.domain.tags import key_fault
from rm_service.facades.http.answer_schemas import AuditSchema, EventsSchema, LabelsSchema, UsageSchema
from rm_service.facades.http.endpoints import Call, Endpoint, Reply
from rm_service.facades.http.problems import invalid_fields
from rm_service.facades.http.rendering import (
    event_document,
    label_document,
    page_document,
    usage_document,
)
from rm_service.facades.http.request_schemas import EventsQuery, SelectorQuery, UsageQuery
from rm_service.ledger.queries.paging import CursorError
from rm_service.services.books import Books

_GROUP = "Books"
MAX_KEYS = 8
CLOCKS_DIFFER = 60
"""By how many seconds a caller's clock may be ahead of ours."""


@dataclass(frozen=True, slots=True)
class BookEndpoints:
    """The handlers."""

    books: Books

    def usage(self, call: Call) -> Reply:
        """Who uses what."""
        query = call.query
        at = query.get("at")
        if at is not None and at > time.time_ns() // 1000 + CLOCKS_DIFFER * SECOND:
            raise invalid_fields({"at": ["is in the future"]})
        return Reply(200, usage_document(self.books.usage(_keys(query["by"]), query["where"], at)))

    def labels(self, call: Call) -> Reply:
        """A page of labels."""
        page = self.books.labels(call.query["selector"], call.query["limit"], call.query.get("cursor"))
        return Reply(200, page_document(map(label_document, page.items), page.next_cursor))

    def events(self, call: Call) -> Reply:
        """Events after a number; the cursor is the last one's."""
        limit = call.query["limit"]
        found = self.books.events(_after(call), limit)
        following = str(found[-1].event.seq) if len(found) == limit else None
        kind, selector = call.query.get("kind", ""), call.query["selector"]
        chosen = [
            event_document(each.event, each.labels)
            for each in found
            if each.event.kind.startswith(kind) and selector.matches(each.event.tags or {})
        ]
        return Reply(200, page_document(chosen, following))

    def audit(self, _call: Call) -> Reply:
        """Do the books balance."""
        return Reply(200, asdict(self.books.audit()))


def endpoints(handlers: BookEndpoints) -> list[Endpoint]:
    """The rows of the table."""
    return [
        Endpoint(
            "GET",
            "/usage",
            handlers.usage,
            "Who uses what, by tags, now or at a past moment",
            _GROUP,
            {200: UsageSchema()},
            query=UsageQuery(),
        ),
        Endpoint(
            "GET",
            "/labels",
            handlers.labels,
            "List labels",
            _GROUP,
            {200: LabelsSchema()},
            query=SelectorQuery(),
        ),
        Endpoint(
            "GET",
            "/events",
            handlers.events,
            "What happened; as text/event-stream what happens",
            _GROUP,
            {200: EventsSchema()},
            query=EventsQuery(),
        ),
        Endpoint(
            "GET", "/audit", handlers.audit, "Prove that the books balance", _GROUP, {200: AuditSchema()}
        ),
    ]


def _keys(text: str) -> list[str]:
    keys = [key.strip() for key in text.split(",")]
    fault = next((fault for key in keys if (fault := key_fault(key))), None)
    if fault is None and len(set(keys)) < len(keys):
        fault = "names a tag key twice"
    if fault is None and len(keys) > MAX_KEYS:
        fault = f"at most {MAX_KEYS} tag keys are allowed"
    if fault is not None:
        raise invalid_fields({"by": [fault]})
    return keys


def _after(call: Call) -> int:
    cursor = call.query.get("cursor")
    if cursor is None:
        return int(call.query["after"])
    if not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 19):
        raise CursorError(cursor)
    return int(cursor)
