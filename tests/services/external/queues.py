"""A manager of queues that says what a test lays down, and the service's external resources before it."""

from dataclasses import dataclass, field
from typing import ClassVar

from marshmallow import Schema, fields

from external_providers.base import (
    ExternalApplication,
    ExternalResourceProvider,
    ExternalResourceProviderParser,
    ExternalResourceRequest,
    Health,
    Identity,
    Place,
)
from rm_service.domain.outcomes import Done, Outcome, Refused
from rm_service.domain.providers import StalePolicy
from rm_service.domain.selectors import parse_selector
from rm_service.ledger.ledger import Ledger
from rm_service.services.applications import Applications, Request
from rm_service.services.external.external_resources import ExternalResources
from rm_service.services.external.keys import Keys
from rm_service.services.external.providers import ProviderWish
from tests.services.external.scripted import FakeTime, all_calls_end, plugins_with, tick

MEMORY = "yarn.memory"
IDENTITY = Identity("yarn", "yarnCluster", "yarnQueue", frozenset({MEMORY}))


class QueuesSchema(Schema):
    cluster = fields.String()
    address = fields.String()


def queue(name: str, *, used: int = 0, total: int = 100) -> Place:
    return Place(name, {MEMORY: total}, {MEMORY: used})


class Queues(ExternalResourceProvider):
    """Says what it has, or raises `trouble`."""

    identity: ClassVar[Identity] = IDENTITY
    parser: ClassVar[ExternalResourceProviderParser] = ExternalResourceProviderParser(IDENTITY, QueuesSchema)

    def __init__(self) -> None:
        self.has = [queue("a"), queue("b")]
        self.runs: list[ExternalApplication] = []
        self.trouble: Exception | None = None

    def applications(self, request: ExternalResourceRequest) -> list[ExternalApplication]:
        return list(self.runs)

    def places(self, request: ExternalResourceRequest) -> list[Place]:
        if self.trouble is not None:
            raise self.trouble
        return list(self.has)

    def health(self, request: ExternalResourceRequest) -> Health:
        return Health(ok=self.trouble is None)


@dataclass
class Process:
    """One process of the service, as far as queues go. Its time passes and it ticks when a test says so."""

    ledger: Ledger
    queues: Queues = field(default_factory=Queues)
    time: FakeTime = field(default_factory=FakeTime)
    external: ExternalResources = field(init=False)
    applications: Applications = field(init=False)

    def __post_init__(self) -> None:
        plugins = plugins_with(self.queues)
        self.external = ExternalResources(self.ledger, Keys([]), plugins, clocks=self.time.clocks)
        self.applications = Applications(self.ledger, 720, self.external.observing.before)

    def wish(self, name: str = "c1", labels: str = "yarnCluster=c1", **config: str) -> ProviderWish:
        """Nothing but a change of the wish keeps it from being relied on."""
        return ProviderWish("yarn", name, config, parse_selector(labels), StalePolicy.LAST_KNOWN)

    def store(self, wish: ProviderWish) -> None:
        """Have it stored, and looked at if it can be."""
        outcome = self.external.store(wish)
        assert isinstance(outcome, Done), outcome
        all_calls_end(self.external.refresher)

    def tick(self, seconds: float = 0) -> None:
        self.time.passes(seconds)
        tick(self.external.refresher)

    def ask(self, amount: int, queue: str = "a", cluster: str = "c1") -> Outcome:
        tags = {"yarnCluster": cluster, "yarnQueue": queue}
        return self.applications.apply(Request(tags=tags, resource={MEMORY: amount}))

    def granted(self, amount: int, queue: str = "a", cluster: str = "c1") -> str:
        outcome = self.ask(amount, queue, cluster)
        assert isinstance(outcome, Done), outcome
        assert outcome.application is not None
        return outcome.application.id

    def refused(self, amount: int, queue: str = "a") -> str:
        """Why it is not granted."""
        outcome = self.ask(amount, queue)
        assert isinstance(outcome, Refused), outcome
        return outcome.shortfalls[0].reason
