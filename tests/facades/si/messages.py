"""Messages of the newer dialects, with one thing in each."""

from typing import Any

from rm_service.facades.si.proto import si_pb2 as si

MEMORY: Any = {"resources": {"memory": {"value": 1024}}}


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
