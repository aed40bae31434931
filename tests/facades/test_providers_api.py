"""External providers over HTTP."""

from typing import Any

import pytest

from external_providers.base import DeniedError, ExternalApplication
from rm_service.ledger.ledger import Ledger
from rm_service.services.external.external_resources import ExternalResources
from rm_service.services.external.keys import Keys, new_key
from rm_service.services.external.refresher import FETCH_SECONDS
from tests.facades.conftest import Api, make_api
from tests.services.external.conftest import plugin, time
from tests.services.external.scripted import (
    WAIT,
    FakeTime,
    Gate,
    ScriptedProvider,
    all_calls_end,
    place,
    plugins_with,
    tick,
)

__all__ = ["plugin", "time"]  # fixtures

PATH = "/providers/scripted/c1"
CONFIG = {"url": "https://c1:8088", "password": "hunter2-and-more"}
BODY: dict[str, Any] = {"config": CONFIG}


@pytest.fixture
def external(ledger: Ledger, plugin: ScriptedProvider, time: FakeTime) -> ExternalResources:
    return ExternalResources(ledger, Keys([new_key()]), plugins_with(plugin), clocks=time.clocks)


@pytest.fixture
def api(ledger: Ledger, external: ExternalResources) -> Api:
    return make_api(ledger, external=external)


def test_a_provider_is_stored_changed_read_and_taken_away(api: Api, external: ExternalResources) -> None:
    made = api.put(PATH, BODY, status=201)
    assert made["config"] == {"url": "https://c1:8088", "password": "***"}
    assert (made["labels"], made["stale_policy"]) == ("scriptedCluster=c1", "deny")
    assert (made["refresh_seconds"], made["stale_seconds"], made["protected"]) == (10, 60, {})
    all_calls_end(external.refresher)
    assert api.get(PATH)["standing"]["state"] == "ok"
    more = {
        "config": made["config"],
        "labels": "scriptedCluster in (c1,c2)",
        "stale_policy": "last_known",
        "refresh_seconds": 20,
        "stale_seconds": 90,
        "protected": {"scripted.memory": "1Gi"},
    }
    changed = api.put(PATH, more, status=200)
    assert {name: changed[name] for name in more} == more | {"protected": {"scripted.memory": 2**30}}
    assert changed["version"] > made["version"]
    all_calls_end(external.refresher)
    listed = api.get("/providers")
    assert [each["name"] for each in listed["items"]] == ["c1"]
    assert (listed["types"], listed["plugin_faults"]) == (["scripted"], [])
    api.delete(PATH, status=204)
    assert api.delete(PATH, status=404)["code"] == "unknown_provider"
    assert api.get("/providers")["items"] == []


def test_the_latest_snapshot_is_shown_with_its_age(
    api: Api, external: ExternalResources, plugin: ScriptedProvider, time: FakeTime
) -> None:
    plugin.says("c1", [place("root"), place("root.etl", used=0)])
    plugin.script("c1").applications = [
        ExternalApplication("a1", "root", {"scripted.memory": 4}, "RUNNING", "alice", tags=frozenset({"x"})),
        ExternalApplication("a2", "root.etl", {}),
    ]
    api.put(PATH, BODY, status=201)
    all_calls_end(external.refresher)
    time.passes(7)
    shown = api.get(f"{PATH}/snapshot")
    assert (shown["age_seconds"], shown["stale"], shown["breaker"]) == (7.0, False, "closed")
    assert (shown["fetched_at"], shown["last_error"]) == ("1970-01-01T00:16:40.000000Z", None)
    assert shown["health"] == {"ok": True, "detail": "version 1"}
    assert [each["name"] for each in shown["items"]] == ["root", "root.etl"]
    one = api.get(f"{PATH}/snapshot?place=root.etl")["items"]
    assert one == [
        {
            "name": "root.etl",
            "total": {"scripted.memory": 100},
            "used": {"scripted.memory": 0},
            "guaranteed": {},
            "pending": {},
            "open": True,
            "details": {},
        }
    ]
    assert api.get(f"{PATH}/snapshot?place=none")["items"] == []
    applications = api.get(f"{PATH}/applications")
    assert [each["id"] for each in applications["items"]] == ["a1", "a2"]
    assert applications["items"][0]["tags"] == ["x"]
    assert [each["id"] for each in api.get(f"{PATH}/applications?place=root.etl")["items"]] == ["a2"]


def test_places_and_applications_come_in_pages(
    api: Api, external: ExternalResources, plugin: ScriptedProvider
) -> None:
    plugin.says("c1", [place(name) for name in ("c", "a", "e", "b", "d")])
    plugin.script("c1").applications = [
        ExternalApplication(id_, where, {}) for id_, where in (("3", "a"), ("1", "b"), ("2", "a"), ("4", "a"))
    ]
    api.put(PATH, BODY, status=201)
    all_calls_end(external.refresher)
    assert _pages(api, "snapshot?limit=2", "name") == [["a", "b"], ["c", "d"], ["e"]]
    assert _pages(api, "snapshot?limit=5", "name") == [["a", "b", "c", "d", "e"]]
    assert _pages(api, "applications?limit=3", "id") == [["1", "2", "3"], ["4"]]
    assert _pages(api, "applications?place=a&limit=2", "id") == [["2", "3"], ["4"]]
    cursor = api.get(f"{PATH}/snapshot?limit=2")["next_cursor"]
    plugin.says("c1", [place(name) for name in ("a", "bb", "f")])
    external.refresher.ask("scripted", "c1").result(WAIT)
    behind = api.get(f"{PATH}/snapshot?cursor={cursor}")["items"]
    assert [each["name"] for each in behind] == ["bb", "f"]
    for wrong in ("snapshot?cursor=x", f"applications?cursor={cursor}", "snapshot?limit=0"):
        assert api.get(f"{PATH}/{wrong}", 422)["code"] == "invalid_fields"


