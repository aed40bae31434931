"""The capacity scheduler's queues: any depth, shares and amounts, Hadoop 2 and 3."""

from typing import Any

import pytest

from external_providers.base import AbsurdError, MalformedError, Place
from tests.external_providers.yarn.documents import CLUSTER, amount, capacity, resource, share, usage
from tests.external_providers.yarn.reading import mb, places

CLUSTER_IN_USE = {
    "clusterMetrics": {
        **CLUSTER["clusterMetrics"],
        "allocatedMB": 7_000,
        "allocatedVirtualCores": 8,
        "appsRunning": 4,
        "appsPending": 5,
    }
}


def test_the_maximum_is_the_total_and_the_share_is_guaranteed() -> None:
    place = places(capacity(share("etl", 25.0, 50.0)))["root.etl"]
    assert mb(place.total) == (50_000, 50)
    assert mb(place.guaranteed) == (25_000, 25)


def test_the_root_is_the_whole_cluster() -> None:
    place = places(capacity())["root"]
    assert mb(place.total) == mb(place.guaranteed) == (100_000, 100)


def test_queues_are_found_at_any_depth_by_their_full_names() -> None:
    deep = share("leaf", 1.0, 1.0)
    for _ in range(200):
        deep = share("q", 1.0, 1.0, deep)
    found = places(capacity(deep, share("q2", 1.0, 1.0)))
    assert "root" + 200 * ".q" + ".leaf" in found
    assert "root.q2" in found
    assert len(found) == 203


def test_a_name_with_its_path_is_not_prefixed_again() -> None:
    queue = amount(
        "root.etl", resource(1, 1), resource(2, 2), amount("root.etl.a", resource(1, 1), resource(2, 2))
    )
    assert set(places(capacity(queue))) == {"root", "root.etl", "root.etl.a"}


def test_two_leaves_of_one_name_are_two_places() -> None:
    found = places(
        capacity(share("a", 50.0, 50.0, share("x", 1.0, 1.0)), share("b", 50.0, 50.0, share("x", 1.0, 1.0)))
    )
    assert {"root.a.x", "root.b.x"} <= set(found)


def test_amounts_go_before_shares() -> None:
    queue = amount("root.etl", resource(3_000, 6), resource(8_000, 10))
    place = places(capacity(queue))["root.etl"]
    assert mb(place.total) == (8_000, 10)
    assert mb(place.guaranteed) == (3_000, 6)


def test_a_queue_has_no_more_than_its_ancestors() -> None:
    child = amount("root.etl.daily", resource(70_000, 10), resource(90_000, 20))
    found = places(capacity(amount("root.etl", resource(50_000, 50), resource(60_000, 60), child)))
    assert mb(found["root.etl.daily"].total) == (60_000, 20)
    assert mb(found["root.etl.daily"].guaranteed) == (60_000, 10)


@pytest.mark.parametrize(
    ("percent", "megabytes", "vcores"),
    [
        (33.333332, 33_333, 33),
        ("12.5", 12_500, 12),
        (0.0, 0, 0),
        (99.99999, 99_999, 99),
        (100.00001, 100_000, 100),
        ("1e-30", 0, 0),
    ],
)
def test_shares_are_rounded_down_to_what_yarn_gives(percent: Any, megabytes: int, vcores: int) -> None:
    assert mb(places(capacity(share("a", 0, percent)))["root.a"].total) == (megabytes, vcores)


