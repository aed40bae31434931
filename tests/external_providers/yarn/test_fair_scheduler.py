"""The fair scheduler's queues."""

from typing import Any

import pytest

from external_providers.base import MalformedError
from tests.external_providers.yarn.documents import fair, fair_queue, resource
from tests.external_providers.yarn.reading import mb, places


def test_the_maximum_is_the_total() -> None:
    assert mb(places(fair(fair_queue("root.etl", resource(8_000, 9))))["root.etl"].total) == (8_000, 9)


def test_no_queue_has_more_than_what_is_above_it() -> None:
    child = fair_queue("root.etl.daily", resource(2**31 - 1, 2**31 - 1))
    found = places(fair(fair_queue("root.etl", resource(60_000, 2**31 - 1), child)))
    assert mb(found["root.etl.daily"].total) == (60_000, 100)


def test_the_greater_of_minimum_and_steady_share_is_guaranteed() -> None:
    shares = {"minResources": resource(2_000, 4), "steadyFairResources": resource(5_000, 0)}
    place = places(fair(fair_queue("root.etl", resource(8_000, 9), **shares)))["root.etl"]
    assert mb(place.guaranteed) == (5_000, 4)


def test_what_is_wanted_beyond_what_is_used_is_pending() -> None:
    amounts = {"usedResources": resource(3_000, 3), "demandResources": resource(4_000, 2)}
    place = places(fair(fair_queue("root.a", resource(8_000, 9), **amounts)))["root.a"]
    assert mb(place.used) == (3_000, 3)
    assert mb(place.pending) == (1_000, 0)


def test_applications_run_and_wait_in_leaves_and_are_summed_above() -> None:
    one = fair_queue("root.e.x", resource(1, 1), maxApps=7, numActiveApps=2, numPendingApps=1)
    two = fair_queue("root.e.y", resource(1, 1), maxApps=5, numActiveApps=1, numPendingApps=0)
    found = places(fair(fair_queue("root.e", resource(9, 9), one, two)))
    assert {name: place.used["yarn.apps"] for name, place in found.items()} == {
        "root": 4,
        "root.e": 4,
        "root.e.x": 3,
        "root.e.y": 1,
    }
    assert found["root.e"].total["yarn.apps"] == 12
    assert found["root.e"].pending["yarn.apps"] == 1


@pytest.mark.parametrize(
    "children",
    [
        '{"queue": [A, B]}',
        "[A, B]",
        '[{"queue": A}, {"queue": [B]}]',
        '{"queue": A, "queue": B}',
        '{"queue": A}, "childQueues": {"queue": B}',
    ],
)
def test_children_are_found_however_a_version_writes_them(children: str) -> None:
    leaf = '{"queueName": "root.%s", "maxResources": {"memory": 1, "vCores": 1}}'
    written = children.replace("A", leaf % "a").replace("B", leaf % "b")
    info = (
        '{"type": "fairScheduler", "rootQueue": {"queueName": "root", '
        f'"maxResources": {{"memory": 9, "vCores": 9}}, "childQueues": {written}}}}}'
    )
    document = f'{{"scheduler": {{"schedulerInfo": {info}}}}}'
    assert set(places(document.encode())) == {"root", "root.a", "root.b"}


def test_a_missing_maximum_is_refused_by_name() -> None:
    queue = fair_queue("root.etl", resource(1, 1))
    del queue["maxResources"]
    with pytest.raises(MalformedError, match=r"queue root\.etl: maxResources is missing"):
        places(fair(queue))


def test_a_queue_of_which_an_amount_is_negative_has_a_fault_and_the_others_go_on() -> None:
    queue: dict[str, Any] = fair_queue("root.etl", resource(1, 1), usedResources=resource(-4, 0))
    found = places(fair(queue, fair_queue("root.b", resource(1, 1))))
    faults = {name: place.fault for name, place in found.items()}
    fault = "usedResources: memory is below 0"
    assert (faults["root.etl"], faults["root.b"]) == (fault, "")


def test_minus_one_is_no_limit() -> None:
    queue = fair_queue("root.etl", resource(8_000, -1), maxApps=-1)
    place = places(fair(queue))["root.etl"]
    assert (mb(place.total), place.total["yarn.apps"], place.fault) == ((8_000, 100), 2**31 - 1, "")
