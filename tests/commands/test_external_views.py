"""What commands show of places of external managers: use by others, and promises that are not shown yet."""

from typing import Any

from rm_service.commands.explain import explain
from rm_service.commands.labels import labels
from tests.commands.conftest import Run, StubService

GIB = 2**30
HERE = {"yarnCluster": "c1", "yarnQueue": "root.a"}


def lines(output: str) -> list[list[str]]:
    return [line.split() for line in output.splitlines()]


def test_labels_show_what_is_unseen_and_what_others_use(ask: Run, service: StubService) -> None:
    label = {
        "tags": HERE,
        "applications": 2,
        "total": {"yarn.memory": 9 * GIB},
        "locked": {"yarn.memory": 3 * GIB},
        "left": {"yarn.memory": 4 * GIB},
        "external": {"others": {"yarn.memory": 2 * GIB}, "unseen": {"yarn.memory": GIB}},
    }
    service.answer("GET /labels", {"items": [label], "next_cursor": None})
    head, row = lines(ask(labels, COLUMNS="160").stdout)[:2]
    assert head[2:] == ["dimension", "total", "locked", "unseen", "others", "left"]
    assert row[2:] == ["2", "yarn.memory", "9Gi", "3Gi", "1Gi", "2Gi", "4Gi"]


def test_what_is_short_because_of_others_says_so(ask: Run, service: StubService) -> None:
    short: dict[str, Any] = {
        "label": HERE,
        "dimension": "yarn.memory",
        "requested": 8 * GIB,
        "left": GIB,
        "total": 4 * GIB,
        "protected": 0,
        "locked": 0,
        "used": 0,
        "others": 3 * GIB,
        "reason": "short",
    }
    service.answer("POST /applications/explain", {"would_fit": False, "detail": "no", "shortfalls": [short]})
    shown = lines(ask(explain, "--resource", "yarn.memory=8Gi", COLUMNS="160").stdout)
    assert shown[1][2:] == ["dimension", "requested", "left", "total", "locked", "used", "others"]
    assert shown[2][3:] == ["8Gi", "1Gi", "4Gi", "0", "0", "3Gi"]


def test_what_no_place_is_charged_with_is_warned_of(ask: Run, service: StubService) -> None:
    said = "yarn.memory: no place is charged with it; the label rule yarn-queue needs the tags yarnQueue"
    service.answer("POST /applications/explain", {"would_fit": True, "node": None, "warnings": [said]})
    shown = ask(explain, "--resource", "yarn.memory=8Gi", COLUMNS="120").stdout
    assert shown.splitlines() == [f"warning: {said}", "would be granted"]
