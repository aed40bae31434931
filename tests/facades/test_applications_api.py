"""Applications over HTTP: the rows of the contract, one by one."""

from typing import Any

import pytest
from sqlalchemy import update

from rm_service.ledger import tables
from rm_service.ledger.ledger import Ledger
from tests.facades.conftest import GIB, Api, new_id


def test_a_grant_is_a_lock_on_every_label(api: Api) -> None:
    api.node()
    granted = api.apply(tags={"user": "alice", "creator": "IDE", "engineType": "spark-3.3", "node": "h1"})
    assert (granted["state"], granted["node"]) == ("locked", "h1")
    assert granted["resource"] == granted["requested"] == {"memory": GIB}
    assert {"user": "alice"} in granted["labels"]
    assert {"user": "alice", "creator": "IDE", "engineType": "spark-3.3"} in granted["labels"]
    assert granted["lock_deadline"].endswith("Z")
    assert [each["state"] for each in granted["transitions"]] == ["locked"]
    assert api.get(f"/applications/{granted['id']}") == granted


def test_conversions_apply_before_labels(api: Api) -> None:
    api.node()
    granted = api.apply(tags={"userCreator": "alice-IDE", "node": "h1"})
    assert granted["tags"] == {"user": "alice", "creator": "IDE", "node": "h1"}


def test_a_refusal_names_every_label_and_dimension_that_is_short(api: Api) -> None:
    api.node(memory="1Gi", vcore=1000)
    api.put("/limits", {"tags": {"user": "alice"}, "total": {"memory": "512Mi"}}, status=201)
    problem = api.apply(409, resource={"memory": "2Gi", "vcore": 2000})
    assert problem["code"] == "insufficient_resources"
    found = {
        (each["label"].get("node"), each["label"].get("user"), each["dimension"])
        for each in problem["shortfalls"]
    }
    assert found == {("h1", None, "memory"), ("h1", None, "vcore"), (None, "alice", "memory")}
    memory = next(each for each in problem["shortfalls"] if each["label"] == {"user": "alice"})
    assert (memory["requested"], memory["left"], memory["total"]) == (2 * GIB, GIB // 2, GIB // 2)
    assert (memory["locked"], memory["used"], memory["protected"]) == (0, 0, 0)
    assert api.get("/applications")["items"] == []


def test_an_unregistered_node_is_a_conflict_and_not_a_missing_page(api: Api) -> None:
    assert api.apply(409)["code"] == "unknown_node"


def test_waiting_is_told_with_reason_place_and_deadline_and_ends_by_room(api: Api) -> None:
    api.node(memory=GIB)
    holder = api.apply()
    first, second = api.apply(202, wait_seconds=60), api.apply(202, wait_seconds=60)
    assert (first["state"], first["position"], second["position"]) == ("waiting", 1, 2)
    assert "memory" in first["reason"]
    assert first["wait_deadline"] is not None
    assert first["lock_deadline"] is None
    api.post(f"/applications/{holder['id']}/release", status=200)
    api.post(
        f"/applications/{holder['id']}/release", status=200
    )  # the wake came before this in the writer's queue
    granted = api.get(f"/applications/{first['id']}")
    assert granted["state"] == "locked"
    assert [each["state"] for each in granted["transitions"]] == ["waiting", "locked"]
    assert api.get(f"/applications/{second['id']}")["position"] == 1


def test_the_same_id_and_request_answers_the_present_state(api: Api) -> None:
    api.node()
    body = {"tags": {"user": "alice", "node": "h1"}, "resource": {"memory": "1Gi"}, "id": new_id()}
    made = api.post("/applications", body, status=201)
    api.post(f"/applications/{body['id']}/use", status=200)
    again = api.post("/applications", body | {"resource": {"memory": GIB}}, status=200)
    assert (again["id"], again["state"]) == (made["id"], "used")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"resource": {"memory": 1}}, "resource"),
        ({"tags": {"user": "bob", "node": "h1"}}, "tags"),
        ({"priority": 5}, "priority"),
        ({"wait_seconds": 5}, "wait_seconds"),
        ({"lock_seconds": 5}, "lock_seconds"),
    ],
)
def test_the_same_id_with_another_request_names_what_differs(
    api: Api, change: dict[str, Any], field: str
) -> None:
    api.node()
    body: dict[str, Any] = {
        "tags": {"user": "alice", "node": "h1"},
        "resource": {"memory": GIB},
        "id": new_id(),
    }
    api.post("/applications", body, status=201)
    problem = api.post("/applications", body | change, status=409)
    assert (problem["code"], problem["field"]) == ("id_reused", field)


def test_an_idempotency_key_stands_for_an_id(api: Api) -> None:
    api.node()
    body = {"tags": {"node": "h1"}, "resource": {"memory": 1}}
    key = {"Idempotency-Key": "order-17"}
    made = api.call("POST", "/applications", body, status=201, headers=key)
    again = api.call("POST", "/applications", body, status=200, headers=key)
    other = api.call("POST", "/applications", body, status=201, headers={"Idempotency-Key": "order-18"})
    assert made["id"] == again["id"] != other["id"]
    both = api.call("POST", "/applications", body | {"id": new_id()}, status=422, headers=key)
    assert list(both["errors"]) == ["id"]


