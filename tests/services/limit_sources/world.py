"""Processes that keep the limits of a configuration service, and time that passes when the test says so."""

from collections.abc import Callable, Sequence

from prometheus_client import CollectorRegistry, generate_latest

from rm_service.domain.limits import Limit
from rm_service.domain.outcomes import Done, Outcome, Refused
from rm_service.domain.providers import StalePolicy
from rm_service.domain.tags import Tags
from rm_service.ledger.ledger import Ledger
from rm_service.ledger.queries.limits import list_limits
from rm_service.services.applications import Applications, Request
from rm_service.services.limit_sources.http_source import HttpSource
from rm_service.services.limit_sources.limit_sources import LimitSources, SourceSettings
from rm_service.services.limit_sources.metrics import SourceMetrics
from tests.ledger.asking import reading
from tests.services.external.scripted import FakeTime
from tests.services.limit_sources.configuration import WAIT, ConfigurationService

ALICE, BOB = {"user": "alice"}, {"user": "bob"}
SPARK = {"user": "alice", "creator": "IDE", "engineType": "spark-3.3"}
HTTP = "[source:http]"
REFRESH, STALE = 60, 600
DEADLINE = 3600


class World:
    """A ledger, the process that keeps its limits, and time that passes when the test says so."""

    def __init__(
        self,
        ledger: Ledger,
        service: ConfigurationService,
        policy: StalePolicy,
        wait: float = WAIT,
        key_sets: Sequence[tuple[str, ...]] = (("user",), ("creator", "engineType", "user")),
    ) -> None:
        self.ledger = ledger
        self.time = FakeTime()
        self.registry = CollectorRegistry()
        settings = SourceSettings(
            key_sets=key_sets,
            refresh_seconds=REFRESH,
            stale_seconds=STALE,
            stale_policy=policy,
            timeout_seconds=wait,
            tick_seconds=DEADLINE,
        )
        clocks = self.time.clocks
        source = HttpSource(service.url, WAIT, clocks)
        self.sources = LimitSources(ledger, source, HTTP, settings, clocks, SourceMetrics(self.registry))
        self.applications = Applications(ledger, 720, unknown_limits=self.sources.unknown)

    def ask(self, tags: Tags = ALICE, memory: int = 1, wait: int = 0) -> Outcome:
        return self.applications.apply(Request(tags=tags, resource={"memory": memory}, wait_seconds=wait))

    def granted(self, tags: Tags = ALICE, memory: int = 1) -> str:
        outcome = self.ask(tags, memory)
        assert isinstance(outcome, Done), outcome
        assert outcome.application is not None
        return outcome.application.id

    def refused(self, tags: Tags = ALICE, memory: int = 1) -> Refused:
        outcome = self.ask(tags, memory)
        assert isinstance(outcome, Refused), outcome
        return outcome

    def later(self, seconds: float = REFRESH) -> None:
        self.time.passes(seconds)
        self.sources.refresh()

    def limits(self) -> dict[str, Limit]:
        page = reading(self.ledger, list_limits)
        return {",".join(f"{key}={limit.tags[key]}" for key in limit.tags): limit for limit in page.items}

    def metrics(self) -> str:
        return generate_latest(self.registry).decode()


Make = Callable[..., World]
