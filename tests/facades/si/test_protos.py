"""The messages are what the specifications say, on the wire and in the generated code."""

import sys
from pathlib import Path
from subprocess import run
from typing import Any

import pytest
from google.protobuf.message import Message

from rm_service.facades.si.proto import si_pb2 as si
from rm_service.facades.si.proto import si_v0_pb2 as si_v0

ROOT = Path(__file__).resolve().parents[3]
FOLDER = Path("rm_service/facades/si/proto")
GENERATED = ["si_pb2.py", "si_pb2.pyi", "si_v0_pb2.py", "si_v0_pb2.pyi"]


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the command at the top of si.proto makes of both files."""
    target = tmp_path_factory.mktemp("generated")
    protos = [(FOLDER / name).as_posix() for name in ("si.proto", "si_v0.proto")]
    command = [sys.executable, "-m", "grpc_tools.protoc", "--proto_path=.", f"--python_out={target}"]
    made = run(
        [*command, f"--pyi_out={target}", *protos], cwd=ROOT, check=False, capture_output=True, text=True
    )
    assert (made.returncode, made.stderr) == (0, ""), made.stderr
    return target / FOLDER


@pytest.mark.parametrize("name", GENERATED)
def test_the_committed_code_is_what_the_protos_generate(generated: Path, name: str) -> None:
    assert (ROOT / FOLDER / name).read_text() == (generated / name).read_text()


def numbers(message: type[Message]) -> dict[int, str]:
    return {field.number: field.name for field in message.DESCRIPTOR.fields}


def test_one_file_has_the_fields_of_both_newer_generations() -> None:
    assert numbers(si.AllocationRequest) == {1: "asks", 2: "releases", 3: "rmID", 4: "allocations"}
    assert numbers(si.AllocationResponse) == {
        1: "new",
        2: "released",
        3: "releasedAsks",
        4: "rejected",
        5: "rejectedAllocations",
        1000: "rmRow",
    }
    assert numbers(si.Allocation) == {
        1: "allocationKey",
        2: "allocationTags",
        3: "UUID",
        5: "resourcePerAlloc",
        6: "priority",
        7: "queueName",
        8: "nodeID",
        9: "applicationID",
        10: "partitionName",
        11: "taskGroupName",
        12: "placeholder",
        13: "allocationID",
        14: "originator",
        15: "preemptionPolicy",
    }
    assert numbers(si.AllocationRelease) == {
        1: "partitionName",
        2: "applicationID",
        3: "UUID",
        4: "terminationType",
        5: "message",
        6: "allocationKey",
        7: "allocationID",
    }


def test_termination_types_of_the_oldest_generation_are_one_lower() -> None:
    newer = dict(si.TerminationType.items())
    for name, number in si_v0.TerminationType.items():
        assert newer[name] == number + 1


def test_node_actions_keep_the_numbers_of_their_generation() -> None:
    assert dict(si.NodeInfo.ActionFromRM.items()) == {
        "UNKNOWN_ACTION_FROM_RM": 0,
        "CREATE": 1,
        "UPDATE": 2,
        "DRAIN_NODE": 3,
        "DECOMISSION": 4,
        "DRAIN_TO_SCHEDULABLE": 5,
        "CREATE_DRAIN": 6,
    }
    assert dict(si_v0.UpdateNodeInfo.ActionFromRM.items()) == {
        "UPDATE": 0,
        "DRAIN_NODE": 1,
        "DECOMISSION": 2,
        "DRAIN_TO_SCHEDULABLE": 3,
    }


@pytest.mark.parametrize(
    "response", [si.AllocationResponse, si.ApplicationResponse, si.NodeResponse, si_v0.UpdateResponse]
)
def test_every_response_says_its_row(response: type[Message]) -> None:
    assert numbers(response)[1000] == "rmRow"


@pytest.mark.parametrize(
    ("message", "secret"),
    [
        (si.RegisterResourceManagerRequest, {"config", "extraConfig"}),
        (si.UpdateConfigurationRequest, {"config", "extraConfig"}),
        (si_v0.RegisterResourceManagerRequest, set()),
        (si_v0.UpdateConfigurationRequest, {"configs"}),
        (si_v0.UpdateConfigurationResponse, {"oldConfig"}),
    ],
)
def test_configurations_are_marked_as_secret(message: type[Message], secret: set[str]) -> None:
    assert si.si_secret.number == 1059
    options: dict[str, Any] = {field.name: field.GetOptions() for field in message.DESCRIPTOR.fields}
    assert {name for name, option in options.items() if option.Extensions[si.si_secret]} == secret


# ---- by hand, from the field numbers ----------------------------------------------------------------------


def number(field: int, value: int) -> bytes:
    """A small number in a field with a number below 16."""
    return bytes([field << 3, value])


def piece(field: int, content: str | bytes) -> bytes:
    """A short text or message in a field with a number below 16."""
    data = content.encode() if isinstance(content, str) else content
    return bytes([field << 3 | 2, len(data)]) + data


def test_bytes_of_a_seed_allocation_request_mean_what_its_numbers_say() -> None:
    memory = piece(1, piece(1, "memory") + piece(2, number(1, 64)))
    policy = number(1, 1)
    ask = b"".join(
        [
            piece(1, "pod-1"),
            piece(2, "app-1"),
            piece(3, "default"),
            piece(4, memory),
            number(5, 3),
            number(6, 7),
            number(7, 100),
            piece(8, piece(1, "colour") + piece(2, "blue")),
            piece(9, "gang"),
            number(10, 1),
            number(11, 1),
            piece(12, policy),
        ]
    )
    release = piece(1, "default") + piece(2, "app-1") + piece(3, "uuid-9") + number(4, 1) + piece(6, "pod-9")
    ask_release = piece(1, "default") + piece(2, "app-1") + piece(3, "pod-8") + number(4, 2)
    running = piece(1, "pod-7") + piece(3, "uuid-7") + piece(5, memory) + piece(8, "node-1")
    data = (
        piece(1, ask)
        + piece(2, piece(1, release) + piece(2, ask_release))
        + piece(3, "rm-1")
        + piece(4, running)
    )

    resource = {"resources": {"memory": {"value": 64}}}
    assert si.AllocationRequest.FromString(data) == si.AllocationRequest(
        rmID="rm-1",
        asks=[
            si.AllocationAsk(
                allocationKey="pod-1",
                applicationID="app-1",
                partitionName="default",
                resourceAsk=resource,
                maxAllocations=3,
                priority=7,
                executionTimeoutMilliSeconds=100,
                tags={"colour": "blue"},
                taskGroupName="gang",
                placeholder=True,
                Originator=True,
                preemptionPolicy={"allowPreemptSelf": True},
            )
        ],
        releases=si.AllocationReleasesRequest(
            allocationsToRelease=[
                si.AllocationRelease(
                    partitionName="default",
                    applicationID="app-1",
                    UUID="uuid-9",
                    terminationType=si.STOPPED_BY_RM,
                    allocationKey="pod-9",
                )
            ],
            allocationAsksToRelease=[
                si.AllocationAskRelease(
                    partitionName="default",
                    applicationID="app-1",
                    allocationKey="pod-8",
                    terminationType=si.TIMEOUT,
                )
            ],
        ),
        allocations=[
            si.Allocation(allocationKey="pod-7", UUID="uuid-7", resourcePerAlloc=resource, nodeID="node-1")
        ],
    )


def test_bytes_of_an_old_update_mean_what_its_numbers_say() -> None:
    ask = piece(1, "pod-1") + number(5, 1) + piece(6, piece(2, "high"))
    node = piece(1, "node-1") + number(5, 1)
    data = piece(1, ask) + piece(4, node) + piece(5, "rm-1")

    assert si_v0.UpdateRequest.FromString(data) == si_v0.UpdateRequest(
        rmID="rm-1",
        asks=[
            si_v0.AllocationAsk(
                allocationKey="pod-1", maxAllocations=1, priority={"priorityClassName": "high"}
            )
        ],
        updatedNodes=[si_v0.UpdateNodeInfo(nodeID="node-1", action=si_v0.UpdateNodeInfo.DRAIN_NODE)],
    )


def test_a_client_of_another_generation_keeps_what_it_does_not_know() -> None:
    """Both identities go out together: who knows one of them finds it where it was."""
    data = si.AllocationResponse(new=[si.Allocation(UUID="u", allocationID="u")], rmRow=5).SerializeToString()
    assert piece(3, "u") in data
    assert piece(13, "u") in data
