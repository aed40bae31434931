"""What the old dialect says, in the words that all share."""

import pytest

from rm_service.facades.si.proto import si_v0_pb2 as si_v0
from rm_service.facades.si.reading import read_old_update
from rm_service.services.si.requests import (
    Ask,
    Dialect,
    ExistingAllocation,
    NewApplication,
    NodeAction,
    NodeChange,
    Release,
    RemovedApplication,
    Termination,
    Update,
)
from tests.facades.si.messages import MEMORY


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
