"""The applications that YARN lists."""

from typing import Any

import pytest

from external_providers.base import MalformedError
from external_providers.yarn.applications import applications, listed, speaks_of_leaves
from tests.external_providers.yarn import documents
from tests.external_providers.yarn.documents import application
from tests.external_providers.yarn.reading import mb, parsed

NAMES = {"root", "root.etl", "root.etl.daily", "root.a", "root.a.x", "root.b", "root.b.x"}


def one(**more: Any) -> Any:
    (found,) = applications(listed(parsed(documents.applications(application("app_1", "root.etl", **more)))))
    return found


def place(queue: str) -> str | None:
    found = applications(listed(parsed(documents.applications(application("app_1", queue)))), NAMES)
    return found[0].place if found else None


def test_an_application_says_who_it_is() -> None:
    found = one(user="bob", name="nightly", applicationType="SPARK", state="RUNNING")
    assert (found.id, found.place, found.user, found.name, found.kind, found.state) == (
        "app_1",
        "root.etl",
        "bob",
        "nightly",
        "SPARK",
        "RUNNING",
    )


def test_what_is_reserved_for_it_counts_as_held() -> None:
    held = {"allocatedMB": 2048, "allocatedVCores": 3, "reservedMB": 512, "reservedVCores": 1}
    assert mb(one(**held).allocated) == (2560, 4)


def test_nothing_is_held_where_yarn_says_minus_one_or_nothing() -> None:
    held = {"allocatedMB": -1, "allocatedVCores": None, "reservedMB": "-1"}
    assert mb(one(**held).allocated) == (0, 0)


@pytest.mark.parametrize(
    ("state", "counted"), [("NEW", 0), ("NEW_SAVING", 0), ("SUBMITTED", 0), ("ACCEPTED", 1), ("RUNNING", 1)]
)
def test_it_counts_as_one_once_its_queue_counts_it(state: str, counted: int) -> None:
    assert one(state=state).allocated["yarn.apps"] == counted


@pytest.mark.parametrize(
    ("written", "tags"),
    [
        ("rm-1", {"rm-1"}),
        ("rm-1, nightly ,,spark", {"rm-1", "nightly", "spark"}),
        ("", set()),
        (None, set()),
        (["a", "rm-1"], {"rm-1"}),
    ],
)
def test_its_tags_are_a_set_of_words(written: object, tags: set[str]) -> None:
    assert one(applicationTags=written).tags == tags


@pytest.mark.parametrize(
    ("queue", "full"),
    [
        ("root.etl.daily", "root.etl.daily"),
        ("root", "root"),
        ("daily", "root.etl.daily"),
        ("etl.daily", "root.etl.daily"),
        ("etl", "root.etl"),
        ("a.x", "root.a.x"),
    ],
)
def test_a_leaf_s_name_is_turned_into_the_full_one(queue: str, full: str) -> None:
    assert place(queue) == full


@pytest.mark.parametrize("queue", ["x", "gone", ""])
def test_an_application_whose_queue_cannot_be_told_is_left_out(queue: str) -> None:
    assert place(queue) is None


def test_a_queue_that_is_new_is_believed_when_its_name_is_full() -> None:
    assert place("root.brand.new") == "root.brand.new"


def test_only_names_without_their_path_need_the_tree() -> None:
    assert not speaks_of_leaves([application("1", "root.a"), application("2", "root")])
    assert speaks_of_leaves([application("1", "root.a"), application("2", "daily")])


@pytest.mark.parametrize(
    "document", [{}, {"apps": None}, {"apps": {}}, {"apps": ""}, {"apps": {"app": None}}]
)
def test_no_applications_are_none(document: object) -> None:
    assert listed(parsed(document)) == []


def test_one_may_stand_without_its_list() -> None:
    assert len(listed(parsed({"apps": {"app": application("app_1", "root.a")}}))) == 1


@pytest.mark.parametrize("written", [-2, 1.5, 2**62, 2**63])
def test_one_of_which_an_amount_cannot_be_has_a_fault_and_the_others_go_on(written: object) -> None:
    document = documents.applications(
        application("app_1", "root.etl", allocatedMB=written), application("app_2", "root.etl")
    )
    faulty, other = applications(listed(parsed(document)))
    assert (bool(faulty.fault), faulty.allocated) == (True, {})
    assert (other.fault, mb(other.allocated)) == ("", (1024, 1))


def test_what_is_no_amount_at_all_is_refused_by_application_and_field() -> None:
    with pytest.raises(MalformedError, match=r"^application app_1: allocatedMB is no number$"):
        one(allocatedMB="x")


def test_an_application_without_an_id_is_refused() -> None:
    with pytest.raises(MalformedError, match=r"an application in root\.a has no id"):
        applications([application("", "root.a")])
