"""Finding applications: one, a list page by page, a place in a queue, who holds what of a label."""

import json
from base64 import urlsafe_b64encode
from typing import Any

import pytest
from sqlalchemy import Connection, select

from rm_service.domain import operations as op
from rm_service.domain.accounts import Label
from rm_service.domain.application import LIVE, State
from rm_service.domain.selectors import Selector, parse_selector
from rm_service.ledger import tables
from rm_service.ledger.ledger import Ledger
from rm_service.ledger.queries import paging
from rm_service.ledger.queries.applications import (
    Order,
    list_applications,
    queue_position,
    read_application,
)
from rm_service.ledger.queries.engines import list_engines
from rm_service.ledger.queries.holders import holder_ids, largest_holders
from rm_service.ledger.queries.labels import read_label
from rm_service.ledger.queries.limits import list_limits
from rm_service.ledger.queries.paging import CursorError, Page
from rm_service.ledger.queries.tag_index import live_with, named
from tests.ledger.asking import application, apply, done, limit, node, page_through, reading

ALICE = {"user": "alice", "creator": "IDE"}


def test_an_application_is_read_as_it_was_decided(ledger: Ledger) -> None:
    parked = apply(ledger, {"user": "bob"}, {"memory": 1}, priority=3, lock_seconds=60)
    used = application(ledger, op.Use(parked.id, {"memory": 2}))

    assert reading(ledger, read_application, used.id) == used
    assert reading(ledger, read_application, used.id.upper()) == used


@pytest.mark.parametrize("unknown", ["", "no-uuid", "00000000-0000-4000-8000-000000000000"])
def test_an_unknown_application_is_none(ledger: Ledger, unknown: str) -> None:
    assert reading(ledger, read_application, unknown) is None


def test_the_newest_live_ones_come_first_then_those_that_ended_last(ledger: Ledger) -> None:
    ids = [apply(ledger, ALICE, {"memory": 1}).id for _ in range(6)]
    for ended in (ids[4], ids[1]):
        done(ledger, op.Release(ended))
    expected = [ids[5], ids[3], ids[2], ids[0], ids[1], ids[4]]

    for size in range(1, 8):
        found = page_through(
            lambda cursor, size=size: reading(ledger, list_applications, limit=size, cursor=cursor)  # type: ignore[misc]
        )
        assert [each.id for each in found] == expected


def test_in_the_order_of_ids_live_and_finished_ones_are_mixed(ledger: Ledger) -> None:
    ids = [apply(ledger, ALICE, {"memory": 1}).id for _ in range(5)]
    done(ledger, op.Release(ids[2]), op.Release(ids[0]))

    for size in (1, 2, 5, 6):
        found = page_through(
            lambda cursor, size=size: reading(  # type: ignore[misc]
                ledger, list_applications, order=Order.ID, limit=size, cursor=cursor
            )
        )
        assert [each.id for each in found] == sorted(ids)


def test_applications_granted_in_one_batch_are_listed_once_each(ledger: Ledger) -> None:
    operations = [op.Apply(str_id(number), ALICE, {"memory": 1}) for number in range(20)]
    done(ledger, *operations)
    done(ledger, *[op.Release(operation.id) for operation in operations[:12]])

    found = page_through(lambda cursor: reading(ledger, list_applications, limit=7, cursor=cursor))

    assert [each.id for each in found] == [
        *[str_id(number) for number in range(19, 11, -1)],
        *[str_id(number) for number in range(11, -1, -1)],
    ]


def str_id(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012}"


SELECTORS = [
    "",
    "user=alice",
    "user in (alice,bob),job=1",
    "user!=alice",
    "job",
    "!job",
    "job>=2",
    "user=nobody",
    'x.y/z="a b"',
    "queue=root.a",
]


@pytest.mark.parametrize("order", list(Order))
@pytest.mark.parametrize("states", [None, LIVE, [State.RELEASED], [State.USED, State.RELEASED], []])
def test_a_list_holds_what_its_states_and_selector_choose(
    many: Ledger, order: Order, states: list[State] | None
) -> None:
    everything = reading(many, list_applications, limit=100).items
    for selector in map(parse_selector, SELECTORS):

        def read(cursor: str | None, selector: Selector = selector) -> Page[Any]:
            page: Page[Any] = reading(
                many, list_applications, states=states, selector=selector, order=order, limit=4, cursor=cursor
            )
            return page

        found = [each.id for each in page_through(read)]
        expected = {
            each.id
            for each in everything
            if selector.matches(each.tags) and (states is None or each.state in states)
        }
        assert set(found) == expected
        assert len(found) == len(expected)


@pytest.fixture
def many(ledger: Ledger) -> Ledger:
    """Applications with many sorts of tags, in several states."""
    number = 0
    for user in ("alice", "bob", "carol"):
        for more in ({}, {"job": "1"}, {"job": "2", "queue": "root.a"}, {"x.y/z": "a b"}):
            number += 1
            made = apply(ledger, {"user": user, **more}, {"memory": number})
            if number % 3 == 0:
                done(ledger, op.Use(made.id))
            if number % 4 == 1:
                done(ledger, op.Release(made.id))
    return ledger


def test_a_rare_match_among_many_ends_a_page_short_but_not_the_list(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paging, "MAX_SCANNED", 10)
    monkeypatch.setattr(paging, "_CHUNK", 5)
    ids = [apply(ledger, {"user": "u", "rank": str(number)}, {}).id for number in range(30)]

    def read(cursor: str | None) -> Page[Any]:
        page: Page[Any] = reading(
            ledger, list_applications, selector=parse_selector("rank<2"), limit=4, cursor=cursor
        )
        return page

    assert read(None).items == []
    assert read(None).next_cursor is not None
    assert [each.id for each in page_through(read)] == [ids[1], ids[0]]


