"""Devices through the real ledger: on both databases, across restarts, replicas, rules and migrations."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import select

from rm_service.domain import operations as op
from rm_service.domain.application import State
from rm_service.domain.outcomes import Code, Done, Refused
from rm_service.domain.selectors import parse_selector
from rm_service.ledger import tables
from rm_service.ledger.audit import audit
from rm_service.ledger.ids import new_id
from rm_service.ledger.ledger import Ledger
from rm_service.ledger.queries.usage import usage, usage_of_applications
from rm_service.services.resource_classes import ResourceClasses
from tests.domain.device_ledger import cards, ports, units
from tests.ledger.asking import done, limit, reading
from tests.ledger.device_asking import (
    SPECS,
    WHOLE,
    check,
    create_classes,
    devices_of,
    for_classes,
    given,
    read,
    refused,
    standing,
    states,
    with_devices,
)
from tests.ledger.sweeping import opened
from tests.ledger.telling import settle

on_postgresql = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)


@pytest.fixture
def cluster(ledger: Ledger) -> Ledger:
    """Four classes; n1 has four small cards, n2 two big ones and a port."""
    create_classes(ledger)
    with_devices(ledger, "n1", cards("g", 4))
    with_devices(ledger, "n2", cards("g", 2, "40G"), ports("p"))
    return ledger


def lose(ledger: Ledger, instance: str, *ids: str) -> None:
    """As the sweeper does it: the node first, then what it held."""
    done(ledger, op.LoseNode(instance, "silent"), *[op.Lose(each, "silent") for each in ids])


def test_a_grant_by_class_is_kept_used_and_given_back(cluster: Ledger) -> None:
    application = given(cluster, {"any": 2 * WHOLE, "fast": WHOLE})
    assert application.tags["node"] == "n2"
    assert read(cluster, application.id) == application
    assert (standing(cluster, "any"), standing(cluster, "big")) == (
        (6 * WHOLE, 2 * WHOLE),
        (2 * WHOLE, 2 * WHOLE),
    )
    check(cluster)
    done(cluster, op.Use(application.id))
    assert devices_of(cluster, "n2")["g"].taken == {0: WHOLE, 1: WHOLE}
    check(cluster)
    done(cluster, op.Release(application.id))
    assert devices_of(cluster, "n2")["g"].taken == {}
    assert standing(cluster, "any") == (6 * WHOLE, 0)
    check(cluster)


def test_who_holds_which_unit_is_a_row_for_as_long_as_it_is_held(cluster: Ledger) -> None:
    first, second = given(cluster, {"any": 500}), given(cluster, {"any": 300, "big": WHOLE})
    done(cluster, op.Use(second.id))
    assert claims(cluster) == {
        (first.id, "n1", "g", 0, "any", 500),
        (second.id, "n2", "g", 0, "any", 300),
        (second.id, "n2", "g", 1, "big", WHOLE),
    }
    done(cluster, op.Release(first.id))
    lose(cluster, "n2", second.id)
    assert claims(cluster) == set()


def claims(ledger: Ledger) -> set[tuple[object, ...]]:
    claim, node = tables.application_device.c, tables.node.c
    columns = (
        claim.application_id,
        node.instance,
        claim.device,
        claim.unit,
        claim.resource_class,
        claim.milli,
    )
    query = select(*columns).join(tables.node, node.label_id == claim.label_id)
    with ledger.readers.connect() as connection:
        return {(str(row[0]), *row[1:]) for row in connection.execute(query)}


def test_who_waits_is_woken_by_a_release_a_node_and_a_class(cluster: Ledger) -> None:
    holder = given(cluster, {"big": 2 * WHOLE})
    waiters = [given(cluster, {"big": WHOLE}, wait_seconds=600).id for _ in range(4)]
    done(cluster, op.Release(holder.id))
    settle(cluster)
    assert states(cluster, waiters) == [State.LOCKED, State.LOCKED, State.WAITING, State.WAITING]
    with_devices(cluster, "n3", cards("g", memory="80G"))
    settle(cluster)
    assert states(cluster, waiters)[2:] == [State.LOCKED, State.WAITING]
    ResourceClasses(cluster).remove("big")
    done(cluster, op.Release(waiters[0]))
    settle(cluster)
    assert states(cluster, waiters)[3] is State.WAITING
    create_classes(cluster, "big")
    settle(cluster)
    assert states(cluster, waiters)[3] is State.LOCKED
    check(cluster)


def test_units_asked_for_in_one_batch_are_given_once_each(cluster: Ledger) -> None:
    outcomes = cluster.submit([for_classes({"any": 400}) for _ in range(14)])
    granted = [each for each in outcomes if isinstance(each, Done)]
    assert len(granted) == 12, "two tenths of each of six cards are left"
    refusals = {each.code for each in outcomes if isinstance(each, Refused)}
    assert refusals == {Code.INSUFFICIENT_RESOURCES}
    check(cluster)


def test_a_group_that_is_refused_leaves_no_trace(cluster: Ledger) -> None:
    with_devices(cluster, "n3", ports("p"))
    before = devices_of(cluster, "n1"), standing(cluster, "any")
    asked = [for_classes({"any": 3 * WHOLE}), for_classes({"small": 2 * WHOLE})]
    assert not any(isinstance(each, Done) for each in cluster.submit(asked, atomic=True))
    changed = op.RegisterNode("n3", "Special", {}, devices=(cards("new", 7, "23G"),))
    assert not any(
        isinstance(each, Done) for each in cluster.submit([changed, op.Release(new_id())], atomic=True)
    )
    assert (devices_of(cluster, "n1"), standing(cluster, "any")) == before
    assert list(devices_of(cluster, "n3")) == ["p"]
    check(cluster)
    with_devices(cluster, "n3", cards("new", 7, "23G"))
    assert standing(cluster, "small") == (11 * WHOLE, 0)
    check(cluster)


def test_a_dry_run_gives_nothing_away(cluster: Ledger) -> None:
    assert isinstance(cluster.explain(for_classes({"any": 4 * WHOLE})), Done)
    assert standing(cluster, "any") == (6 * WHOLE, 0)
    assert given(cluster, {"any": 4 * WHOLE}).tags["node"] == "n1"
    check(cluster)


def test_another_ledger_on_the_same_database_sees_the_same_units(cluster: Ledger, database_url: str) -> None:
    first = given(cluster, {"any": 1500 - 500, "fast": 400})
    part = given(cluster, {"small": 300})
    cluster.close()
    with opened(database_url) as again:
        check(again)
        assert read(again, first.id).devices == first.devices
        assert units(given(again, {"small": 700})) == [("small", "g", ((0, 700),))]
        assert isinstance(refused(again, {"fast": 601}), Refused)
        with_devices(again, "n1", cards("g", 4, "40G"))
        assert read(again, part.id).devices[0].signature != part.devices[0].signature
        check(again)
        done(again, op.Release(first.id), op.Release(part.id))
        check(again)


@on_postgresql
def test_two_ledgers_that_grant_classes_at_the_same_time_give_no_unit_twice(
    cluster: Ledger, database_url: str
) -> None:
    asked: list[dict[str, int]] = [
        {"any": 500},
        {"small": WHOLE},
        {"any": WHOLE, "big": 400},
        {"fast": 250},
        {"big": 600},
    ]
    with opened(database_url) as other:
        both = (cluster, other)

        def live(number: int) -> str:
            outcome = both[number % 2].submit([for_classes(asked[number % len(asked)])])[0]
            if isinstance(outcome, Refused):
                return outcome.code
            assert outcome.application is not None
            done(both[(number + 1) % 2], op.Use(outcome.application.id))
            if number % 3:
                done(both[number // 2 % 2], op.Release(outcome.application.id))
            return "granted"

        with ThreadPoolExecutor(16) as pool:
            ends = list(pool.map(live, range(160)))
        assert set(ends) <= {"granted", Code.INSUFFICIENT_RESOURCES}
        assert ends.count("granted") > 20
        for instance in ("n1", "n2"):
            for device in devices_of(cluster, instance).values():
                assert all(milli <= WHOLE for milli in device.taken.values())
        check(cluster)
        check(other)


@on_postgresql
def test_what_one_ledger_learns_of_nodes_and_classes_the_other_grants_by(
    cluster: Ledger, database_url: str
) -> None:
    with opened(database_url) as other:
        assert given(other, {"any": WHOLE}).tags["node"] == "n1"
        with_devices(cluster, "n0", cards("new", 1, "99G"))
        assert ResourceClasses(cluster).remove("big") is not None
        assert isinstance(refused(other, {"big": WHOLE}), Refused)
        create_classes(cluster, "big")
        assert given(other, {"big": WHOLE}).tags["node"] == "n0"
        check(other)


def test_what_was_lost_is_booked_again_over_who_has_its_units_meanwhile(cluster: Ledger) -> None:
    given_up = given(cluster, {"small": 4 * WHOLE})
    lose(cluster, "n1", given_up.id)
    check(cluster)
    with_devices(cluster, "n1", cards("g", 4))
    other = given(cluster, {"small": 2 * WHOLE})
    with_devices(cluster, "n1", cards("g", 4), applications=(given_up.id,))
    assert read(cluster, given_up.id).over_limit
    assert standing(cluster, "small") == (4 * WHOLE, 6 * WHOLE)
    assert devices_of(cluster, "n1")["g"].taken == {0: 2 * WHOLE, 1: 2 * WHOLE, 2: WHOLE, 3: WHOLE}
    check(cluster)
    done(cluster, op.Release(given_up.id), op.Release(other.id))
    assert devices_of(cluster, "n1")["g"].taken == {}
    check(cluster)


def test_what_was_lost_comes_back_to_a_node_that_has_none_of_its_devices(cluster: Ledger) -> None:
    given_up = given(cluster, {"small": WHOLE})
    lose(cluster, "n1", given_up.id)
    with_devices(cluster, "n1", applications=(given_up.id,))
    assert read(cluster, given_up.id).over_limit
    (over,) = audit(cluster.readers).over_limit
    assert (over.label, list(over.excess.values())) == ({"node": "n1"}, [WHOLE])
    check(cluster)
    done(cluster, op.Release(given_up.id))
    assert devices_of(cluster, "n1") == {}
    assert audit(cluster.readers).over_limit == []
    check(cluster)


def test_a_quota_on_a_signature_refuses(cluster: Ledger) -> None:
    (dimension,) = given(cluster, {"small": WHOLE}).device_amounts
    limit(cluster, {"user": "alice"}, {dimension: 2 * WHOLE})
    given(cluster, {"small": WHOLE})
    outcome = refused(cluster, {"small": 1})
    assert isinstance(outcome, Refused)
    assert [(each.label, each.dimension, each.left) for each in outcome.shortfalls] == [
        ({"user": "alice"}, dimension, 0)
    ]
    assert given(cluster, {"any": WHOLE}).tags["node"] == "n2", "a card of another signature is none of it"
    assert given(cluster, {"small": WHOLE}, tags={"user": "bob"}).state is State.LOCKED
    check(cluster)


def test_other_rules_keep_the_labels_and_sums_of_devices(
    cluster: Ledger, default_rules: dict[str, Any]
) -> None:
    first, second = given(cluster, {"any": 1000, "big": 400}), given(cluster, {"small": 300})
    done(cluster, op.Use(second.id))
    waiting = given(cluster, {"big": 2 * WHOLE}, wait_seconds=600)
    kept = [rule for rule in default_rules["label_rules"] if rule["name"] not in {"user", "creator"}]
    rules = [*kept, {"name": "job", "keys": ["job"], "kind": "rollup"}]
    before = {name: standing(cluster, name) for name in SPECS}
    for document in (rules, default_rules["label_rules"]):
        changed = op.ChangeRules({"conversions": default_rules["conversions"], "label_rules": document})
        assert isinstance(cluster.submit_whole(changed), Done)
        assert {name: standing(cluster, name) for name in SPECS} == before
        check(cluster)
    cluster.submit_whole(op.SetLimit({"job": "*"}, {"memory": 10}))
    check(cluster)
    done(cluster, op.Release(first.id), op.Release(second.id))
    settle(cluster)
    assert read(cluster, waiting.id).state is State.LOCKED
    check(cluster)


@pytest.mark.parametrize("node_rule", [[], [{"name": "node", "keys": ["node"], "kind": "quota"}]])
def test_rules_under_which_who_holds_devices_loses_its_node_are_refused_until_it_has_ended(
    cluster: Ledger, default_rules: dict[str, Any], node_rule: list[dict[str, Any]]
) -> None:
    application = given(cluster, {"small": WHOLE})
    kept = [rule for rule in default_rules["label_rules"] if rule["name"] != "node"]
    changed = op.ChangeRules({**default_rules, "label_rules": [*kept, *node_rule]})
    outcome = cluster.submit_whole(changed)
    assert isinstance(outcome, Refused)
    assert (outcome.code, outcome.field) == (Code.INVALID_RULES, "label_rules")
    assert application.id in outcome.detail
    assert "node=n1" in outcome.detail
    check(cluster)
    done(cluster, op.Release(application.id))
    assert devices_of(cluster, "n1")["g"].taken == {}
    assert isinstance(cluster.submit_whole(changed), Done)
    back = op.ChangeRules({**default_rules})
    assert isinstance(cluster.submit_whole(back), Done)
    assert given(cluster, {"small": 4 * WHOLE}).state is State.LOCKED
    check(cluster)


def test_who_comes_back_under_rules_that_charge_no_node_holds_no_units_and_can_be_released(
    cluster: Ledger, default_rules: dict[str, Any]
) -> None:
    application = given(cluster, {"small": WHOLE})
    done(cluster, op.LoseNode("n1", "silent"), op.Lose(application.id, "silent"))
    kept = [rule for rule in default_rules["label_rules"] if rule["name"] != "node"]
    for rules in ({**default_rules, "label_rules": kept}, default_rules):
        assert isinstance(cluster.submit_whole(op.ChangeRules(rules)), Done)
        done(cluster, op.RegisterEngine("engine-1", application.id))
        assert read(cluster, application.id).devices == ()
        check(cluster)
    with_devices(cluster, "n1", cards("g", 4))
    done(cluster, op.Release(application.id))
    assert devices_of(cluster, "n1")["g"].taken == {}
    check(cluster)


def test_usage_counts_devices_alike_by_roll_up_by_applications_and_in_the_past(cluster: Ledger) -> None:
    first = given(cluster, {"small": 300}, memory=5)
    given(cluster, {"small": 2 * WHOLE}, tags={"user": "bob"})
    (dimension,) = first.device_amounts
    done(cluster, op.Use(first.id, {"memory": 3}))
    now = head_time(cluster)
    answers = [
        held(cluster, lambda connection: usage(connection, cluster.book(), ["user"])),
        held(cluster, lambda connection: usage_of_applications(connection, cluster.book(), ["user"])),
        held(cluster, lambda connection: usage(connection, cluster.book(), ["user"], at=now)),
    ]
    expected = [
        ({"user": "alice"}, {}, {"memory": 3, dimension: 300}),
        ({"user": "bob"}, {"memory": 1, dimension: 2 * WHOLE}, {}),
    ]
    assert answers == [expected] * 3
    done(cluster, op.Use(first.id, {"memory": 2}), op.Release(first.id))
    assert held(cluster, lambda connection: usage(connection, cluster.book(), ["user"])) == expected[1:]
    where = parse_selector("user=alice")
    past = held(cluster, lambda connection: usage(connection, cluster.book(), ["user"], where=where, at=now))
    assert past == expected[:1]


def head_time(ledger: Ledger) -> int:
    with ledger.readers.connect() as connection:
        time: int = connection.execute(select(tables.ledger_head.c.time)).scalar_one()
        return time


def held(ledger: Ledger, question: Callable[[Any], Any]) -> list[tuple[dict[str, str], Any, Any]]:
    rows = reading(ledger, question).rows
    return [(dict(row.tags), dict(row.locked), dict(row.used)) for row in rows if row.applications]
