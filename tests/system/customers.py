"""Clients that apply, use and release, and keep books of their own to hold the service's against."""

import random
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.system.client import API, Answer, Client, Json, NoAnswerError

GIB = 2**30
LOCKED, USED, RELEASED = "locked", "used", "released"

Ask = Callable[[str, str, object], Answer]
"""Sends a request: method, path, body. Raises NoAnswerError when the client is to end."""


@dataclass
class Entry:
    """One application as its client knows it."""

    id: str
    tags: Mapping[str, str]
    resource: Mapping[str, int]
    state: str | None = None
    """As last acknowledged; None: not granted."""
    asked: str | None = None
    """The state that was asked for without an answer yet."""


class Tally:
    """Counts acknowledged requests; somebody may wait for a number of them.

    `then` is called once, on the thread of the customer with acknowledgement number `at`, before that one
    does anything else.
    """

    def __init__(self, *, at: int = 0, then: Callable[[], object] | None = None) -> None:
        self.count = 0
        self._at = at
        self._then = then
        self._changed = threading.Condition()

    def add(self) -> None:
        with self._changed:
            self.count += 1
            is_time = self.count == self._at
            self._changed.notify_all()
        if is_time and self._then is not None:
            self._then()

    def wait_for(self, more: int, seconds: float = 60) -> None:
        """Wait until so many more have come."""
        with self._changed:
            goal = self.count + more
            arrived = self._changed.wait_for(lambda: self.count >= goal, seconds)
        assert arrived, f"only {self.count} of {goal} requests were acknowledged after {seconds} s"


@dataclass
class Customer:
    """One client. It asks for one thing at a time, by chance, for applications with tags out of `offers`."""

    offers: Sequence[Mapping[str, str]]
    chance: random.Random
    entries: list[Entry] = field(default_factory=list)
    refused: int = 0
    unanswered: int = 0
    """Requests that the service can have received and that got no answer."""
    held: list[Entry] = field(default_factory=list)

    def run(self, ask: Ask, tally: Tally, ended: threading.Event | None = None) -> None:
        """Go on until `ended` is set, or until no answer comes."""
        self.held = [entry for entry in self.entries if entry.state in {LOCKED, USED}]
        while ended is None or not ended.is_set():
            try:
                self._step(ask)
            except NoAnswerError as error:
                self.unanswered += error.sent
                return
            tally.add()

    def _step(self, ask: Ask) -> None:
        if not self.held or self.chance.random() < 0.45:
            self._apply(ask)
            return
        entry = self.chance.choice(self.held)
        if entry.state == LOCKED and self.chance.random() < 0.6:
            self._change(ask, entry, "use", USED)
        else:
            self._change(ask, entry, "release", RELEASED)

    def _apply(self, ask: Ask) -> None:
        entry = Entry(
            id=str(uuid.UUID(int=self.chance.getrandbits(128), version=4)),
            tags=self.chance.choice(self.offers),
            resource={"memory": self.chance.randint(1, 4) * GIB, "vcore": 500, "instances": 1},
            asked=LOCKED,
        )
        self.entries.append(entry)
        body = {"id": entry.id, "tags": entry.tags, "resource": entry.resource}
        answer = ask("POST", f"{API}/applications", body)
        if answer.status in {200, 201}:
            assert answer.document["state"] == LOCKED, answer.document
            entry.state, entry.asked = LOCKED, None
            self.held.append(entry)
        elif answer.status == 409:
            assert answer.document["code"] == "insufficient_resources", answer.document
            self.refused += 1
            entry.asked = None
        else:
            self._expect_closing(answer, entry)

    def _change(self, ask: Ask, entry: Entry, verb: str, state: str) -> None:
        entry.asked = state
        answer = ask("POST", f"{API}/applications/{entry.id}/{verb}", None)
        if answer.status == 200:
            assert answer.document["state"] == state, answer.document
            entry.state, entry.asked = state, None
            if state == RELEASED:
                self.held.remove(entry)
        else:
            self._expect_closing(answer, entry)

    def _expect_closing(self, answer: Answer, entry: Entry) -> None:
        """A service that stops may say so; nothing was changed then."""
        assert (answer.status, answer.document["code"]) == (503, "closing"), (answer.status, answer.body)
        entry.asked = None


