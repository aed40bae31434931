"""Applications: asked for, used, renewed, released, explained, looked up."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rm_service.domain import operations as op
from rm_service.domain.amounts import Amounts
from rm_service.domain.application import Application, State
from rm_service.domain.operations import Placement
from rm_service.domain.outcomes import Code, Outcome, Refused
from rm_service.domain.selectors import Selector
from rm_service.domain.tags import Tags
from rm_service.ledger.ids import new_id
from rm_service.ledger.ledger import Ledger
from rm_service.ledger.queries.applications import list_applications, queue_position, read_application
from rm_service.ledger.queries.paging import Page
from rm_service.services.explanations import Explanation, explain
from rm_service.services.looks import Before, Look, enqueue_behind, looks_for


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked for, before the rules have converted its tags."""

    tags: Tags
    resource: Amounts
    id: str | None = None
    """None: one is made."""
    wait_seconds: int = 0
    lock_seconds: int | None = None
    priority: int = 0
    placement: Placement | None = None
    classes: tuple[tuple[str, int], ...] = ()
    """Devices by resource class, in thousandths."""
    device_strategy: str | None = None
    """Which devices of a node are taken; None: as the service does by default."""
    alternatives: Sequence[Tags] = ()
    """Tags that may be instead of those of the same keys, in the order of preference."""
    said: Mapping[str, object] = field(default_factory=dict)
    """The request as it was put, to tell a repetition from another request under the same id."""