def test_a_share_of_a_huge_cluster_is_exact() -> None:
    cluster = {"clusterMetrics": {"totalMB": 2**41 - 1, "totalVirtualCores": 2**52}}
    place = places(capacity(share("a", 10.0, "70.0000001")), cluster)["root.a"]
    assert mb(place.total) == ((2**41 - 1) * 700000001 // 10**9, 2**52 * 700000001 // 10**9)


def test_what_is_used_and_pending_is_told() -> None:
    queue = share(
        "a", 50.0, 50.0, resourcesUsed=resource(2_048, 3), numApplications=4, numPendingApplications=1
    )
    partitions = [usage(resource(9, 9), "gpu"), usage(resource(512, 1))]
    queue |= {"resources": {"resourceUsagesByPartition": partitions}}
    place = places(capacity(queue))["root.a"]
    assert mb(place.used) == (2_048, 3)
    assert mb(place.pending) == (512, 1)
    assert place.used["yarn.apps"] == 4
    assert place.pending["yarn.apps"] == 1


def test_more_may_be_used_than_there_is() -> None:
    assert mb(places(capacity(share("a", 1.0, 1.0, resourcesUsed=resource(99_000, 99))))["root.a"].used) == (
        99_000,
        99,
    )


def test_the_root_uses_what_its_queues_use() -> None:
    one = share("a", 50.0, 50.0, resourcesUsed=resource(1_000, 1), numApplications=1)
    two = share("b", 50.0, 50.0, resourcesUsed=resource(200, 2), numApplications=2)
    used = places(capacity(one, two))["root"].used
    assert (mb(used), used["yarn.apps"]) == ((1_200, 3), 3)


def test_a_parent_takes_as_many_applications_as_its_leaves() -> None:
    leaves = [share("x", 1.0, 1.0, maxApplications=10), share("y", 1.0, 1.0, maxApplications="5")]
    found = places(capacity(share("a", 50.0, 50.0, *leaves), share("b", 50.0, 50.0, maxApplications=100)))
    assert {name: place.total["yarn.apps"] for name, place in found.items()} == {
        "root": 115,
        "root.a": 15,
        "root.a.x": 10,
        "root.a.y": 5,
        "root.b": 100,
    }


def test_the_number_that_may_run_bounds_all_that_is_beneath() -> None:
    leaf = share("x", 1.0, 1.0, maxApplications=10_000, maxParallelApps=7)
    other = share("y", 1.0, 1.0, maxApplications=10_000, maxParallelApps=2**31 - 1)
    found = places(capacity(share("a", 50.0, 50.0, leaf, other, maxParallelApps=9)))
    assert [found[name].total["yarn.apps"] for name in ("root.a", "root.a.x", "root.a.y")] == [9, 7, 9]


@pytest.mark.parametrize(("state", "is_open"), [("RUNNING", True), ("STOPPED", False), ("DRAINING", False)])
def test_a_queue_that_takes_nothing_new_is_not_open(state: str, is_open: bool) -> None:
    found = places(capacity(share("a", 50.0, 50.0, share("x", 1.0, 1.0), state=state)))
    assert found["root.a"].open is is_open
    assert found["root.a.x"].open is is_open
    assert found["root"].open


@pytest.mark.parametrize("queues", [None, {}, {"queue": None}, {"queue": []}, "", []])
def test_no_queues_are_no_queues(queues: object) -> None:
    assert set(places(capacity(queues=queues))) == {"root"}


def test_one_queue_may_stand_without_its_list() -> None:
    assert set(places(capacity(queues={"queue": share("a", 1.0, 1.0)}))) == {"root", "root.a"}


def test_a_cluster_without_nodes_has_nothing() -> None:
    empty = {"clusterMetrics": {"totalMB": 0, "totalVirtualCores": 0}}
    queue = share("a", 50.0, 50.0, usedCapacity=float("nan"))
    assert mb(places(capacity(queue), empty)["root.a"].total) == (0, 0)


@pytest.mark.parametrize(
    ("queue", "named"),
    [
        (share("a", "much", 1.0), "queue root.a: absoluteCapacity is no number"),
        (share("a", 1.0, None), "queue root.a: absoluteMaxCapacity is missing"),
        (share("a", 1.0, 1.0, share("x", 1.0, 1.0, numApplications="x")), "queue root.a.x: numApplications"),
        (share("", 1.0, 1.0), "queue root: queueName of a child is missing"),
    ],
)
def test_what_cannot_be_read_is_refused_by_queue_and_field(queue: dict[str, Any], named: str) -> None:
    with pytest.raises(MalformedError) as caught:
        places(capacity(queue))
    assert str(caught.value).startswith(named)


@pytest.mark.parametrize(
    ("queue", "fault"),
    [
        (share("a", 1.0, -3.0), "absoluteMaxCapacity is no percentage"),
        (share("a", 1.0, 1e9), "absoluteMaxCapacity is no percentage"),
        (share("a", 1.0, 1.0, resourcesUsed=resource(-1, 0)), "resourcesUsed: memory is below 0"),
        (share("a", 1.0, 1.0, resourcesUsed=resource(0, 1.5)), "resourcesUsed: vCores is no whole number"),
        (share("a", 1.0, 1.0, resourcesUsed=resource(2**60, 0)), "resourcesUsed: is more than 2^62"),
        (share("a", 1.0, 1.0, numApplications=-1), "numApplications is below 0"),
        (share("a", 1.0, 1.0, maxApplications=2**63), "maxApplications is more than 2^62"),
        (
            share("a", 1.0, 1.0, resourcesUsed=resource(-1, 0), numApplications=0.5),
            "resourcesUsed: memory is below 0; numApplications is no whole number",
        ),
    ],
)
def test_a_queue_of_which_a_number_cannot_be_has_a_fault_and_the_others_go_on(
    queue: dict[str, Any], fault: str
) -> None:
    other = share("b", 10.0, 50.0, resourcesUsed=resource(1_000, 1))
    found = places(capacity(queue, other), CLUSTER_IN_USE)
    assert found["root.a"] == Place("root.a", {}, {}, fault=fault)
    assert (mb(found["root.b"].total), found["root.b"].fault) == ((50_000, 50), "")
    assert (found["root"].fault, mb(found["root"].total)) == ("", (100_000, 100))


def test_a_queue_beneath_one_with_a_fault_is_bounded_by_those_further_up() -> None:
    leaf = share("x", 1.0, 90.0, maxApplications=10)
    found = places(
        capacity(share("a", 1.0, 60.0, share("b", 1.0, -1.0, leaf, maxApplications=-5), maxApplications=7))
    )
    assert (found["root.a.b"].fault != "", found["root.a"].fault) == (True, "")
    assert (mb(found["root.a.b.x"].total), found["root.a.b.x"].total["yarn.apps"]) == ((60_000, 60), 7)


class TestTheUseOfTheRoot:
    """The capacity scheduler does not say it: it is the sum of its queues'."""

    FAULTY = share("a", 1.0, 1.0, resourcesUsed=resource(-1, 0), numApplications=3)
    OTHER = share("b", 10.0, 50.0, resourcesUsed=resource(1_000, 1))

    def test_it_is_what_the_cluster_says_where_it_would_be_the_sum_of_what_cannot_be(self) -> None:
        root = places(capacity(self.FAULTY, self.OTHER), CLUSTER_IN_USE)["root"]
        assert (mb(root.used), root.used["yarn.apps"]) == ((7_000, 8), 9)

    def test_it_is_the_sum_in_any_other_case(self) -> None:
        root = places(capacity(self.OTHER), CLUSTER_IN_USE)["root"]
        assert (mb(root.used), root.used["yarn.apps"]) == ((1_000, 1), 0)

    def test_where_the_cluster_does_not_say_either_the_root_has_a_fault(self) -> None:
        found = places(capacity(self.FAULTY, self.OTHER))
        assert "beneath it that cannot be" in found["root"].fault
        assert found["root.b"].fault == ""


@pytest.mark.parametrize("field", ["maxApplications", "maxParallelApps"])
def test_minus_one_application_is_any_number_of_them(field: str) -> None:
    place = places(capacity(share("a", 50.0, 50.0, **{field: -1})))["root.a"]
    assert (place.fault, place.total["yarn.apps"]) == ("", 2**31 - 1)


def test_minus_one_as_the_most_is_all_that_there_is_above() -> None:
    child = amount("root.etl.daily", resource(1, 1), resource(-1, 20))
    found = places(capacity(amount("root.etl", resource(1, 1), resource(60_000, 60), child)))
    assert (found["root.etl.daily"].fault, mb(found["root.etl.daily"].total)) == ("", (60_000, 20))


def test_a_queue_that_is_there_twice_is_refused() -> None:
    with pytest.raises(MalformedError, match=r"queue root\.a: it is there twice"):
        places(capacity(share("a", 1.0, 1.0), share("a", 1.0, 1.0)))


@pytest.mark.parametrize("kind", ["fifoScheduler", "superiorScheduler", ""])
def test_another_scheduler_is_refused(kind: str) -> None:
    with pytest.raises(MalformedError, match="type is neither capacityScheduler nor fairScheduler"):
        places({"scheduler": {"schedulerInfo": {"type": kind}}})


@pytest.mark.parametrize("cluster", [{}, {"clusterMetrics": {"totalMB": 1}}, {"clusterMetrics": None}])
def test_a_cluster_of_unknown_size_is_refused(cluster: object) -> None:
    with pytest.raises(MalformedError, match="clusterMetrics"):
        places(capacity(), cluster)


@pytest.mark.parametrize("total", [-1, 2**62 + 1, 2**60, 0.5])
def test_a_cluster_of_a_size_that_cannot_be_is_absurd(total: float) -> None:
    with pytest.raises(AbsurdError, match=r"^clusterMetrics: totalMB "):
        places(capacity(), {"clusterMetrics": {"totalMB": total, "totalVirtualCores": 1}})
