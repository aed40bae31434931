"""Resource classes: created and removed, how they stand, what they select and why, what they share."""

import pytest

from rm_service.domain import operations as op
from rm_service.domain.class_expressions import Outcome as Came
from rm_service.domain.outcomes import Code, Done, Refused
from rm_service.domain.resource_classes import ResourceClassSpec, read_spec
from rm_service.ledger.ledger import Ledger
from rm_service.services.resource_classes import ClassStanding, ClassStatus, Overlap, ResourceClasses
from tests.domain.device_ledger import ANY, BIG, FAST, SMALL, cards, ports, selecting
from tests.ledger.asking import done
from tests.ledger.device_asking import WHOLE, given, with_devices


@pytest.fixture
def classes(ledger: Ledger) -> ResourceClasses:
    return ResourceClasses(ledger)


def created(classes: ResourceClasses, name: str, spec: ResourceClassSpec) -> str:
    """The uid of the class that was created."""
    outcome = classes.create(name, spec)
    assert isinstance(outcome, Done), outcome
    assert outcome.resource_class is not None
    return outcome.resource_class.uid


def found(classes: ResourceClasses, name: str) -> ClassStanding:
    _, standing = classes.standing(name)
    assert standing is not None
    return standing


def test_a_class_is_created_as_it_was_sent_and_never_changes(classes: ResourceClasses) -> None:
    outcome = classes.create("big", BIG, {"team": "a"}, {"note": "30G and more"})
    assert isinstance(outcome, Done)
    known = outcome.resource_class
    assert known is not None
    assert (known.name, known.spec, known.labels, known.annotations) == (
        "big",
        BIG,
        {"team": "a"},
        {"note": "30G and more"},
    )
    assert found(classes, "big").resource_class == known
    again = classes.create("big", SMALL)
    assert isinstance(again, Refused)
    assert (again.code, again.field) == (Code.CLASS_EXISTS, "metadata.name")
    assert found(classes, "big").resource_class == known


def test_the_version_of_a_class_is_the_number_of_the_event_that_tells_of_it(classes: ResourceClasses) -> None:
    before = classes.standings().seq
    created(classes, "big", BIG)
    assert found(classes, "big").resource_class.version == before + 1
    assert classes.standings().seq == before + 1


def test_a_class_is_removed_by_name_and_only_the_one_that_is_meant(classes: ResourceClasses) -> None:
    uid = created(classes, "big", BIG)
    other = classes.remove("big", "another uid")
    assert isinstance(other, Refused)
    assert (other.code, other.field) == (Code.CLASS_EXISTS, "preconditions.uid")
    removed = classes.remove("big", uid)
    assert isinstance(removed, Done)
    assert removed.resource_class is not None
    assert removed.resource_class.uid == uid
    assert classes.standing("big")[1] is None
    gone = classes.remove("big")
    assert isinstance(gone, Refused)
    assert gone.code is Code.UNKNOWN_CLASS
    assert created(classes, "big", BIG) != uid


def test_every_event_of_the_proposal_moves_the_status(classes: ResourceClasses, ledger: Ledger) -> None:
    def status() -> tuple[int, int]:
        now = found(classes, "big").status
        return now.allocatable, now.requested

    with_devices(ledger, "n1", cards("g", 2, "40G"))
    created(classes, "big", BIG)
    assert status() == (2 * WHOLE, 0), "the class is created"
    with_devices(ledger, "n2", cards("g", 3, "80G"))
    assert status() == (5 * WHOLE, 0), "a node is added"
    application = given(ledger, {"big": 2 * WHOLE})
    assert status() == (5 * WHOLE, 2 * WHOLE), "an application asks for it"
    done(ledger, op.Use(application.id))
    assert status() == (5 * WHOLE, 2 * WHOLE)
    with_devices(ledger, "n2", cards("g", 1, "80G"))
    assert status() == (3 * WHOLE, 2 * WHOLE), "a node has changed"
    done(ledger, op.Release(application.id))
    assert status() == (3 * WHOLE, 0), "the application is over"
    done(ledger, op.RemoveNode("n2"))
    assert status() == (2 * WHOLE, 0), "a node is removed"
    classes.remove("big")
    assert classes.standing("big")[1] is None
    created(classes, "big", BIG)
    assert status() == (2 * WHOLE, 0)


