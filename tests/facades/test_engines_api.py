"""Engines over HTTP."""

import pytest

from tests.facades.conftest import GIB, Api, new_id


def started(api: Api, instance: str = "e1", **body: object) -> str:
    """An engine that runs for a fresh application; its application's id."""
    application = str(api.apply()["id"])
    api.put(f"/engines/{instance}", {"application": application} | body, status=201)
    return application


def test_a_started_engine_turns_its_lock_into_use(api: Api) -> None:
    api.node()
    application = api.apply()["id"]
    body = {
        "application": application,
        "node": "h1",
        "resource": {"memory": "512Mi"},
        "tags": {"version": "3.3"},
    }
    engine = api.put("/engines/e1", body, status=201)
    assert (engine["instance"], engine["application"], engine["state"]) == ("e1", application, "used")
    assert engine["resource"] == {"memory": GIB // 2}
    assert engine["tags"] == {"user": "alice", "node": "h1", "version": "3.3"}
    assert api.put("/engines/e1", body, status=200) == engine
    assert api.get("/engines/e1") == engine
    assert api.get(f"/applications/{application}")["engine"] == "e1"
    api.audit()


def test_what_runs_is_booked_even_over_the_limit_and_flagged(api: Api) -> None:
    api.node(memory=GIB)
    started(api)
    engine = api.post("/engines/e1/heartbeat", {"resource": {"memory": "2Gi"}}, status=200)
    assert engine["over_limit"]
    assert engine["last_heartbeat"] is not None
    node = api.get("/nodes/h1")
    assert (node["over_limit"], node["left"]) == (True, {"memory": -GIB})
    api.audit()


def test_an_engine_that_ended_gives_everything_back(api: Api) -> None:
    api.node()
    application = started(api)
    ended = api.delete("/engines/e1", status=200)
    assert (ended["id"], ended["state"]) == (application, "released")
    assert api.get("/nodes/h1")["used"] == {}
    assert api.delete("/engines/e1", status=404)["code"] == "unknown_engine"


def test_an_engine_without_a_lock_is_an_error(api: Api) -> None:
    api.node()
    application = api.apply()["id"]
    api.post(f"/applications/{application}/release", status=200)
    problem = api.put("/engines/e1", {"application": application}, status=409)
    assert (problem["code"], problem["state"]) == ("no_lock", "released")


def test_an_instance_runs_for_one_application(api: Api) -> None:
    api.node()
    started(api)
    other = api.apply()["id"]
    assert api.put("/engines/e1", {"application": other}, status=409)["code"] == "engine_exists"


def test_engines_are_listed_by_the_tags_of_engine_and_application(api: Api) -> None:
    api.node()
    started(api, "e2", tags={"version": "3.3"})
    started(api, "e1", tags={"version": "2.4"})
    assert [each["instance"] for each in api.get("/engines")["items"]] == ["e1", "e2"]
    found = api.get("/engines?selector=version%3D3.3,user%3Dalice")["items"]
    assert [each["instance"] for each in found] == ["e2"]
    assert found[0]["labels"]


@pytest.mark.parametrize(("method", "path"), [("GET", ""), ("DELETE", ""), ("POST", "/heartbeat")])
def test_an_engine_that_is_not_there_is_404(refusing: Api, method: str, path: str) -> None:
    assert refusing.call(method, f"/engines/e9{path}", status=404)["code"] == "unknown_engine"


def test_an_engine_of_an_unknown_application_is_404(refusing: Api) -> None:
    assert refusing.put("/engines/e1", {"application": new_id()}, status=404)["code"] == "unknown_application"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "application"),
        ({"application": 5}, "application"),
        ({"application": new_id(), "node": ""}, "node"),
        ({"application": new_id(), "resource": {"memory": "x"}}, "resource.memory"),
        ({"application": new_id(), "tags": []}, "tags"),
        ({"application": new_id(), "pid": 5}, "pid"),
    ],
)
def test_a_body_that_cannot_be_is_refused_by_the_field(
    refusing: Api, body: dict[str, object], field: str
) -> None:
    assert list(refusing.put("/engines/e1", body, status=422)["errors"]) == [field]


def test_an_engine_that_reports_from_another_node_is_refused(api: Api) -> None:
    api.node()
    application = api.apply()["id"]
    problem = api.put("/engines/e1", {"application": application, "node": "h2"}, status=409)
    assert (problem["code"], problem["field"]) == ("wrong_node", "node")
    assert api.get(f"/applications/{application}")["state"] == "locked"
