"""Answers to resource managers: in order and each once, whatever happens at the same time."""

import random
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import cast

import pytest

from rm_service.domain import answers
from rm_service.domain.events import Kind
from rm_service.facades.si import answer_feed
from rm_service.facades.si.answer_feed import AnswerFeed, AnswerStream, End, RowAheadError
from rm_service.ledger.answers import AnswerLog, Row
from rm_service.ledger.ledger import Ledger
from rm_service.ledger.outbox import PAGE
from rm_service.ledger.tailer import Tailer
from rm_service.services.si.errors import NotRegisteredError
from tests.facades.si.desk import PATIENCE, WrittenOutbox, until

KINDS_OF = {"node": {"accepted_node"}, "all": {"accepted_node", "new"}}


class Reader:
    """Reads one stream on a thread of its own, now and then, a few rows at a time."""

    def __init__(self, feed: AnswerFeed, rm_id: str, name: str, after: int | None = None) -> None:
        self.rows: list[int] = []
        self._ready = threading.Semaphore(0)
        self._changed = threading.Condition()
        self._closing = False
        self.stream: AnswerStream = feed.open(rm_id, name, self._ready.release, after)
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def reaches(self, row: int) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: bool(self.rows) and self.rows[-1] >= row, PATIENCE)

    def close(self) -> None:
        self._closing = True
        self._ready.release()
        self._thread.join()
        self.stream.close()

    def _read(self) -> None:
        chance = random.Random(1)
        while self._ready.acquire() and not self._closing:
            while rows := self.stream.take(chance.randint(1, 30)):
                with self._changed:
                    self.rows += [row for row, _ in rows]
                    self._changed.notify_all()
                if chance.random() < 0.05:
                    threading.Event().wait(0.002)  # so that it falls behind


@pytest.fixture
def feed(outbox: WrittenOutbox) -> Iterator[AnswerFeed]:
    tailer = Tailer(cast("Ledger", outbox))
    feed = AnswerFeed(AnswerLog(outbox.readers), tailer, KINDS_OF)
    tailer.start()
    feed.start()
    yield feed
    feed.stop()
    tailer.stop()


def write(outbox: WrittenOutbox, seed: int, told: list[int], lock: threading.Lock) -> None:
    """Commits of two processes, to two resource managers; `told` is given the rows of `rm`'s nodes."""
    chance = random.Random(seed)
    for _ in range(60):
        rows: list[tuple[Kind, str, answers.Answer | None]] = [
            chance.choice(
                [
                    (Kind.NODE_REGISTERED, "rm", answers.accepted_node("n")),
                    (Kind.APPLICATION_USED, "rm", {"kind": "new", "key": "k"}),
                    (Kind.NODE_REGISTERED, "other", answers.accepted_node("n")),
                    (Kind.LIMIT_SET, "1", None),
                ]
            )
            for _ in range(chance.randint(1, 40))
        ]
        last = outbox.commit(*rows, foreign=chance.random() < 0.3)
        numbered = zip(range(last - len(rows) + 1, last + 1), rows, strict=True)
        with lock:
            told += [seq for seq, (kind, who, _) in numbered if (kind, who) == (Kind.NODE_REGISTERED, "rm")]


