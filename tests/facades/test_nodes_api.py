"""Nodes over HTTP: the rows of the contract, one by one."""

from typing import Any

import pytest

from tests.facades.conftest import GIB, Api


def test_a_node_is_registered_with_everything_it_says(api: Api) -> None:
    node = api.put(
        "/nodes/host1:9101",
        {
            "resource_type": "LoadInstance",
            "total": {"memory": "64Gi", "vcore": 32000, "instances": 50},
            "protected": {"memory": "4Gi"},
            "tags": {"zone": "a"},
            "attributes": {"model": "T4", "cards": 2},
            "devices": [{"name": "gpu0", "count": 1, "attributes": {"Kind": "nvidia-gpu", "memory": "30G"}}],
        },
        status=201,
    )
    assert node["instance"] == "host1:9101"
    assert node["state"] == "schedulable"
    assert node["total"] == {"memory": 64 * GIB, "vcore": 32000, "instances": 50}
    assert node["left"] == {"memory": 60 * GIB, "vcore": 32000, "instances": 50}
    assert node["devices"] == [
        {"name": "gpu0", "count": 1, "attributes": {"Kind": "nvidia-gpu", "memory": "30G"}}
    ]
    assert api.get("/nodes/host1:9101") == node


def test_a_node_takes_the_typed_shape_of_linkis(api: Api) -> None:
    total = {"memory": 8 * GIB, "cores": 4, "instances": 10}
    node = api.put("/nodes/h1", {"resource_type": "LoadInstanceResource", "total": total}, status=201)
    assert node["total"] == {"memory": 8 * GIB, "vcore": 4000, "instances": 10}


def test_registering_again_updates_and_keeps_what_is_used(api: Api) -> None:
    api.node()
    api.apply()
    node = api.put("/nodes/h1", {"total": {"memory": "4Gi"}}, status=200)
    assert (node["total"], node["locked"]) == ({"memory": 4 * GIB}, {"memory": GIB})


def test_lowering_a_total_below_what_is_held_flags_the_node(api: Api) -> None:
    api.node()
    api.apply()
    node = api.put("/nodes/h1", {"total": {"memory": 1}}, status=200)
    assert node["over_limit"]
    assert node["left"] == {"memory": 1 - GIB}


def test_a_heartbeat_needs_no_body_and_sets_a_deadline(api: Api) -> None:
    assert api.node()["last_heartbeat"] is None
    node = api.post("/nodes/h1/heartbeat", status=200)
    assert node["last_heartbeat"] is not None
    assert node["heartbeat_deadline"] > node["last_heartbeat"]


def test_draining_goes_to_drained_once_nothing_is_held_and_back_by_undrain(api: Api) -> None:
    api.node()
    held = api.apply()
    draining = api.post("/nodes/h1/drain", {"reason": "a new disk"}, status=200)
    assert (draining["state"], draining["reason"]) == ("draining", "a new disk")
    refused = api.apply(status=409)
    assert refused["code"] == "node_not_schedulable"
    api.post(f"/applications/{held['id']}/release", status=200)
    assert api.get("/nodes/h1")["state"] == "drained"
    assert api.post("/nodes/h1/undrain", status=200)["state"] == "schedulable"
    api.apply()


def test_removing_a_node_loses_what_ran_there_and_gives_it_back_on_every_label(api: Api) -> None:
    api.node()
    locked, used = api.apply(), api.apply()
    api.post(f"/applications/{used['id']}/use", status=200)
    api.delete("/nodes/h1", status=204)
    for application in (locked, used):
        lost = api.get(f"/applications/{application['id']}")
        assert (lost["state"], lost["reason"]) == ("lost", "the node was removed")
    assert api.get("/usage?by=user")["rows"] == []
    assert api.get("/nodes/h1", status=404)["code"] == "unknown_node"
    api.audit()


