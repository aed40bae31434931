"""Who can give several classes together is known from what the nodes have; nobody waits for who never can."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rm_service.domain import class_book
from rm_service.domain import operations as op
from rm_service.domain.amounts import NOTHING, Amounts
from rm_service.domain.application import State
from rm_service.domain.class_book import ClassBook, ClassSearch, ResourceClass, Supply
from rm_service.domain.device_attributes import read_attributes, signature_of
from rm_service.domain.device_selection import Device, Wish, choose
from rm_service.domain.tags import Tags
from tests.domain.device_ledger import ANY, BIG, DeviceLedger, cards, check_devices
from tests.domain.pure_ledger import application_of, refusal

WHOLE = 1000
SIGNATURES = ("p4", "t4", "v100")


# ---- what a shape decides ------------------------------------------------------------------------


@st.composite
def devices(draw: st.DrawFn) -> list[Device]:
    """A few devices; of some more is taken than there is, or something of units that are gone."""
    taken = st.dictionaries(st.integers(0, 4), st.sampled_from([0, 100, 400, 500, 700, 1000, 1300]))
    drawn = st.tuples(st.sampled_from(SIGNATURES), st.integers(0, 3), taken)
    return [Device(f"d{at}", *each) for at, each in enumerate(draw(st.lists(drawn, max_size=4)))]


amounts = st.sampled_from([100, 300, 500, 600, 999]) | st.sampled_from([WHOLE, 2 * WHOLE, 4 * WHOLE])
selections = st.frozensets(st.sampled_from(SIGNATURES))
wishes = st.lists(st.tuples(amounts, selections), min_size=1, max_size=4).map(
    lambda drawn: [Wish(f"c{at}", milli, selected) for at, (milli, selected) in enumerate(drawn)]
)


@given(st.lists(devices(), min_size=1, max_size=4), wishes)
def test_a_shape_says_whether_its_devices_meet_the_wishes(
    nodes: list[list[Device]], asked: list[Wish]
) -> None:
    search = ClassSearch(asked)
    for node in nodes * 2:
        assert search.met_by(Supply(node).shape) == (choose(node, asked, "first_fit") is not None)
        emptied = [Device(each.name, each.signature, each.count, {}) for each in node]
        assert search.met_by(Supply(node).emptied) == (choose(emptied, asked, "first_fit") is not None)


@given(st.lists(st.sampled_from([0, 300, 500, 999]), max_size=6))
def test_nodes_are_of_one_shape_however_their_units_are_spread(taken: list[int]) -> None:
    together = [Device("g", "t4", len(taken), dict(enumerate(taken)))]
    apart = [Device(f"g{at}", "t4", 1, {0: milli}) for at, milli in reversed(list(enumerate(taken)))]
    assert Supply(together).shape == Supply(apart).shape


def book() -> tuple[ClassBook, dict[str, Any]]:
    """Two classes, and the attributes of the signatures that it knows: none."""
    known: dict[str, Any] = {}
    classes = {name: ResourceClass(name, name, spec) for name, spec in (("any", ANY), ("big", BIG))}
    return ClassBook(classes, known), known


def test_a_search_is_made_anew_when_a_class_selects_more() -> None:
    classes, known = book()
    asked = (("any", WHOLE), ("big", WHOLE))
    attributes = read_attributes({"Kind": "gpu", "memory": "40G"}, "")
    signature = signature_of(attributes)
    shape = Supply([Device("g", signature, 2, {})]).shape
    assert not classes.search(asked).met_by(shape), "nobody knows yet what that signature is"
    known[signature] = attributes
    assert classes.search(asked).met_by(shape)
    assert classes.search(asked) is classes.search(asked)


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_book, "MAX_SEARCHES", 3)
    monkeypatch.setattr(class_book, "MAX_SHAPES", 3)
    classes, _ = book()
    for milli in range(1, 20):
        search = classes.search((("any", milli), ("big", WHOLE)))
        for count in range(10):
            search.met_by(frozenset({("unknown", WHOLE, count)}))
        assert len(search._known) <= 3
    assert len(classes._searches) <= 3


# ---- what an ask costs ---------------------------------------------------------------------------


class Reading(DeviceLedger):
    """Notes of which nodes the rows were asked for."""

    def __init__(self) -> None:
        self.read: list[str] = []
        super().__init__()

    def labels_of(self, tags: Tags, resource: Amounts = NOTHING) -> tuple[int, ...]:
        if "node" in tags:
            self.read.append(tags["node"])
        return super().labels_of(tags, resource)


def crowd(count: int, taken: Sequence[Mapping[str, int]]) -> Reading:
    """So many nodes, each with as many big cards as are taken of it, and one more."""
    ledger = Reading()
    for number in range(count):
        ledger.register(f"n{number}", cards("g", len(taken) + 1, "40G"))
        for asked in taken:
            ledger.given(asked, tags={"node": f"n{number}"})
    ledger.read.clear()
    return ledger


def test_of_nodes_that_cannot_give_all_classes_only_the_first_is_read_to_say_why() -> None:
    ledger = crowd(20, [{"any": WHOLE}])
    refused = refusal(ledger.ask({"any": WHOLE, "big": 500}))
    assert {(each.dimension, each.label["node"], each.reason) for each in refused.shortfalls} == {
        ("class/any", "n0", "classes_overlap"),
        ("class/big", "n0", "classes_overlap"),
    }
    assert set(ledger.read) == {"n0"}


def test_the_only_node_that_can_is_found_behind_them_and_no_other_is_read() -> None:
    ledger = crowd(20, [{"any": WHOLE}])
    ledger.register("z", cards("g", 2, "40G"))
    ledger.read.clear()
    assert ledger.given({"any": WHOLE, "big": 500}).tags["node"] == "z"
    assert set(ledger.read) == {"z"}
    check_devices(ledger)


def test_alike_nodes_are_reckoned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = crowd(20, [{"any": 300}])
    for number in range(20):  # each has another part taken of its second card, too much for the ask
        ledger.given({"any": 601 + number}, tags={"node": f"n{number}"}, devices="spread")
    reckoned = []

    def counted(*asked: Any) -> Any:
        reckoned.append(asked)
        return choose(*asked)

    monkeypatch.setattr(class_book, "choose", counted)
    for _ in range(3):
        assert refusal(ledger.ask({"any": 600, "big": 600})).shortfalls
    assert len(reckoned) == 1


# ---- who can never be served holds up nobody -----------------------------------------------------


def old_waiter_and_behind(ledger: DeviceLedger, waiting: op.Apply, behind: op.Apply) -> tuple[State, State]:
    """How the two stand when all is free again that was taken, the first of them beyond the age bound."""
    holders = ledger.holding()
    first = application_of(ledger.do(waiting))
    ledger.pass_time(1_000)
    second = application_of(ledger.do(behind))
    for holder in holders:
        ledger.do(op.Release(holder.id))
    return ledger.application(first.id).state, ledger.application(second.id).state


def test_classes_that_no_node_has_together_hold_up_nobody() -> None:
    ledger = DeviceLedger()
    for name in ("n1", "n2"):
        ledger.register(name, cards("g", 1, "40G"))
        ledger.given({"any": WHOLE})
    never = ledger.asking({"any": WHOLE, "big": WHOLE}, wait_seconds=100_000)
    behind = ledger.asking({"any": 100, "big": 100}, wait_seconds=100_000)
    assert old_waiter_and_behind(ledger, never, behind) == (State.WAITING, State.LOCKED)


def test_classes_that_a_node_would_have_if_it_were_empty_close_their_queue() -> None:
    ledger = DeviceLedger()
    ledger.register("n1", cards("g", 2, "40G"))
    ledger.register("n2", cards("g", 1, "40G"))
    kept = ledger.given({"any": WHOLE}, tags={"node": "n1"})
    other = ledger.given({"any": WHOLE}, tags={"node": "n1"})
    ledger.given({"any": WHOLE}, tags={"node": "n2"})
    first = ledger.given({"any": WHOLE, "big": WHOLE}, wait_seconds=100_000)
    ledger.pass_time(1_000)
    behind = ledger.given({"any": 100, "big": 100}, wait_seconds=100_000)
    ledger.do(op.Release(other.id))
    assert ledger.application(behind.id).state is State.WAITING
    ledger.do(op.Release(kept.id))
    assert ledger.application(first.id).state is State.LOCKED


@pytest.mark.parametrize("selector", ["", "node"])
def test_a_named_node_that_is_too_small_holds_up_nobody(selector: str) -> None:
    ledger = DeviceLedger()
    ledger.register("n1", cards("g", 1))
    ledger.register("n2", cards("g", 4))
    for _ in range(5):
        ledger.given({"any": WHOLE})
    never = ledger.asking({"any": 2 * WHOLE}, tags={"node": "n1"}, selector=selector, wait_seconds=100_000)
    behind = ledger.asking({"any": WHOLE}, selector=selector, wait_seconds=100_000)
    assert old_waiter_and_behind(ledger, never, behind) == (State.WAITING, State.LOCKED)


def test_a_named_node_that_is_large_enough_among_the_alternatives_is_waited_for() -> None:
    ledger = DeviceLedger()
    ledger.register("n1", cards("g", 1))
    ledger.register("n2", cards("g", 2))
    holders = [ledger.given({"any": WHOLE}) for _ in range(3)]
    asked = ledger.asking(
        {"any": 2 * WHOLE}, tags={"node": "n1"}, alternatives=({"node": "n2"},), wait_seconds=100_000
    )
    first = application_of(ledger.do(asked))
    ledger.pass_time(1_000)
    behind = ledger.given({"any": WHOLE}, wait_seconds=100_000)
    ledger.do(op.Release(holders[1].id))
    assert ledger.application(behind.id).state is State.WAITING
    ledger.do(op.Release(holders[2].id))
    assert ledger.application(first.id).state is State.LOCKED
