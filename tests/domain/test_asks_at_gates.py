"""Asks that wait for their application's place, or for their client: on no node until they may go."""

from collections.abc import Iterator

import pytest

from rm_service.domain.application import State
from rm_service.domain.clients import Termination
from tests.client_words import (
    RM,
    adding,
    asking,
    booking,
    creating_node,
    decommissioning,
    partition_of,
    releasing,
    removing,
)
from tests.domain.client_ledger import ClientLedger, check_balances, check_members

ONE = f"partition={partition_of(RM)},queue=root.one"
FAILED = Termination.SCHEDULING_FAILED_ON_RM


@pytest.fixture
def ledger() -> Iterator[ClientLedger]:
    """Four nodes of 10; `first` has the only place in root.one, and `second` waits for it."""
    ledger = ClientLedger({ONE: {"apps": 1}})
    for name in ("n1", "n2", "n3", "n4"):
        ledger.do(creating_node(name))
    ledger.do(adding("first", queue="root.one"))
    ledger.do(adding("second", queue="root.one"))
    yield ledger
    check_members(ledger)
    check_balances(ledger)


def waiting(ledger: ClientLedger, key: str, **more: object) -> str:
    """The id of an ask of the application that waits for its place."""
    ask = asking(key, "second", queue="root.one", memory=8, **more)  # type: ignore[arg-type]
    ledger.do(ask)
    assert ledger.application(ask.ids[0]).state is State.WAITING
    return ask.ids[0]


def nodes_of(ledger: ClientLedger, *ids: str) -> list[str | None]:
    """Where these are, once the place has come free; None: they wait."""
    ledger.do(removing("first"))
    found = [ledger.application(each) for each in ids]
    return [each.tags["node"] if each.state is State.USED else None for each in found]


def test_they_name_no_node_while_they_wait(ledger: ClientLedger) -> None:
    asked = ledger.application(waiting(ledger, "k"))
    assert "node" not in asked.tags
    assert asked.devices == ()
    assert not any(account.is_capacity for account in ledger.view.accounts_of(asked.label_ids))


def test_each_gets_a_node_of_its_own_when_the_place_comes(ledger: ClientLedger) -> None:
    ids = [waiting(ledger, f"k{at}") for at in range(4)]
    assert sorted(filter(None, nodes_of(ledger, *ids))) == ["n1", "n2", "n3", "n4"]


def test_they_go_where_there_is_room_then_and_not_where_there_was(ledger: ClientLedger) -> None:
    asked = waiting(ledger, "k")
    for name in ("n1", "n2"):
        ledger.do(booking(f"on-{name}", name, None, memory=10))
    ledger.do(decommissioning("n3"))
    assert nodes_of(ledger, asked) == ["n4"]


def test_another_ask_of_the_key_needs_the_node_no_more_that_the_one_before_required(
    ledger: ClientLedger,
) -> None:
    waiting(ledger, "k", node="n2")
    asked = waiting(ledger, "k")
    for name in ("n1", "n2"):
        ledger.do(booking(f"on-{name}", name, None, memory=10))
    assert nodes_of(ledger, asked) == ["n3"]


def test_one_that_requires_a_node_keeps_it(ledger: ClientLedger) -> None:
    asked = waiting(ledger, "k", node="n3")
    assert ledger.application(asked).tags["node"] == "n3"
    assert nodes_of(ledger, asked) == ["n3"]


def test_a_report_of_one_leaves_the_others_of_its_key_free(ledger: ClientLedger) -> None:
    ask = asking("k", "second", queue="root.one", memory=8, count=3)
    ledger.do(ask)
    ledger.do(booking("k", "n4", "second", memory=8, anonymous=True))
    assert sorted(filter(None, nodes_of(ledger, *ask.ids))) == ["n1", "n2", "n4"]


def test_what_could_not_be_started_waits_on_no_node_with_its_application(ledger: ClientLedger) -> None:
    ledger.do(booking("k", "n4", "second", memory=8))
    ledger.do(releasing("k", "second", termination=FAILED))
    (again,) = ledger.view.named(f"{partition_of(RM)}/second/k")
    assert (again.state, again.tags.get("node")) == (State.WAITING, None)
    ledger.do(booking("other", "n4", None, memory=10))
    assert nodes_of(ledger, again.id) == ["n1"]


def test_those_of_a_client_that_is_away_are_on_no_node_either(ledger: ClientLedger) -> None:
    ledger.view.away = frozenset({RM.id})
    ask = asking("k", None, memory=8)
    ledger.do(ask)
    asked = ledger.application(ask.ids[0])
    assert (asked.state, asked.tags.get("node")) == (State.WAITING, None)
