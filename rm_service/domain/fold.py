"""Folding events into balances: the second way to know what every label holds.

It shares no code with the booking of operations, so that the two can prove each other.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rm_service.domain.amounts import Amounts
from rm_service.domain.application import Instant
from rm_service.domain.events import Event, Kind

_ROOM = frozenset(
    {Kind.NODE_REGISTERED, Kind.NODE_DRAINING, Kind.NODE_UNDRAINED, Kind.NODE_LOST, Kind.EXTERNAL_OBSERVED}
)


@dataclass(slots=True)
class Standing:
    """What the events say about one label; `total`, `protected` and `closed` as in a balance."""

    locked: dict[str, int] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)
    applications: int = 0
    total: Amounts | None = None
    protected: Amounts | None = None
    closed: str | None = None


@dataclass(frozen=True, slots=True)
class Break:
    """Two events that follow each other and should not: a number is missing or doubled, or time runs back."""

    before: int
    after: int
    reason: str


class Fold:
    """Standings of labels after some event, carried on event by event.

    `charge(label_id, amounts)` gives the part of an event's amounts that a label counts.
    """

    def __init__(
        self,
        seq: int,
        standings: Mapping[int, Standing],
        charge: Callable[[int, Amounts], Amounts],
    ) -> None:
        self.seq = seq
        self.time: Instant = 0
        self.events = 0
        self.standings = dict(standings)
        self.breaks: list[Break] = []
        self._charge = charge

    def follow(self, event: Event) -> None:
        """Take in the next event; what is wrong with its number or time is kept in `breaks`."""
        if event.seq != self.seq + 1:
            self.breaks.append(Break(self.seq, event.seq, "numbers do not follow each other"))
        if event.time < self.time:
            self.breaks.append(Break(self.seq, event.seq, "time runs back"))
        self.seq, self.time = event.seq, event.time
        self.events += 1
        for label_id in event.label_ids:
            standing = self.standings.setdefault(label_id, Standing())
            _add(standing.locked, self._charge(label_id, event.locked))
            _add(standing.used, self._charge(label_id, event.used))
            standing.applications += event.holders
            _set_room(standing, event)


def _add(sums: dict[str, int], amounts: Amounts) -> None:
    for dimension, amount in amounts.items():
        sums[dimension] = sums.get(dimension, 0) + amount


def _set_room(standing: Standing, event: Event) -> None:
    if event.kind is Kind.NODE_REMOVED:
        standing.total = standing.protected = standing.closed = None
    elif event.kind in _ROOM and event.detail is not None:
        standing.total = _amounts(event.detail.get("total"))
        standing.protected = _amounts(event.detail.get("protected"))
        closed = event.detail.get("closed")
        standing.closed = None if closed is None else str(closed)


def _amounts(document: object) -> Amounts | None:
    return document if isinstance(document, Mapping) else None
