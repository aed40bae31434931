"""The scheduler's service: a resource manager registers, and everything it says becomes the ledger's work."""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from threading import Lock

import structlog

from rm_service.domain import operations as op
from rm_service.domain.clients import Client, ClientState
from rm_service.domain.label_rules import LabelRules
from rm_service.domain.outcomes import Done, Outcome, Refused
from rm_service.domain.queue_config import Configuration, QueueConfigError
from rm_service.domain.queue_limits import limits_of
from rm_service.domain.rejections import answer_to
from rm_service.domain.tags import TagError, Tags
from rm_service.ledger.client_state import note_signs_of_life
from rm_service.ledger.ledger import Ledger
from rm_service.ledger.resync import give_up_unreported
from rm_service.services.looks import Before, enqueue_behind, looks_for
from rm_service.services.si import allocation_operations as allocations
from rm_service.services.si import application_operations as applications
from rm_service.services.si.clients import RESYNC, WISHES, Clients, KnownClient
from rm_service.services.si.errors import RegistrationRefusedError
from rm_service.services.si.names import (
    CREATION_TIME,
    application_name,
    partition_name,
    tag_fault,
)
from rm_service.services.si.node_operations import node_groups
from rm_service.services.si.policies import effective_text, parse_config
from rm_service.services.si.requests import Ask, Registration, Update

CHUNK = 500
"""The most applications and nodes of one message that share a batch; a larger ask has one of its own."""
MAX_RM_ID = 128
REMEMBERED_APPLICATIONS = 100_000

_Charged = op.Ask | op.BookAllocation | op.AddApplication
_log = structlog.get_logger(__name__)


class SchedulerService:
    """What a façade of the Scheduler Interface hands its requests to. Every method may be called anywhere."""

    def __init__(
        self,
        ledger: Ledger,
        *,
        resync_seconds: int,
        policies: Path | None = None,
        before: Before = lambda _: (),
    ) -> None:
        """`policies`: the folder of the policy groups' files; None: those that came with the service.
        `before`: what the ledger is to be told of external places before somebody asks there.
        """
        self._ledger = ledger
        self._before = before
        self._policies = policies
        self._resync_seconds = resync_seconds
        self._clients = Clients(ledger)
        self._tags: dict[str, Tags] = {}
        self._asked_limits: set[object] = set()
        self._lock = Lock()

    def register(self, registration: Registration) -> None:
        """Register a resource manager, or register it anew: then it has to report again what it has.

        Raises RegistrationRefusedError (nothing was taken), and what the ledger raises.
        """
        rm_id = registration.rm_id
        reason = _rm_id_fault(rm_id) or _texts_fault(registration) or _wish_fault(registration)
        if reason is not None:
            raise RegistrationRefusedError(reason)
        try:
            config = effective_text(registration.config, registration.policy_group, self._policies)
            configuration = parse_config(config.text)
        except QueueConfigError as error:
            source = "" if registration.config.strip() else "the policy group's file: "
            _log.warning("si_registration_refused", rm_id=rm_id, reason=f"{source}{error}")
            raise RegistrationRefusedError(f"{source}{error}") from error
        outcome = self._ledger.submit_whole(
            op.RegisterClient(
                id=rm_id,
                version=registration.version,
                policy_group=registration.policy_group,
                build_info=registration.build_info,
                config=config.text,
                extra_config=registration.extra_config,
                limits=_limits(rm_id, configuration),
                resync_seconds=self._resync_seconds,
                warning=config.warning,
            )
        )
        if isinstance(outcome, Refused):
            raise RegistrationRefusedError(outcome.detail)
        known = self._clients.read(rm_id)
        if registration.extra_config.get(RESYNC) == "wipe":
            give_up_unreported(self._ledger, Client(rm_id, known.client.registration))
        _log.info("si_registered", rm_id=rm_id, registration=known.client.registration)

    def update(self, update: Update) -> Future[None]:
        """Carry out what a message asks for, in the order of the fields of Update.

        The future ends when all of it is committed, or with what the ledger raises. Raises
        NotRegisteredError.
        """
        known = self._clients.get(update.rm_id)
        futures: list[Future[list[Outcome]]] = []
        first = self._add_applications(known, update, futures)
        for change in update.nodes:
            for group in node_groups(known, change, update.dialect):
                if group.atomic:
                    self._enqueue(first, futures)
                    futures.append(self._ledger.enqueue(group.operations, atomic=True))
                    first = []
                else:
                    first += group.operations
        for allocation in update.allocations:
            tags = self._tags_of(known, allocation.partition, allocation.application)
            first.append(allocations.book_allocation(known, allocation, tags))
        for ask in _by_age(update.asks):
            tags = self._tags_of(known, ask.partition, ask.application)
            first.append(allocations.ask(known, ask, tags))
        first += [allocations.release(known, release) for release in update.releases]
        first += [applications.remove_application(known, removal) for removal in update.removals]
        self._enqueue(first, futures)
        return _all_of(futures)

    def at_hand(self, rm_id: str) -> bool:
        """Whether `update` knows this resource manager without asking the database."""
        return self._clients.at_hand(rm_id)

    def registered(self, rm_id: str, seq: int) -> None:
        """A resource manager has registered, through whatever process, by the event of this number."""
        self._clients.outdated(rm_id, seq)

    def note_presence(self, rm_ids: Iterable[str]) -> None:
        """These resource managers are there: those that were taken for away are granted things again.

        Raises SQLAlchemyError, and what the ledger raises.
        """
        for rm_id in note_signs_of_life(self._ledger.readers, rm_ids):
            self._ledger.submit_whole(op.SetClientState(id=rm_id, state=ClientState.RUNNING))
            _log.info("si_resumed", rm_id=rm_id)

    def close(self) -> None:
        """Read no more about clients."""
        self._clients.close()

    def _add_applications(
        self, known: KnownClient, update: Update, futures: list[Future[list[Outcome]]]
    ) -> list[op.DecidedOperation]:
        operations: list[op.DecidedOperation] = []
        for request in update.applications:
            translated = applications.add_application(known, request)
            if translated.limit is not None and self._changes(translated.limit):
                self._enqueue(operations, futures)
                operations = []
                futures.append(self._ledger.enqueue_whole(translated.limit))
            operation = translated.operation
            operations.append(operation)
            if isinstance(operation, op.AddApplication):
                self._remember(operation.name, operation.tags)
        return operations

    def _changes(self, limit: op.SetLimit) -> bool:
        """Whether a limit is not in force yet, as far as is known."""
        book = self._ledger.book()
        known = book.limits.resolve(limit.tags)
        asked = (book.epoch, tuple(sorted(limit.tags.items())), tuple(sorted(limit.total.items())))
        if (known is not None and dict(known.total) == dict(limit.total)) or asked in self._asked_limits:
            return False
        if len(self._asked_limits) >= REMEMBERED_APPLICATIONS:
            self._asked_limits.clear()
        self._asked_limits.add(asked)  # it may be an operator's: then asking again changes nothing
        return True

    def _enqueue(
        self, operations: Sequence[op.DecidedOperation], futures: list[Future[list[Outcome]]]
    ) -> None:
        rules = self._ledger.book().rules
        for chunk in _chunks([possible(operation, rules) for operation in operations]):
            asking = [each.tags for each in chunk if isinstance(each, _Charged)]
            future = enqueue_behind(self._ledger, looks_for(self._before, asking), chunk)
            future.add_done_callback(self._learn)
            futures.append(future)

    def _learn(self, future: Future[list[Outcome]]) -> None:
        """Remember what the tags of an application are, from the first of its allocations."""
        if future.cancelled() or future.exception() is not None:
            return
        for outcome in future.result():
            application = outcome.application if isinstance(outcome, Done) else None
            if application is not None and application.parent is not None and "app" in application.tags:
                name = application_name(application.tags["partition"], application.tags["app"])
                if name not in self._tags:
                    self._remember(name, application.tags)

    def _tags_of(self, known: KnownClient, partition: str, application: str) -> Tags:
        name = application_name(partition_name(known.client.id, partition), application)
        return self._tags.get(name, {})

    def _remember(self, name: str, tags: Tags) -> None:
        with self._lock:
            if len(self._tags) >= REMEMBERED_APPLICATIONS:
                self._tags.clear()
            self._tags[name] = tags


