"""The commands that ask a service: tables for people, the API's own answer for scripts, exit codes."""

import json
from pathlib import Path
from typing import Any

import click
import pytest

from rm_service import api_client
from rm_service.commands.applications import applications
from rm_service.commands.audit import audit
from rm_service.commands.engines import engines
from rm_service.commands.events import events
from rm_service.commands.explain import explain
from rm_service.commands.labels import labels
from rm_service.commands.limits import limits
from rm_service.commands.nodes import nodes
from rm_service.commands.resource_managers import resource_managers
from rm_service.commands.top import top
from rm_service.commands.usage import usage
from tests.commands.conftest import Run, StubService

GIB = 2**30
ID = "0b0e3f1e-5a3c-4f0e-9b60-6f4f4d8f6a11"
BALANCE = {
    "total": {"memory": 8 * GIB, "vcore": 4000},
    "protected": {"memory": 0, "vcore": 0},
    "locked": {"memory": GIB},
    "used": {"memory": 2 * GIB, "vcore": 500},
    "left": {"memory": 5 * GIB, "vcore": 3500},
}
NODE = {
    "instance": "host1:9101",
    "state": "schedulable",
    "tags": {"zone": "a"},
    "attributes": {"gpu": 2},
    **BALANCE,
}
APPLICATION = {
    "id": ID,
    "state": "used",
    "node": "host1:9101",
    "labels": [{"node": "host1:9101"}, {"user": "alice"}],
    "resource": {"memory": 2 * GIB, "vcore": 1500},
    "tags": {"user": "alice", "node": "host1:9101"},
    "priority": 0,
    "transitions": [{"state": "locked", "time": "2026-11-20T06:12:26.123456Z"}],
}
SHORTFALL = {
    "label": {"user": "alice"},
    "dimension": "memory",
    "requested": 8 * GIB,
    "left": GIB,
    "total": 4 * GIB,
    "protected": 0,
    "locked": GIB,
    "used": 2 * GIB,
    "reason": "short",
}
EXPLANATION = {
    "would_fit": False,
    "detail": "memory is short",
    "shortfalls": [SHORTFALL],
    "waiters_ahead": 2,
    "largest_holders": [
        {
            "label": {"user": "alice"},
            "dimension": "memory",
            "holders": [{"id": ID, "state": "used", "amount": 2 * GIB, "tags": {"user": "alice"}}],
        }
    ],
}
LIMIT = {
    "id": 3,
    "tags": {"user": "*"},
    "source": "operator",
    "total": {"memory": 8 * GIB},
    "protected": {},
}
EVENT = {
    "seq": 12,
    "time": "2026-11-20T06:12:26.123456Z",
    "kind": "application.locked",
    "subject": ID,
    "tags": {"user": "alice"},
    "resource": {"memory": GIB},
}
ENGINE = {
    "instance": "e1:30",
    "application": ID,
    "node": "host1:9101",
    "resource": {"vcore": 500},
    "tags": {"user": "a"},
}
RESOURCE_MANAGER = {
    "id": "cluster-1",
    "dialect": "seed",
    "version": "1.5.2",
    "policy_group": "queues",
    "build_info": {"commit": "f00"},
    "extra_config": {"rm.nodePool": "***"},
    "state": "running",
    "registrations": 12,
    "registered_at": "2026-11-20T06:12:26.123456Z",
    "resync_until": None,
}
USAGE = {
    "by": ["user"],
    "rows": [
        {"tags": {"user": "bob"}, "locked": {}, "used": {"memory": GIB}, "applications": 1},
        {"tags": {"user": "alice"}, "applications": 3, **BALANCE},
    ],
}
CONSISTENT = {"consistent": True, "labels_checked": 4, "applications_checked": 2, "differences": []}


def listing(*items: dict[str, Any], cursor: str | None = None) -> dict[str, Any]:
    return {"items": list(items), "next_cursor": cursor}


QUESTIONS: list[tuple[click.Command, tuple[str, ...], str, dict[str, Any]]] = [
    (usage, ("--by", "user"), "GET /usage", USAGE),
    (nodes, (), "GET /nodes", listing(NODE)),
    (nodes, ("host1:9101",), "GET /nodes/host1%3A9101", NODE),
    (applications, (), "GET /applications", listing(APPLICATION)),
    (applications, (ID,), f"GET /applications/{ID}", APPLICATION),
    (explain, ("--tag", "user=alice", "--resource", "memory=8Gi"), "POST /applications/explain", EXPLANATION),
    (limits, ("list",), "GET /limits", listing(LIMIT)),
    (limits, ("set", "--tag", "user=*", "--total", "memory=8Gi"), "PUT /limits", LIMIT),
    (labels, (), "GET /labels", listing({"tags": {"user": "alice"}, "applications": 3, **BALANCE})),
    (engines, (), "GET /engines", listing(ENGINE)),
    (audit, (), "GET /audit", CONSISTENT),
    (events, (), "GET /events", {"items": [EVENT]}),
    (resource_managers, (), "GET /resource-managers", {"items": [RESOURCE_MANAGER]}),
    (top, (), "GET /usage", USAGE),
]
EVERY_QUESTION = pytest.mark.parametrize(
    ("command", "arguments", "request_line", "answer"),
    QUESTIONS,
    ids=[" ".join([str(command.name), *arguments[:1]]) for command, arguments, _, _ in QUESTIONS],
)