@dataclass(frozen=True, slots=True)
class Applications:
    """The life of applications, from their asking to their end."""

    ledger: Ledger
    lock_seconds: int
    """How long an unused lock lasts if the application does not say."""
    before: Before = lambda _: ()
    """What the ledger is to be told of external places before somebody asks with these tags."""
    unknown_limits: Callable[[Sequence[Tags]], Sequence[Tags | None]] | None = None
    """For the tags of each of some applications the combination without whose limits nothing is granted, if
    they are not known now. None: the ledger has all limits.
    """
    device_strategy: str = "first_fit"
    """Which devices of a node are taken if the application does not say: device_strategies.STRATEGIES."""

    def operation(self, request: Request) -> op.Apply:
        """The ledger's operation for a request: its tags converted, its labels known to be possible.

        Raises TagError.
        """
        book = self.ledger.book()
        tags, *alternatives = [
            book.conversions.apply({**request.tags, **instead}) for instead in ({}, *request.alternatives)
        ]
        for each in (tags, *alternatives):
            book.rules.labels_for(each)
        return op.Apply(
            id=request.id or new_id(),
            tags=tags,
            resource=book.rules.counted((tags, *alternatives), request.resource),
            lock_seconds=request.lock_seconds or self.lock_seconds,
            wait_seconds=request.wait_seconds,
            priority=request.priority,
            placement=self._placement(request, tags),
            alternatives=tuple(alternatives),
            id_is_new=request.id is None,
            request=request.said,
        )

    def _placement(self, request: Request, tags: Tags) -> Placement | None:
        """Who asks for classes needs a node that is chosen, or one whose devices are."""
        if not request.classes:
            return request.placement
        placement = request.placement or Placement(partition=tags.get("partition", ""))
        return replace(
            placement, classes=request.classes, devices=request.device_strategy or self.device_strategy
        )

    def apply(self, request: Request) -> Outcome:
        """Ask for a resource. Raises TagError, and what the ledger raises."""
        return self.submit([self.operation(request)])[0]

    def use(self, application_id: str, resource: Amounts | None, external_ids: Sequence[str] = ()) -> Outcome:
        """Turn the lock into use, or set the amount that is used; say what it is called outside."""
        return self.submit([op.Use(application_id, resource, tuple(external_ids))])[0]

    def renew(self, application_id: str, lock_seconds: int | None) -> Outcome:
        """Start the lock's lease anew."""
        return self.submit([op.Renew(application_id, lock_seconds)])[0]

    def release(self, application_id: str) -> Outcome:
        """Give everything back."""
        return self.submit([op.Release(application_id)])[0]

    def submit(self, operations: Sequence[op.ApplicationOperation], *, atomic: bool = False) -> list[Outcome]:
        """Several operations in their order."""
        refused = self._without_limits(operations)
        if refused:
            return self._submit_others(operations, refused, atomic=atomic)
        return self._submit(operations, atomic=atomic)

    def _submit(self, operations: Sequence[op.ApplicationOperation], *, atomic: bool) -> list[Outcome]:
        looks = self._looks(operations)
        if not looks:
            return self.ledger.submit(operations, atomic=atomic)
        return enqueue_behind(self.ledger, looks, operations, atomic=atomic).result()[len(looks) :]

    def _submit_others(
        self,
        operations: Sequence[op.ApplicationOperation],
        refused: Mapping[int, Refused],
        *,
        atomic: bool,
    ) -> list[Outcome]:
        """Those whose limits are known; of a group that stands or falls together none."""
        places = range(len(operations))
        if atomic:
            detail = f"operation {min(refused)} of the group was refused, so none took place"
            return [refused.get(place, Refused(Code.NOT_DONE, detail)) for place in places]
        others = [place for place in places if place not in refused]
        outcomes = self._submit([operations[place] for place in others], atomic=False) if others else []
        found = dict(zip(others, outcomes, strict=True))
        return [refused[place] if place in refused else found[place] for place in places]

    def _without_limits(self, operations: Sequence[op.ApplicationOperation]) -> dict[int, Refused]:
        """By their places those that cannot be judged. Nothing is locked while somebody is asked."""
        if self.unknown_limits is None:
            return {}
        asked = [
            (place, tags)
            for place, operation in enumerate(operations)
            if isinstance(operation, op.Apply)
            for tags in (operation.tags, *operation.alternatives)
        ]
        if not asked:
            return {}
        unknown = self.unknown_limits([tags for _, tags in asked])
        return {
            place: _no_limits(combination)
            for (place, _), combination in zip(asked, unknown, strict=True)
            if combination is not None
        }

    def _looks(self, operations: Iterable[op.ApplicationOperation]) -> list[Look]:
        asked = [each for each in operations if isinstance(each, op.Apply)]
        return looks_for(self.before, [tags for each in asked for tags in (each.tags, *each.alternatives)])

    def explain(self, request: Request) -> Explanation:
        """What `apply` would answer just now. Raises TagError, and what the ledger raises."""
        operation = self.operation(request)
        refused = self._without_limits([operation])
        if refused:
            labels = self.ledger.book().rules.labels_for(operation.tags)
            return Explanation(None, refused[0], tuple(label.tags for label in labels))
        return explain(self.ledger, operation, [look.operation for look in self._looks([operation])])

    def read(self, application_id: str) -> Application | None:
        """One application, None if there is none with this id."""
        with self.ledger.readers.connect() as connection:
            return read_application(connection, application_id)

    def page(
        self, states: Collection[State] | None, selector: Selector, limit: int, cursor: str | None
    ) -> Page[Application]:
        """A page of applications, newest first. Raises CursorError."""
        with self.ledger.readers.connect() as connection:
            return list_applications(connection, states=states, selector=selector, limit=limit, cursor=cursor)

    def position(self, application: Application) -> int | None:
        """Its place in the queue, from 1; None when it does not wait."""
        if application.state is not State.WAITING:
            return None
        with self.ledger.readers.connect() as connection:
            return queue_position(connection, application)

    def labels(self, application: Application) -> list[Tags]:
        """The labels that it is charged to."""
        return self.ledger.label_tags(application.label_ids)


def _no_limits(combination: Tags) -> Refused:
    named = ", ".join(f"{key}={value}" for key, value in combination.items())
    detail = f"the limits of {named} are not known: the service that knows them cannot be asked now"
    return Refused(Code.LIMITS_UNKNOWN, detail, label=combination)
