"""What was decided about the Scheduler Interface where its specifications leave room or differ.

docs/scheduler-interface.md lists every decision with its test; those that have no better place are here.
"""

import logging
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from structlog.testing import capture_logs

from rm_service.bundled import bundled
from rm_service.domain import operations as op
from rm_service.domain.amounts import Amounts
from rm_service.domain.application import SECOND, State
from rm_service.domain.clients import ClientState, Termination
from rm_service.domain.events import Kind
from rm_service.domain.selectors import parse_selector
from rm_service.facades.si.intake import METHODS, Intake
from rm_service.facades.si.proto import si_pb2
from rm_service.ledger import tables
from rm_service.ledger.answers import AnswerLog
from rm_service.ledger.audit import audit
from rm_service.ledger.ledger import Ledger, LedgerSettings
from rm_service.ledger.queries.clients import list_resource_managers
from rm_service.ledger.queries.events import stream_events
from rm_service.ledger.queries.usage import usage
from rm_service.services.si.errors import RegistrationRefusedError
from rm_service.services.si.names import (
    CONTAINER_IMAGE,
    CONTAINER_PORTS,
    CREATION_TIME,
    FOREIGN,
    NODE_SELECTOR,
    REQUIRED_NODE,
)
from rm_service.services.si.requests import (
    Ask,
    Dialect,
    ExistingAllocation,
    NewApplication,
    NodeAction,
    NodeChange,
    Registration,
    Release,
    RemovedApplication,
    Update,
)
from rm_service.services.si.scheduler import SchedulerService
from tests.ledger.asking import application, asking, node
from tests.ledger.conftest import make_template
from tests.ledger.telling import settle
from tests.system.client import until

PATIENCE = 20.0  # seconds until a commit must have come; nothing waits this long when all is well
RM = "rm"

CONFIG = """
partitions:
  - name: default
    placementrules: [{name: provided, create: true}]
    priorityclasses: {high: 100, low: -100}
    usergroupresolver:
      type: file
      groups: {alice: [dev, ops], bob: []}
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: team
            parent: true
            limits:
              - groups: [ops]
                maxresources: {memory: 6}
  - name: gpu
    queues: [{name: root, submitacl: "*", queues: [{name: default}]}]
"""
NARROW = """
partitions:
  - name: default
    queues: [{name: root, submitacl: "*", queues: [{name: narrow, maxapplications: COUNT}]}]
"""


@dataclass
class Talk:
    """One resource manager that talks to the service, and reads every answer to it."""

    ledger: Ledger
    scheduler: SchedulerService
    rm_id: str = RM
    _read_to: int = field(default=0)

    def register(self, config: str = "", extra: Mapping[str, str] | None = None, **more: Any) -> None:
        self.scheduler.register(
            Registration(rm_id=self.rm_id, config=config, extra_config=extra or {}, **more)
        )

    def say(self, dialect: Dialect = Dialect.SEED, **parts: Any) -> list[Mapping[str, Any]]:
        """Send one message; what is answered since the one before, in order, with what follows from it."""
        update = Update(
            rm_id=self.rm_id,
            dialect=dialect,
            **{name: tuple(part) if isinstance(part, list) else (part,) for name, part in parts.items()},
        )
        self.scheduler.update(update).result(PATIENCE)
        settle(self.ledger)
        rows, self._read_to = AnswerLog(self.ledger.readers).page(self.rm_id, self._read_to, 10_000)
        return [answer for _, answer in rows]

    def add_node(
        self, name: str = "node-1", memory: int = 10, attributes: Mapping[str, str] | None = None
    ) -> None:
        self.say(
            nodes=NodeChange(
                node=name,
                action=NodeAction.CREATE,
                schedulable={"memory": memory},
                attributes=attributes or {},
            )
        )

    def change_node(self, action: NodeAction, name: str = "node-1", **more: Any) -> list[Mapping[str, Any]]:
        return self.say(nodes=NodeChange(node=name, action=action, **more))

    def row(self, **tags: str) -> Mapping[str, Any]:
        """The one application of the ledger that carries just these of the tags app and allocationKey."""
        [row] = [row for row in self.rows() if tags.items() <= row["tags"].items()]
        return row

    def rows(self) -> list[Mapping[str, Any]]:
        with self.ledger.readers.connect() as connection:
            return [dict(row) for row in connection.execute(tables.application.select()).mappings()]

    def applications(self) -> dict[str, str]:
        """The states of this resource manager's applications, without their members."""
        return {
            row["tags"]["app"]: row["state"]
            for row in self.rows()
            if row["client"] == self.rm_id and row["parent"] is None
        }


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    document = yaml.safe_load(bundled("config/default.yaml").read_text(encoding="utf-8"))
    path = tmp_path_factory.mktemp("template") / "rm.db"
    make_template(f"sqlite:///{path}", {name: document[name] for name in ("conversions", "label_rules")})
    return path