def cells(output: str) -> list[list[str]]:
    return [line.split() for line in output.splitlines()]


@EVERY_QUESTION
def test_json_is_the_answer_as_it_is(
    ask: Run,
    service: StubService,
    command: click.Command,
    arguments: tuple[str, ...],
    request_line: str,
    answer: dict[str, Any],
) -> None:
    service.answer(request_line, answer)
    result = ask(command, *arguments, "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout) == answer


@EVERY_QUESTION
def test_a_table_holds_no_escapes_and_fits_80_columns(
    ask: Run,
    service: StubService,
    command: click.Command,
    arguments: tuple[str, ...],
    request_line: str,
    answer: dict[str, Any],
) -> None:
    service.answer(request_line, answer)
    result = ask(command, *arguments)
    assert result.exit_code == 0
    assert result.stdout
    assert "\x1b" not in result.stdout
    if command is not events:  # a line of the history stays a line
        assert max(map(len, result.stdout.splitlines())) <= 80


@EVERY_QUESTION
def test_a_refusal_ends_with_1_and_a_missing_service_with_3(
    ask: Run,
    run: Run,
    service: StubService,
    command: click.Command,
    arguments: tuple[str, ...],
    request_line: str,
    answer: dict[str, Any],
) -> None:
    problem = {"status": 422, "code": "invalid_fields", "detail": "no good", "errors": {"by.0": ["not so"]}}
    service.answer(request_line, problem, 422)
    refused = ask(command, *arguments)
    assert refused.exit_code == 1
    assert "no good (invalid_fields)" in refused.stderr
    assert "by.0: not so" in refused.stderr
    as_json = ask(command, *arguments, "--json")
    assert as_json.exit_code == 1
    assert json.loads(as_json.stdout) == problem
    assert run(command, *arguments, "--url", "http://127.0.0.1:1").exit_code == 3
    del answer


def test_amounts_are_quantities_in_aligned_columns(ask: Run, service: StubService) -> None:
    service.answer("GET /usage", USAGE)
    lines = ask(usage, "--by", "user").stdout.splitlines()
    assert cells("\n".join(lines)) == [
        ["user", "apps", "dimension", "total", "locked", "used", "left"],
        ["bob", "1", "memory", "-", "-", "1Gi", "-"],
        ["alice", "3", "memory", "8Gi", "1Gi", "2Gi", "5Gi"],
        ["vcore", "4", "-", "500m", "3500m"],
    ]
    assert {line.rstrip()[-1] for line in lines} == {"t", "-", "i", "m"}
    assert len({len(line.rstrip()) for line in lines}) == 1


def test_usage_is_asked_for_with_its_questions(ask: Run, service: StubService) -> None:
    service.answer("GET /usage", {"by": ["user", "app"], "rows": []})
    result = ask(usage, "--by", "user,app", "--where", "a=b,!c", "--at", "2026-11-20T06:00:00Z")
    assert result.stdout == "nothing is held or limited there\n"
    assert service.asked[0].query == {"by": ["user,app"], "where": ["a=b,!c"], "at": ["2026-11-20T06:00:00Z"]}


def test_a_page_says_how_it_goes_on(ask: Run, service: StubService) -> None:
    service.answer("GET /nodes", listing(NODE, cursor="abc"))
    assert "more: --cursor abc" in ask(nodes, "--limit", "1").stdout
    ask(nodes, "--cursor", "abc", "--selector", "zone=a")
    assert service.asked[1].query == {"limit": ["100"], "cursor": ["abc"], "selector": ["zone=a"]}


def test_a_node_is_shown_with_all_that_is_known_of_it(ask: Run, service: StubService) -> None:
    service.answer("GET /nodes/host1%3A9101", {**NODE, "over_limit": True, "reason": "disk"})
    shown = ask(nodes, "host1:9101").stdout
    assert "schedulable, over its limit" in shown
    assert ["reason", "disk"] in cells(shown)
    assert ["attributes", "gpu=2"] in cells(shown)


def test_applications_are_chosen_by_state_and_tags(ask: Run, service: StubService) -> None:
    service.answer("GET /applications", listing(APPLICATION))
    shown = ask(applications, "--state", "used", "--state", "locked", "--selector", "user=alice").stdout
    assert service.asked[0].query == {"state": ["used,locked"], "tag": ["user=alice"], "limit": ["100"]}
    assert ID in shown


def test_an_application_is_shown_with_its_labels_and_history(ask: Run, service: StubService) -> None:
    service.answer(f"GET /applications/{ID}", APPLICATION)
    shown = cells(ask(applications, ID).stdout)
    assert ["resource", "memory=2Gi", "vcore=1500m"] in shown
    assert ["node=host1:9101"] in shown
    assert ["2026-11-20", "06:12:26Z", "locked"] in shown


def test_an_explanation_names_what_is_short_and_who_holds_it(ask: Run, service: StubService) -> None:
    service.answer("POST /applications/explain", EXPLANATION)
    arguments = ("--tag", "user=alice", "--resource", "memory=8Gi,vcore=500m", "--selector", "gpu=T4")
    shown = ask(explain, *arguments, "--strategy", "best_fit").stdout
    assert ["user=alice", "memory", "8Gi", "1Gi", "4Gi", "1Gi", "2Gi"] in cells(shown)
    assert "memory of user=alice is held by" in shown
    assert [ID, "used", "2Gi", "user=alice"] in cells(shown)
    assert "2 would wait before it" in shown
    assert service.asked[0].body == {
        "tags": {"user": "alice"},
        "resource": {"memory": 8 * GIB, "vcore": 500},
        "priority": 0,
        "placement": {"selector": "gpu=T4", "strategy": "best_fit"},
    }


def test_what_would_fit_names_its_node(ask: Run, service: StubService) -> None:
    service.answer("POST /applications/explain", {"would_fit": True, "node": "host1"})
    assert ask(explain, "--resource", "vcore=1").stdout == "would be granted on host1\n"


def test_a_refusal_shows_its_shortfalls(ask: Run, service: StubService) -> None:
    ahead = {**SHORTFALL, "reason": "waiters_ahead", "protected": 1}
    problem = {"code": "insufficient_resources", "detail": "short", "shortfalls": [SHORTFALL, ahead]}
    service.answer("POST /applications/explain", problem, 409)
    shown = ask(explain, "--resource", "memory=8Gi", COLUMNS="120").stderr
    assert ["user=alice", "memory", "8Gi", "1Gi", "4Gi", "1", "1Gi", "2Gi", "waiters", "ahead"] in cells(
        shown
    )


def test_a_limit_is_set_and_removed(ask: Run, service: StubService) -> None:
    service.answer("PUT /limits", LIMIT, 201)
    service.answer("DELETE /limits/3", b"", 204)
    shown = ask(limits, "set", "--tag", "user=*", "--total", "memory=8Gi", "--protected", "memory=1Gi").stdout
    assert ["3", "user=*", "operator", "memory", "8Gi"] in cells(shown)
    assert service.asked[0].body == {
        "tags": {"user": "*"},
        "total": {"memory": 8 * GIB},
        "protected": {"memory": GIB},
    }
    assert ask(limits, "remove", "3").stdout == "limit 3 is removed\n"


def test_limits_say_whose_word_they_are(ask: Run, service: StubService) -> None:
    theirs = {**LIMIT, "id": 4, "tags": {"user": "alice"}, "source": "http"}
    of_a_manager = {**LIMIT, "id": 5, "tags": {"queue": "root.a"}, "source": "rm:cluster-1"}
    service.answer("GET /limits", listing(LIMIT, theirs, of_a_manager))
    assert cells(ask(limits, "list").stdout) == [
        ["id", "limit", "source", "dimension", "total"],
        ["3", "user=*", "operator", "memory", "8Gi"],
        ["4", "user=alice", "http", "memory", "8Gi"],
        ["5", "queue=root.a", "rm:cluster-1", "memory", "8Gi"],
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        ("set", "--tag", "user", "--total", "memory=1"),
        ("set", "--tag", "us er=a", "--total", "memory=1"),
        ("set", "--tag", "user=a", "--tag", "user=b", "--total", "memory=1"),
        ("set", "--tag", "user=a", "--total", "memory"),
        ("set", "--tag", "user=a", "--total", "memory=1Xi"),
        ("set", "--tag", "user=a", "--total", "memory=1,memory=2"),
        ("set", "--tag", "user=a"),
        ("remove", "many"),
        ("list", "--url", "nonsense"),
    ],
)
def test_a_wrong_command_line_ends_with_2_and_asks_nothing(
    ask: Run, service: StubService, arguments: tuple[str, ...]
) -> None:
    assert ask(limits, *arguments).exit_code == 2
    assert service.asked == []


