"""What the dialect of the seeds and the newest one say, in the words that all share."""

import pytest

from rm_service.facades.si.proto import si_pb2 as si
from rm_service.facades.si.reading import read_allocations, read_applications, read_nodes
from rm_service.services.si.requests import (
    Ask,
    Dialect,
    ExistingAllocation,
    NewApplication,
    NodeAction,
    NodeChange,
    Preemption,
    Release,
    RemovedApplication,
    Termination,
    Update,
)
from tests.facades.si.messages import MEMORY, allocations, asks, nodes


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