@pytest.fixture
def ledger(template: Path, tmp_path: Path) -> Iterator[Ledger]:
    """Whatever a test has done, the books balance in the end."""
    ledger = Ledger(LedgerSettings(f"sqlite:///{shutil.copy(template, tmp_path / 'rm.db')}"))
    ledger.open()
    yield ledger
    found = audit(ledger.readers)
    assert found.consistent, found
    ledger.close()


@pytest.fixture
def impatient(template: Path, tmp_path: Path) -> Iterator[Talk]:
    """On a ledger in which nobody who waits may be passed."""
    url = f"sqlite:///{shutil.copy(template, tmp_path / 'impatient.db')}"
    ledger = Ledger(LedgerSettings(url, wait_age_seconds=0))
    ledger.open()
    scheduler = SchedulerService(ledger, resync_seconds=60)
    yield Talk(ledger, scheduler)
    scheduler.close()
    ledger.close()


@pytest.fixture
def talk(ledger: Ledger) -> Iterator[Talk]:
    scheduler = SchedulerService(ledger, resync_seconds=60)
    yield Talk(ledger, scheduler)
    scheduler.close()


def app(
    name: str = "app-1", *, queue: str = "root.team.a", user: str = "alice", **more: Any
) -> NewApplication:
    return NewApplication(application=name, queue=queue, user=user, **more)


def ask(key: str = "k", memory: int = 1, **more: Any) -> Ask:
    return Ask(key=key, application=more.pop("application", "app-1"), resource={"memory": memory}, **more)


def kinds(answers: list[Mapping[str, Any]]) -> list[str]:
    return [answer["kind"] for answer in answers]


def reasons(answers: list[Mapping[str, Any]], kind: str) -> list[str]:
    return [answer["reason"] for answer in answers if answer["kind"] == kind]


def granted(answers: list[Mapping[str, Any]]) -> dict[str, str]:
    """Keys of new allocations, in order, with their nodes."""
    return {answer["key"]: answer["node"] for answer in answers if answer["kind"] == "new"}


def test_a_users_total_spans_the_work_of_every_door(talk: Talk, ledger: Ledger) -> None:
    talk.register()
    talk.add_node()
    talk.say(applications=app(), asks=ask(memory=3))
    node(ledger, "host1:9101", {"memory": 10})
    application(ledger, asking({"user": "alice", "node": "host1:9101"}, {"memory": 4}))
    with ledger.readers.connect() as connection:
        [row] = usage(connection, ledger.book(), ("user",), where=parse_selector("user=alice")).rows
    assert (row.locked, row.used) == ({"memory": 4}, {"memory": 3, "apps": 1})


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


def test_the_asks_of_a_message_are_decided_as_they_were_created(talk: Talk) -> None:
    talk.register()
    talk.add_node(memory=2)
    answers = talk.say(
        applications=app(),
        asks=[ask(f"at-{at}", tags={CREATION_TIME: str(at)}) for at in (300, 100, 200)],
    )
    assert list(granted(answers)) == ["at-100", "at-200"]


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
    ("style", "answer"),
    [("", "accepted"), ("SOFT", "accepted"), ("Hard", "accepted"), ("firm", "rejected")],
)
def test_a_gang_style_is_soft_or_hard_in_any_case_and_nothing_else(
    talk: Talk, style: str, answer: str
) -> None:
    talk.register()
    assert kinds(talk.say(applications=app(gang_style=style))) == [f"{answer}_application"]


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