def possible(operation: op.DecidedOperation, rules: LabelRules) -> op.DecidedOperation:
    """The operation, or what rejects it: its tags may be such that nothing can be charged to them."""
    if not isinstance(operation, _Charged):
        return operation
    try:
        rules.labels_for(operation.tags)
    except TagError as error:
        answer = answer_to(operation, str(error)) or {}
        return op.Tell(client=operation.client, subject="", answer=answer)
    return operation


def _chunks(operations: Iterable[op.DecidedOperation]) -> Iterator[list[op.DecidedOperation]]:
    chunk: list[op.DecidedOperation] = []
    weight = 0
    for operation in operations:
        weighs = len(operation.ids) if isinstance(operation, op.Ask) else 1
        if chunk and weight + weighs > CHUNK:
            yield chunk
            chunk, weight = [], 0
        chunk.append(operation)
        weight += weighs
    if chunk:
        yield chunk


def _by_age(asks: Sequence[Ask]) -> Iterable[Ask]:
    """The asks of a message as they were created, where the RM says when."""
    if not any(CREATION_TIME in ask.tags for ask in asks):
        return asks
    return sorted(asks, key=_created)


def _created(ask: Ask) -> int:
    text = ask.tags.get(CREATION_TIME, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else 0


def _limits(rm_id: str, configuration: Configuration) -> list[tuple[Tags, dict[str, int]]]:
    return [
        (row.tags, dict(row.total))
        for config in configuration.partitions
        for row in limits_of(config, partition_name(rm_id, config.name))
    ]


def _rm_id_fault(rm_id: str) -> str | None:
    if not rm_id:
        return "partition cannot be created without name or RM, one is not set"
    if len(rm_id) > MAX_RM_ID:
        return f"rmID is longer than {MAX_RM_ID} characters"
    if "]" in rm_id or "[" in rm_id:
        return "rmID holds no square brackets"
    return tag_fault(rm_id)


def _wish_fault(registration: Registration) -> str | None:
    """A misspelt wish is not its opposite."""
    for key, values in WISHES.items():
        if registration.extra_config.get(key, values[0]) not in values:
            return f"extraConfig {key}: must be {' or '.join(filter(None, values))}"
    return None


def _texts_fault(registration: Registration) -> str | None:
    """What cannot be kept: no database takes this character in a text."""
    texts = (registration.version, registration.policy_group, registration.config)
    return "a text holds the character NUL" if any("\0" in text for text in texts) else None


def _all_of(futures: Sequence[Future[list[Outcome]]]) -> Future[None]:
    """A future that ends when the last of these does, with the first error if there is one."""
    whole: Future[None] = Future()
    if not futures:
        whole.set_result(None)
        return whole
    lock, left = Lock(), [len(futures)]

    def done(_: Future[list[Outcome]]) -> None:
        with lock:
            left[0] -= 1
            if left[0]:
                return
        error = next((found for future in futures if (found := future.exception()) is not None), None)
        if error is None:
            whole.set_result(None)
        else:
            whole.set_exception(error)

    for future in futures:
        future.add_done_callback(done)
    return whole