def test_an_audit_that_finds_a_difference_ends_with_1(ask: Run, service: StubService) -> None:
    difference = {"check": "balance", "field": "used", "expected": 1, "found": 2, "label": {"user": "alice"}}
    service.answer("GET /audit", {**CONSISTENT, "consistent": False, "differences": [difference]})
    result = ask(audit)
    assert result.exit_code == 1
    assert "NOT CONSISTENT: 1 differences; 4 labels and 2 applications checked" in result.stdout
    assert ["balance", "used", "1", "2", "user=alice"] in cells(result.stdout)


def test_the_history_is_one_event_a_line(ask: Run, service: StubService) -> None:
    service.answer("GET /events", {"items": [EVENT, {**EVENT, "seq": 13, "resource": None}]})
    lines = cells(ask(events, "--after", "11").stdout)
    assert lines[0] == ["12", "2026-11-20", "06:12:26Z", "application.locked", ID, "memory=1Gi", "user=alice"]
    assert lines[1][-2:] == ["-", "user=alice"]
    assert service.asked[0].query == {"after": ["11"], "limit": ["100"]}


def test_a_warning_stands_at_the_end_of_its_event(ask: Run, service: StubService) -> None:
    detail = {"registration": 1, "warning": "there is no such \x1b[2Jgroup"}
    registered: dict[str, Any] = {
        "kind": "client.registered",
        "subject": "cluster-1",
        "tags": None,
        "resource": {},
    }
    service.answer("GET /events", {"items": [{**EVENT, **registered, "detail": detail}]})
    (line,) = cells(ask(events).stdout)
    assert " ".join(line[3:]) == ("client.registered cluster-1 - - warning: there is no such \ufffd[2Jgroup")


