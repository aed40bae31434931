"""An allocation that runs already: of somebody else, or of an application that was not named."""

from dataclasses import replace

import pytest

from rm_service.domain.clients import Termination
from rm_service.services.si.names import FOREIGN, NODE_SELECTOR, REQUIRED_NODE
from rm_service.services.si.requests import Dialect, ExistingAllocation, NodeAction, NodeChange, Release
from tests.services.si_decisions.talk import Talk, app, ask, granted, kinds, reasons


def test_what_is_foreign_uses_its_node_and_is_not_answered(talk: Talk) -> None:
    talk.register()
    talk.add_node()
    foreign = ExistingAllocation(
        key="system", node="node-1", resource={"memory": 9}, tags={FOREIGN: "static"}
    )
    assert talk.say(Dialect.NEWEST, allocations=foreign) == []
    assert granted(talk.say(applications=app(), asks=ask(memory=4))) == {}
    smaller = replace(foreign, resource={"memory": 7})
    assert talk.say(Dialect.NEWEST, allocations=smaller) == []
    answers = talk.say(Dialect.NEWEST, releases=Release(key="system", termination=Termination.STOPPED_BY_RM))
    assert "released" not in kinds(answers)
    assert granted(answers) == {"k": "node-1"}
    talk.register()
    answers = talk.say(nodes=NodeChange(node="node-1", action=NodeAction.CREATE), allocations=foreign)
    assert kinds(answers) == ["accepted_node"], "nor when it is reported again"
    [reason] = reasons(talk.say(allocations=replace(foreign, node="nowhere")), "rejected_allocation")
    assert reason == "failed to find node nowhere"


def recovered(*keys: str) -> NodeChange:
    """An old RM's new node, on which these keys of an application run that it has not named."""
    runs = tuple(
        ExistingAllocation(
            key=key, node="node-1", application="app-1", queue="root.team.a", resource={"memory": 2}
        )
        for key in keys
    )
    return NodeChange(node="node-1", action=NodeAction.CREATE, schedulable={"memory": 10}, existing=runs)


def test_an_allocation_of_an_unknown_application_brings_its_application_if_it_says_the_queue(
    talk: Talk,
) -> None:
    talk.register()
    answers = talk.say(Dialect.OLD, nodes=recovered("a", "b"))
    told = [kind for kind in kinds(answers) if kind != "updated_application"]
    assert told == ["accepted_node", "new", "new"], "not of an application that it has not named"
    [parent] = [row for row in talk.rows() if row["parent"] is None]
    wanted = {"app": "app-1", "queue": "root.team.a", "user": "nobody", "group": "nogroup"}
    assert wanted.items() <= parent["tags"].items()
    assert {row["parent"] for row in talk.rows()} == {None, parent["id"]}


def test_an_application_that_was_brought_by_its_allocation_is_accepted_once(talk: Talk) -> None:
    talk.register()
    talk.say(Dialect.OLD, nodes=recovered("a"))
    answers = talk.say(Dialect.OLD, applications=app(), asks=ask())
    assert kinds(answers) == ["accepted_application", "new"]
    assert kinds(talk.say(Dialect.OLD, applications=app())) == ["rejected_application"]


def test_nor_do_several_allocations_stand_against_it(talk: Talk) -> None:
    talk.register()
    talk.say(Dialect.OLD, nodes=recovered("a", "b"))
    assert kinds(talk.say(Dialect.OLD, applications=app())) == ["accepted_application"]


def test_without_a_queue_an_allocation_of_an_unknown_application_is_rejected(talk: Talk) -> None:
    talk.register()
    talk.add_node()
    runs = ExistingAllocation(key="a", node="node-1", application="app-1", resource={"memory": 2})
    answers = talk.say(allocations=runs)
    assert reasons(answers, "rejected_allocation") == ["failed to find application app-1"]


FAILED = Release(application="app-1", key="k", termination=Termination.SCHEDULING_FAILED_ON_RM)


def test_one_that_cannot_be_started_any_more_goes_where_its_tags_allow(talk: Talk) -> None:
    """Not back to the node on which it ran, whatever that was."""
    talk.register()
    for name, zone in (("node-1", "a"), ("node-2", "b"), ("node-3", "c")):
        talk.add_node(name, attributes={"si/zone": zone})
    runs = ExistingAllocation(
        key="k",
        node="node-1",
        application="app-1",
        resource={"memory": 2},
        tags={NODE_SELECTOR: "si/zone!=b"},
    )
    talk.say(applications=app(), allocations=runs)
    talk.change_node(NodeAction.DRAIN_NODE, "node-1")
    assert granted(talk.say(releases=FAILED)) == {"k": "node-3"}


@pytest.mark.parametrize("selector", ["si/zone in", ""])
@pytest.mark.parametrize("required", ["node-1", "a\nb"])
def test_what_it_says_of_nodes_is_never_a_reason_against_what_runs(
    talk: Talk, selector: str, required: str
) -> None:
    talk.register()
    talk.add_node()
    tags = {NODE_SELECTOR: selector, REQUIRED_NODE: required}
    runs = ExistingAllocation(key="k", node="node-1", application="app-1", resource={"memory": 2}, tags=tags)
    assert granted(talk.say(applications=app(), allocations=runs)) == {"k": "node-1"}
    assert granted(talk.say(releases=FAILED)) == {"k": "node-1"}
