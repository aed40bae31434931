"""What a message says, in the words that all dialects share."""

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
from rm_service.services.si.requests import Dialect, NodeAction, Registration, Termination, Update
from tests.facades.si.messages import MEMORY, allocations, asks, nodes, releases

NOBODY_KNOWS = 77


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
