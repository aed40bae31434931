"""Limits over HTTP."""

import pytest

from tests.facades.conftest import GIB, Api


def test_a_limit_is_set_changed_read_and_taken_away(api: Api) -> None:
    body = {"tags": {"user": "alice"}, "total": {"memory": "4Gi"}, "protected": {"memory": "1Gi"}}
    made = api.put("/limits", body, status=201)
    assert made["total"] == {"memory": 4 * GIB}
    assert made["protected"] == {"memory": GIB}
    changed = api.put("/limits", body | {"total": {"memory": "8Gi"}}, status=200)
    assert changed["id"] == made["id"]
    assert api.get(f"/limits/{made['id']}") == changed
    assert api.get("/limits")["items"] == [changed]
    api.delete(f"/limits/{made['id']}", status=204)
    assert api.delete(f"/limits/{made['id']}", status=404)["code"] == "unknown_limit"
    assert api.get("/limits")["items"] == []


def test_a_star_gives_everybody_their_own_and_a_name_wins_over_it(api: Api) -> None:
    api.node()
    api.put("/limits", {"tags": {"user": "*"}, "total": {"memory": GIB}}, status=201)
    api.put("/limits", {"tags": {"user": "alice"}, "total": {"memory": 2 * GIB}}, status=201)
    api.apply(resource={"memory": 2 * GIB})
    api.apply(409, tags={"user": "bob", "node": "h1"}, resource={"memory": 2 * GIB})
    api.apply(tags={"user": "bob", "node": "h1"})


def test_a_new_combination_of_keys_counts_in_what_runs(api: Api) -> None:
    api.node()
    api.apply(tags={"user": "alice", "team": "red", "node": "h1"})
    api.put("/limits", {"tags": {"team": "red"}, "total": {"memory": GIB}}, status=201)
    problem = api.apply(409, tags={"team": "red", "node": "h1"})
    assert problem["shortfalls"][0]["label"] == {"team": "red"}
    assert problem["shortfalls"][0]["locked"] == GIB
    api.audit()


def test_an_explicit_zero_forbids_and_what_is_not_named_is_unlimited(api: Api) -> None:
    api.node()
    api.put("/limits", {"tags": {"user": "alice"}, "total": {"vcore": 0}}, status=201)
    api.apply(409, resource={"vcore": 1})
    api.apply(resource={"memory": GIB})


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        ({"tags": {"node": "h0"}, "total": {"memory": 1}}, "invalid_limit", "tags"),
        ({"tags": {}, "total": {"memory": 1}}, "invalid_limit", "tags"),
        ({"tags": {"user": "a*"}, "total": {"memory": 1}}, "invalid_limit", "tags.user"),
        (
            {"tags": {"user": "a"}, "total": {"memory": 1}, "protected": {"memory": 2}},
            "invalid_limit",
            "protected.memory",
        ),
        ({"tags": {"user": "a"}}, "invalid_fields", "total"),
        ({"tags": {"user": "a"}, "total": {"memory": -1}}, "invalid_fields", "total.memory"),
        ({"tags": {"user": 1}, "total": {"memory": 1}}, "invalid_fields", "tags.user"),
        ({"tags": {"user": "a"}, "total": {}, "max": 1}, "invalid_fields", "max"),
    ],
)
def test_a_limit_that_cannot_be_is_refused_by_the_field(
    refusing: Api, body: dict[str, object], code: str, field: str
) -> None:
    problem = refusing.put("/limits", body, status=422)
    assert problem["code"] == code
    assert list(problem["errors"]) == [field]


@pytest.mark.parametrize("name", ["7", "x", "-1", "99999999999999999999"])
def test_a_limit_that_nobody_set_is_404(refusing: Api, name: str) -> None:
    assert refusing.get(f"/limits/{name}", 404)["code"] == "unknown_limit"
    assert refusing.delete(f"/limits/{name}", status=404)["code"] == "unknown_limit"


def test_the_tags_of_a_limit_are_converted_as_those_of_an_application(api: Api) -> None:
    api.node()
    made = api.put("/limits", {"tags": {"userCreator": "alice-IDE"}, "total": {"memory": GIB}}, status=201)
    assert made["tags"] == {"user": "alice", "creator": "IDE"}
    tags = {"userCreator": "alice-IDE", "node": "h1"}
    api.apply(tags=tags)
    api.apply(409, tags=tags)
