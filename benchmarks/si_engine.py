"""The engine below the Scheduler Interface: the same asks, handed to a ledger in this process in batches."""

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial

from benchmarks import si_scene
from benchmarks.rounds import Load
from benchmarks.si_load import Span
from rm_service.domain import operations as op
from rm_service.domain.application import State
from rm_service.domain.outcomes import Done, Outcome
from rm_service.facades.si import reading
from rm_service.facades.si.proto import si_pb2 as si
from rm_service.ledger.ids import new_id
from rm_service.ledger.ledger import Ledger
from rm_service.services.si import allocation_operations
from rm_service.services.si.clients import Clients
from rm_service.services.si.requests import Dialect, Registration
from rm_service.services.si.scheduler import SchedulerService

RESYNC_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Asker:
    """A resource manager whose asks go straight to the ledger."""

    ledger: Ledger
    templates: Sequence[op.Ask]
    """What the service makes of a message, an ask for each application."""

    def batches(self, asks: int) -> Iterator[list[op.DecidedOperation]]:
        """Batches of new asks for ever."""
        for number in si_scene.numbers():
            yield [self._ask(f"{number.decode()}-{place:03d}", place) for place in range(asks)]

    def _ask(self, key: str, place: int) -> op.Ask:
        template = self.templates[place % len(self.templates)]
        return replace(
            template,
            ids=(new_id(),),
            name=template.name.rpartition("/")[0] + "/" + key,
            tags={**template.tags, "allocationKey": key},
            request={**template.request, "key": key},
        )


def asker(ledger: Ledger, rm_id: str, *, nodes: int = si_scene.NODES, sort: str = "fair") -> Asker:
    """Registered, with so many nodes and the applications, as `si_scene.set_up` does it from outside."""
    scheduler = SchedulerService(ledger, resync_seconds=RESYNC_SECONDS)
    scheduler.register(Registration(rm_id=rm_id, config=si_scene.CONFIG.format(sort=sort)))
    names = [si_scene.node_name(number) for number in range(nodes)]
    scheduler.update(reading.read_nodes(si_scene.nodes_request(rm_id, names), Dialect.NEWEST)).result()
    applications = reading.read_applications(si_scene.applications_request(rm_id), Dialect.NEWEST)
    scheduler.update(applications).result()
    scheduler.close()
    clients = Clients(ledger)
    known = clients.read(rm_id)
    clients.close()
    message = si.AllocationRequest.FromString(si_scene.message(rm_id, si_scene.APPLICATIONS))
    templates = []
    for ask in reading.read_allocations(message, Dialect.NEWEST).asks:
        owner = next(each for each in si_scene.ALL if each.name == ask.application)
        tags = {"queue": owner.queue, "user": owner.user, "group": si_scene.GROUP}
        operation = allocation_operations.ask(known, ask, tags)
        assert isinstance(operation, op.Ask), operation
        templates.append(operation)
    return Asker(ledger, templates)


def batches_in_flight(asker: Asker, asks: int, in_flight: int, seconds: float) -> Load:
    """So many batches under way at any time; the rate is that of granted asks."""
    span, room = Span.of(seconds), threading.Semaphore(in_flight)
    errors: list[BaseException] = []

    def answered(sent: float, future: Future[list[Outcome]]) -> None:
        now = time.perf_counter()
        try:
            span.count(now, sum(map(_granted, future.result())))
            span.took(sent, now)
        except BaseException as error:  # noqa: BLE001 - raised below, where somebody sees it
            errors.append(error)
        room.release()

    for batch in asker.batches(asks):
        room.acquire()
        sent = time.perf_counter()
        if sent >= span.end or errors:
            break
        asker.ledger.enqueue(batch).add_done_callback(partial(answered, sent))
    for _ in range(in_flight - 1):
        room.acquire()
    if errors:
        raise errors[0]
    return span.load()


def _granted(outcome: Outcome) -> bool:
    assert isinstance(outcome, Done), outcome
    assert outcome.application is not None
    assert outcome.application.state is State.USED, outcome
    return True
