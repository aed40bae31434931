"""Ports of nodes, of which there is one each, and container images that a node has already."""

from collections import Counter
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rm_service.domain.amounts import NOTHING, PORT
from rm_service.domain.application import State
from rm_service.domain.node_partition import Candidate
from rm_service.domain.placement import LOCAL_IMAGES, PREFERRED_AMONG, prefer_image
from tests.client_words import (
    RM,
    adding,
    asking,
    booking,
    creating_node,
    of_kind,
    partition_of,
    releasing,
    running,
)
from tests.domain.client_ledger import ClientLedger, check_balances, check_members

WEB = {"memory": 1, f"{PORT}8080": 1}
ADMIN = {"memory": 1, f"{PORT}9090": 1}


def two_nodes() -> ClientLedger:
    """Two nodes of 10, an application, and a queue with a limit."""
    ledger = ClientLedger({f"partition={partition_of(RM)},queue=root.a": {"memory": 100}})
    ledger.in_one_batch([creating_node("n1"), creating_node("n2"), adding()])
    return ledger


@pytest.fixture
def ledger() -> Iterator[ClientLedger]:
    ledger = two_nodes()
    yield ledger
    check_members(ledger)
    check_balances(ledger)


def nodes(ledger: ClientLedger) -> dict[str, str]:
    """Keys of what runs, with their nodes."""
    return {str(each["key"]): str(each["node"]) for each in running(ledger.told()).values()}


class TestPorts:
    def test_a_port_of_a_node_is_given_to_one_at_a_time(self, ledger: ClientLedger) -> None:
        for key in ("a", "b", "c"):
            ledger.do(asking(key, resource=WEB))
        assert nodes(ledger) == {"a": "n1", "b": "n2"}, "the queue's limit says nothing of ports"
        ledger.do(releasing("b"))
        assert nodes(ledger) == {"a": "n1", "c": "n2"}

    def test_who_requires_a_node_and_waited_too_long_for_its_port_is_passed_there_by_nobody(
        self, ledger: ClientLedger
    ) -> None:
        for key in ("a", "b"):
            ledger.do(asking(key, node="n1", resource=WEB))
        ledger.do(asking("before", node="n1"))
        ledger.pass_time(601)
        for key, node in (("after", "n1"), ("elsewhere", None)):
            ledger.do(asking(key, node=node))
        assert nodes(ledger) == {"a": "n1", "before": "n1", "elsewhere": "n2"}
        ledger.do(releasing("a"))
        assert nodes(ledger) == {"b": "n1", "before": "n1", "after": "n1", "elsewhere": "n2"}

    def test_other_ports_and_none_are_not_in_the_way(self, ledger: ClientLedger) -> None:
        ledger.do(asking("a", node="n1", resource=WEB))
        ledger.do(asking("b", node="n1", resource=ADMIN))
        ledger.do(asking("c", node="n1"))
        assert nodes(ledger) == {"a": "n1", "b": "n1", "c": "n1"}

    def test_all_that_are_asked_for_must_be_free_on_one_node(self, ledger: ClientLedger) -> None:
        ledger.do(asking("a", node="n1", resource=WEB))
        ledger.do(asking("b", node="n2", resource=ADMIN))
        ledger.do(asking("both", resource=WEB | ADMIN))
        assert ledger.states("both") == [State.WAITING]
        ledger.do(releasing("a"))
        assert nodes(ledger) == {"b": "n2", "both": "n1"}

    def test_on_the_node_that_it_requires_it_waits_for_the_port(self, ledger: ClientLedger) -> None:
        ledger.do(asking("a", node="n1", resource=WEB))
        ledger.do(asking("b", node="n1", resource=WEB))
        assert ledger.states("b") == [State.WAITING]
        assert f"{PORT}8080 1 asked for, 0 left" in str(
            ledger.view.named(f"{partition_of(RM)}/app-1/b")[0].reason
        )
        ledger.do(releasing("a"))
        assert nodes(ledger) == {"b": "n1"}

    def test_what_runs_already_is_booked_and_takes_its_port(self, ledger: ClientLedger) -> None:
        ledger.do(asking("a", node="n1", resource=WEB))
        ledger.do(booking("x", "n1", resource=WEB))
        ledger.do(asking("b", node="n1", resource=WEB))
        ledger.do(releasing("a"))
        assert ledger.states("b") == [State.WAITING]
        ledger.do(releasing("x"))
        assert ledger.states("b") == [State.USED]

    def test_a_client_is_not_told_of_ports_as_resources(self, ledger: ClientLedger) -> None:
        ledger.do(asking("a", resource=WEB))
        [new] = of_kind(ledger.told(), "new")
        assert new["resource"] == {"memory": 1}


asked = st.tuples(st.sampled_from("abcdef"), st.sets(st.integers(1, 3), max_size=3), st.booleans())


@given(steps=st.lists(asked, max_size=20))
def test_no_port_of_a_node_is_ever_held_twice_nor_kept_when_it_is_free(
    steps: Sequence[tuple[str, set[int], bool]],
) -> None:
    """Keys are released, or asked for with some ports."""
    ledger = two_nodes()
    for key, ports, is_release in steps:
        if is_release:
            ledger.do(releasing(key))
        elif not ledger.states(key):
            ledger.do(asking(key, resource={"memory": 1} | {f"{PORT}{port}": 1 for port in ports}))
        held = [each for each in ledger.holding() if not each.has_members]
        taken = Counter((each.tags["node"], name) for each in held for name in each.used_now if PORT in name)
        assert set(taken.values()) <= {1}
        for each in ledger.view.applications.values():
            if each.state is State.WAITING:
                wanted = {name for name in each.requested if PORT in name}
                assert all(any((node, name) in taken for name in wanted) for node in ("n1", "n2"))
    check_balances(ledger)


def candidate(at: int, images: str) -> Candidate:
    return Candidate(at, "", f"n{at:03}", {LOCAL_IMAGES: images} if images else {}, NOTHING, NOTHING)


class TestImages:
    @pytest.mark.parametrize("images", ["web:2", "base,web:2", "base, web:2 ,db", "base web:2"])
    def test_a_node_that_has_the_image_goes_before_the_others(self, images: str) -> None:
        found = prefer_image(iter([candidate(0, ""), candidate(1, "base"), candidate(2, images)]), "web:2")
        assert [each.label_id for each in found] == [2, 0, 1]

    @pytest.mark.parametrize("images", ["web:20", "my-web:2", "web", ""])
    def test_one_that_has_another_does_not(self, images: str) -> None:
        found = prefer_image(iter([candidate(0, ""), candidate(1, images)]), "web:2")
        assert [each.label_id for each in found] == [0, 1]

    @given(have=st.lists(st.booleans(), max_size=2 * PREFERRED_AMONG))
    def test_else_the_order_is_the_strategys_and_each_node_comes_once(self, have: list[bool]) -> None:
        candidates = [candidate(at, "web" if has else "base") for at, has in enumerate(have)]
        found = [each.label_id for each in prefer_image(iter(candidates), "web")]
        first = range(min(len(have), PREFERRED_AMONG))
        with_it, without = [at for at in first if have[at]], [at for at in first if not have[at]]
        assert found == [*with_it, *without, *range(len(first), len(have))]

    def test_no_more_nodes_are_looked_at_than_among_which_it_is_preferred(self) -> None:
        candidates = iter([candidate(at, "") for at in range(PREFERRED_AMONG + 1)])
        assert next(prefer_image(candidates, "web")).label_id == 0
        assert [each.label_id for each in candidates] == [PREFERRED_AMONG]
