"""Long polls of applications that wait: `GET /api/v1/applications/{id}?wait=SECONDS`.

Answered when an event of that application says that it waits no more, or when the time is over. Whatever
else is asked under this path (no wait, a wrong one, other parameters) is an ordinary request.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from threading import Lock

from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from rm_service.domain.application import State
from rm_service.domain.events import Kind
from rm_service.facades.http.endpoints import API
from rm_service.facades.http.event_stream import Authorize, answer_to, database_away
from rm_service.facades.http.problems import ProblemError
from rm_service.hosting.answer import Answer
from rm_service.hosting.streams import LongPoll, StreamRequest, StreamRoute
from rm_service.ledger import tables
from rm_service.ledger.ledger import Ledger
from rm_service.ledger.queries.events import LabelledEvent
from rm_service.ledger.tailer import Subscription, Tailer

LONGEST_SECONDS = 300
_PATH = re.compile(
    rf"{API}/applications/([0-9a-f]{{8}}-[0-9a-f]{{4}}-[0-9a-f]{{4}}-[0-9a-f]{{4}}-[0-9a-f]{{12}})",
    re.IGNORECASE,
)
_QUERY = re.compile(r"wait=([0-9]{1,3})")

Render = Callable[[str], Answer]
"""The answer to `GET /api/v1/applications/{id}` as it is now; called on request threads."""


class ApplicationPolls:
    """All open long polls. `route` is what the HTTP server is given."""

    def __init__(self, ledger: Ledger, tailer: Tailer, *, authorize: Authorize, render: Render) -> None:
        self.route = StreamRoute(_matches, self._open)
        self._ledger = ledger
        self._tailer = tailer
        self._authorize = authorize
        self._render = render
        self._lock = Lock()
        self._subscription: Subscription | None = None
        self._polls: dict[str, set[LongPoll]] = defaultdict(set)

    def _open(self, request: StreamRequest) -> LongPoll | Answer:
        application_id, seconds = _read(request)
        try:
            self._authorize(request)
            return self._wait(application_id, seconds) or self._render(application_id)
        except ProblemError as error:
            return answer_to(error)
        except SQLAlchemyError:
            return answer_to(database_away())

    def _wait(self, application_id: str, seconds: int) -> LongPoll | None:
        """A poll if the application waits. What happens after the look at its state finds the poll there."""
        head = self._tailer.head()
        poll = LongPoll(
            lambda: self._render(application_id),
            seconds=seconds,
            on_close=lambda poll: self._remove(application_id, poll),
        )
        with self._lock:
            self._polls[application_id].add(poll)
            if self._subscription is None or self._subscription.closed:
                self._subscription = self._tailer.subscribe(self._wake, head)
        waits = False
        try:
            waits = self._waits(application_id)
        finally:
            if not waits:
                self._remove(application_id, poll)
        return poll if waits else None

    def _waits(self, application_id: str) -> bool:
        table = tables.application.c
        with self._ledger.readers.connect() as connection:
            query = select(table.state).where(table.id == application_id)
            return connection.execute(query).scalar_one_or_none() == State.WAITING

    def _wake(self, events: Sequence[LabelledEvent]) -> None:
        """On the tailer's thread. Every event of an application but that of its parking ends the waiting."""
        for each in events:
            if each.event.subject in self._polls and each.event.kind is not Kind.APPLICATION_WAITING:
                with self._lock:
                    polls = tuple(self._polls.get(each.event.subject, ()))
                for poll in polls:
                    poll.wake()

    def _remove(self, application_id: str, poll: LongPoll) -> None:
        with self._lock:
            self._polls[application_id].discard(poll)
            if not self._polls[application_id]:
                del self._polls[application_id]
            if self._subscription is not None and not self._polls:
                self._subscription.close()
                self._subscription = None


def _matches(request: StreamRequest) -> bool:
    if request.method != "GET" or not request.query.startswith("wait="):
        return False
    wait = _QUERY.fullmatch(request.query)
    return (
        wait is not None and 0 < int(wait[1]) <= LONGEST_SECONDS and _PATH.fullmatch(request.path) is not None
    )


def _read(request: StreamRequest) -> tuple[str, int]:
    path, wait = _PATH.fullmatch(request.path), _QUERY.fullmatch(request.query)
    if path is None or wait is None:
        raise ValueError(request.path)  # only what matches is opened
    return path[1].lower(), int(wait[1])
