"""The tailer: every event reaches every subscriber, in order and once, wherever it was committed."""

import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress

import pytest
from sqlalchemy import event, text

from rm_service.domain import operations as op
from rm_service.ledger import commits
from rm_service.ledger.database import reader_engine
from rm_service.ledger.errors import LedgerUnavailableError
from rm_service.ledger.ledger import Ledger, LedgerSettings
from rm_service.ledger.outbox import PAGE
from rm_service.ledger.queries.events import LabelledEvent
from rm_service.ledger.tailer import POLL_SECONDS, Subscription, Tailer
from tests.postgres import DatabaseServer

PATIENCE = 5.0  # seconds that a test waits for what must happen


class Reader:
    """A subscriber that notes what it is given, and can be waited for."""

    def __init__(self) -> None:
        self.seqs: list[int] = []
        self.pages = 0
        self.events: list[LabelledEvent] = []
        self._changed = threading.Condition()

    def __call__(self, events: Sequence[LabelledEvent]) -> None:
        with self._changed:
            self.pages += 1
            self.events += events
            self.seqs += [each.event.seq for each in events]
            self._changed.notify_all()

    def reaches(self, seq: int, *, within: float = PATIENCE) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: bool(self.seqs) and self.seqs[-1] >= seq, within)


@contextmanager
def opened(url: str) -> Iterator[Ledger]:
    ledger = Ledger(LedgerSettings(url))
    ledger.open()
    try:
        yield ledger
    finally:
        ledger.close()


@contextmanager
def tailing(ledger: Ledger) -> Iterator[Tailer]:
    tailer = Tailer(ledger)
    tailer.start()
    try:
        yield tailer
    finally:
        tailer.stop()


@pytest.fixture
def postgres(postgres_server: DatabaseServer, postgres_template: str) -> Iterator[str]:
    with postgres_server.database(template=postgres_template) as url:
        yield url


@pytest.fixture
def tailer(ledger: Ledger) -> Iterator[Tailer]:
    with tailing(ledger) as tailer:
        yield tailer


def make_events(ledger: Ledger, count: int = 1) -> int:
    """So many events; the number of the last one."""
    ledger.submit([op.Apply(str(uuid.uuid4()), {"user": "alice"}, {"memory": 1}) for _ in range(count)])
    with ledger.readers.connect() as connection:
        seq: int = connection.execute(text("SELECT seq FROM ledger_head")).scalar_one()
        return seq


def numbers(after: int, last: int) -> list[int]:
    return list(range(after + 1, last + 1))


def test_a_subscriber_is_given_what_is_committed_after_its_cursor(ledger: Ledger, tailer: Tailer) -> None:
    after = make_events(ledger, 3)
    reader = Reader()
    tailer.subscribe(reader, after)
    last = make_events(ledger, 2)
    assert reader.reaches(last)
    assert reader.seqs == numbers(after, last)
    assert reader.events[0].event.kind == "application.locked"
    assert {"user": "alice"} in reader.events[0].labels


