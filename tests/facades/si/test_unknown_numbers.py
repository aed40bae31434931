"""Numbers that no enum has: they are taken as unknown, and said in the log once."""

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import closing
from http.client import HTTPConnection
from typing import Any

import pytest
import structlog
from structlog.testing import LogCapture

from rm_service.facades.si import reading, unknown_numbers
from rm_service.facades.si.proto import si_pb2 as si
from rm_service.facades.si.proto import si_v0_pb2 as si_v0
from rm_service.facades.si.unknown_numbers import UnknownNumbers
from rm_service.services.si.requests import Dialect, NodeAction, Termination
from tests.facades.si.desk import PATIENCE, Desk, until

NOBODY_KNOWS = 77
BOTH_RELEASES = {
    "allocationsToRelease": [{"terminationType": NOBODY_KNOWS}],
    "allocationAsksToRelease": [{"terminationType": NOBODY_KNOWS}],
}


@pytest.fixture(autouse=True)
def _nothing_was_seen_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_UNKNOWN", UnknownNumbers())


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """What is logged about such numbers, as a list that grows."""
    capture = LogCapture()
    level = structlog.make_filtering_bound_logger(logging.WARNING)
    log = structlog.wrap_logger(None, processors=[capture], wrapper_class=level)
    monkeypatch.setattr(unknown_numbers, "_log", log)
    yield capture.entries
    assert {(each["event"], each["log_level"]) for each in capture.entries} <= {
        ("si_unknown_enum", "warning")
    }


def told(logged: list[Any]) -> list[tuple[str, int, str]]:
    return [(each["field"], each["number"], each["rm_id"]) for each in logged]


def read_releases(number: int = NOBODY_KNOWS, rm_id: str = "rm") -> None:
    releases = {"allocationsToRelease": [{"terminationType": number}]}
    reading.read_allocations(si.AllocationRequest(rmID=rm_id, releases=releases), Dialect.NEWEST)


@pytest.mark.parametrize("dialect", [Dialect.SEED, Dialect.NEWEST])
def test_each_field_of_a_message_is_told_of(logged: list[Any], dialect: Dialect) -> None:
    releases = si.AllocationRequest(rmID="rm", releases=BOTH_RELEASES)
    for release in reading.read_allocations(releases, dialect).releases:
        assert release.termination is Termination.UNKNOWN
    nodes = si.NodeRequest(rmID="rm", nodes=[{"nodeID": "n", "action": NOBODY_KNOWS}])
    assert reading.read_nodes(nodes, dialect).nodes[0].action is NodeAction.UNKNOWN
    assert told(logged) == [
        ("si.v1.AllocationRelease.terminationType", NOBODY_KNOWS, "rm"),
        ("si.v1.AllocationAskRelease.terminationType", NOBODY_KNOWS, "rm"),
        ("si.v1.NodeInfo.action", NOBODY_KNOWS, "rm"),
    ]


def test_each_field_of_the_old_dialect_is_told_of(logged: list[Any]) -> None:
    updated = [{"nodeID": "n", "action": NOBODY_KNOWS}]
    update = si_v0.UpdateRequest(rmID="rm", updatedNodes=updated, releases=BOTH_RELEASES)
    reading.read_old_update(update)
    assert {field for field, _, _ in told(logged)} == {
        "si.v0.AllocationRelease.terminationType",
        "si.v0.AllocationAskRelease.terminationType",
        "si.v0.UpdateNodeInfo.action",
    }


def test_a_number_is_told_of_once_whoever_sends_it(logged: list[Any]) -> None:
    for rm_id in ("rm-1", "rm-1", "rm-2"):
        read_releases(rm_id=rm_id)
    read_releases(number=NOBODY_KNOWS + 1)
    assert [(number, rm_id) for _, number, rm_id in told(logged)] == [
        (NOBODY_KNOWS, "rm-1"),
        (NOBODY_KNOWS + 1, "rm"),
    ]


@pytest.mark.parametrize("number", si.TerminationType.values())
def test_of_a_number_that_is_known_nothing_is_told(logged: list[Any], number: int) -> None:
    read_releases(number)
    assert logged == []


def test_numbers_that_are_made_up_fill_neither_the_memory_nor_the_log(
    logged: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_UNKNOWN", UnknownNumbers(remembered=3))
    for number in (*range(100, 200), 100):
        read_releases(number, rm_id="r" * 1_000)
    assert [number for _, number, _ in told(logged)] == [100, 101, 102]
    assert {len(rm_id) for _, _, rm_id in told(logged)} == {128}


def over_grpc(desk: Desk) -> None:
    stream = desk.caller().stream("UpdateNode")
    for node in ("n1", "n2"):
        stream.say(si.NodeRequest(rmID="rm", nodes=[{"nodeID": node, "action": NOBODY_KNOWS}]))
    until(lambda: len(desk.scheduler.updates) == 2)
    stream.leave()


def over_http(desk: Desk) -> None:
    for node in ("n1", "n2"):
        body = {"rmID": "rm", "nodes": [{"nodeID": node, "action": NOBODY_KNOWS}]}
        with closing(HTTPConnection(*desk.http.address, timeout=PATIENCE)) as connection:
            headers = {"Content-Type": "application/json"}
            connection.request("POST", "/si/v1/UpdateNode", json.dumps(body), headers)
            assert connection.getresponse().status == 200


@pytest.mark.parametrize("say", [over_grpc, over_http])
def test_through_either_door_it_is_taken_in_and_told_of_once(
    desk: Desk, logged: list[Any], say: Callable[[Desk], None]
) -> None:
    desk.outbox.register("rm")
    say(desk)
    taken_in = [node for update in desk.scheduler.updates for node in update.nodes]
    assert [(node.node, node.action) for node in taken_in] == [
        ("n1", NodeAction.UNKNOWN),
        ("n2", NodeAction.UNKNOWN),
    ]
    assert told(logged) == [("si.v1.NodeInfo.action", NOBODY_KNOWS, "rm")]
