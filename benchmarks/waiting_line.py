"""A line of waiting asks, loaded by the ledger itself: what it costs to join it, and to let one in."""

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks import traffic
from rm_service.domain import operations as op
from rm_service.domain.application import State
from rm_service.domain.outcomes import Done
from rm_service.ledger.ids import new_id
from rm_service.ledger.ledger import Ledger
from rm_service.ledger.queries.applications import MAX_POSITION, queue_position, read_application

HOLDERS = 64
"""Asks that fill what the others wait for; the one that was granted first is the next to be released."""
NODES = 8

SHARE = dict(traffic.RESOURCE)
"""What each ask wants, so that one release makes room for exactly one."""
TOO_MUCH = {name: amount * HOLDERS * 1000 for name, amount in SHARE.items()}

FULL_QUEUE = "root.full"
BUSY = "pool=busy"
"""The selector of the full nodes."""

SOLITARY = 10
"""Asks that come and go one by one before the line forms."""
CHUNK = 500
DAY = 86_400
PATIENCE = 10.0
"""Seconds after which a release that let nobody in is an error."""

Ask = Callable[[], op.Apply]


def quota_ask() -> op.Apply:
    """It waits for the quota of one queue."""
    return _ask({"user": "waiter", "queue": FULL_QUEUE}, None)


def node_ask() -> op.Apply:
    """It waits for one of the full nodes."""
    return selecting_ask(BUSY)


def selecting_ask(selector: str) -> op.Apply:
    """It waits for a node of this selector."""
    return _ask({"user": "placed", "queue": "root.b"}, op.Placement(selector))


def too_large(ask: op.Apply) -> op.Apply:
    """The same for more than there is, and before all others."""
    return op.Apply(
        id=ask.id,
        tags=ask.tags,
        resource=TOO_MUCH,
        lock_seconds=DAY,
        wait_seconds=DAY,
        priority=1,
        placement=ask.placement,
        id_is_new=True,
    )


def _ask(tags: dict[str, str], placement: op.Placement | None) -> op.Apply:
    return op.Apply(
        id=new_id(),
        tags={**tags, "creator": "IDE", "engineType": "spark-3.3"},
        resource=SHARE,
        lock_seconds=DAY,
        wait_seconds=DAY,
        placement=placement,
        id_is_new=True,
    )


def make_scarce(ledger: Ledger) -> None:
    """Set the quota and register the nodes that the lines wait for."""
    ledger.submit_whole(op.SetLimit({"queue": FULL_QUEUE}, _times(HOLDERS)))
    nodes = [
        op.RegisterNode(f"busy-{number}", "LoadInstance", _times(HOLDERS // NODES), tags={"pool": "busy"})
        for number in range(NODES)
    ]
    assert all(isinstance(outcome, Done) for outcome in ledger.submit(nodes))


def _times(number: int) -> dict[str, int]:
    return {name: amount * number for name, amount in SHARE.items()}


@dataclass(frozen=True, slots=True)
class Loaded:
    """How long the loading of a line took (s), and what an ask cost in each chunk of it (us)."""

    seconds: float
    costs: list[float]


class Line:
    """Asks that hold all there is, and those who wait behind them for the same."""

    def __init__(self, ledger: Ledger, ask: Ask, length: int) -> None:
        self._ledger = ledger
        self._ask = ask
        self._committed = threading.Semaphore(0)
        holders = [ask() for _ in range(HOLDERS)]
        _submit(ledger, holders, State.LOCKED)
        self._holding = deque(holder.id for holder in holders)
        self._waiting: deque[str] = deque()
        ledger.on_commit(self._tell)
        for _ in range(SOLITARY):
            self._join_alone()
        self.loaded = self._load(length)

    def _tell(self, *_: object) -> None:
        self._committed.release()

    def _load(self, length: int) -> Loaded:
        begun, costs = time.perf_counter(), []
        for first in range(0, length, CHUNK):
            asks = [self._ask() for _ in range(min(CHUNK, length - first))]
            self._waiting.extend(ask.id for ask in asks)
            costs.append(_submit(self._ledger, asks, State.WAITING))
        return Loaded(time.perf_counter() - begun, costs)

    def _join_alone(self) -> None:
        """Statements are planned while the tables are small, as in a service that has been up for a while."""
        ask = self._ask()
        _submit(self._ledger, [ask], State.WAITING)
        self._cancel([ask])

    def join(self) -> float:
        """The cost (us) of an ask that is parked at the end of the line; they leave again, untimed."""
        asks = [self._ask() for _ in range(CHUNK)]
        cost = _submit(self._ledger, asks, State.WAITING)
        self._cancel(asks)
        return cost

    def let_in(self, times: int) -> float:
        """The cost (us) of a release and of the grant that it leads to, each committed, `times` in a row."""
        while self._committed.acquire(blocking=False):
            pass
        begun = time.perf_counter()
        for _ in range(times):
            self._ledger.submit([op.Release(self._holding.popleft())])
            for commit in ("the release", "the grant"):
                assert self._committed.acquire(timeout=PATIENCE), f"no commit of {commit}"
            self._holding.append(self._waiting.popleft())
        cost = (time.perf_counter() - begun) / times * 1e6
        assert self._state(self._holding[-1]) is State.LOCKED
        assert self._state(self._waiting[0]) is State.WAITING
        return cost

    def let_in_past(self, heads: int, times: int) -> float:
        """The same behind so many that never fit; they leave again, untimed."""
        asks = [too_large(self._ask()) for _ in range(heads)]
        _submit(self._ledger, asks, State.WAITING)
        cost = self.let_in(times)
        self._cancel(asks)
        return cost

    def position(self, share: float) -> float:
        """Milliseconds of reading one application and its place, at this share of the line."""
        application_id = self._waiting[min(int(len(self._waiting) * share), len(self._waiting) - 1)]
        begun = time.perf_counter()
        with self._ledger.readers.connect() as connection:
            application = read_application(connection, application_id)
            assert application is not None
            place = queue_position(connection, application)
        milliseconds = (time.perf_counter() - begun) * 1e3
        assert place == min(1 + self._waiting.index(application_id), MAX_POSITION)
        return milliseconds

    def _cancel(self, asks: list[op.Apply]) -> None:
        """Take asks away again; the look at the queue that this leads to is over when it returns."""
        self._ledger.submit([op.Release(ask.id) for ask in asks])
        for _ in range(2):  # a wake comes before what was handed in after the commit that left its mark
            self._ledger.submit([op.Release(new_id())])

    def _state(self, application_id: str) -> State:
        with self._ledger.readers.connect() as connection:
            application = read_application(connection, application_id)
        assert application is not None
        return application.state


def _submit(ledger: Ledger, asks: list[op.Apply], expected: State) -> float:
    """Hand these in together; what one of them cost (us)."""
    begun = time.perf_counter()
    outcomes = ledger.submit(asks)
    cost = (time.perf_counter() - begun) / len(asks) * 1e6
    for outcome in outcomes:
        assert isinstance(outcome, Done), outcome
        assert outcome.application is not None
        assert outcome.application.state is expected, outcome
    return cost