def test_every_row_is_given_once_and_in_order(
    outbox: WrittenOutbox, feed: AnswerFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_feed, "MOST_BUFFERED", 40)
    monkeypatch.setattr(answer_feed, "PAGE", 25)
    told: list[int] = []
    registered = outbox.register("rm")
    write(outbox, 0, told, threading.Lock())
    with ExitStack() as stack:
        readers = [Reader(feed, "rm", "node"), Reader(feed, "rm", "all", after=registered)]
        for reader in readers:
            stack.callback(reader.close)
        lock = threading.Lock()
        writers = [threading.Thread(target=write, args=(outbox, seed, told, lock)) for seed in (1, 2, 3)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        last = outbox.accept_nodes("rm", "last")
        for reader in readers:
            assert reader.reaches(last)
        assert readers[0].rows == [*sorted(told), last]
        assert readers[1].rows == sorted(set(readers[1].rows))
        assert set(readers[0].rows) < set(readers[1].rows)


def test_it_begins_behind_the_registration(outbox: WrittenOutbox, feed: AnswerFeed) -> None:
    outbox.register("rm")
    outbox.accept_nodes("rm", "of before")
    outbox.register("rm")
    first = outbox.accept_nodes("rm", "n1", "n2") - 1
    reader = Reader(feed, "rm", "node")
    assert reader.reaches(first + 1)
    assert reader.rows == [first, first + 1]
    reader.close()


def test_who_has_never_registered_is_refused(outbox: WrittenOutbox, feed: AnswerFeed) -> None:
    with pytest.raises(NotRegisteredError, match='"rm"'):
        feed.open("rm", "node", lambda: None)
    assert len(feed) == 0


def test_a_row_that_is_not_there_yet_is_refused(outbox: WrittenOutbox, feed: AnswerFeed) -> None:
    head = outbox.register("rm")
    with pytest.raises(RowAheadError) as refused:
        feed.open("rm", "node", lambda: None, after=head + 1)
    assert (refused.value.after, refused.value.head) == (head + 1, head)


def test_without_streams_the_outbox_is_not_followed(outbox: WrittenOutbox, feed: AnswerFeed) -> None:
    outbox.register("rm")
    stream = feed.open("rm", "node", lambda: None)
    subscription = feed._subscription
    assert subscription is not None
    assert not subscription.closed
    stream.close()
    assert subscription.closed


def test_a_registration_that_comes_while_a_stream_opens_ends_it(
    outbox: WrittenOutbox, feed: AnswerFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    outbox.register("rm")
    standing, ended = feed.log.standing, threading.Semaphore(0)

    def slowly(rm_id: str, name: str) -> object:
        found = standing(rm_id, name)
        seq = outbox.register("rm")
        while feed._streams["rm"][0]._registered < seq:
            threading.Event().wait(0.001)
        return found

    monkeypatch.setattr(feed.log, "standing", slowly)
    stream = feed.open("rm", "node", ended.release)
    assert ended.acquire(timeout=PATIENCE)
    assert stream.end is End.REGISTERED_ANEW
    stream.close()


def test_positions_never_go_back(outbox: WrittenOutbox) -> None:
    log = AnswerLog(outbox.readers)
    log.delivered({("rm", "node"): 7, ("rm", "allocation"): 3})
    log.delivered({("rm", "node"): 5, ("rm", "allocation"): 4})
    assert (outbox.delivered("rm", "node"), outbox.delivered("rm", "allocation")) == (7, 4)


def test_what_is_committed_while_a_page_is_read_is_not_missed(
    outbox: WrittenOutbox, feed: AnswerFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    outbox.register("rm")
    page, passed_by = feed.log.page, threading.Semaphore(0)
    watch = feed._tailer.subscribe(lambda _: passed_by.release(), feed._tailer.head())
    made: list[int] = []

    def slowly(rm_id: str, after: int, limit: int) -> tuple[Sequence[Row], int]:
        found = page(rm_id, after, limit)
        if not made:
            made.append(outbox.accept_nodes("rm", "n1"))
            for _ in range(2):  # the second one tells that the feed has been given the first one
                assert passed_by.acquire(timeout=PATIENCE)
                outbox.commit((Kind.LIMIT_SET, "1", None))
        return found

    monkeypatch.setattr(feed.log, "page", slowly)
    reader = Reader(feed, "rm", "node")
    until(lambda: made and reader.stream._live)
    last = outbox.accept_nodes("rm", "n2")
    assert reader.reaches(last)
    assert reader.rows == [*made, last]
    reader.close()
    watch.close()


def test_a_bounded_number_waits_for_a_client_that_does_not_read(
    outbox: WrittenOutbox, feed: AnswerFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_feed, "MOST_BUFFERED", 40)
    outbox.register("rm")
    ready = threading.Semaphore(0)
    stream, other = feed.open("rm", "node", ready.release), Reader(feed, "rm", "all")
    until(lambda: stream._live)
    for _ in range(49):
        outbox.accept_nodes("rm", *"0123456789")
    last = outbox.accept_nodes("rm", *"0123456789")
    assert other.reaches(last)
    assert len(stream._buffer) <= 40 + PAGE
    taken: list[int] = []
    while len(taken) < 500:
        assert ready.acquire(timeout=PATIENCE)
        while rows := stream.take(7):
            taken += [row for row, _ in rows]
    assert taken == list(range(last - 499, last + 1))
    stream.close()
    other.close()