def customers(
    count: int, offers: Sequence[Sequence[Mapping[str, str]]], chance: random.Random
) -> list[Customer]:
    """So many customers, each with the next one of the offers, and each with a chance of its own."""
    return [Customer(offers[n % len(offers)], random.Random(chance.getrandbits(64))) for n in range(count)]


@contextmanager
def busy(
    people: Sequence[Customer], asks: Callable[[int], Ask], tally: Tally, ended: threading.Event | None = None
) -> Iterator[None]:
    """All customers at once, each on a thread, while the block runs; left when all have ended.

    `asks(n)` makes the n-th one's way to ask, on its own thread.
    """
    with ThreadPoolExecutor(len(people), thread_name_prefix="customer") as threads:
        runs = [
            threads.submit(lambda n=n, one=one: one.run(asks(n), tally, ended))  # type: ignore[misc]
            for n, one in enumerate(people)
        ]
        try:
            yield
        finally:
            if ended is not None:
                ended.set()
    for run in runs:
        run.result()


def all_entries(people: Iterable[Customer]) -> list[Entry]:
    return [entry for one in people for entry in one.entries]


def settle(client: Client, entries: Sequence[Entry]) -> None:
    """Hold every entry against the service, and take over what became of the unanswered requests.

    Each application must be there as acknowledged, or as it was asked for without an answer; what was not
    granted must not be there at all, and what is there must be whole.
    """
    found: dict[str, Json] = {}
    for document in client.pages("/applications"):
        assert document["id"] not in found, f"listed twice: {document}"
        found[document["id"]] = document
    wrong = []
    for entry in entries:
        document = found.pop(entry.id, {})
        state = document.get("state")
        if state not in {entry.state, entry.asked} or (document and not _whole(entry, document)):
            wrong.append((entry, document))
        entry.state, entry.asked = state, None
    assert not wrong, f"{len(wrong)} are not as acknowledged: {wrong[:3]}"
    assert not found, f"nobody asked for {list(found.values())[:3]}"


def _whole(entry: Entry, document: Json) -> bool:
    """Whether nothing of the application is missing or contradicts the rest."""
    states = [step["state"] for step in document["transitions"]]
    labels = [{key: entry.tags[key]} for key in ("node", "user", "creator")]
    return bool(
        document["tags"] == dict(entry.tags)
        and document["requested"] == dict(entry.resource)
        and document["resource"] == dict(entry.resource)
        and all(label in document["labels"] for label in labels)
        and states[0] == LOCKED
        and states[-1] == document["state"]
        and len(set(states)) == len(states)
    )


def check_books(client: Client, entries: Sequence[Entry]) -> None:
    """The audit is clean, no limit is exceeded, and usage is what the customers' own books say."""
    audit = client.get("/audit")
    assert audit["consistent"], audit
    assert audit["over_limit"] == []
    assert overbooked(client) == []
    for key in ("user", "node", "creator"):
        assert _service_books(client, key) == _own_books(entries, key), key


def overbooked(client: Client) -> list[Json]:
    """Whatever holds more just now than its total less what is protected."""
    rows = [*client.get("/usage?by=user")["rows"], *client.pages("/nodes")]
    return [row for row in rows if _exceeds(row)]


def _exceeds(row: Json) -> bool:
    if row["total"] is None:
        return False
    return any(
        row["locked"].get(dimension, 0) + row["used"].get(dimension, 0)
        > total - (row["protected"] or {}).get(dimension, 0)
        for dimension, total in row["total"].items()
    )


Books = dict[str, tuple[int, Mapping[str, int], Mapping[str, int]]]
"""By the value of a tag: the number of applications, what they have locked, what they use."""


def _own_books(entries: Sequence[Entry], key: str) -> Books:
    numbers: Counter[str] = Counter()
    locked: dict[str, Counter[str]] = {}
    used: dict[str, Counter[str]] = {}
    for entry in entries:
        if entry.state in {LOCKED, USED}:
            value = entry.tags[key]
            numbers[value] += 1
            side = locked if entry.state == LOCKED else used
            side.setdefault(value, Counter()).update(entry.resource)
    return {
        value: (number, dict(locked.get(value, {})), dict(used.get(value, {})))
        for value, number in numbers.items()
    }


def _service_books(client: Client, key: str) -> Books:
    rows = client.get(f"/usage?by={key}")["rows"]
    return {
        row["tags"][key]: (row["applications"], row["locked"], row["used"])
        for row in rows
        if row["applications"] or row["locked"] or row["used"]
    }
