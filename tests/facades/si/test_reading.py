"""What each dialect says, in the words that all share."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rm_service.facades.si.proto import si_pb2 as si
from rm_service.facades.si.proto import si_v0_pb2 as si_v0
from rm_service.facades.si.reading import (
    Request,
    dialect_of,
    read_allocations,
    read_applications,
    read_nodes,
    read_old_update,
    read_registration,
)
from rm_service.services.si.requests import (
    Ask,
    Dialect,
    ExistingAllocation,
    NewApplication,
    NodeAction,
    NodeChange,
    Preemption,
    Registration,
    Release,
    RemovedApplication,
    Termination,
    Update,
)

MEMORY: Any = {"resources": {"memory": {"value": 1024}}}
NOBODY_KNOWS = 77


def asks(**fields: Any) -> si.AllocationRequest:
    return si.AllocationRequest(rmID="rm", asks=[si.AllocationAsk(**fields)])


def allocations(**fields: Any) -> si.AllocationRequest:
    return si.AllocationRequest(rmID="rm", allocations=[si.Allocation(**fields)])


def releases(**fields: Any) -> si.AllocationRequest:
    return si.AllocationRequest(
        rmID="rm", releases={"allocationsToRelease": [si.AllocationRelease(**fields)]}
    )


def nodes(**fields: Any) -> si.NodeRequest:
    return si.NodeRequest(rmID="rm", nodes=[si.NodeInfo(nodeID="n", **fields)])


class TestDialect:
    @pytest.mark.parametrize(
        "message",
        [
            asks(allocationKey="pod"),
            si.AllocationRequest(releases={"allocationAsksToRelease": [{"allocationKey": "pod"}]}),
            releases(UUID="u"),
            allocations(allocationKey="pod", nodeID="n", UUID="u"),
            nodes(occupiedResource=MEMORY),
            nodes(existingAllocations=[{"allocationKey": "pod"}]),
        ],
    )
    def test_is_the_seeds_by_what_only_it_has(self, message: Request) -> None:
        assert dialect_of(message) is Dialect.SEED

    @pytest.mark.parametrize(
        "message",
        [allocations(allocationKey="pod"), allocations(allocationKey="pod", nodeID="n")],
    )
    def test_is_the_newest_if_an_allocation_comes_without_identity(self, message: Request) -> None:
        assert dialect_of(message) is Dialect.NEWEST

    @pytest.mark.parametrize(
        "message",
        [
            si.AllocationRequest(rmID="rm"),
            releases(allocationKey="pod"),
            releases(allocationID="u"),
            allocations(allocationKey="pod", nodeID="n", allocationID="u"),
            nodes(schedulableResource=MEMORY),
            si.ApplicationRequest(new=[{"applicationID": "a"}]),
        ],
    )
    def test_is_open_if_several_would_say_it_like_this(self, message: Request) -> None:
        assert dialect_of(message) is None

    def test_is_the_old_one_by_its_message(self) -> None:
        assert dialect_of(si_v0.UpdateRequest()) is Dialect.OLD


class TestRegistration:
    def test_carries_configuration_in_the_newer_dialects(self) -> None:
        message = si.RegisterResourceManagerRequest(
            rmID="rm",
            version="1.4",
            policyGroup="queues",
            buildInfo={"arch": "arm"},
            config="partitions: []",
            extraConfig={"k": "v"},
        )
        assert read_registration(message) == Registration(
            rm_id="rm",
            version="1.4",
            policy_group="queues",
            build_info={"arch": "arm"},
            config="partitions: []",
            extra_config={"k": "v"},
        )

    def test_has_a_policy_group_only_in_the_old_one(self) -> None:
        message = si_v0.RegisterResourceManagerRequest(rmID="rm", version="0.11", policyGroup="queues")
        assert read_registration(message) == Registration(rm_id="rm", version="0.11", policy_group="queues")


class TestSeed:
    def test_an_ask(self) -> None:
        message = asks(
            allocationKey="pod",
            applicationID="a",
            partitionName="p",
            resourceAsk=MEMORY,
            maxAllocations=3,
            priority=-7,
            executionTimeoutMilliSeconds=100,
            tags={"t": "1"},
            taskGroupName="g",
            placeholder=True,
            Originator=True,
            preemptionPolicy={"allowPreemptOther": True},
        )
        assert read_allocations(message, Dialect.SEED) == Update(
            rm_id="rm",
            dialect=Dialect.SEED,
            asks=(
                Ask(
                    key="pod",
                    application="a",
                    partition="p",
                    resource={"memory": 1024},
                    count=3,
                    priority=-7,
                    timeout_ms=100,
                    tags={"t": "1"},
                    task_group="g",
                    placeholder=True,
                    originator=True,
                    preemption=Preemption(allow_self=False, allow_other=True),
                ),
            ),
        )

    def test_an_ask_of_nothing_is_told_from_one_without_amounts(self) -> None:
        message = si.AllocationRequest(
            asks=[{"allocationKey": "1"}, {"allocationKey": "2", "resourceAsk": {}}]
        )
        absent, empty = read_allocations(message, Dialect.SEED).asks
        assert (absent.resource, empty.resource) == (None, {})

    def test_a_preemption_policy_that_refuses_both_is_told_from_none(self) -> None:
        message = si.AllocationRequest(
            asks=[{"allocationKey": "1"}, {"allocationKey": "2", "preemptionPolicy": {}}]
        )
        absent, refused = read_allocations(message, Dialect.SEED).asks
        assert absent.preemption is None
        assert refused.preemption == Preemption(allow_self=False, allow_other=False)

    def test_an_allocation_is_never_an_ask(self) -> None:
        update = read_allocations(allocations(allocationKey="pod"), Dialect.SEED)
        assert update.asks == ()
        assert update.allocations == (ExistingAllocation(key="pod", node=""),)

    def test_releases_of_allocations_then_of_asks(self) -> None:
        message = si.AllocationRequest(
            releases=si.AllocationReleasesRequest(
                allocationAsksToRelease=[
                    si.AllocationAskRelease(
                        partitionName="p",
                        applicationID="a",
                        allocationKey="ask",
                        terminationType=si.TIMEOUT,
                        message="late",
                    )
                ],
                allocationsToRelease=[
                    si.AllocationRelease(
                        partitionName="p",
                        applicationID="a",
                        UUID="u",
                        allocationKey="pod",
                        terminationType=si.PLACEHOLDER_REPLACED,
                        message="done",
                    )
                ],
            )
        )
        assert read_allocations(message, Dialect.SEED).releases == (
            Release(
                application="a",
                key="pod",
                id="u",
                partition="p",
                termination=Termination.PLACEHOLDER_REPLACED,
                message="done",
            ),
            Release(
                application="a",
                key="ask",
                partition="p",
                termination=Termination.TIMEOUT,
                message="late",
                only_ask=True,
            ),
        )

    def test_a_node_with_what_runs_there(self) -> None:
        message = nodes(
            action=si.NodeInfo.CREATE_DRAIN,
            attributes={"zone": "a"},
            schedulableResource=MEMORY,
            occupiedResource={},
            existingAllocations=[
                si.Allocation(allocationKey="here", UUID="u", queueName="root.q", resourcePerAlloc=MEMORY),
                si.Allocation(allocationKey="elsewhere", nodeID="m"),
            ],
        )
        assert read_nodes(message, Dialect.SEED).nodes == (
            NodeChange(
                node="n",
                action=NodeAction.CREATE_DRAIN,
                attributes={"zone": "a"},
                schedulable={"memory": 1024},
                occupied={},
                existing=(
                    ExistingAllocation(
                        key="here", node="n", id="u", queue="root.q", resource={"memory": 1024}
                    ),
                    ExistingAllocation(key="elsewhere", node="m"),
                ),
            ),
        )


class TestNewest:
    def test_an_allocation_without_a_node_is_an_ask(self) -> None:
        message = allocations(
            allocationKey="pod",
            applicationID="a",
            partitionName="p",
            resourcePerAlloc=MEMORY,
            priority=5,
            allocationTags={"t": "1"},
            taskGroupName="g",
            placeholder=True,
            originator=True,
            preemptionPolicy={"allowPreemptSelf": True},
        )
        update = read_allocations(message, Dialect.NEWEST)
        assert update.allocations == ()
        assert update.asks == (
            Ask(
                key="pod",
                application="a",
                partition="p",
                resource={"memory": 1024},
                priority=5,
                tags={"t": "1"},
                task_group="g",
                placeholder=True,
                originator=True,
                preemption=Preemption(allow_self=True, allow_other=False),
            ),
        )

    def test_an_allocation_with_a_node_runs_already(self) -> None:
        update = read_allocations(
            allocations(allocationKey="pod", nodeID="n", allocationID="u", originator=True), Dialect.NEWEST
        )
        assert update.asks == ()
        assert update.allocations == (ExistingAllocation(key="pod", node="n", id="u", originator=True),)

    @pytest.mark.parametrize("node", ["n", ""])
    def test_what_somebody_else_runs_is_no_ask(self, node: str) -> None:
        message = allocations(allocationKey="x", nodeID=node, allocationTags={"foreign": "static"})
        update = read_allocations(message, Dialect.NEWEST)
        assert update.asks == ()
        assert update.allocations == (ExistingAllocation(key="x", node=node, tags={"foreign": "static"}),)

    def test_applications_come_and_go(self) -> None:
        message = si.ApplicationRequest(
            rmID="rm",
            new=[
                si.AddApplicationRequest(
                    applicationID="a",
                    queueName="root.q",
                    partitionName="p",
                    ugi={"user": "alice", "groups": ["dev", "ops"]},
                    tags={"t": "1"},
                    executionTimeoutMilliSeconds=-1,
                    placeholderAsk=MEMORY,
                    gangSchedulingStyle="Hard",
                ),
                si.AddApplicationRequest(applicationID="b"),
            ],
            remove=[si.RemoveApplicationRequest(applicationID="c", partitionName="p")],
        )
        assert read_applications(message, Dialect.NEWEST) == Update(
            rm_id="rm",
            dialect=Dialect.NEWEST,
            applications=(
                NewApplication(
                    application="a",
                    queue="root.q",
                    partition="p",
                    user="alice",
                    groups=("dev", "ops"),
                    tags={"t": "1"},
                    timeout_ms=-1,
                    placeholder_ask={"memory": 1024},
                    gang_style="Hard",
                ),
                NewApplication(application="b"),
            ),
            removals=(RemovedApplication(application="c", partition="p"),),
        )


class TestOld:
    def test_one_message_says_everything(self) -> None:
        message = si_v0.UpdateRequest(
            rmID="rm",
            asks=[
                si_v0.AllocationAsk(
                    allocationKey="pod",
                    applicationID="a",
                    partitionName="p",
                    resourceAsk=MEMORY,
                    maxAllocations=2,
                    priority={"priorityValue": 4},
                    executionTimeoutMilliSeconds=9,
                    tags={"t": "1"},
                    taskGroupName="g",
                    placeholder=True,
                )
            ],
            releases={
                "allocationsToRelease": [{"UUID": "u", "applicationID": "a", "partitionName": "p"}],
                "allocationAsksToRelease": [{"allocationkey": "k", "terminationType": si_v0.TIMEOUT}],
            },
            newApplications=[{"applicationID": "a"}],
            removeApplications=[{"applicationID": "b"}],
        )
        assert read_old_update(message) == Update(
            rm_id="rm",
            dialect=Dialect.OLD,
            applications=(NewApplication(application="a"),),
            asks=(
                Ask(
                    key="pod",
                    application="a",
                    partition="p",
                    resource={"memory": 1024},
                    count=2,
                    priority=4,
                    timeout_ms=9,
                    tags={"t": "1"},
                    task_group="g",
                    placeholder=True,
                ),
            ),
            releases=(
                Release(application="a", partition="p", id="u", termination=Termination.STOPPED_BY_RM),
                Release(key="k", termination=Termination.TIMEOUT, only_ask=True),
            ),
            removals=(RemovedApplication(application="b"),),
        )

    @pytest.mark.parametrize(
        ("priority", "read"),
        [
            (None, 0),
            (si_v0.Priority(), 0),
            (si_v0.Priority(priorityValue=-3), -3),
            (si_v0.Priority(priorityClassName="high"), "high"),
        ],
    )
    def test_a_priority_is_a_number_or_the_name_of_a_class(
        self, priority: si_v0.Priority | None, read: int | str
    ) -> None:
        message = si_v0.UpdateRequest(asks=[si_v0.AllocationAsk(priority=priority)])
        assert read_old_update(message).asks[0].priority == read

    def test_new_nodes_come_before_changes(self) -> None:
        message = si_v0.UpdateRequest(
            updatedNodes=[
                si_v0.UpdateNodeInfo(nodeID="n", action=si_v0.UpdateNodeInfo.DECOMISSION),
                si_v0.UpdateNodeInfo(nodeID="o", occupiedResource=MEMORY),
            ],
            newSchedulableNodes=[
                si_v0.NewNodeInfo(
                    nodeID="n",
                    schedulableResource=MEMORY,
                    existingAllocations=[
                        si_v0.Allocation(
                            allocationKey="pod",
                            UUID="u",
                            queueName="root.q",
                            priority={"priorityClassName": "high"},
                        )
                    ],
                )
            ],
        )
        assert read_old_update(message).nodes == (
            NodeChange(
                node="n",
                action=NodeAction.CREATE,
                schedulable={"memory": 1024},
                existing=(ExistingAllocation(key="pod", node="n", id="u", queue="root.q", priority="high"),),
            ),
            NodeChange(node="n", action=NodeAction.DECOMISSION),
            NodeChange(node="o", action=NodeAction.UPDATE, occupied={"memory": 1024}),
        )


class TestUnknownNumbers:
    def test_of_a_termination(self) -> None:
        message = si.AllocationRequest.FromString(
            si.AllocationRequest(
                releases={
                    "allocationsToRelease": [{"terminationType": NOBODY_KNOWS}],
                    "allocationAsksToRelease": [{"terminationType": NOBODY_KNOWS}],
                }
            ).SerializeToString()
        )
        for release in read_allocations(message, Dialect.SEED).releases:
            assert release.termination is Termination.UNKNOWN

    def test_of_a_node_action(self) -> None:
        assert read_nodes(nodes(action=NOBODY_KNOWS), Dialect.SEED).nodes[0].action is NodeAction.UNKNOWN

    def test_in_the_old_dialect(self) -> None:
        message = si_v0.UpdateRequest(
            updatedNodes=[{"nodeID": "n", "action": NOBODY_KNOWS}],
            releases={"allocationsToRelease": [{"terminationType": NOBODY_KNOWS}]},
        )
        update = read_old_update(message)
        assert update.nodes[0].action is NodeAction.UNKNOWN
        assert update.releases[0].termination is Termination.UNKNOWN


@given(data=st.binary(max_size=200))
def test_whatever_can_be_decoded_can_be_read(data: bytes) -> None:
    """Bytes of another message, or of none, never raise once protobuf took them."""
    readers: list[tuple[Any, Any]] = [
        (si.AllocationRequest, lambda message: read_allocations(message, Dialect.NEWEST)),
        (si.AllocationRequest, lambda message: read_allocations(message, Dialect.SEED)),
        (si.ApplicationRequest, lambda message: read_applications(message, Dialect.SEED)),
        (si.NodeRequest, lambda message: read_nodes(message, Dialect.SEED)),
        (si_v0.UpdateRequest, read_old_update),
    ]
    for message_class, read in readers:
        message = message_class()
        try:
            message.ParseFromString(data)
        except Exception:  # noqa: BLE001, S112 - not a message: nothing to read
            continue
        dialect_of(message)
        assert isinstance(read(message), Update)