def test_placement_finds_a_node_by_selector(api: Api) -> None:
    api.put("/nodes/a", {"total": {"memory": "8Gi"}, "attributes": {"gpu": "P100"}}, status=201)
    api.put("/nodes/b", {"total": {"memory": "8Gi"}, "attributes": {"gpu": "T4"}}, status=201)
    granted = api.apply(tags={"user": "alice"}, placement={"selector": "gpu=T4", "strategy": "best_fit"})
    assert granted["node"] == "b"
    assert {"node": "b"} in granted["labels"]
    nowhere = api.apply(409, tags={"user": "alice"}, placement={"selector": "gpu = A100"})
    assert nowhere["shortfalls"][0]["reason"] == "no_node_matches"
    assert nowhere["shortfalls"][0]["label"] == {"placement": "gpu=A100"}


def test_use_takes_the_actual_amount_and_gives_back_the_rest(api: Api) -> None:
    api.node()
    made = api.apply(resource={"memory": GIB, "vcore": 1000})
    used = api.post(f"/applications/{made['id']}/use", {"resource": {"memory": "512Mi"}}, status=200)
    assert (used["state"], used["resource"]) == ("used", {"memory": GIB // 2, "vcore": 1000})
    more = api.post(f"/applications/{made['id']}/use", {"resource": {"memory": "2Gi"}}, status=200)
    assert more["resource"]["memory"] == 2 * GIB
    node = api.get("/nodes/h1")
    assert (node["locked"], node["used"]) == ({}, {"memory": 2 * GIB, "vcore": 1000})


def test_use_beyond_what_is_there_is_refused_and_the_lock_stays(api: Api) -> None:
    api.node(memory=GIB)
    made = api.apply()
    problem = api.post(f"/applications/{made['id']}/use", {"resource": {"memory": "2Gi"}}, status=409)
    assert problem["code"] == "insufficient_resources"
    assert api.get(f"/applications/{made['id']}")["state"] == "locked"


def test_what_holds_nothing_says_its_state(api: Api) -> None:
    api.node()
    made = api.apply()
    released = api.post(f"/applications/{made['id']}/release", status=200)
    assert released["state"] == "released"
    again = api.post(f"/applications/{made['id']}/release", {}, status=200)
    assert again == released
    for action in ("use", "renew"):
        problem = api.post(f"/applications/{made['id']}/{action}", {}, status=409)
        assert (problem["code"], problem["state"]) == ("no_lock", "released")


def test_a_lock_past_its_deadline_is_expired_swept_or_not(api: Api, ledger: Ledger) -> None:
    api.node()
    made = api.apply(lock_seconds=1)
    with ledger.readers.begin() as connection:
        connection.execute(update(tables.application).values(deadline=1))
    problem = api.post(f"/applications/{made['id']}/use", status=409)
    assert (problem["code"], problem["state"]) == ("expired", "locked")


def test_renew_moves_the_deadline(api: Api) -> None:
    api.node()
    made = api.apply(lock_seconds=10)
    renewed = api.post(f"/applications/{made['id']}/renew", {"lock_seconds": 100}, status=200)
    assert renewed["lock_deadline"] > made["lock_deadline"]


@pytest.mark.parametrize("action", ["use", "renew", "release"])
@pytest.mark.parametrize("name", ["5ab3f2a0-1c2d-4e5f-8a9b-0c1d2e3f4a5b", "not-a-uuid"])
def test_an_id_that_nobody_has_is_404(refusing: Api, action: str, name: str) -> None:
    assert refusing.post(f"/applications/{name}/{action}", {}, status=404)["code"] == "unknown_application"
    assert refusing.get(f"/applications/{name}", 404)["code"] == "unknown_application"


def test_applications_are_listed_newest_first_by_state_and_tag(api: Api) -> None:
    api.node()
    made = [api.apply(tags={"user": user, "node": "h1", "job": "j"})["id"] for user in ("a", "b", "a")]
    api.post(f"/applications/{made[0]}/use", status=200)
    listed = [each["id"] for each in api.get("/applications")["items"]]
    assert listed == made[::-1]
    assert [each["id"] for each in api.get("/applications?state=used")["items"]] == [made[0]]
    assert [each["id"] for each in api.get("/applications?state=used,locked&tag=user%3Db")["items"]] == [
        made[1]
    ]
    first = api.get("/applications?limit=2")
    rest = api.get(f"/applications?limit=2&cursor={first['next_cursor']}")
    assert [each["id"] for each in first["items"] + rest["items"]] == made[::-1]


def test_explain_answers_without_any_effect(api: Api) -> None:
    api.node(memory=2 * GIB)
    body = {"tags": {"user": "bob", "node": "h1"}, "resource": {"memory": 2 * GIB}}
    fits = api.post("/applications/explain", body, status=200)
    assert (fits["would_fit"], fits["node"], fits["shortfalls"]) == (True, "h1", [])
    holder = api.apply()
    api.apply(202, tags={"user": "eve", "node": "h1"}, resource={"memory": 2 * GIB}, wait_seconds=60)
    seq = api.get("/events?limit=1000")["items"][-1]["seq"]
    short = api.post("/applications/explain", body, status=200)
    assert (short["would_fit"], short["code"], short["waiters_ahead"]) == (False, "insufficient_resources", 1)
    assert short["shortfalls"][0]["left"] == GIB
    (in_the_way,) = short["largest_holders"]
    assert (in_the_way["label"], in_the_way["dimension"]) == ({"node": "h1"}, "memory")
    assert [(each["id"], each["amount"]) for each in in_the_way["holders"]] == [(holder["id"], GIB)]
    assert api.get("/events?limit=1000")["items"][-1]["seq"] == seq


def test_explain_tells_which_node_placement_would_take(api: Api) -> None:
    api.node("a", memory=GIB)
    api.node("b", memory=4 * GIB)
    body = {"tags": {}, "resource": {"memory": 2 * GIB}, "placement": {}}
    assert api.post("/applications/explain", body, status=200)["node"] == "b"


def test_a_yarn_driver_brings_its_queue_and_cluster_as_tags(api: Api) -> None:
    api.node()
    resource = {
        "loadInstanceResource": {"memory": GIB, "cores": 1, "instances": 1},
        "yarnResource": {
            "queueMemory": GIB,
            "queueCores": 1,
            "queueInstances": 1,
            "queueName": "root.a",
            "clusterName": "east",
        },
    }
    problem = api.apply(409, resource=resource)
    assert (problem["code"], problem["label"]) == (
        "unknown_node",
        {"yarnCluster": "east", "yarnQueue": "root"},
    )
    clash = api.apply(422, resource=resource, tags={"node": "h1", "yarnQueue": "root.b"})
    assert list(clash["errors"]) == ["tags.yarnQueue"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"tags": None}, "tags"),
        ({"tags": {"user": 1}}, "tags.user"),
        ({"tags": {"a b": "x"}}, "tags.a b"),
        ({"tags": {"queue": "root..a"}}, "tags.queue"),
        ({"tags": {"userCreator": "nodash"}}, "tags.userCreator"),
        ({"resource": {}}, "resource"),
        ({"resource": {"memory": 0}}, "resource"),
        ({"resource": {"memory": -1}}, "resource.memory"),
        ({"resource": {"memory": 1.0}}, "resource.memory"),
        ({"resource": {"memory": True}}, "resource.memory"),
        ({"resource": {"memory": 2**63}}, "resource.memory"),
        ({"resource": {"memory": "1Zi"}}, "resource.memory"),
        ({"resource": {"a b": 1}}, "resource.a b"),
        ({"resource": "lots"}, "resource"),
        ({"id": "x"}, "id"),
        ({"wait_seconds": -1}, "wait_seconds"),
        ({"wait_seconds": "5"}, "wait_seconds"),
        ({"wait_seconds": 1.5}, "wait_seconds"),
        ({"lock_seconds": 0}, "lock_seconds"),
        ({"lock_seconds": True}, "lock_seconds"),
        ({"priority": 10**30}, "priority"),
        ({"placement": {"selector": "a in ("}}, "placement.selector"),
        ({"placement": {"strategy": "luck"}}, "placement.strategy"),
        ({"placement": {"where": "x"}}, "placement.where"),
        ({"placement": {}}, "placement"),
        ({"classes": {"big": "1.5"}}, "classes.big"),
        ({"classes": {"big": -1}}, "classes.big"),
        ({"classes": {"big": 0.5}}, "classes.big"),
        ({"classes": []}, "classes"),
        ({"device_strategy": "spread"}, "device_strategy"),
    ],
)
def test_a_field_that_cannot_be_is_refused_by_its_path(
    refusing: Api, change: dict[str, Any], field: str
) -> None:
    problem = refusing.apply(422, **({"tags": {"node": "h0"}} | change))
    assert problem["code"] == "invalid_fields"
    assert list(problem["errors"]) == [field]


def test_all_faults_are_told_at_once(refusing: Api) -> None:
    problem = refusing.post("/applications", {"resource": {"memory": -1}, "x": 1}, status=422)
    assert set(problem["errors"]) == {"tags", "resource.memory", "x"}


def test_an_explanation_names_the_labels_whether_it_fits_or_not(api: Api) -> None:
    api.node(memory=GIB)
    for memory in (GIB, 2 * GIB):
        body = {"tags": {"user": "new", "node": "h1"}, "resource": {"memory": memory}}
        assert api.post("/applications/explain", body, status=200)["labels"] == [
            {"node": "h1"},
            {"user": "new"},
        ]


def test_an_overflow_names_the_label(api: Api) -> None:
    most = {"memory": 2**63 - 1}
    api.apply(tags={"user": "a", "creator": "IDE"}, resource=most)
    problem = api.apply(409, tags={"user": "b", "creator": "IDE"}, resource=most)
    assert (problem["code"], problem["field"], problem["label"]) == ("overflow", "memory", {"creator": "IDE"})