def _pages(api: Api, question: str, key: str) -> list[list[str]]:
    """What the pages of a list hold, to its end."""
    pages, cursor = [], ""
    while True:
        page = api.get(f"{PATH}/{question}{cursor}")
        pages.append([each[key] for each in page["items"]])
        if page["next_cursor"] is None:
            return pages
        cursor = f"&cursor={page['next_cursor']}"


def test_a_look_that_hangs_is_shown_as_late_and_later_as_stuck(
    api: Api, external: ExternalResources, plugin: ScriptedProvider, time: FakeTime
) -> None:
    api.put(PATH, BODY, status=201)
    all_calls_end(external.refresher)
    gate, next_gate = Gate(), Gate()
    plugin.says("c1", gate, next_gate)
    time.passes(10)
    external.refresher.tick()
    assert gate.reached.wait(WAIT)
    time.passes(11)
    assert api.get(PATH)["standing"]["state"] == "late"
    time.passes(FETCH_SECONDS)
    external.refresher.tick()
    standing = api.get(PATH)["standing"]
    assert (standing["state"], standing["stuck"], standing["last_error"]["kind"]) == ("failing", 1, "timeout")
    gate.opened.set()
    next_gate.opened.set()
    all_calls_end(external.refresher)


def test_what_is_wrong_is_shown_within_one_look_and_the_other_provider_is_not_touched(
    api: Api, external: ExternalResources, plugin: ScriptedProvider, time: FakeTime
) -> None:
    api.put(PATH, BODY, status=201)
    api.put("/providers/scripted/c2", BODY, status=201)
    all_calls_end(external.refresher)
    plugin.says("c1", [place(used=-1)], DeniedError("the password is wrong"))
    time.passes(10)
    tick(external.refresher)
    shown = api.get(f"{PATH}/snapshot")
    assert (shown["state"], shown["last_error"]["kind"]) == ("quarantined", "quarantined")
    assert shown["last_error"]["reason"] == "place root: used.scripted.memory is below 0"
    assert shown["items"][0]["used"] == {"scripted.memory": 10}
    time.passes(10)
    tick(external.refresher)
    standing = api.get(PATH)["standing"]
    assert (standing["state"], standing["failures"]) == ("failing", 1)
    assert standing["last_error"]["reason"] == "the password is wrong"
    assert api.get("/providers/scripted/c2")["standing"]["state"] == "ok"


def test_what_another_replica_has_stored_is_shown_before_it_is_followed(
    api: Api, external: ExternalResources, ledger: Ledger, plugin: ScriptedProvider
) -> None:
    other = ExternalResources(ledger, external.keys, plugins_with(plugin), clocks=FakeTime().clocks)
    make_api(ledger, external=other).put(PATH, BODY, status=201)
    all_calls_end(other.refresher)
    assert api.get(PATH)["standing"] is None
    shown = api.get(f"{PATH}/snapshot")
    assert (shown["state"], shown["items"], shown["stale"]) == ("pending", [], True)
    assert api.get(f"{PATH}/applications")["items"] == []


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/providers/alien/c1", BODY, "type"),
        (PATH, {}, "config"),
        (PATH, {"config": []}, "config"),
        (PATH, {"config": {}}, "config.url"),
        (PATH, {"config": {"url": "file:///etc/passwd"}}, "config.url"),
        (PATH, {"config": CONFIG | {"pasword": "x"}}, "config.pasword"),
        (PATH, {"config": {"url": "http://c1", "password": "***"}}, "config.password"),
        (PATH, BODY | {"labels": "a in ("}, "labels"),
        (PATH, BODY | {"stale_policy": "hope"}, "stale_policy"),
        (PATH, BODY | {"refresh_seconds": 0}, "refresh_seconds"),
        (PATH, BODY | {"refresh_seconds": 60}, "stale_seconds"),
        (PATH, BODY | {"protected": {"scripted.memory": -1}}, "protected.scripted.memory"),
        (PATH, BODY | {"protected": {"memory": 1}}, "protected.memory"),
        (PATH, BODY | {"secrets": "x"}, "secrets"),
        ("/providers/scripted/%01", BODY, "name"),
    ],
)
def test_a_provider_that_cannot_be_is_refused_by_the_field(
    refusing: Api, path: str, body: dict[str, object], field: str
) -> None:
    problem = refusing.put(path, body, status=422)
    assert problem["code"] == "invalid_fields"
    assert list(problem["errors"]) == [field]
    assert "hunter2" not in str(problem)


def test_a_tie_is_a_conflict_that_names_the_other(api: Api, external: ExternalResources) -> None:
    api.put(PATH, BODY, status=201)
    problem = api.put("/providers/scripted/c2", BODY | {"labels": "scriptedCluster=c1"}, status=409)
    assert (problem["code"], problem["field"]) == ("provider_tie", "labels")
    assert "scripted/c1" in problem["detail"]
    all_calls_end(external.refresher)


@pytest.mark.parametrize("path", [PATH, f"{PATH}/snapshot", f"{PATH}/applications", "/providers/alien/x"])
def test_a_provider_that_nobody_stored_is_404(refusing: Api, path: str) -> None:
    assert refusing.get(path, 404)["code"] == "unknown_provider"