def test_classes_are_listed_by_name(classes: ResourceClasses, ledger: Ledger) -> None:
    with_devices(ledger, "n1", cards("g", 2, "40G"), cards("h"))
    for name, spec in (("small", SMALL), ("any", ANY), ("big", BIG)):
        created(classes, name, spec)
    given(ledger, {"big": 1500 - 500, "small": 250})
    assert [(each.resource_class.name, each.status) for each in classes.standings().items] == [
        ("any", ClassStatus(3 * WHOLE, 1250)),
        ("big", ClassStatus(2 * WHOLE, WHOLE)),
        ("small", ClassStatus(WHOLE, 250)),
    ]


def test_what_is_asked_for_by_another_class_counts_as_requested(
    classes: ResourceClasses, ledger: Ledger
) -> None:
    with_devices(ledger, "n1", cards("g", 1, "40G"))
    created(classes, "any", ANY)
    created(classes, "big", BIG)
    given(ledger, {"any": 500})
    assert found(classes, "big").status == ClassStatus(WHOLE, 500)


def test_devices_that_cannot_be_compared_are_counted_with_the_reason(
    classes: ResourceClasses, ledger: Ledger
) -> None:
    odd = {"name": "x", "count": 3, "attributes": {"Kind": "gpu", "memory": {"string": "plenty"}}}
    rate = {"name": "y", "count": 2, "attributes": {"Kind": "gpu", "memory": "40GBPS"}}
    with_devices(ledger, "n1", odd, rate, cards("g", 1, "40G"), ports("p"))
    created(classes, "big", BIG)
    created(classes, "any", ANY)
    status = found(classes, "big").status
    assert (status.allocatable, status.requested, status.uncomparable) == (WHOLE, 0, 5)
    assert len(status.reasons) == 2
    assert all("memory" in reason or "30G" in reason for reason in status.reasons)
    assert any("plenty" in reason for reason in status.reasons)
    assert any("40GBPS" in reason for reason in status.reasons)
    assert found(classes, "any").status == ClassStatus(6 * WHOLE, 0), "what is compared as a text is clear"
    done(ledger, op.LoseNode("n1", "silent"))
    assert found(classes, "big").status == ClassStatus(), "what is lost is not counted either"


def test_so_many_different_reasons_are_told_and_no_more(classes: ResourceClasses, ledger: Ledger) -> None:
    odd = [
        {"name": f"x{number}", "attributes": {"Kind": "gpu", "memory": {"string": f"much {number}"}}}
        for number in range(20)
    ]
    with_devices(ledger, "n1", *odd)
    created(classes, "big", BIG)
    status = found(classes, "big").status
    assert status.uncomparable == 20
    assert 1 <= len(status.reasons) <= 8


def test_explain_says_for_each_signature_which_expression_decided_with_both_values(
    classes: ResourceClasses, ledger: Ledger
) -> None:
    with_devices(ledger, "n1", cards("g", 2, "40G"), cards("h", 1, "16G"), ports("p"))
    created(classes, "big", BIG)
    given(ledger, {"big": 400})
    explained = classes.explain("big")
    assert explained is not None
    by_kind = {
        (each.standing.attributes["Kind"].text, each.standing.total): each for each in explained.signatures
    }
    chosen, small, nic = by_kind["gpu", 2 * WHOLE], by_kind["gpu", WHOLE], by_kind["nic", WHOLE]
    assert (chosen.selected, small.selected, nic.selected) == (True, False, False)
    assert (chosen.standing.held, small.standing.held) == (400, 0)

    def told(each: object) -> list[tuple[Came, str]]:
        (selector,) = each.selectors  # type: ignore[attr-defined]
        return [(reason.outcome, reason.text) for reason in selector.expressions]

    assert [outcome for outcome, _ in told(chosen)] == [Came.HOLDS, Came.HOLDS]
    assert [outcome for outcome, _ in told(small)] == [Came.HOLDS, Came.FAILS]
    assert [outcome for outcome, _ in told(nic)] == [Came.FAILS, Came.MISSING]
    text = told(small)[1][1]
    assert text.index("16G") < text.index("GtEq") < text.index("30G"), "device value OP class value"
    assert "nic" in told(nic)[0][1]
    assert "gpu" in told(nic)[0][1]