def test_resource_managers_are_shown_with_what_they_said_of_themselves(
    ask: Run, service: StubService
) -> None:
    silent = {"id": "cluster-2", "state": "paused", "dialect": None, "version": "", "policy_group": ""}
    items = [RESOURCE_MANAGER, {**RESOURCE_MANAGER, **silent, "registrations": 1}]
    service.answer("GET /resource-managers", {"items": items})
    _, first, second = cells(ask(resource_managers, COLUMNS="120").stdout)
    registered = ["2026-11-20", "06:12:26Z"]
    assert first == ["cluster-1", "running", "seed", "1.5.2", "queues", *registered, "12"]
    assert second == ["cluster-2", "paused", "-", "-", "-", *registered, "1"]


def test_that_no_resource_manager_has_registered_is_said(ask: Run, service: StubService) -> None:
    service.answer("GET /resource-managers", {"items": []})
    assert ask(resource_managers).stdout == "no resource manager has registered\n"


def test_following_prints_events_as_they_come(
    ask: Run, service: StubService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_client, "REOPEN_SECONDS", 0)
    headers = {"Content-Type": "text/event-stream"}
    service.answer("GET /events", b"data: " + json.dumps(EVENT).encode() + b"\n\n", 200, headers)
    service.answer("GET /events", {"code": "closing", "detail": "it stops"}, 503)
    result = ask(events, "--follow", "--json")
    assert json.loads(result.stdout.splitlines()[0]) == EVENT
    assert service.asked[1].query == {"after": ["12"]}


def test_top_puts_the_largest_holders_first(ask: Run, service: StubService) -> None:
    service.answer("GET /usage", USAGE)
    lines = ask(top, "--rows", "1").stdout.splitlines()
    assert "2 x user  4 applications" in lines[0]
    assert lines[2].startswith("alice")
    assert "bob" not in "".join(lines)


def test_what_a_service_says_cannot_steer_the_terminal(ask: Run, service: StubService) -> None:
    service.answer("GET /nodes", listing({**NODE, "instance": "\x1b[2Jevil[red]"}))
    shown = ask(nodes).stdout
    assert "\x1b" not in shown
    assert "evil[red]" in shown


def test_a_piped_record_stays_on_one_line(
    ask: Run, service: StubService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS")
    tags = {f"key{number}": "v" * 20 for number in range(10)}
    service.answer("GET /applications", listing({**APPLICATION, "tags": tags}))
    assert len(ask(applications).stdout.splitlines()) == 2


def test_the_token_comes_from_a_file_or_the_environment(
    ask: Run, service: StubService, tmp_path: Path
) -> None:
    service.answer("GET /audit", CONSISTENT)
    file = tmp_path / "token"
    file.write_text("from-file\n")
    ask(audit, "--token-file", str(file))
    ask(audit, RM_TOKEN="from-environment")  # noqa: S106 - a made-up one
    ask(audit)
    assert [one.headers.get("Authorization") for one in service.asked] == [
        "Bearer from-file",
        "Bearer from-environment",
        None,
    ]
    file.write_text("\n")
    assert ask(audit, "--token-file", str(file)).exit_code == 2