@pytest.mark.parametrize("cursor", ["", "x", "å", "WzEsIm5vZGVzIiwiaDEiLDFd", "A" * 5000, "bnVsbA", "e30"])
def test_a_cursor_of_elsewhere_is_refused(ledger: Ledger, cursor: str) -> None:
    for question in (list_applications, list_engines, list_limits):
        with pytest.raises(CursorError):
            reading(ledger, question, cursor=cursor)


@pytest.mark.parametrize(
    "parts",
    [
        [2, "applications.live", 1, str_id(1)],
        [1, "applications.live", "1", str_id(1)],
        [1, "applications.live", 1, "no-uuid"],
        [1, "applications.live", 1],
        [1, "applications.live", 2**63, str_id(1)],
        [1, "applications.live", True, str_id(1)],
        [1, "nodes", "h1", 1],
    ],
)
def test_a_cursor_with_a_changed_content_is_refused(ledger: Ledger, parts: list[Any]) -> None:
    cursor = urlsafe_b64encode(json.dumps(parts).encode()).decode()

    with pytest.raises(CursorError):
        reading(ledger, list_applications, cursor=cursor)


def test_the_place_in_a_queue_counts_those_before_on_the_worst_label(ledger: Ledger) -> None:
    limit(ledger, {"user": "*"}, {"memory": 10})
    node(ledger, "h1", {"memory": 10})
    holder = apply(ledger, {"user": "alice", "node": "h1"}, {"memory": 10})
    first = apply(ledger, {"user": "alice"}, {"memory": 5}, wait_seconds=600)
    second = apply(ledger, {"user": "bob", "node": "h1"}, {"memory": 5}, wait_seconds=600)
    third = apply(ledger, {"user": "alice", "node": "h1"}, {"memory": 5}, wait_seconds=600)
    urgent = apply(ledger, {"user": "alice"}, {"memory": 5}, wait_seconds=600, priority=1)
    fourth = apply(ledger, {"user": "alice", "node": "h1"}, {"memory": 5}, wait_seconds=600)

    waiting = [first, second, third, urgent, fourth]

    assert [reading(ledger, queue_position, each) for each in waiting] == [2, 1, 3, 1, 4]
    assert reading(ledger, queue_position, holder) is None


# Who holds what of a label


def label(connection: Connection, ledger: Ledger, **tags: str) -> Label:
    account = read_label(connection, ledger.book(), tags)
    assert account is not None
    return account.label


def test_the_largest_holders_of_a_label_are_found_by_dimension(ledger: Ledger) -> None:
    node(ledger, "h1", {"memory": 100, "vcore": 100})
    here = {"user": "alice", "node": "h1"}
    small = apply(ledger, here, {"memory": 1, "vcore": 50})
    large = apply(ledger, here, {"memory": 30})
    used = apply(ledger, here, {"memory": 40})
    done(ledger, op.Use(used.id, {"memory": 20}))
    done(ledger, op.Release(apply(ledger, here, {"memory": 9}).id))
    apply(ledger, {"user": "alice"}, {"memory": 99})
    apply(ledger, here, {"memory": 90}, wait_seconds=600)

    with ledger.readers.connect() as connection:
        rules = ledger.book().rules
        by_memory = largest_holders(connection, rules, label(connection, ledger, node="h1"), "memory", 2)
        by_vcore = largest_holders(connection, rules, label(connection, ledger, node="h1"), "vcore")

    assert [(each.application.id, each.amount) for each in by_memory] == [(large.id, 30), (used.id, 20)]
    assert [(each.application.id, each.amount) for each in by_vcore] == [(small.id, 50)]


def test_holders_of_a_queue_are_those_below_it_too(ledger: Ledger) -> None:
    ids = [
        apply(ledger, {"user": "alice", "queue": queue}, {"memory": 1}).id
        for queue in ("root.a", "root.a.b", "root.ab", "root")
    ]

    with ledger.readers.connect() as connection:
        rules = ledger.book().rules
        found = holder_ids(connection, rules, label(connection, ledger, queue="root.a"), 10)
        first = holder_ids(connection, rules, label(connection, ledger, queue="root.a"), 1)
        rest = holder_ids(connection, rules, label(connection, ledger, queue="root.a"), 10, after=first[0])

    assert found == sorted(ids[:2])
    assert first + rest == found


def test_live_applications_are_found_by_the_index_on_their_tags(ledger: Ledger) -> None:
    if ledger.readers.dialect.name != "postgresql":
        pytest.skip("SQLite's table of tags is asked by name")
    done(ledger, *[op.Apply(str_id(number), {"job": str(number)}, {}) for number in range(2000)])
    terms = named(parse_selector("job in (1,2),user=alice"))
    with ledger.readers.connect() as connection:
        query = select(tables.application.c.id).where(
            tables.application.c.finished_at.is_(None), *live_with(connection, terms)
        )
        compiled = query.compile(connection)
        values = {name: json.dumps(value) for name, value in compiled.construct_params().items()}
        connection.exec_driver_sql("ANALYZE application")
        plan = connection.exec_driver_sql(f"EXPLAIN {compiled}", values).scalars()

        assert "ix_application_live_tags" in "\n".join(plan)
