"""Usage, labels, events and the audit over HTTP."""

from datetime import UTC, datetime
from urllib.parse import quote

import pytest

from tests.facades.conftest import GIB, Api


def test_usage_by_one_key_comes_from_the_roll_up_with_its_limit(api: Api) -> None:
    api.node()
    api.put("/limits", {"tags": {"user": "alice"}, "total": {"memory": "4Gi"}}, status=201)
    api.apply()
    api.post(f"/applications/{api.apply()['id']}/use", status=200)
    usage = api.get("/usage?by=user")
    assert (usage["by"], usage["source"]) == (["user"], "rollup")
    assert usage["rows"] == [
        {
            "tags": {"user": "alice"},
            "locked": {"memory": GIB},
            "used": {"memory": GIB},
            "total": {"memory": 4 * GIB},
            "protected": {},
            "left": {"memory": 2 * GIB},
            "applications": 2,
        }
    ]


def test_usage_by_any_tag_sums_the_applications_that_the_selector_chooses(api: Api) -> None:
    api.node()
    for job, kind in (("j1", "spark-3.3"), ("j1", "hive"), ("j2", "spark-3.3")):
        api.apply(tags={"user": "alice", "job": job, "engineType": kind, "node": "h1"})
    usage = api.get(f"/usage?by=job,user&where={quote('engineType=spark-3.3')}")
    assert usage["source"] == "applications"
    assert [(row["tags"], row["locked"]) for row in usage["rows"]] == [
        ({"job": "j1", "user": "alice"}, {"memory": GIB}),
        ({"job": "j2", "user": "alice"}, {"memory": GIB}),
    ]


def test_usage_at_a_past_moment(api: Api) -> None:
    api.node()
    made = api.apply()
    moment = made["transitions"][0]["time"]
    api.post(f"/applications/{made['id']}/release", status=200)
    assert api.get("/usage?by=user")["rows"] == []
    past = api.get(f"/usage?by=user&at={quote(moment)}")
    assert past["source"] == "intervals"
    assert past["rows"][0]["locked"] == {"memory": GIB}
    assert api.get("/usage?by=user&at=1999-01-01T00:00:00%2B01:00")["rows"] == []


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("", "by"),
        ("by=", "by"),
        ("by=user,user", "by"),
        ("by=a%20b", "by"),
        ("by=a,b,c,d,e,f,g,h,i", "by"),
        ("by=user&where=(", "where"),
        ("by=user&at=yesterday", "at"),
        ("by=user&at=2026-11-20T08:00:00", "at"),
        ("by=user&at=0000-13-01T00:00:00Z", "at"),
        ("by=user&by=node", "by"),
        ("by=user&per=day", "per"),
    ],
)
def test_a_question_that_cannot_be_is_refused_by_its_parameter(refusing: Api, query: str, field: str) -> None:
    assert list(refusing.get(f"/usage?{query}", 422)["errors"]) == [field]


def test_labels_are_listed_with_their_balances(api: Api) -> None:
    api.node()
    api.apply()
    (label,) = api.get("/labels?selector=user%3Dalice")["items"]
    assert (label["tags"], label["kind"], label["locked"], label["total"]) == (
        {"user": "alice"},
        "quota",
        {"memory": GIB},
        None,
    )
    (node,) = api.get("/labels?selector=node")["items"]
    assert (node["kind"], node["total"]["memory"]) == ("capacity", 8 * GIB)
    first = api.get("/labels?limit=1")
    assert api.get(f"/labels?limit=1&cursor={first['next_cursor']}")["items"] != first["items"]


def test_a_queue_of_those_who_want_a_node_is_no_label(api: Api) -> None:
    api.apply(202, tags={"user": "alice"}, placement={"selector": "gpu=T4"}, wait_seconds=60)
    assert all("placement" not in str(each["tags"]) for each in api.get("/labels")["items"])


def test_events_tell_what_happened_in_order_and_go_on_from_a_number(api: Api) -> None:
    api.node()
    made = api.apply()
    api.post(f"/applications/{made['id']}/use", {"resource": {"memory": "512Mi"}}, status=200)
    api.post(f"/applications/{made['id']}/release", status=200)
    events = [event for event in api.get("/events")["items"] if event["subject"] == made["id"]]
    assert [event["kind"] for event in events] == [
        "application.locked",
        "application.used",
        "application.released",
    ]
    used = events[1]
    assert (used["resource"], used["locked"], used["used"]) == (
        {"memory": GIB // 2},
        {"memory": -GIB},
        {"memory": GIB // 2},
    )
    assert {"user": "alice"} in used["labels"]
    assert datetime.fromisoformat(used["time"]).tzinfo == UTC
    assert api.get(f"/events?after={used['seq']}")["items"] == [events[2]]
    page = api.get("/events?limit=1")
    following = api.get(f"/events?limit=1&cursor={page['next_cursor']}")
    assert following["items"][0]["seq"] == page["items"][0]["seq"] + 1


def test_the_audit_says_that_the_books_balance(api: Api) -> None:
    api.node()
    api.apply()
    audit = api.get("/audit")
    assert (audit["consistent"], audit["applications_checked"], audit["differences"]) == (True, 1, [])
    assert audit["labels_checked"] >= 2


@pytest.mark.parametrize("path", ["/nodes", "/limits", "/applications", "/engines", "/labels", "/events"])
@pytest.mark.parametrize("cursor", ["x", "%00", "W10", "WzEsImxhYmVscyIsInkiXQ"])
def test_a_dead_cursor_is_refused_by_name(refusing: Api, path: str, cursor: str) -> None:
    assert list(refusing.get(f"{path}?cursor={cursor}", 422)["errors"]) == ["cursor"]


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/nodes?limit=0", "limit"),
        ("/nodes?limit=1001", "limit"),
        ("/nodes?limit=ten", "limit"),
        ("/nodes?selector=%3D", "selector"),
        ("/applications?state=gone", "state"),
        ("/applications?tag=%3D", "tag"),
        ("/events?after=-1", "after"),
        ("/audit?fast=1", "fast"),
        ("/nodes/h0?verbose=1", "verbose"),
    ],
)
def test_a_parameter_that_cannot_be_is_refused_by_name(refusing: Api, path: str, field: str) -> None:
    assert list(refusing.get(path, 422)["errors"]) == [field]


def test_usage_of_a_moment_to_come_is_refused(api: Api) -> None:
    assert list(api.get("/usage?by=user&at=2999-01-01T00:00:00Z", status=422)["errors"]) == ["at"]


def test_a_page_of_events_can_be_chosen_by_kind_and_by_tags(api: Api) -> None:
    api.node()
    api.apply()
    kinds = [event["kind"] for event in api.get("/events?kind=application.")["items"]]
    assert kinds == ["application.locked"]
    assert len(api.get(f"/events?selector={quote('user=alice')}")["items"]) == 1
    assert api.get(f"/events?selector={quote('user=bob')}")["items"] == []