def test_explain_of_one_that_cannot_be_compared_says_why(classes: ResourceClasses, ledger: Ledger) -> None:
    with_devices(ledger, "n1", {"name": "x", "attributes": {"Kind": "gpu", "memory": "40GBPS"}})
    created(classes, "big", BIG)
    explained = classes.explain("big")
    assert explained is not None
    (signature,) = explained.signatures
    (selector,) = signature.selectors
    assert selector.outcome is Came.UNCOMPARABLE
    assert selector.expressions[1].why
    assert explained.standing.status.uncomparable == 1


def test_explain_of_a_class_that_is_not_there_is_nothing(classes: ResourceClasses) -> None:
    assert classes.explain("none") is None
    assert classes.standing("none")[1] is None


def test_overlaps_say_what_is_left_when_the_other_takes_all_it_can(
    classes: ResourceClasses, ledger: Ledger
) -> None:
    with_devices(ledger, "n1", cards("g", 2, "40G"), cards("h", 3, "16G"), ports("p"))
    for name, spec in (("any", ANY), ("big", BIG), ("small", SMALL), ("fast", FAST)):
        created(classes, name, spec)
    given(ledger, {"big": WHOLE})
    explained = classes.explain("any")
    assert explained is not None
    assert list(explained.overlaps) == [
        Overlap("big", allocatable=2 * WHOLE, free=WHOLE, free_without=3 * WHOLE),
        Overlap("small", allocatable=3 * WHOLE, free=3 * WHOLE, free_without=WHOLE),
    ]
    big = classes.explain("big")
    assert big is not None
    assert list(big.overlaps) == [Overlap("any", 2 * WHOLE, WHOLE, 0)]
    fast = classes.explain("fast")
    assert fast is not None
    assert list(fast.overlaps) == []


def test_a_class_with_several_selectors_needs_one_of_them(classes: ResourceClasses, ledger: Ledger) -> None:
    either = read_spec(
        {
            "resourceSelector": [
                {"matchExpressions": [{"key": "memory", "operator": "GtEq", "values": ["30G"]}]},
                {"matchExpressions": [{"key": "Kind", "operator": "In", "values": ["nic"]}]},
            ]
        }
    )
    created(classes, "either", either)
    created(classes, "none", selecting())
    with_devices(ledger, "n1", cards("g", 2, "40G"), cards("h", 3, "16G"), ports("p"))
    assert found(classes, "either").status == ClassStatus(3 * WHOLE, 0)
    assert found(classes, "none").status == ClassStatus()


def test_more_that_is_held_than_there_is_frees_nothing(classes: ResourceClasses, ledger: Ledger) -> None:
    created(classes, "any", ANY)
    created(classes, "big", BIG)
    with_devices(ledger, "n1", cards("g", 2, "40G"))
    given(ledger, {"big": 2 * WHOLE})
    with_devices(ledger, "n1", cards("g", 1, "40G"))
    assert found(classes, "big").status == ClassStatus(WHOLE, 2 * WHOLE)
    explained = classes.explain("any")
    assert explained is not None
    assert list(explained.overlaps) == [Overlap("big", WHOLE, 0, 0)]
