"""A resource manager that speaks to the scheduler's service, in short forms."""

from collections.abc import Mapping
from typing import Any

from rm_service.domain.clients import Client
from rm_service.ledger.ledger import Ledger
from rm_service.services.si.requests import (
    Ask,
    Dialect,
    ExistingAllocation,
    NewApplication,
    NodeAction,
    NodeChange,
    Registration,
    Update,
)
from rm_service.services.si.scheduler import SchedulerService
from tests.client_words import of_kind
from tests.ledger.telling import SOON, rows, settle, told

RM = Client("rm-1")
HERE = "[rm-1]default"

CONFIG = """
partitions:
  - name: default
    placementrules:
      - {name: provided, create: false}
      - {name: tag, value: namespace, create: true, parent: {name: fixed, value: root.spaces}}
    priorityclasses: {high: 100, low: -100}
    usergroupresolver: {type: file, groups: {carol: [staff, dev], dave: []}}
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: batch
            maxapplications: 2
            resources: {max: {memory: 12}}
            limits:
              - {limit: "of each", users: ["*"], maxresources: {memory: 8}}
              - {limit: "of dev", groups: [dev], maxresources: {memory: 3}}
          - {name: spaces, parent: true}
          - {name: free}
  - name: gpu
    queues: [{name: root, submitacl: "*", queues: [{name: default}]}]
"""


class Shim:
    """A resource manager on one process of the service."""

    def __init__(self, ledger: Ledger, service: SchedulerService, client: Client = RM) -> None:
        self.ledger = ledger
        self.service = service
        self.client = client

    def register(self, **more: Any) -> None:
        self.service.register(Registration(rm_id=self.client.id, **{"config": CONFIG, **more}))

    def say(self, dialect: Dialect = Dialect.SEED, **said: Any) -> list[Mapping[str, Any]]:
        """What the client hears because of one message."""
        before = len(told(self.ledger, self.client))
        parts = {
            name: tuple(part) if isinstance(part, list | tuple) else (part,) for name, part in said.items()
        }
        update = Update(rm_id=self.client.id, dialect=dialect, **parts)
        self.service.update(update).result(SOON)
        settle(self.ledger)
        return [*told(self.ledger, self.client)[before:]]

    def row(self, key: str) -> Any:
        [row] = [row for row in rows(self.ledger, self.client) if row.request.get("key") == key]
        return row

    def application(self, name: str = "app-1") -> Any:
        [row] = [
            row
            for row in rows(self.ledger, self.client)
            if row.parent is None and row.tags.get("app") == name and "key" not in row.request
        ]
        return row


def app(name: str = "app-1", **more: Any) -> NewApplication:
    return NewApplication(
        application=name, **{"queue": "root.free", "user": "alice", "groups": ("staff",)} | more
    )


def ask(key: str = "k", memory: int = 1, **more: Any) -> Ask:
    return Ask(**{"key": key, "application": "app-1", "resource": {"memory": memory}} | more)


def running_there(
    key: str = "k", node_id: str = "node-1", memory: int = 1, **more: Any
) -> ExistingAllocation:
    return ExistingAllocation(
        **{"key": key, "node": node_id, "application": "app-1", "resource": {"memory": memory}} | more
    )


def node(
    name: str = "node-1", memory: int = 20, action: NodeAction = NodeAction.CREATE, **more: Any
) -> NodeChange:
    return NodeChange(**{"node": name, "action": action, "schedulable": {"memory": memory}} | more)


def reasons(answers: list[Mapping[str, Any]], kind: str) -> list[str]:
    return [str(answer["reason"]) for answer in of_kind(answers, kind)]
