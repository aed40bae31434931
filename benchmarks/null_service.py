"""The service without its ledger: an application is read, checked and answered as if it had been granted.

`python -m benchmarks.null_service serve` takes the same settings as `rm-service serve`. What it answers in a
second is the most that HTTP, validation and rendering allow.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from unittest import mock

from rm_service import app, cli
from rm_service.domain import operations as op
from rm_service.domain.application import SECOND, Application, State
from rm_service.domain.outcomes import Done, Outcome
from rm_service.domain.tags import Tags
from rm_service.services.observed import ObservedLedger


@dataclass(slots=True)
class NullLedger(ObservedLedger):
    """Grants every application at once and forgets it; everything else is done as always."""

    _label_ids: dict[str, tuple[int, ...]] = field(init=False, default_factory=dict)

    def submit(self, operations: Sequence[op.DecidedOperation], *, atomic: bool = False) -> list[Outcome]:
        outcomes: list[Outcome] = []
        for operation in operations:
            if not isinstance(operation, op.Apply):
                return ObservedLedger.submit(self, operations, atomic=atomic)
            outcomes.append(self._grant(operation))
            self.observe("Apply", "done", 1)
        return outcomes

    def _grant(self, operation: op.Apply) -> Outcome:
        now = time.time_ns() // 1_000
        application = Application(
            id=operation.id,
            state=State.LOCKED,
            tags=operation.tags,
            label_ids=self._labels_of(operation.tags),
            requested=operation.resource,
            request=operation.request,
            priority=operation.priority,
            lock_seconds=operation.lock_seconds,
            created_at=now,
            locked_at=now,
            since=now,
            deadline=now + operation.lock_seconds * SECOND,
        )
        return Done(application=application, created=True)

    def _labels_of(self, tags: Tags) -> tuple[int, ...]:
        """The labels of one of the benchmark's sets, which differ by user."""
        user = tags["user"]
        known = self._label_ids.get(user)
        if known is None:
            keys = [label.key for label in self.book().rules.labels_for(tags)]
            with self.readers.connect() as connection:
                ids = self.labels.ids_of(connection, keys)
            known = self._label_ids[user] = tuple([ids[key] for key in keys])
        return known


if __name__ == "__main__":
    with mock.patch.object(app, "ObservedLedger", NullLedger):
        cli.main()
