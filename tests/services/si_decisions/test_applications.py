"""An application: to whom it is charged, what its queue allows, and how long it may run."""

from collections.abc import Mapping

import pytest

from rm_service.domain.amounts import Amounts
from rm_service.domain.application import SECOND, State
from rm_service.domain.selectors import parse_selector
from rm_service.ledger.ledger import Ledger
from rm_service.ledger.queries.usage import usage
from rm_service.services.si.requests import RemovedApplication
from tests.ledger.asking import application, asking, node
from tests.ledger.telling import settle
from tests.services.si_decisions.talk import CONFIG, NARROW, Talk, app, ask, granted, kinds, reasons


def test_a_users_total_spans_the_work_of_every_door(talk: Talk, ledger: Ledger) -> None:
    talk.register()
    talk.add_node()
    talk.say(applications=app(), asks=ask(memory=3))
    node(ledger, "host1:9101", {"memory": 10})
    application(ledger, asking({"user": "alice", "node": "host1:9101"}, {"memory": 4}))
    with ledger.readers.connect() as connection:
        [row] = usage(connection, ledger.book(), ("user",), where=parse_selector("user=alice")).rows
    assert (row.locked, row.used) == ({"memory": 4}, {"memory": 3, "apps": 1})


def test_an_application_is_one_of_its_queue_and_its_asks_are_charged_in_their_own_dimensions(
    talk: Talk,
) -> None:
    talk.register()
    talk.add_node()
    talk.say(applications=app(), asks=[ask("a", 2), ask("b", 3)])
    with talk.ledger.readers.connect() as connection:
        rows = usage(connection, talk.ledger.book(), ("queue",), where=parse_selector("")).rows
    assert {row.tags["queue"]: row.used for row in rows} == {
        queue: {"apps": 1, "memory": 5} for queue in ("root", "root.team", "root.team.a")
    }


def test_groups_that_are_not_sent_are_looked_up_and_an_unknown_user_is_rejected(talk: Talk) -> None:
    talk.register(CONFIG)
    answers = talk.say(applications=[app(), app("app-2", user="mallory"), app("app-3", user="bob")])
    assert kinds(answers) == ["accepted_application", "rejected_application", "accepted_application"]
    assert reasons(answers, "rejected_application") == ["user resolution failed: user 'mallory' is unknown"]
    found = talk.row(app="app-1")
    assert found["tags"]["group"] == "ops", "the first group with a limit from the leaf upwards"
    assert found["request"]["groups"] == ["dev", "ops"], "all of them are kept"
    assert "group" not in talk.row(app="app-3")["tags"]


def test_the_charged_group_is_limited_as_a_whole_whoever_of_it_asks(talk: Talk) -> None:
    talk.register(CONFIG)
    talk.add_node()
    talk.say(applications=[app(), app("app-2", user="carol", groups=("ops",))], asks=ask(memory=4))
    assert granted(talk.say(asks=ask("other", 4, application="app-2"))) == {}
    assert talk.row(allocationKey="other")["state"] == State.WAITING


def test_a_queue_that_is_made_by_a_namespace_has_the_limits_of_its_tags(talk: Talk) -> None:
    talk.register()
    talk.add_node()
    quota = {
        "namespace": "space",
        "namespace.resourcequota": '{"resources": {"memory": {"value": 5}}}',
        "namespace.resourcemaxapps": "1",
    }
    answers = talk.say(applications=app(tags=quota), asks=[ask("first", 4), ask("second", 4)])
    assert granted(answers) == {"first": "node-1"}
    talk.say(applications=app("app-2", tags=quota))
    assert talk.row(app="app-2")["state"] == State.WAITING


def test_applications_that_wait_for_a_place_in_their_queue_do_not_hold_up_those_that_run(
    talk: Talk,
) -> None:
    talk.register(NARROW.replace("COUNT", "1"))
    talk.add_node()
    names = [f"app-{at}" for at in range(1, 22)]
    talk.say(
        applications=[app(name, queue="root.narrow") for name in names],
        asks=[ask(name, application=name) for name in names],
    )
    assert granted(talk.say(asks=ask("more"))) == {"more": "node-1"}
    assert granted(talk.say(removals=RemovedApplication(application="app-1"))) == {"app-2": "node-1"}
    talk.register(NARROW.replace("COUNT", "3"))
    settle(talk.ledger)
    states = [talk.row(allocationKey=name)["state"] for name in names[1:]]
    assert states == [State.USED] * 3 + [State.WAITING] * 17, "as many as the new number lets in, in order"


@pytest.mark.parametrize(
    ("placeholders", "extra", "limited"),
    [
        ({}, {}, True),
        ({"memory": 1}, {}, False),
        ({"memory": 1}, {"rm.executionTimeout": "application"}, True),
        ({}, {"rm.executionTimeout": "placeholder"}, False),
    ],
    ids=["no placeholders", "placeholders", "meant for the application", "meant for placeholders"],
)
def test_an_applications_timeout_is_its_own_unless_it_has_placeholders_or_the_rm_says_otherwise(
    talk: Talk, placeholders: Amounts, extra: Mapping[str, str], *, limited: bool
) -> None:
    talk.register(extra=extra)
    talk.add_node()
    talk.say(applications=app(timeout_ms=90_000, placeholder_ask=placeholders), asks=ask())
    row = next(row for row in talk.rows() if row["parent"] is None)
    assert row["deadline"] == (row["used_at"] + 90 * SECOND if limited else None)


@pytest.mark.parametrize(
    ("style", "answer"),
    [("", "accepted"), ("SOFT", "accepted"), ("Hard", "accepted"), ("firm", "rejected")],
)
def test_a_gang_style_is_soft_or_hard_in_any_case_and_nothing_else(
    talk: Talk, style: str, answer: str
) -> None:
    talk.register()
    assert kinds(talk.say(applications=app(gang_style=style))) == [f"{answer}_application"]
