"""How answers go out: in the fields of the RM's dialect, in the order of their rows."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rm_service.facades.si.proto import si_pb2 as si
from rm_service.facades.si.proto import si_v0_pb2 as si_v0
from rm_service.facades.si.rendering import MOST_ROWS, STREAM_OF, Answer, Stream, render
from rm_service.services.si.requests import Dialect, Termination

NEW: Answer = {
    "kind": "new",
    "partition": "[rm]default",
    "app": "a",
    "key": "pod",
    "id": "u",
    "node": "n",
    "resource": {"memory": 1024, "vcore": 0},
    "tags": {"t": "1"},
    "priority": 5,
    "task_group": "g",
    "placeholder": True,
    "originator": True,
    "preemption": {"allow_self": True, "allow_other": False},
    "queue": "root.q",
}
RELEASED: Answer = {
    "kind": "released",
    "partition": "[rm]default",
    "app": "a",
    "key": "pod",
    "id": "u",
    "termination": "TIMEOUT",
    "message": "late",
}
RELEASED_ASK: Answer = {**RELEASED, "kind": "released_ask"}
REJECTED_ASK: Answer = {"kind": "rejected_ask", "app": "a", "key": "pod", "reason": "no"}
REJECTED_ALLOCATION: Answer = {"kind": "rejected_allocation", "app": "a", "key": "pod", "reason": "no"}
ACCEPTED_APPLICATION: Answer = {"kind": "accepted_application", "app": "a"}
REJECTED_APPLICATION: Answer = {"kind": "rejected_application", "app": "b", "reason": "no"}
UPDATED_APPLICATION: Answer = {
    "kind": "updated_application",
    "app": "a",
    "state": "Running",
    "at": 1_700_000_000_000_000_000,
    "message": "runApplication",
}
ACCEPTED_NODE: Answer = {"kind": "accepted_node", "node": "n"}
REJECTED_NODE: Answer = {"kind": "rejected_node", "node": "m", "reason": "no"}
ALL = [
    NEW,
    RELEASED,
    RELEASED_ASK,
    REJECTED_ASK,
    REJECTED_ALLOCATION,
    ACCEPTED_APPLICATION,
    REJECTED_APPLICATION,
    UPDATED_APPLICATION,
    ACCEPTED_NODE,
    REJECTED_NODE,
]
RESOURCE: Any = {"resources": {"memory": {"value": 1024}, "vcore": {"value": 0}}}


def only(answer: Answer, dialect: Dialect) -> Any:
    """The one message that one row makes."""
    (message,) = render([(7, answer)], dialect)
    assert message.rmRow == 7
    message.ClearField("rmRow")
    return message


class TestSeedAndNewest:
    @pytest.mark.parametrize("dialect", [Dialect.SEED, Dialect.NEWEST])
    def test_a_grant_carries_both_identities(self, dialect: Dialect) -> None:
        assert only(NEW, dialect) == si.AllocationResponse(
            new=[
                si.Allocation(
                    allocationKey="pod",
                    allocationTags={"t": "1"},
                    UUID="u",
                    allocationID="u",
                    resourcePerAlloc=RESOURCE,
                    priority=5,
                    nodeID="n",
                    applicationID="a",
                    partitionName="[rm]default",
                    taskGroupName="g",
                    placeholder=True,
                    originator=True,
                    preemptionPolicy={"allowPreemptSelf": True},
                )
            ]
        )

    def test_a_policy_that_refuses_both_is_told_from_none(self) -> None:
        without = only({**NEW, "preemption": None}, Dialect.SEED).new[0]
        refusing = only({**NEW, "preemption": {"allow_self": False, "allow_other": False}}, Dialect.SEED).new[
            0
        ]
        assert not without.HasField("preemptionPolicy")
        assert refusing.HasField("preemptionPolicy")

    def test_what_is_absent_is_empty(self) -> None:
        bare: Answer = {"kind": "new", "key": "pod"}
        assert only(bare, Dialect.NEWEST) == si.AllocationResponse(
            new=[si.Allocation(allocationKey="pod", resourcePerAlloc={})]
        )

    @pytest.mark.parametrize("dialect", [Dialect.SEED, Dialect.NEWEST])
    def test_a_release_carries_key_and_both_identities(self, dialect: Dialect) -> None:
        assert only(RELEASED, dialect) == si.AllocationResponse(
            released=[
                si.AllocationRelease(
                    partitionName="[rm]default",
                    applicationID="a",
                    UUID="u",
                    allocationID="u",
                    allocationKey="pod",
                    terminationType=si.TIMEOUT,
                    message="late",
                )
            ]
        )

    def test_asks_have_fields_of_their_own_in_the_seed(self) -> None:
        assert only(REJECTED_ASK, Dialect.SEED) == si.AllocationResponse(
            rejected=[si.RejectedAllocationAsk(allocationKey="pod", applicationID="a", reason="no")]
        )
        assert only(RELEASED_ASK, Dialect.SEED) == si.AllocationResponse(
            releasedAsks=[
                si.AllocationAskRelease(
                    partitionName="[rm]default",
                    applicationID="a",
                    allocationKey="pod",
                    terminationType=si.TIMEOUT,
                    message="late",
                )
            ]
        )

    def test_asks_are_allocations_in_the_newest(self) -> None:
        assert only(REJECTED_ASK, Dialect.NEWEST) == si.AllocationResponse(
            rejectedAllocations=[si.RejectedAllocation(allocationKey="pod", applicationID="a", reason="no")]
        )
        assert only(RELEASED_ASK, Dialect.NEWEST) == only(RELEASED, Dialect.NEWEST)

    @pytest.mark.parametrize("dialect", [Dialect.SEED, Dialect.NEWEST])
    def test_the_rest_is_the_same_in_both(self, dialect: Dialect) -> None:
        assert only(REJECTED_ALLOCATION, dialect) == si.AllocationResponse(
            rejectedAllocations=[si.RejectedAllocation(allocationKey="pod", applicationID="a", reason="no")]
        )
        assert only(ACCEPTED_APPLICATION, dialect) == si.ApplicationResponse(
            accepted=[{"applicationID": "a"}]
        )
        assert only(REJECTED_APPLICATION, dialect) == si.ApplicationResponse(
            rejected=[{"applicationID": "b", "reason": "no"}]
        )
        assert only(UPDATED_APPLICATION, dialect) == si.ApplicationResponse(
            updated=[
                {
                    "applicationID": "a",
                    "state": "Running",
                    "stateTransitionTimestamp": 1_700_000_000_000_000_000,
                    "message": "runApplication",
                }
            ]
        )
        assert only(ACCEPTED_NODE, dialect) == si.NodeResponse(accepted=[{"nodeID": "n"}])
        assert only(REJECTED_NODE, dialect) == si.NodeResponse(rejected=[{"nodeID": "m", "reason": "no"}])


class TestOld:
    def test_a_grant_says_its_queue_and_has_its_priority_as_a_message(self) -> None:
        assert only(NEW, Dialect.OLD) == si_v0.UpdateResponse(
            newAllocations=[
                si_v0.Allocation(
                    allocationKey="pod",
                    allocationTags={"t": "1"},
                    UUID="u",
                    resourcePerAlloc=RESOURCE,
                    priority={"priorityValue": 5},
                    queueName="root.q",
                    nodeID="n",
                    applicationID="a",
                    partitionName="[rm]default",
                    taskGroupName="g",
                    placeholder=True,
                )
            ]
        )

    @pytest.mark.parametrize(
        ("termination", "said"),
        [
            (Termination.STOPPED_BY_RM, si_v0.STOPPED_BY_RM),
            (Termination.TIMEOUT, si_v0.TIMEOUT),
            (Termination.PREEMPTED_BY_SCHEDULER, si_v0.PREEMPTED_BY_SCHEDULER),
            (Termination.PLACEHOLDER_REPLACED, si_v0.PLACEHOLDER_REPLACED),
            (Termination.UNKNOWN, si_v0.STOPPED_BY_RM),
            (Termination.SCHEDULING_FAILED_ON_RM, si_v0.STOPPED_BY_RM),
        ],
    )
    def test_a_termination_keeps_its_name_not_its_number(self, termination: Termination, said: int) -> None:
        released = only({**RELEASED, "termination": termination.value}, Dialect.OLD)
        assert released.releasedAllocations[0].terminationType == said
        ask = only({**RELEASED_ASK, "termination": termination.value}, Dialect.OLD)
        assert ask.releasedAllocationAsks[0].terminationType == said

    def test_everything_has_its_field_in_the_one_response(self) -> None:
        assert only(RELEASED, Dialect.OLD) == si_v0.UpdateResponse(
            releasedAllocations=[
                {
                    "partitionName": "[rm]default",
                    "applicationID": "a",
                    "UUID": "u",
                    "terminationType": "TIMEOUT",
                    "message": "late",
                }
            ]
        )
        assert only(RELEASED_ASK, Dialect.OLD).releasedAllocationAsks[0].allocationkey == "pod"
        refused = si_v0.UpdateResponse(
            rejectedAllocations=[{"allocationKey": "pod", "applicationID": "a", "reason": "no"}]
        )
        assert only(REJECTED_ASK, Dialect.OLD) == refused
        assert only(REJECTED_ALLOCATION, Dialect.OLD) == refused
        assert only(ACCEPTED_APPLICATION, Dialect.OLD).acceptedApplications[0].applicationID == "a"
        assert only(REJECTED_APPLICATION, Dialect.OLD).rejectedApplications[0].reason == "no"
        assert only(UPDATED_APPLICATION, Dialect.OLD).updatedApplications[0].state == "Running"
        assert only(ACCEPTED_NODE, Dialect.OLD).acceptedNodes[0].nodeID == "n"
        assert only(REJECTED_NODE, Dialect.OLD).rejectedNodes[0].reason == "no"


@pytest.mark.parametrize("dialect", Dialect)
class TestMessages:
    def test_nothing_makes_none(self, dialect: Dialect) -> None:
        assert list(render([], dialect)) == []

    def test_rows_of_one_stream_share_a_message_and_the_last_one_numbers_it(self, dialect: Dialect) -> None:
        rows = [(3, ACCEPTED_NODE), (4, {**ACCEPTED_NODE, "node": "o"}), (9, {**REJECTED_NODE, "node": "p"})]
        (message,) = render(rows, dialect)
        assert message.rmRow == 9

    def test_another_stream_is_another_message(self, dialect: Dialect) -> None:
        rows = [(1, ACCEPTED_NODE), (2, ACCEPTED_APPLICATION), (3, NEW), (4, {**ACCEPTED_NODE, "node": "o"})]
        assert [message.rmRow for message in render(rows, dialect)] == [1, 2, 3, 4]

    def test_a_message_has_its_limit(self, dialect: Dialect) -> None:
        rows = [(row, {**NEW, "key": f"pod-{row}"}) for row in range(1, 2 * MOST_ROWS + 2)]
        assert [message.rmRow for message in render(rows, dialect)] == [500, 1000, 1001]

    def test_a_grant_behind_the_release_of_its_key_is_not_read_before_it(self, dialect: Dialect) -> None:
        rows = [(1, RELEASED), (2, {**RELEASED, "key": "other"}), (3, NEW)]
        assert [message.rmRow for message in render(rows, dialect)] == [2, 3]

    def test_a_release_behind_its_grant_may_share_the_message(self, dialect: Dialect) -> None:
        rows = [(1, NEW), (2, RELEASED), (3, {**NEW, "key": "other"})]
        assert [message.rmRow for message in render(rows, dialect)] == [3]

    def test_an_ask_for_several_is_answered_several_times(self, dialect: Dialect) -> None:
        (message,) = render([(1, {**NEW, "id": "1"}), (2, {**NEW, "id": "2"})], dialect)
        granted = message.newAllocations if isinstance(message, si_v0.UpdateResponse) else message.new  # type: ignore[union-attr]
        assert [allocation.UUID for allocation in granted] == ["1", "2"]

    @pytest.mark.parametrize(("priority", "said"), [(2**40, 2**31 - 1), (-(2**40), -(2**31)), (-1, -1)])
    def test_a_priority_stays_within_32_bits(self, dialect: Dialect, priority: int, said: int) -> None:
        message = only({**NEW, "priority": priority}, dialect)
        if dialect is Dialect.OLD:
            assert message.newAllocations[0].priority.priorityValue == said
        else:
            assert message.new[0].priority == said


def test_every_kind_of_answer_has_a_stream() -> None:
    assert {answer["kind"] for answer in ALL} == set(STREAM_OF)
    assert set(STREAM_OF.values()) == set(Stream)


@given(picked=st.lists(st.sampled_from(ALL), max_size=30), dialect=st.sampled_from(Dialect))
def test_no_row_is_lost_or_doubled(picked: list[Answer], dialect: Dialect) -> None:
    rows = list(enumerate(picked, start=1))
    messages = list(render(rows, dialect))

    carried = [
        sum(len(value) for field, value in message.ListFields() if field.is_repeated) for message in messages
    ]
    ends = [0, *(message.rmRow for message in messages)]
    assert carried == [end - start for start, end in pairwise(ends)]
    assert ends[-1] == len(rows)


FIELD_OF = {
    "new": "new",
    "released": "released",
    "released_ask": "releasedAsks",
    "rejected_ask": "rejected",
    "rejected_allocation": "rejectedAllocations",
}


@given(
    st.lists(st.tuples(st.sampled_from([NEW, RELEASED, RELEASED_ASK, REJECTED_ASK]), st.sampled_from("abc")))
)
def test_who_reads_field_by_field_reads_about_each_key_in_order(picked: list[tuple[Answer, str]]) -> None:
    rows = [(row, {**answer, "key": key}) for row, (answer, key) in enumerate(picked, start=1)]
    read = [
        (item.allocationKey, field.name)
        for message in render(rows, Dialect.SEED)
        for field, value in message.ListFields()  # ordered by number
        if field.is_repeated
        for item in value
    ]
    told = [(key, FIELD_OF[answer["kind"]]) for answer, key in picked]
    for key in "abc":
        assert [each for each in read if each[0] == key] == [each for each in told if each[0] == key]
