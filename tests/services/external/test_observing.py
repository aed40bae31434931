"""What the ledger is told of external places, when, and which external applications are ours."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
from marshmallow import Schema

from external_providers.base import (
    ExternalApplication,
    ExternalResourceProvider,
    ExternalResourceProviderParser,
    ExternalResourceRequest,
    Health,
    Identity,
    MatchedProvider,
    Place,
)
from rm_service.domain import operations as op
from rm_service.domain.application import State
from rm_service.domain.outcomes import Code, Done, Outcome, Refused
from rm_service.domain.providers import StalePolicy, StoredProvider, speaking_for
from rm_service.domain.selectors import parse_selector
from rm_service.domain.tags import Tags
from rm_service.ledger.audit import audit
from rm_service.ledger.ledger import Ledger
from rm_service.ledger.queries.external import Tenant, used_places
from rm_service.ledger.queries.labels import read_label
from rm_service.services.applications import Applications, Request
from rm_service.services.external.observing import Observing, shown_of
from rm_service.services.external.secret_fields import Secrets
from rm_service.services.external.snapshots import Snapshot, Snapshots
from rm_service.services.external.sources import Source
from tests.ledger.asking import reading

MEMORY = "yarn.memory"
YARN = Identity("yarn", "yarnCluster", "yarnQueue", frozenset({MEMORY}))


def here(queue: str = "a") -> dict[str, str]:
    return {"yarnCluster": "c1", "yarnQueue": queue}


class Silent(ExternalResourceProvider):
    """Is never asked: what it would say is put into the snapshots."""

    identity = YARN
    parser = ExternalResourceProviderParser(YARN, Schema)

    def applications(self, request: ExternalResourceRequest) -> list[ExternalApplication]:
        raise AssertionError

    def places(self, request: ExternalResourceRequest) -> list[Place]:
        raise AssertionError

    def health(self, request: ExternalResourceRequest) -> Health:
        raise AssertionError


def source(name: str = "c1", labels: str = "yarnCluster=c1") -> Source:
    stored = StoredProvider(
        type="yarn",
        name=name,
        labels=parse_selector(labels),
        config={},
        secrets=None,
        stale_policy=StalePolicy.DENY,
        refresh_seconds=10,
        stale_seconds=60,
        protected={},
        version=1,
        created_at=0,
        updated_at=0,
    )
    return Source(stored, Silent(), MatchedProvider(name, {}, {}), Secrets())


@dataclass
class Followed:
    """The providers of a process, without a refresher."""

    sources: list[Source] = field(default_factory=lambda: [source()])
    time: float = 100.0
    snapshots: Snapshots = field(init=False)

    def __post_init__(self) -> None:
        self.snapshots = Snapshots(lambda: self.time)

    def identity_of(self, type_: str) -> Identity | None:
        return YARN if type_ == YARN.type else None

    def speaking_for(self, type_: str, tags: Tags) -> tuple[StoredProvider, Identity] | None:
        assert type_ == YARN.type
        stored = speaking_for([each.stored for each in reversed(self.sources)], tags)
        return None if stored is None else (stored, YARN)


class World:
    """A ledger, and a cluster that is looked at when a test says so."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.followed = Followed()
        self.observing = Observing(ledger, self.followed)
        self.applications = Applications(ledger, 720, self.observing.before)

    def look(self, used: Mapping[str, int], *listed: ExternalApplication, total: int = 100) -> None:
        places = {name: Place(name, {MEMORY: total}, {MEMORY: amount}) for name, amount in used.items()}
        self.followed.time += 10
        snapshot = Snapshot(places, listed, 0, self.followed.time, 0.0)
        self.followed.snapshots.put(("yarn", "c1"), snapshot)
        self.observing.refreshed(self.followed.sources[0], snapshot)

    def ask(self, amount: int, queue: str = "a", wait: int = 0) -> Outcome:
        asked = Request(tags=here(queue), resource={MEMORY: amount}, wait_seconds=wait)
        return self.applications.apply(asked)

    def granted(self, amount: int, queue: str = "a") -> str:
        outcome = self.ask(amount, queue)
        assert isinstance(outcome, Done), outcome
        assert outcome.application is not None
        return outcome.application.id

    def left(self, queue: str = "a") -> int:
        account = reading(self.ledger, read_label, self.ledger.book(), here(queue))
        return int(account.left()[MEMORY])


@pytest.fixture
def world(ledger: Ledger) -> World:
    return World(ledger)


def listed(id_: str, amount: int, *tags: str, place: str = "a") -> ExternalApplication:
    return ExternalApplication(id_, place, {MEMORY: amount}, tags=frozenset(tags))


def refusal(outcome: Outcome) -> Refused:
    assert isinstance(outcome, Refused), outcome
    return outcome


