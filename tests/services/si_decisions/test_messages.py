"""A message: in which order it is carried out, how it is refused, and what of it is logged."""

import logging

import pytest
from structlog.testing import capture_logs

from rm_service.domain.application import State
from rm_service.facades.si.intake import METHODS, Intake
from rm_service.facades.si.proto import si_pb2
from rm_service.services.si.errors import RegistrationRefusedError
from rm_service.services.si.requests import (
    Dialect,
    ExistingAllocation,
    NodeAction,
    NodeChange,
    Release,
    RemovedApplication,
)
from tests.services.si_decisions.talk import CONFIG, PATIENCE, RM, Talk, app, ask, granted, kinds, reasons


def test_a_message_is_carried_out_in_a_fixed_order(talk: Talk) -> None:
    """Applications, nodes, what runs there, asks, releases, removals; one message may hold a life."""
    talk.register()
    answers = talk.say(
        removals=RemovedApplication(application="app-2"),
        releases=Release(application="app-1", key="k"),
        asks=[ask("k"), ask("k", application="app-2")],
        allocations=ExistingAllocation(key="old", node="node-1", application="app-1", resource={"memory": 2}),
        nodes=NodeChange(node="node-1", action=NodeAction.CREATE, schedulable={"memory": 10}),
        applications=[app(), app("app-2")],
    )
    assert [kind for kind in kinds(answers) if kind != "updated_application"] == [
        "accepted_application",
        "accepted_application",
        "accepted_node",
        "new",
        "new",
        "new",
        "released",
        "released",
    ]
    assert {row["tags"].get("allocationKey") for row in talk.rows() if row["state"] == State.USED} == {
        None,
        "old",
    }


def test_a_rejection_is_a_row_and_no_application(talk: Talk) -> None:
    talk.register()
    answers = talk.say(asks=[ask(application="nobody"), ask("empty", 0)])
    assert kinds(answers) == ["rejected_ask", "rejected_ask"]
    assert talk.rows() == []


@pytest.mark.parametrize("dialect", list(Dialect))
def test_of_an_enum_nobody_knows_a_node_is_rejected_and_left_alone(talk: Talk, dialect: Dialect) -> None:
    talk.register()
    talk.add_node()
    answers = talk.say(dialect, nodes=NodeChange(node="node-1", action=NodeAction.UNKNOWN))
    assert reasons(answers, "rejected_node") == ["unknown action"]
    assert granted(talk.say(applications=app(), asks=ask())) == {"k": "node-1"}


def test_messages_are_in_the_log_at_debug_level_without_what_is_secret(
    talk: Talk, caplog: pytest.LogCaptureFixture
) -> None:
    intake = Intake(talk.scheduler, lambda *_: None)
    secret = si_pb2.RegisterResourceManagerRequest(
        rmID=RM, config=f"{CONFIG}# hunter2", extraConfig={"hunter3": "hunter4"}
    )
    refused = si_pb2.RegisterResourceManagerRequest(rmID=RM, config="partitions: hunter2")
    nodes = si_pb2.NodeRequest(rmID=RM, nodes=[si_pb2.NodeInfo(nodeID="node-1")])
    with caplog.at_level(logging.DEBUG), capture_logs() as logs:
        intake.register(secret)
        with pytest.raises(RegistrationRefusedError):
            intake.register(refused)
        intake.update(METHODS["UpdateNode"], nodes).result(PATIENCE)
    shown = [record.getMessage() for record in caplog.records if record.name.endswith("si.intake.messages")]
    assert [text.split()[0] for text in shown] == [
        "RegisterResourceManagerRequest",
        "RegisterResourceManagerRequest",
        "NodeRequest",
    ]
    assert "config: ***" in shown[0]
    assert "node-1" in shown[2]
    assert "hunter" not in caplog.text + str(logs)


def test_at_other_levels_no_message_is_in_the_log(talk: Talk, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        Intake(talk.scheduler, lambda *_: None).register(
            si_pb2.RegisterResourceManagerRequest(rmID=RM, config=CONFIG)
        )
    assert "RegisterResourceManagerRequest" not in caplog.text
