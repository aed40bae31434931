"""The commands about resource classes and devices: what they ask for and what they show."""

import json
from typing import Any

import pytest

from rm_service.commands.applications import applications
from rm_service.commands.classes import classes
from rm_service.commands.explain import explain
from rm_service.commands.nodes import nodes
from tests.commands.conftest import Run, StubService

ID = "0b0e3f1e-5a3c-4f0e-9b60-6f4f4d8f6a11"
BIG = {
    "name": "nvidia.high.mem",
    "uid": ID,
    "spec": {"resourceSelector": []},
    "allocatable": "12",
    "requested": "4500m",
    "free": "7500m",
    "uncomparable": 3,
    "uncomparable_reasons": ["lots GtEq 30G: the device's value is a string, which has no order"],
}
LISTED = {"items": [{**BIG, "name": "any", "uncomparable": 0}, BIG], "next_cursor": None}


def expression(outcome: str, text: str, why: str = "") -> dict[str, str]:
    return {"outcome": outcome, "text": text, "why": why}


def signature(name: str, *expressions: dict[str, str], outcome: str, **more: Any) -> dict[str, Any]:
    return {
        "signature": name,
        "attributes": {
            "Kind": "nvidia-gpu",
            "memory": "16G",
            "driver": {"version": "535.104.05"},
            "ecc": True,
        },
        "selected": outcome == "holds",
        "devices": 8,
        "requested": "500m",
        "selectors": [{"outcome": outcome, "expressions": list(expressions)}],
        **more,
    }


KIND = expression("holds", "nvidia-gpu In [nvidia-gpu]")
EXPLAINED = {
    **BIG,
    "signatures": [
        signature("gpu-1", KIND, expression("holds", "40G GtEq 30G"), outcome="holds"),
        signature("gpu-2", KIND, expression("fails", "16G GtEq 30G"), outcome="fails"),
        signature(
            "gpu-3",
            KIND,
            expression("uncomparable", "lots GtEq 30G", "it has no order"),
            outcome="uncomparable",
        ),
        signature("gpu-4", KIND, outcome="holds", devices=0, requested="0"),
        signature("gpu-5", outcome="fails"),
    ],
    "overlaps": [{"class": "any", "shared": "12", "shared_free": "7500m", "free_without_shared": "0"}],
}
HELD = [
    {"class": "big", "device": "gpu0", "quantity": "2", "units": [{"unit": 0, "quantity": "1"}] * 2},
    {"class": "any", "device": "gpu1", "quantity": "500m", "units": [{"unit": 3, "quantity": "500m"}]},
]
NODE = {
    "instance": "n1",
    "state": "schedulable",
    "total": {"memory": 1024},
    "devices": [{"name": "gpu0", "count": 4, "attributes": {"Kind": "nvidia-gpu", "memory": "40G"}}],
    "free_devices": [
        {"name": "gpu0", "signature": "gpu-1", "count": 4, "free": 2, "largest_fraction": "1"},
        {"name": "gpu1", "signature": "gpu-2", "count": 0, "free": 0, "largest_fraction": "0"},
    ],
}
ASSIGNMENTS = {
    "seq": 12,
    "items": [
        {"application": ID, "state": "used", "tags": {"user": "alice"}, "devices": HELD, "annotations": {}}
    ],
    "next_cursor": None,
}
APPLICATION = {
    "id": ID,
    "state": "used",
    "node": "n1",
    "tags": {"user": "alice"},
    "resource": {},
    "classes": {"big": "2", "any": "500m"},
    "devices": HELD,
}


def cells(output: str) -> list[list[str]]:
    return [line.split() for line in output.splitlines()]


def test_classes_are_listed_with_how_they_stand(ask: Run, service: StubService) -> None:
    service.answer("GET /classes", LISTED)
    assert cells(ask(classes).stdout) == [
        ["name", "allocatable", "requested", "free", "uncomparable"],
        ["any", "12", "4500m", "7500m", "0"],
        ["nvidia.high.mem", "12", "4500m", "7500m", "3"],
    ]
    assert json.loads(ask(classes, "--json").stdout) == LISTED


def test_one_class_is_shown_by_its_name(ask: Run, service: StubService) -> None:
    service.answer("GET /classes/nvidia.high.mem", BIG)
    shown = cells(ask(classes, "nvidia.high.mem").stdout)
    assert shown[1] == ["nvidia.high.mem", "12", "4500m", "7500m", "3"]


def test_that_there_are_no_classes_is_said(ask: Run, service: StubService) -> None:
    service.answer("GET /classes", {"items": [], "next_cursor": None})
    assert ask(classes).stdout == "there are no resource classes\n"