class TestOurs:
    def test_it_carries_our_id_as_a_word_or_is_called_as_its_engine_said(self) -> None:
        tenants = [Tenant("a", (), {}), Tenant("b", ("x2", "x3"), {})]
        found = [listed("x1", 1, "rm-a", "etl"), listed("x2", 2), listed("x3", 4), listed("x4", 8, "rm-c")]
        assert shown_of(tenants, found) == {"a": {MEMORY: 1}, "b": {MEMORY: 6}}

    def test_what_several_say_is_theirs_is_that_of_the_oldest(self) -> None:
        tenants = [Tenant("old", ("x",), {}), Tenant("new", ("x",), {})]
        assert shown_of(tenants, [listed("x", 5)]) == {"old": {MEMORY: 5}}

    def test_only_what_has_changed_is_told(self) -> None:
        tenants = [Tenant("same", ("x",), {MEMORY: 5}), Tenant("gone", ("y",), {MEMORY: 5})]
        assert shown_of(tenants, [listed("x", 5)]) == {"gone": {}}


class TestTelling:
    def test_a_place_is_told_of_when_somebody_asks_there(self, world: World) -> None:
        world.look({"a": 40, "b": 0})
        assert reading(world.ledger, read_label, world.ledger.book(), here()) is None
        world.granted(60)
        assert (world.left(), refusal(world.ask(1)).code) == (0, Code.INSUFFICIENT_RESOURCES)

    def test_and_after_each_look_as_long_as_it_is_used(self, world: World) -> None:
        world.look({"a": 40})
        ours = world.granted(50)
        world.look({"a": 70}, listed("x", 30, f"rm-{ours}"))
        assert world.left() == 10
        world.look({"a": 40})
        assert world.left() == 10
        assert audit(world.ledger.readers).consistent

    def test_who_waits_is_let_in_by_a_look(self, world: World) -> None:
        waiting = world.ask(10, wait=60)
        assert isinstance(waiting, Done)
        assert waiting.application is not None
        assert waiting.application.reason == "yarnCluster=c1,yarnQueue=a: unobserved"
        world.look({"a": 0})
        world.ledger.submit([op.Renew(waiting.application.id)])  # behind the wake
        found = world.applications.read(waiting.application.id)
        assert found is not None
        assert found.state is State.LOCKED

    def test_a_place_that_the_manager_does_not_have_is_named(self, world: World) -> None:
        world.look({"a": 0})
        assert refusal(world.ask(1, "z")).shortfalls[0].reason == "no_such_place"

    def test_for_a_cluster_that_nobody_follows_nothing_is_registered(self, world: World) -> None:
        world.followed.sources.clear()
        assert refusal(world.ask(1)).code is Code.UNKNOWN_NODE

    def test_the_most_specific_provider_speaks(self, world: World) -> None:
        world.followed.sources.append(source("a", "yarnCluster=c1,yarnQueue=a"))
        snapshot = Snapshot({"a": Place("a", {MEMORY: 7}, {})}, (), 0, 100.0, 0.0)
        world.followed.snapshots.put(("yarn", "a"), snapshot)
        world.look({"a": 0, "b": 0})
        world.granted(7)
        world.granted(100, "b")
        world.look({"a": 0, "b": 0})
        assert world.left() == 0

    def test_several_that_stand_or_fall_together_are_told_before(self, world: World) -> None:
        world.look({"a": 95})
        asked = Request(tags=here(), resource={MEMORY: 3})
        operations = [world.applications.operation(asked) for _ in range(2)]
        outcomes = world.applications.submit(operations, atomic=True)
        assert any(isinstance(outcome, Refused) for outcome in outcomes)
        assert world.left() == 5

    def test_explaining_looks_too(self, world: World) -> None:
        world.look({"a": 95})
        explained = world.applications.explain(Request(tags=here(), resource={MEMORY: 10}))
        assert explained.refused is not None
        assert explained.refused.shortfalls[0].others == 95


def test_places_in_use_are_found_by_a_selector(world: World) -> None:
    world.look({"a": 0, "b": 0})
    ours = world.granted(10)
    world.granted(10, "b")

    def found(selector: str) -> list[tuple[str, tuple[str, ...]]]:
        rules, labels = world.ledger.book().rules, parse_selector(selector)
        with world.ledger.readers.connect() as connection:
            used = used_places(connection, rules, "yarn", "yarnCluster", labels)
        return [(each.tags["yarnQueue"], tuple(tenant.id for tenant in each.tenants)) for each in used]

    assert found("yarnCluster=c1,yarnQueue in (a,z)") == [("a", (ours,))]
    assert found("yarnCluster,yarnQueue!=b") == [("a", (ours,))]
    assert found("yarnCluster=c2") == []


def test_places_in_use_are_found_with_those_who_use_them(world: World) -> None:
    world.look({"a": 0, "b": 0, "c": 95})
    first, second = world.granted(10), world.granted(10)
    world.ask(10, "b")
    world.ask(10, "c", wait=60)
    ended = world.granted(20, "b")
    world.applications.release(ended)
    world.applications.use(second, None, ["application_1_1"])
    world.applications.release(world.granted(1, "b"))
    with world.ledger.readers.connect() as connection:
        found = used_places(connection, world.ledger.book().rules, "yarn", "yarnCluster")
    by_queue = {each.tags["yarnQueue"]: each.tenants for each in found}
    assert by_queue.keys() == {"a", "b", "c"}
    assert by_queue["a"] == (Tenant(first, (), {}), Tenant(second, ("application_1_1",), {}))
    assert by_queue["c"] == ()
