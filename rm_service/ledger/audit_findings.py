"""What an audit can find wrong."""

from dataclasses import dataclass, field
from enum import StrEnum

from rm_service.domain.tags import Tags

MAX_DIFFERENCES = 1_000


class Check(StrEnum):
    """What was checked."""

    BALANCE = "balance"
    """A label's balance is the sum of the live applications charged to it."""
    LABELS = "labels"
    """A live application is charged to the labels that the rules in force give."""
    EVENTS = "events"
    """A label's balance is what the events since the last checkpoint make of it."""
    EVENT_ORDER = "event_order"
    """Event numbers have no gaps, and their times never run back."""
    WAITERS = "waiters"
    """The queues hold the waiting applications, and each label knows its first waiter."""
    FINAL = "final"
    """What is finished has no deadline and does not count as live."""
    ENGINES = "engines"
    """Every engine belongs to a used application that names it."""
    NODES = "nodes"
    """A node's label has a total while the node is registered, and only then."""
    DEVICES = "devices"
    """What is taken of devices is what applications hold of them; signatures sum up the nodes."""
    TAG_INDEX = "tag_index"
    """SQLite: the tag table has exactly the tags of the live applications."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is not as it must be, with the label or the subject where it is so."""

    check: Check
    field: str
    """What differs: `locked`, `used`, `applications`, `total`, `label_ids`, ..."""
    expected: object
    found: object
    label: Tags | None = None
    subject: str | None = None
    """An application's id, an engine's or node's instance."""
    dimension: str | None = None


@dataclass(slots=True)
class Findings:
    """The differences found so far, the first thousand of them."""

    differences: list[Difference] = field(default_factory=list)
    truncated: bool = False

    def add(
        self,
        check: Check,
        what: str,
        expected: object,
        found: object,
        *,
        label: Tags | None = None,
        subject: str | None = None,
        dimension: str | None = None,
    ) -> None:
        """Keep a difference, if there is one between `expected` and `found`."""
        if expected == found:
            return
        if len(self.differences) >= MAX_DIFFERENCES:
            self.truncated = True
            return
        self.differences.append(Difference(check, what, expected, found, label, subject, dimension))
