"""Places of which nothing is known: who asks there is told why; nothing is written until one is used."""

from dataclasses import replace

import pytest
from sqlalchemy import func, select

from rm_service.domain.application import Application, State
from rm_service.domain.outcomes import Done, Outcome, Refused
from rm_service.domain.providers import StalePolicy
from rm_service.ledger import tables
from rm_service.ledger.audit import audit
from rm_service.ledger.ledger import Ledger
from rm_service.ledger.queries.applications import read_application
from rm_service.services.applications import Request
from rm_service.services.external.sources import Source
from tests.ledger.asking import reading
from tests.services.external.test_observing import MEMORY, World, here


@pytest.fixture
def world(ledger: Ledger) -> World:
    return World(ledger)


def written(ledger: Ledger) -> tuple[int, int]:
    """How many labels and events there are."""
    with ledger.readers.connect() as connection:
        counts = [
            connection.execute(select(func.count()).select_from(table)).scalar_one()
            for table in (tables.label, tables.event)
        ]
    return counts[0], counts[1]


def check_books(ledger: Ledger) -> None:
    result = audit(ledger.readers)
    assert result.consistent, result.differences


def reason(outcome: Outcome) -> str:
    assert isinstance(outcome, Refused), outcome
    return outcome.shortfalls[0].reason


def application_of(outcome: Outcome) -> Application:
    assert isinstance(outcome, Done), outcome
    assert outcome.application is not None
    return outcome.application


def ignoring(source: Source) -> Source:
    return replace(source, stored=replace(source.stored, stale_policy=StalePolicy.IGNORE))


def asked(queue: str) -> Request:
    return Request(tags=here(queue), resource={MEMORY: 1})


def test_explaining_writes_nothing_and_knows_the_last_look(world: World, ledger: Ledger) -> None:
    world.look({"a": 70})
    before = written(ledger)
    for queue in ("a", "mistyped", "a"):
        found = world.applications.explain(Request(tags=here(queue), resource={MEMORY: 20}))
        assert (found.granted is not None) is (queue == "a")
    short = world.applications.explain(Request(tags=here(), resource={MEMORY: 40})).refused
    assert short is not None
    assert (short.shortfalls[0].left, short.shortfalls[0].others) == (30, 70)
    assert written(ledger) == before
    check_books(ledger)


def test_who_is_refused_at_a_place_that_there_is_not_leaves_nothing_behind(
    world: World, ledger: Ledger
) -> None:
    world.look({"a": 0})
    before = written(ledger)
    for number in range(3):
        assert reason(world.ask(1, f"mistyped-{number}")) == "no_such_place"
    outcomes = world.applications.submit(
        [world.applications.operation(asked(queue)) for queue in ("a", "mistyped")], atomic=True
    )
    assert reason(outcomes[1]) == "no_such_place"
    labels, events = written(ledger)
    assert (labels, events) == (before[0] + 1, before[1] + 1)  # of the place that there is
    check_books(ledger)


def test_nor_does_who_is_refused_where_nobody_has_looked(world: World, ledger: Ledger) -> None:
    before = written(ledger)
    assert reason(world.ask(1)) == "unobserved"
    assert written(ledger) == before


def test_who_waits_there_is_written_with_the_place_and_let_in_by_the_look(
    world: World, ledger: Ledger
) -> None:
    waiting = application_of(world.ask(10, wait=60))
    assert (waiting.state, waiting.reason) == (State.WAITING, "yarnCluster=c1,yarnQueue=a: unobserved")
    check_books(ledger)
    assert reason(world.ask(10)) == "unobserved"
    world.look({"a": 0})
    application_of(world.ask(5))  # behind the wake
    assert reading(ledger, read_application, waiting.id).state is State.LOCKED
    check_books(ledger)


def test_who_is_let_in_although_nothing_is_known_is_written_with_the_place(
    world: World, ledger: Ledger
) -> None:
    world.followed.sources = [ignoring(world.followed.sources[0])]
    assert application_of(world.ask(10)).state is State.LOCKED
    assert application_of(world.ask(10)).state is State.LOCKED
    check_books(ledger)
    world.look({"a": 0})
    assert world.left() == 80
    check_books(ledger)


def test_a_place_that_is_there_no_more_is_closed_by_who_asks(world: World, ledger: Ledger) -> None:
    world.look({"a": 0})
    application_of(world.ask(10))
    world.look({"b": 0})
    assert reason(world.ask(1)) == "no_such_place"
    check_books(ledger)


@pytest.mark.parametrize(
    ("tags", "missing"),
    [
        ({"yarnCluster": "c1"}, "yarnQueue"),
        ({"yarnCluster": "c1", "yarnqueue": "a", "user": "alice"}, "yarnQueue"),
        ({"user": "alice"}, "yarnCluster, yarnQueue"),
    ],
)
def test_explaining_warns_of_what_no_place_is_charged_with(
    world: World, tags: dict[str, str], missing: str
) -> None:
    found = world.applications.explain(Request(tags=tags, resource={MEMORY: 1, "memory": 1}))
    assert found.granted is not None
    reason = f"the label rule yarn-queue needs the tags {missing}"
    assert found.warnings == (f"yarn.memory: no place is charged with it; {reason}",)


def test_it_does_not_where_a_place_is_charged(world: World) -> None:
    world.look({"a": 0})
    assert world.applications.explain(asked("a")).warnings == ()
    assert world.applications.explain(asked("mistyped")).warnings == ()
