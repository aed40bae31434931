"""The numbers of labels within one turn, those used for the first time included.

A new label is numbered as soon as somebody asks under it, but written only if the turn charges it or lets
somebody wait there: a refusal leaves no row.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from rm_service.domain.tags import Tags
from rm_service.ledger.rulebook import Labels
from rm_service.ledger.turn import Turn


@dataclass(frozen=True, slots=True)
class NewLabel:
    """A label without rows yet; with the columns of all the tables that it gets rows in."""

    id: int
    key: str
    tags: Tags
    key_set: str
    label_id: int
    is_pool: bool
    locked: Mapping[str, int] = field(default_factory=dict)
    used: Mapping[str, int] = field(default_factory=dict)
    applications: int = 0
    wake: bool = False
    seen: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _LabelTag:
    key: str
    value: str
    label_id: int


class LabelIds:
    """Finds and gives the numbers of labels in one turn."""

    def __init__(self, turn: Turn, labels: Labels) -> None:
        self._turn = turn
        self._labels = labels
        self._new: dict[str, NewLabel] = {}
        self._written: list[NewLabel] = []
        self.new: dict[int, NewLabel] = {}
        """The labels that had no number before this turn."""

    def find(self, keys: Iterable[str]) -> dict[str, int]:
        """The numbers of those of these labels that have one."""
        found = {key: self._known(key) for key in keys}
        unknown = [key for key, label_id in found.items() if label_id is None]
        if unknown:
            self._turn.take()
            found.update(self._labels.ids_of(self._turn.connection, unknown))
        return {key: label_id for key, label_id in found.items() if label_id is not None}

    def give(self, wanted: Mapping[str, Tags], *, is_pool: bool = False) -> dict[str, int]:
        """The number of each of these labels; those that have none get one."""
        ids = self.find(wanted)
        if len(ids) < len(wanted):
            last = self._turn.take().labels + len(self._new)
            for key in sorted(wanted.keys() - ids.keys()):
                last += 1
                tags = wanted[key]
                new = NewLabel(last, key, tags, ",".join(sorted(tags)), last, is_pool)
                self._new[key] = self.new[last] = new
                ids[key] = last
        return ids

    def write(self, used: Collection[int]) -> None:
        """Write those of the new labels that turned out to be used.

        Pools are written at once: every placement asks for its pool, whether anybody waits there or not.
        """
        texts = self._turn.texts
        written = [label for label_id, label in self.new.items() if label_id in used or label.is_pool]
        if not written:
            return
        tags = [_LabelTag(key, value, label.id) for label in written for key, value in label.tags.items()]
        self._turn.write(texts.insert_labels, written)
        self._turn.write(texts.insert_label_tags, tags)
        self._turn.write(texts.insert_balances, written)
        self._turn.execute(texts.number_labels, written[-1].id)
        self._written = written

    def settle(self) -> None:
        """The turn was committed: what was written is known from now on."""
        self._labels.remember([(label.id, label.key, label.tags) for label in self._written])

    def _known(self, key: str) -> int | None:
        new = self._new.get(key)
        return self._labels.id_of(key) if new is None else new.id
