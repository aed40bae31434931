"""A resource manager: what it says of itself, what is its own, and what it is granted while away."""

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from rm_service.domain import operations as op
from rm_service.domain.application import State
from rm_service.domain.clients import ClientState
from rm_service.domain.events import Kind
from rm_service.ledger.ledger import Ledger
from rm_service.ledger.queries.clients import list_resource_managers
from rm_service.ledger.queries.events import stream_events
from rm_service.services.si.requests import NodeAction
from rm_service.services.si.scheduler import SchedulerService
from tests.services.si_decisions.talk import CONFIG, NARROW, RM, Talk, app, ask, granted, kinds, reasons
from tests.system.client import until


def test_an_unknown_policy_group_gets_the_default_policy_and_a_warning(talk: Talk) -> None:
    with capture_logs() as logs:
        talk.register(policy_group="nobody-has-this")
    assert {"si_unknown_policy_group"} == {log["event"] for log in logs if log["log_level"] == "warning"}
    answers = talk.say(applications=app(queue="", tags={"namespace": "space"}))
    assert kinds(answers) == ["accepted_application"]
    assert talk.row(app="app-1")["tags"]["queue"] == "root.space"


def test_the_warning_of_an_unknown_policy_group_is_part_of_the_event_of_that_registration(
    talk: Talk,
) -> None:
    talk.register(policy_group="nobody-has-this")
    talk.register(CONFIG, policy_group="nobody-has-this")
    talk.register()
    with talk.ledger.readers.connect() as connection:
        details = [e.detail for e in stream_events(connection, 0) if e.kind is Kind.CLIENT_REGISTERED]
    warning = 'there is no policy group "nobody-has-this": default is used'
    assert details == [{"registration": 1, "warning": warning}, {"registration": 2}, {"registration": 3}]


def test_a_policy_group_has_the_queues_of_its_file_unless_the_rm_brings_its_own(
    ledger: Ledger, tmp_path: Path
) -> None:
    (tmp_path / "lab.yaml").write_text(NARROW.replace("COUNT", "1"), encoding="utf-8")
    scheduler = SchedulerService(ledger, resync_seconds=60, policies=tmp_path)
    one, two, own = (Talk(ledger, scheduler, name) for name in ("one", "two", "own"))
    one.register(policy_group="lab")
    two.register(policy_group="lab")
    own.register(CONFIG, policy_group="lab")
    narrow = [app(queue="root.narrow"), app("app-2", queue="root.narrow"), app("app-3")]
    for shim in (one, two):
        answers = shim.say(applications=narrow)
        assert kinds(answers) == ["accepted_application", "accepted_application", "rejected_application"]
        assert shim.applications() == {"app-1": State.USED, "app-2": State.WAITING}, "each has its own"
    assert kinds(own.say(applications=app())) == ["accepted_application"]
    scheduler.close()


def test_what_an_rm_says_of_itself_is_kept_and_replaced_and_shown_without_secrets(talk: Talk) -> None:
    talk.register(version="1", build_info={"commit": "a"}, policy_group="queues", extra={"log.level": "x"})
    talk.register(
        version="2", build_info={"commit": "b"}, extra={"rm.nodePool": "shared", "log.level": "s3cret"}
    )
    with talk.ledger.readers.connect() as connection:
        [found] = list_resource_managers(connection)
    assert (found.version, found.build_info, found.policy_group) == ("2", {"commit": "b"}, "")
    assert (found.extra_config, found.registrations) == (
        {"rm.nodePool": "***", "log.level": "***"},
        2,
    )


def test_an_rm_may_have_several_partitions_and_none_of_anothers(talk: Talk) -> None:
    talk.register(CONFIG)
    other = Talk(talk.ledger, talk.scheduler, "other")
    other.register(CONFIG)
    talk.add_node("node-1", 100)
    talk.add_node("node-1", 10, {"si/node-partition": "gpu"})
    answers = talk.say(
        applications=app(queue="root.default", partition="gpu"),
        asks=[ask("inside", 8, partition="gpu"), ask("beyond", 8, partition="gpu")],
    )
    assert granted(answers) == {"inside": "node-1"}, "the large node is another partition's"
    assert talk.row(allocationKey="inside")["tags"]["partition"] == "[rm]gpu"
    foreign = other.say(applications=app(partition="[rm]gpu"))
    assert reasons(foreign, "rejected_application") == [
        "Failed to add application app-1 to partition [rm]gpu, partition doesn't exist"
    ]


@pytest.mark.parametrize(
    "action",
    [NodeAction.DRAIN_NODE, NodeAction.DRAIN_TO_SCHEDULABLE, NodeAction.UPDATE, NodeAction.DECOMISSION],
)
def test_a_node_of_the_pool_is_changed_by_nobody_but_who_registered_it(
    talk: Talk, action: NodeAction
) -> None:
    shared = {"rm.nodePool": "shared"}
    talk.register(extra=shared)
    other = Talk(talk.ledger, talk.scheduler, "other")
    other.register(extra=shared)
    talk.add_node()
    other.add_node(memory=1_000)
    answers = other.change_node(action, schedulable={"memory": 1})
    assert reasons(answers, "rejected_node") == ["node node-1 was not registered by this resource manager"]
    answers = other.say(applications=app(), asks=[ask("fits", 9), ask("does-not", 9)])
    assert granted(answers) == {"fits": "node-1"}, "it is as it was"


def test_an_rm_that_is_away_is_granted_nothing_until_it_is_back(talk: Talk) -> None:
    talk.register()
    talk.add_node()
    talk.say(applications=app(), asks=ask("before"))
    talk.ledger.submit_whole(op.SetClientState(id=RM, state=ClientState.PAUSED))
    assert granted(talk.say(asks=ask("meanwhile"))) == {}
    states = {row["tags"].get("allocationKey"): row["state"] for row in talk.rows()}
    assert (states["before"], states["meanwhile"]) == (State.USED, State.WAITING)
    assert talk.row(allocationKey="meanwhile")["reason"] == f"resource manager {RM}: client_away"
    talk.scheduler.note_presence([RM])
    until(lambda: talk.row(allocationKey="meanwhile")["state"] == State.USED, "it has come back")
