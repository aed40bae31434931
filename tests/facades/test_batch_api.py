"""Batches over HTTP: each result is what the single call would have been answered."""

from typing import Any

import pytest
from marshmallow import Schema

from rm_service.facades.http.answer_schemas import ApplicationSchema, ProblemSchema
from tests.facades.conftest import GIB, Api, Json, new_id


def results(api: Api, *operations: Json, atomic: bool = False) -> list[Json]:
    document = api.post("/batch", {"operations": list(operations), "atomic": atomic}, status=200)
    found: list[Json] = document["results"]
    for result in found:
        schema: Schema = ProblemSchema() if result["status"] >= 400 else ApplicationSchema()
        body = result if result["status"] >= 400 else {k: v for k, v in result.items() if k != "status"}
        assert schema.validate(body) == {}, result
    return found


def ask(**changes: Any) -> Json:
    return {"op": "apply", "tags": {"user": "alice", "node": "h1"}, "resource": {"memory": GIB}} | changes


def test_a_later_operation_may_name_an_id_that_an_earlier_one_made(api: Api) -> None:
    api.node()
    name = new_id()
    found = results(
        api,
        ask(id=name),
        {"op": "renew", "id": name, "lock_seconds": 60},
        {"op": "use", "id": name, "resource": {"memory": "512Mi"}},
        {"op": "release", "id": name},
    )
    assert [each["status"] for each in found] == [201, 200, 200, 200]
    assert [each["state"] for each in found] == ["locked", "locked", "used", "released"]
    api.audit()


def test_one_refusal_does_not_harm_its_neighbours(api: Api) -> None:
    api.node(memory=GIB)
    found = results(
        api, ask(), ask(), ask(wait_seconds=9), {"op": "use", "id": new_id()}, ask(tags={"node": "h9"})
    )
    assert [each["status"] for each in found] == [201, 409, 202, 404, 409]
    assert [each.get("code") for each in found[1:]] == [
        "insufficient_resources",
        None,
        "unknown_application",
        "unknown_node",
    ]


def test_an_atomic_batch_is_all_or_nothing_and_a_wait_counts_as_a_refusal(api: Api) -> None:
    api.node(memory=GIB)
    found = results(api, ask(), ask(wait_seconds=60), atomic=True)
    assert [(each["status"], each["code"]) for each in found] == [
        (424, "not_done"),
        (409, "insufficient_resources"),
    ]
    assert api.get("/applications")["items"] == []
    done = results(api, ask(resource={"memory": 1}), ask(resource={"memory": 2}), atomic=True)
    assert [each["status"] for each in done] == [201, 201]
    api.audit()


def test_an_idempotency_key_covers_every_apply_of_the_batch(api: Api) -> None:
    api.node()
    body = {"operations": [ask(), ask()]}
    key = {"Idempotency-Key": "nightly"}
    made = api.call("POST", "/batch", body, status=200, headers=key)["results"]
    again = api.call("POST", "/batch", body, status=200, headers=key)["results"]
    assert [each["status"] for each in made + again] == [201, 201, 200, 200]
    assert [each["id"] for each in made] == [each["id"] for each in again]
    assert made[0]["id"] != made[1]["id"]


@pytest.mark.parametrize(
    ("operation", "field"),
    [
        ({"op": "steal"}, "op"),
        ({}, "op"),
        ({"op": "use"}, "id"),
        ({"op": "use", "id": "x"}, "id"),
        ({"op": "release", "id": new_id(), "why": "x"}, "why"),
        (ask(resource={"memory": -1}), "resource.memory"),
        (ask(tags={"queue": "a..b"}), "tags.queue"),
        (ask(placement={"strategy": "x"}, tags={}), "placement.strategy"),
    ],
)
def test_one_fault_refuses_the_whole_batch_by_its_path(refusing: Api, operation: Json, field: str) -> None:
    good = ask(tags={"node": "h0"})
    problem = refusing.post("/batch", {"operations": [good, operation]}, status=422)
    assert list(problem["errors"]) == [f"operations.1.{field}"]


@pytest.mark.parametrize("operations", [[], [{"op": "release", "id": new_id()}] * 1001, {}, ["apply"]])
def test_what_is_no_list_of_1_to_1000_operations_is_refused(refusing: Api, operations: object) -> None:
    problem = refusing.post("/batch", {"operations": operations}, status=422)
    assert next(iter(problem["errors"])).startswith("operations")