def test_an_explained_class_shows_each_expression_with_both_values(ask: Run, service: StubService) -> None:
    service.answer("GET /classes/nvidia.high.mem/explain", EXPLAINED)
    shown = ask(classes, "explain", "nvidia.high.mem").stdout
    assert "gpu-1: selected; devices: 8, requested: 500m" in shown
    assert "Kind=nvidia-gpu, memory=16G, driver=535.104.05, ecc=true" in shown
    assert ["1", "holds", "40G", "GtEq", "30G"] in cells(shown)
    assert "gpu-2: not selected;" in shown
    assert ["1", "fails", "16G", "GtEq", "30G"] in cells(shown)
    assert "gpu-3: not selected, because it cannot be compared;" in shown
    assert ["1", "uncomparable", "lots", "GtEq", "30G", "it", "has", "no", "order"] in cells(shown)
    assert "gpu-4" not in shown, "no device has these attributes now"
    assert ["1", "fails", "-", "it", "is", "empty"] in cells(shown)
    assert "cannot be compared: lots GtEq 30G" in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_an_explained_class_shows_what_is_free_without_each_other_class(
    ask: Run, service: StubService
) -> None:
    service.answer("GET /classes/nvidia.high.mem/explain", EXPLAINED)
    shown = cells(ask(classes, "explain", "nvidia.high.mem").stdout)
    assert shown[-2:] == [
        ["class", "shared", "shared", "free", "free", "without", "them"],
        ["any", "12", "7500m", "0"],
    ]


def test_what_a_class_says_cannot_steer_the_terminal(ask: Run, service: StubService) -> None:
    said = {**EXPLAINED, "uncomparable_reasons": ["\x1b[2Jevil"]}
    service.answer("GET /classes/x/explain", said)
    assert "\x1b" not in ask(classes, "explain", "x").stdout


def test_an_unknown_class_is_refused(ask: Run, service: StubService) -> None:
    problem = {"status": 404, "code": "unknown_class", "detail": "no resource class x"}
    service.answer("GET /classes/x/explain", problem, 404)
    result = ask(classes, "explain", "x")
    assert (result.exit_code, result.stderr) == (1, "Refused: no resource class x (unknown_class)\n")


def test_devices_that_would_be_granted_are_shown(ask: Run, service: StubService) -> None:
    service.answer("POST /applications/explain", {"would_fit": True, "node": "n1", "devices": HELD})
    arguments = ("--class", "big=2", "--class", "any=500m", "--device-strategy", "spread")
    shown = ask(explain, "--tag", "user=alice", *arguments).stdout
    assert shown.startswith("would be granted on n1\n")
    assert ["big", "gpu0", "2", "0", "0"] in cells(shown)
    assert ["any", "gpu1", "500m", "3"] in cells(shown)
    assert service.asked[0].body == {
        "tags": {"user": "alice"},
        "priority": 0,
        "classes": {"big": "2", "any": "500m"},
        "device_strategy": "spread",
    }


def test_a_shortage_of_devices_is_told_in_devices(ask: Run, service: StubService) -> None:
    amounts = {"requested": 2000, "left": 500, "total": 4000, "protected": 0, "locked": 0, "used": 3500}
    short = {"label": {"node": "n1"}, "dimension": "class/big", "reason": "short", **amounts}
    answer = {"would_fit": False, "detail": "short", "shortfalls": [short]}
    service.answer("POST /applications/explain", answer)
    shown = cells(ask(explain, "--class", "big=2").stdout)
    assert ["node=n1", "class/big", "2", "500m", "4", "0", "3500m"] in shown


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--class", "big"),
        ("--class", "=2"),
        ("--class", "big=two"),
        ("--class", "big=2", "--class", "big=1"),
        ("--class", "big=1", "--device-strategy", "random"),
    ],
)
def test_a_wrong_command_line_asks_nothing(
    ask: Run, service: StubService, arguments: tuple[str, ...]
) -> None:
    assert ask(explain, *arguments).exit_code == 2
    assert service.asked == []


def test_a_node_shows_what_is_free_of_each_device(ask: Run, service: StubService) -> None:
    service.answer("GET /nodes/n1", NODE)
    shown = cells(ask(nodes, "n1").stdout)
    assert ["device", "count", "free", "fraction", "attributes"] in shown
    assert ["gpu0", "4", "2", "1", "Kind=nvidia-gpu,", "memory=40G"] in shown
    assert ["gpu1", "0", "0", "0", "gone,", "and", "still", "held"] in shown


def test_the_assignments_of_a_node_are_shown_by_application(ask: Run, service: StubService) -> None:
    service.answer("GET /nodes/n1/assignments", ASSIGNMENTS)
    arguments = ("n1", "--partition", "[c1]default", "--assignments")
    assert cells(ask(nodes, *arguments, COLUMNS="120").stdout) == [
        ["application", "state", "class", "device", "quantity", "units"],
        [ID, "used", "big", "gpu0", "2", "0", "0"],
        ["any", "gpu1", "500m", "3"],
    ]
    assert service.asked[0].query == {"partition": ["[c1]default"]}
    assert json.loads(ask(nodes, "n1", "--assignments", "--json").stdout) == ASSIGNMENTS


def test_a_node_without_assignments_says_so(ask: Run, service: StubService) -> None:
    service.answer("GET /nodes/n1/assignments", {**ASSIGNMENTS, "items": []})
    assert ask(nodes, "n1", "--assignments").stdout == "nobody holds devices there, as of event 12\n"


def test_assignments_are_those_of_one_node(ask: Run, service: StubService) -> None:
    assert ask(nodes, "--assignments").exit_code == 2
    assert service.asked == []


def test_an_application_shows_what_it_asked_for_and_what_it_has(ask: Run, service: StubService) -> None:
    service.answer(f"GET /applications/{ID}", APPLICATION)
    shown = cells(ask(applications, ID).stdout)
    assert ["classes", "big=2,", "any=500m"] in shown
    assert ["any", "gpu1", "500m", "3"] in shown
