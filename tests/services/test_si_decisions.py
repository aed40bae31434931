"""What was decided about the Scheduler Interface where its specifications leave room or differ.

docs/scheduler-interface.md lists every decision with its test; those that have no better place are here.
"""

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from structlog.testing import capture_logs

from rm_service.bundled import bundled
from rm_service.domain import operations as op
from rm_service.domain.amounts import Amounts
from rm_service.domain.application import SECOND, State
from rm_service.domain.clients import ClientState
from rm_service.domain.selectors import parse_selector
from rm_service.ledger import tables
from rm_service.ledger.answers import AnswerLog
from rm_service.ledger.audit import audit
from rm_service.ledger.ledger import Ledger, LedgerSettings
from rm_service.ledger.queries.clients import list_resource_managers
from rm_service.ledger.queries.usage import usage
from rm_service.services.si.names import CREATION_TIME, NODE_SELECTOR, REQUIRED_NODE
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
        """Send one message; what is answered to it, in order, with what follows from it."""
        update = Update(
            rm_id=self.rm_id,
            dialect=dialect,
            **{name: tuple(part) if isinstance(part, list) else (part,) for name, part in parts.items()},
        )
        self.scheduler.update(update).result(PATIENCE)
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

    def row(self, **tags: str) -> Mapping[str, Any]:
        """The one application of the ledger that carries just these of the tags app and allocationKey."""
        [row] = [row for row in self.rows() if tags.items() <= row["tags"].items()]
        return row

    def rows(self) -> list[Mapping[str, Any]]:
        with self.ledger.readers.connect() as connection:
            return [dict(row) for row in connection.execute(tables.application.select()).mappings()]


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
    talk.scheduler.note_presence([RM])
    until(lambda: talk.row(allocationKey="meanwhile")["state"] == State.USED, "it has come back")


def test_what_an_rm_says_of_itself_is_kept_and_replaced_and_shown_without_secrets(talk: Talk) -> None:
    talk.register(version="1", build_info={"commit": "a"}, policy_group="queues", extra={"log.level": "x"})
    talk.register(version="2", build_info={"commit": "b"}, extra={"rm.nodePool": "s3cret"})
    with talk.ledger.readers.connect() as connection:
        [found] = list_resource_managers(connection)
    assert (found.version, found.build_info, found.policy_group) == ("2", {"commit": "b"}, "")
    assert (found.extra_config, found.registrations) == ({"rm.nodePool": "***"}, 2)


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
