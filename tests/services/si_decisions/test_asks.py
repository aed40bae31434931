"""An ask: its priority, its turn, and the nodes that its tags choose."""

import pytest

from rm_service.domain.application import State
from rm_service.domain.clients import Termination
from rm_service.services.si.names import (
    CONTAINER_IMAGE,
    CONTAINER_PORTS,
    CREATION_TIME,
    NODE_SELECTOR,
    REQUIRED_NODE,
)
from rm_service.services.si.requests import ExistingAllocation, NodeAction, Release
from tests.services.si_decisions.talk import CONFIG, Talk, app, ask, granted, reasons
from tests.system.client import until


def test_a_priority_class_is_a_number_of_the_configuration_and_an_unknown_one_rejects_the_ask(
    talk: Talk,
) -> None:
    talk.register(CONFIG)
    answers = talk.say(
        applications=app(),
        asks=[ask("high", priority="high"), ask("none", priority="highest"), ask("number", priority=7)],
    )
    assert reasons(answers, "rejected_ask") == ["unknown priority class 'highest'"]
    assert talk.row(allocationKey="high")["priority"] == 100
    assert talk.row(allocationKey="number")["priority"] == 7


def test_the_asks_of_a_message_are_decided_as_they_were_created(talk: Talk) -> None:
    talk.register()
    talk.add_node(memory=2)
    answers = talk.say(
        applications=app(),
        asks=[ask(f"at-{at}", tags={CREATION_TIME: str(at)}) for at in (300, 100, 200)],
    )
    assert list(granted(answers)) == ["at-100", "at-200"]


def test_an_ask_that_is_too_old_to_be_passed_has_a_node_kept_for_it(impatient: Talk) -> None:
    impatient.register()
    impatient.add_node()
    impatient.say(applications=app(), asks=[ask("a", 5), ask("b", 5)])
    impatient.say(asks=ask("large", 10))
    impatient.say(releases=Release(application="app-1", key="a"))
    until(
        lambda: impatient.row(allocationKey="large")["reason"].startswith("node node-1 is reserved for it: "),
        "the node is kept",
    )
    assert granted(impatient.say(asks=ask("small", 1))) == {}
    assert impatient.row(allocationKey="small")["state"] == State.WAITING


def test_tags_of_an_ask_choose_among_the_nodes(talk: Talk) -> None:
    talk.register()
    talk.add_node("node-1", 100, {"si/zone": "a", "si/arch": "amd64"})
    talk.add_node("node-2", 10, {"si/zone": "b", "si/arch": "arm64"})
    answers = talk.say(
        applications=app(),
        asks=[
            ask("any"),
            ask("zone", tags={NODE_SELECTOR: "si/zone in (b,c)"}),
            ask("arch", tags={NODE_SELECTOR: "si/arch=arm64, si/zone!=a"}),
            ask("named", tags={REQUIRED_NODE: "node-2"}),
            ask("nowhere", tags={NODE_SELECTOR: "si/zone=z"}),
            ask("bad", tags={NODE_SELECTOR: "si/zone in"}),
        ],
    )
    assert granted(answers) == {"any": "node-1", "zone": "node-2", "arch": "node-2", "named": "node-2"}
    assert talk.row(allocationKey="nowhere")["state"] == State.WAITING
    [reason] = reasons(answers, "rejected_ask")
    assert reason.startswith(f"{NODE_SELECTOR}: ")


def test_a_required_node_and_a_selector_both_count(talk: Talk) -> None:
    talk.register()
    talk.add_node("node-1", 10, {"si/zone": "a"})
    talk.add_node("node-2", 10, {"si/zone": "b"})
    both = {REQUIRED_NODE: "node-2", NODE_SELECTOR: "si/zone=b"}
    neither = {REQUIRED_NODE: "node-1", NODE_SELECTOR: "si/zone=b"}
    large = [ask("too large", 11, tags=both), ask("unknown", tags={**both, REQUIRED_NODE: "node-9"})]
    answers = talk.say(applications=app(), asks=[ask("k", tags=both), ask("w", tags=neither), *large])
    assert granted(answers) == {"k": "node-2"}
    assert len(reasons(answers, "rejected_ask")) == 2
    waits = talk.row(allocationKey="w")
    assert (waits["state"], waits["tags"]["node"]) == (State.WAITING, "node-1")
    assert waits["reason"].endswith("no_node_matches")
    answers = talk.change_node(NodeAction.UPDATE, "node-1", attributes={"si/zone": "b"})
    assert granted(answers) == {"w": "node-1"}
    failed = Release(application="app-1", key="w", termination=Termination.SCHEDULING_FAILED_ON_RM)
    talk.change_node(NodeAction.DRAIN_NODE, "node-1")
    assert granted(talk.say(releases=failed)) == {}, "asked for again, it is the same ask"
    assert granted(talk.change_node(NodeAction.DRAIN_TO_SCHEDULABLE, "node-1")) == {"w": "node-1"}


def test_a_port_of_a_node_is_taken_by_one_at_a_time(talk: Talk) -> None:
    talk.register()
    talk.add_node("node-1")
    talk.add_node("node-2")
    wanted = [("a", "8080"), ("b", "8080, 9090/TCP"), ("c", "9090/tcp"), ("d", "08080"), ("e", "7070")]
    answers = talk.say(
        applications=app(), asks=[ask(key, tags={CONTAINER_PORTS: ports}) for key, ports in wanted]
    )
    assert granted(answers) == {"a": "node-1", "b": "node-2", "c": "node-1", "e": "node-2"}
    assert [answer["resource"] for answer in answers if answer["kind"] == "new"] == [{"memory": 1}] * 4
    runs_already = ExistingAllocation(
        key="x", node="node-2", application="app-1", resource={"memory": 1}, tags={CONTAINER_PORTS: "8080"}
    )
    answers = talk.say(allocations=runs_already, releases=Release(application="app-1", key="b"))
    assert granted(answers) == {"x": "node-2"}, "it is booked, and keeps the port for itself"
    assert granted(talk.say(releases=Release(application="app-1", key="x"))) == {"d": "node-2"}


@pytest.mark.parametrize("ports", ["0", "65536", "http", "8080,", "8080;9090", "-1", "8080 9090", "१"])
def test_what_is_no_list_of_ports_rejects_the_ask(talk: Talk, ports: str) -> None:
    talk.register()
    talk.add_node()
    answers = talk.say(applications=app(), asks=ask(tags={CONTAINER_PORTS: ports}))
    assert reasons(answers, "rejected_ask") == [f"{CONTAINER_PORTS}: {ports!r} is no list of ports"]


def test_a_node_that_has_the_image_is_preferred_and_any_other_is_taken_where_none_has_room(
    talk: Talk,
) -> None:
    talk.register()
    talk.add_node("node-1", 100)
    talk.add_node("node-2", 10, {"si/local-images": "base:1, web:2"})
    wanted = {"web": "web:2", "more": "web:2", "any": "db:1"}
    asks = [ask(key, 6, tags={CONTAINER_IMAGE: image}) for key, image in wanted.items()]
    answers = talk.say(applications=app(), asks=asks)
    assert granted(answers) == {"web": "node-2", "more": "node-1", "any": "node-1"}