def test_a_node_that_comes_back_books_again_what_runs_there(api: Api) -> None:
    api.node()
    application = api.apply()
    api.post(f"/applications/{application['id']}/use", status=200)
    api.delete("/nodes/h1", status=204)
    body = {"total": {"memory": "8Gi"}, "applications": [application["id"]]}
    assert api.put("/nodes/h1", body, status=201)["used"] == {"memory": GIB}
    assert api.get(f"/applications/{application['id']}")["state"] == "used"
    api.audit()


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/nodes/h9"),
        ("POST", "/nodes/h9/heartbeat"),
        ("POST", "/nodes/h9/drain"),
        ("POST", "/nodes/h9/undrain"),
        ("DELETE", "/nodes/h9"),
    ],
)
def test_a_node_that_is_not_registered_is_404(refusing: Api, method: str, path: str) -> None:
    problem = refusing.call(method, path, status=404)
    assert (problem["code"], problem["detail"]) == ("unknown_node", "no node h9 is registered")


def test_nodes_are_listed_by_name_in_pages_and_by_selector(api: Api) -> None:
    for name, zone in (("c", "x"), ("a", "x"), ("b", "y")):
        api.put(f"/nodes/{name}", {"total": {"memory": 1}, "tags": {"zone": zone}}, status=201)
    first = api.get("/nodes?limit=2")
    rest = api.get(f"/nodes?limit=2&cursor={first['next_cursor']}")
    assert [node["instance"] for node in first["items"] + rest["items"]] == ["a", "b", "c"]
    assert rest["next_cursor"] is None
    assert [node["instance"] for node in api.get("/nodes?selector=zone%3Dx")["items"]] == ["a", "c"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "total"),
        ({"total": {"memory": -1}}, "total.memory"),
        ({"total": {"memory": "8Xi"}}, "total.memory"),
        ({"total": {"memory": 1.5}}, "total.memory"),
        ({"total": {"memory": 2**63}}, "total.memory"),
        ({"total": []}, "total"),
        ({"total": {"memory": 1}, "protected": {"memory": 2}}, "protected.memory"),
        ({"total": {"memory": 1}, "protected": {"gpu": 2}}, "protected.gpu"),
        ({"total": {"memory": 1}, "resource_type": "Moon"}, "resource_type"),
        ({"total": {"memory": 1}, "tags": {"zone": 5}}, "tags.zone"),
        ({"total": {"memory": 1}, "tags": {"": "x"}}, "tags"),
        ({"total": {"memory": 1}, "attributes": {"a": None}}, "attributes.a"),
        ({"total": {"memory": 1}, "attributes": {"a": "\x00"}}, "attributes.a"),
        ({"total": {"memory": 1}, "devices": [{"count": 1}]}, "devices.0.name"),
        ({"total": {"memory": 1}, "devices": [{"name": "g", "count": 0}]}, "devices.0.count"),
        ({"total": {"memory": 1}, "devices": [{"name": "g"}, {"name": "g"}]}, "devices"),
        ({"total": {"memory": 1}, "applications": ["x"]}, "applications.0"),
        ({"total": {"memory": 1}, "colour": "red"}, "colour"),
    ],
)
def test_a_body_that_cannot_be_is_refused_by_the_field(
    refusing: Api, body: dict[str, Any], field: str
) -> None:
    problem = refusing.put("/nodes/h1", body, status=422)
    assert problem["code"] == "invalid_fields"
    assert list(problem["errors"]) == [field]


def test_a_name_that_no_tag_can_have_is_refused(refusing: Api) -> None:
    problem = refusing.put("/nodes/a%01b", {"total": {"memory": 1}}, status=422)
    assert list(problem["errors"]) == ["instance"]


def test_a_name_that_could_stand_in_no_path_is_refused(api: Api) -> None:
    assert api.put("/nodes/%FF", {"total": {"memory": 1}}, status=422)["errors"].keys() == {"instance"}