def test_an_old_cursor_is_fed_page_by_page_and_joins_without_gap_or_double(
    ledger: Ledger, tailer: Tailer
) -> None:
    live, late = Reader(), Reader()
    tailer.subscribe(live, tailer.head())
    first = make_events(ledger, 3 * PAGE)
    tailer.subscribe(late, 0)
    writers = [threading.Thread(target=make_events, args=(ledger, 200)) for _ in range(5)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(PATIENCE)
    last = make_events(ledger)
    assert live.reaches(last)
    assert late.reaches(last)
    assert last == first + 1001
    assert late.seqs == numbers(0, last)
    assert live.seqs == numbers(live.seqs[0] - 1, last)
    assert late.pages > 3


def test_those_who_have_caught_up_share_one_read(ledger: Ledger, tailer: Tailer) -> None:
    make_events(ledger, 10)
    readers = [Reader() for _ in range(50)]
    for after, reader in enumerate(readers):
        tailer.subscribe(reader, after % 10)
    last = make_events(ledger)
    assert all(reader.reaches(last) for reader in readers)

    with counted(ledger) as reads:
        last = make_events(ledger, 5)
        assert all(reader.reaches(last) for reader in readers)
    assert len({id(reader.events[-1]) for reader in readers}) == 1
    assert len(reads) <= 2


def test_what_this_process_commits_is_handed_on_without_being_read(ledger: Ledger, tailer: Tailer) -> None:
    reader = Reader()
    tailer.subscribe(reader, tailer.head())
    assert reader.reaches(make_events(ledger)), "it follows from now on"
    with counted(ledger) as reads:
        for _ in range(10):
            last = make_events(ledger, 3)
            assert reader.reaches(last)
    assert len(reads) <= 1, "a look that came between a commit and the word of it"
    assert {"user": "alice"} in reader.events[-1].labels


def test_what_passed_by_while_a_subscriber_was_paused_is_read_for_it(
    ledger: Ledger, tailer: Tailer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commits, "KEPT", 20)
    paused, other = Reader(), Reader()
    after = tailer.head()
    subscription = tailer.subscribe(paused, after, paused=True)
    tailer.subscribe(other, after)
    for _ in range(9):
        make_events(ledger, 10)
    last = make_events(ledger, 10)
    assert other.reaches(last)
    subscription.resume()
    assert paused.reaches(last)
    assert paused.seqs == other.seqs == numbers(after, last)


@contextmanager
def counted(ledger: Ledger) -> Iterator[list[str]]:
    """The statements that read the outbox meanwhile."""
    reads: list[str] = []

    def note(*args: object) -> None:
        if "FROM event" in str(args[2]):
            reads.append(str(args[2]))

    event.listen(ledger.readers, "before_cursor_execute", note)
    yield reads
    event.remove(ledger.readers, "before_cursor_execute", note)


def test_a_paused_subscriber_goes_on_where_it_stopped(ledger: Ledger, tailer: Tailer) -> None:
    class Paced(Reader):
        subscription: Subscription
        paused = threading.Semaphore(0)

        def __call__(self, events: Sequence[LabelledEvent]) -> None:
            self.subscription.pause()
            super().__call__(events)
            self.paused.release()

    last = make_events(ledger, 2 * PAGE + 10)
    paced, other = Paced(), Reader()
    paced.subscription = tailer.subscribe(paced, last)
    last = make_events(ledger, 3 * PAGE)
    tailer.subscribe(other, 0)
    assert other.reaches(last)
    assert len(paced.seqs) <= PAGE, "nothing is given to it while it is paused"
    while not paced.reaches(last, within=0):
        assert paced.paused.acquire(timeout=PATIENCE)
        paced.subscription.resume()
    assert paced.seqs == numbers(paced.seqs[0] - 1, last)


def test_a_closed_subscription_is_given_nothing_more(ledger: Ledger, tailer: Tailer) -> None:
    closed, other = Reader(), Reader()
    subscription = tailer.subscribe(closed, tailer.head())
    tailer.subscribe(other, tailer.head())
    subscription.close()
    assert other.reaches(make_events(ledger, 3))
    assert closed.seqs == []


def test_a_subscriber_that_fails_is_dropped_and_harms_nobody(ledger: Ledger, tailer: Tailer) -> None:
    def fail(_: Sequence[LabelledEvent]) -> None:
        raise ZeroDivisionError

    reader = Reader()
    failing = tailer.subscribe(fail, tailer.head())
    tailer.subscribe(reader, tailer.head())
    assert reader.reaches(make_events(ledger))
    assert failing.closed
    assert reader.reaches(make_events(ledger))


def test_without_subscribers_nothing_is_read(ledger: Ledger, tailer: Tailer) -> None:
    reader = Reader()
    tailer.subscribe(reader, tailer.head()).close()
    with counted(ledger) as reads:
        for _ in range(4):
            make_events(ledger)
        last = make_events(ledger)
        tailer.subscribe(reader, 0)
        assert reader.reaches(last)
    assert len(reads) == 1


def test_after_stop_a_commit_disturbs_nobody(ledger: Ledger) -> None:
    with tailing(ledger) as tailer:
        reader = Reader()
        tailer.subscribe(reader, tailer.head())
        last = make_events(ledger)
        assert reader.reaches(last)
    assert make_events(ledger) == last + 1
    assert reader.seqs[-1] == last


def test_an_event_of_one_replica_reaches_the_others_subscriber_well_under_a_second(postgres: str) -> None:
    with ExitStack() as stack:
        here, there = (stack.enter_context(opened(postgres)) for _ in range(2))
        tailer = stack.enter_context(tailing(there))
        reader = Reader()
        tailer.subscribe(reader, tailer.head())
        assert reader.reaches(make_events(here)), "the tailer listens from now on"
        delays = []
        for _ in range(5):
            last = make_events(here)
            began = time.monotonic()
            assert reader.reaches(last)
            delays.append(time.monotonic() - began)
        assert sorted(delays)[2] < POLL_SECONDS / 4


def test_commits_of_two_replicas_arrive_in_one_order(postgres: str) -> None:
    with ExitStack() as stack:
        ledgers = [stack.enter_context(opened(postgres)) for _ in range(2)]
        readers = [Reader(), Reader()]
        tailers = [stack.enter_context(tailing(ledger)) for ledger in ledgers]
        after = tailers[0].head()
        for tailer, reader in zip(tailers, readers, strict=True):
            tailer.subscribe(reader, after)

        def work(ledger: Ledger) -> None:
            for count in range(40):
                make_events(ledger, count % 3 + 1)

        writers = [threading.Thread(target=work, args=(ledger,)) for ledger in ledgers]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        last = make_events(ledgers[0])
        for reader in readers:
            assert reader.reaches(last)
            assert reader.seqs == numbers(after, last)


def test_a_broken_connection_loses_nothing(postgres_server: DatabaseServer, postgres: str) -> None:
    with opened(postgres) as ledger, tailing(ledger) as tailer:
        reader = Reader()
        tailer.subscribe(reader, 0)
        assert reader.reaches(make_events(ledger))
        engine = reader_engine(postgres_server.url())
        with engine.connect() as connection:
            out = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :name"
            broken = connection.execute(text(out), {"name": postgres.rpartition("/")[2]}).all()
        engine.dispose()
        assert len(broken) >= 2, "the writer's and the tailer's"
        with suppress(LedgerUnavailableError):  # the writer has to notice first
            make_events(ledger)
        last = make_events(ledger, 3)
        assert reader.reaches(last)
        assert reader.seqs == numbers(0, last)
