"""A resource manager that talks to the service and reads every answer, in short forms."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rm_service.ledger import tables
from rm_service.ledger.answers import AnswerLog
from rm_service.ledger.ledger import Ledger
from rm_service.services.si.requests import (
    Ask,
    Dialect,
    NewApplication,
    NodeAction,
    NodeChange,
    Registration,
    Update,
)
from rm_service.services.si.scheduler import SchedulerService
from tests.ledger.telling import settle

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
