"""`rm-service replay` reads a trace, replays it, and prints what became of it."""

import json
from pathlib import Path

import pytest

from rm_service.commands.replay import replay
from tests.commands.conftest import Run, StubService

CONSISTENT = {"consistent": True, "labels_checked": 4, "applications_checked": 0, "differences": []}
DIFFERENT = {
    **CONSISTENT,
    "consistent": False,
    "differences": [{"check": "balance", "field": "used", "expected": 1, "found": 2}],
}


def test_a_folder_with_one_file_of_each_kind_is_enough(run: Run, trace: Path) -> None:
    result = run(replay, str(trace), "--embedded", "--json")
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    assert document["granted"] == 5
    assert document["refused"] == 3
    assert document["refused_by"] == {"no node matches": 2, "vcore": 1}
    assert document["operations"] == 8 + 5 + 5
    assert set(document["latency_ms"]) == {"apply", "use", "release", "all"}
    assert document["audit"]["consistent"] is True


def test_people_get_tables(run: Run, trace: Path) -> None:
    lines = run(replay, str(trace), "--embedded").stdout.splitlines()
    assert max(map(len, lines)) <= 80
    shown = [line.split() for line in lines]
    assert ["granted", "5"] in shown
    assert ["no", "node", "matches", "2"] in shown
    assert ["vcore", "24", "17", "70.8", "%"] in shown
    assert any(line.startswith("consistent; ") for line in lines)


def test_a_limit_takes_the_first_tasks(run: Run, trace: Path) -> None:
    result = run(replay, str(trace), "--embedded", "--json", "--limit", "2")
    assert json.loads(result.stdout)["granted"] == 2


@pytest.mark.parametrize("option", ["--nodes", "--applications"])
def test_two_files_of_a_kind_have_to_be_told_apart(run: Run, trace: Path, option: str) -> None:
    name = {"--nodes": "node_list.csv", "--applications": "pod_list.csv"}[option]
    (trace / f"other_{name}").write_text("")
    unclear = run(replay, str(trace), "--embedded")
    assert unclear.exit_code == 2
    assert f"other_{name}" in unclear.stderr
    assert option in unclear.stderr
    assert run(replay, str(trace), "--embedded", option, str(trace / name)).exit_code == 0


def test_a_malformed_line_stops_the_replay_before_anything_is_registered(
    run: Run, trace: Path, service: StubService
) -> None:
    file = trace / "pod_list.csv"
    file.write_text(file.read_text() + "x,1,1,0,0,,LS,Running,9,8,\n")
    result = run(replay, str(trace), "--url", service.url)
    assert result.exit_code == 1
    assert f"{file}, line 10, column deletion_time: 8 is before the creation at 9" in result.stderr
    assert service.asked == []


def test_over_http_a_task_is_applied_for_used_and_released(
    run: Run, trace: Path, service: StubService
) -> None:
    for node in ("n-plain", "n-t4", "n-v100"):
        service.answer(f"PUT /nodes/{node}", {}, 201)
    service.answer("POST /applications", {"id": "i1", "state": "locked", "node": "n-t4"}, 201)
    service.answer("POST /applications/i1/use", {"state": "used"})
    service.answer("POST /applications/i1/release", {"state": "released"})
    service.answer("GET /audit", CONSISTENT)
    result = run(replay, str(trace), "--url", service.url, "--limit", "1", "--json", RM_TOKEN="s3cret")  # noqa: S106 - made up
    assert json.loads(result.stdout)["granted"] == 1
    assert [f"{one.method} {one.path}" for one in service.asked] == [
        *("PUT /nodes/n-plain", "PUT /nodes/n-t4", "PUT /nodes/n-v100"),
        *("POST /applications", "POST /applications/i1/use", "POST /applications/i1/release", "GET /audit"),
    ]
    assert {one.headers["Authorization"] for one in service.asked} == {"Bearer s3cret"}
    registered, asked = service.asked[1].body, service.asked[3].body
    assert registered["total"] == {"memory": 16 * 2**30, "vcore": 8000, "gpu_milli": 2000}
    assert registered["attributes"] == {"gpu": "2", "model": "T4"}
    assert asked["tags"] == {"job": "a", "qos": "LS"}
    assert asked["placement"] == {"selector": "trace=node_list", "strategy": "first_fit"}


def test_what_is_refused_over_http_is_counted_by_what_was_short(
    run: Run, trace: Path, service: StubService
) -> None:
    for node in ("n-plain", "n-t4", "n-v100"):
        service.answer(f"PUT /nodes/{node}", {}, 200)
    short = {"label": {}, "dimension": "memory", "requested": 2, "left": 1, "reason": "no_node_fits"}
    problem = {"status": 409, "code": "insufficient_resources", "detail": "short", "shortfalls": [short]}
    service.answer("POST /applications", problem, 409)
    service.answer("GET /audit", CONSISTENT)
    result = run(replay, str(trace), "--url", service.url, "--json")
    assert json.loads(result.stdout)["refused_by"] == {"memory": 8}


def test_an_audit_that_finds_a_difference_is_a_failure(run: Run, trace: Path, service: StubService) -> None:
    for node in ("n-plain", "n-t4", "n-v100"):
        service.answer(f"PUT /nodes/{node}", {}, 200)
    service.answer(
        "POST /applications", {"code": "insufficient_resources", "detail": "short", "shortfalls": []}, 409
    )
    service.answer("GET /audit", DIFFERENT)
    result = run(replay, str(trace), "--url", service.url)
    assert result.exit_code == 1
    assert "NOT CONSISTENT: 1 differences" in result.stdout


def test_a_service_that_refuses_a_node_ends_the_replay_with_its_problem(
    run: Run, trace: Path, service: StubService
) -> None:
    service.answer("PUT /nodes/n-plain", {"code": "unauthorized", "detail": "a token is needed"}, 401)
    result = run(replay, str(trace), "--url", service.url)
    assert result.exit_code == 1
    assert "a token is needed" in result.stderr


def test_a_service_that_is_not_there_is_told_apart_by_its_exit_code(run: Run, trace: Path) -> None:
    result = run(replay, str(trace), "--url", "http://127.0.0.1:1")
    assert result.exit_code == 3
    assert "http://127.0.0.1:1 cannot be reached: Connection refused" in result.stderr
