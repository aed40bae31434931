"""What the scheduler says to an RM, in words that all dialects share."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from tests.si.wire import ROW, Json

NEW, RELEASED, RELEASED_ASK = "new", "released", "released_ask"
REJECTED_ASK, REJECTED_ALLOCATION = "rejected_ask", "rejected_allocation"
ACCEPTED_APPLICATION, REJECTED_APPLICATION = "accepted_application", "rejected_application"
UPDATED_APPLICATION = "updated_application"
ACCEPTED_NODE, REJECTED_NODE = "accepted_node", "rejected_node"
RESYNC = "resync"

STOPPED_BY_RM, TIMEOUT = "STOPPED_BY_RM", "TIMEOUT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """An allocation as the RM knows it, with what it needs to report it again."""

    app: str
    key: str
    node: str
    resource: Mapping[str, int]
    id: str = ""
    """The UUID, where the dialect has one."""
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer out of a response. `row` is that of the response; empty: not said."""

    kind: str
    row: int
    app: str = ""
    key: str = ""
    id: str = ""
    node: str = ""
    partition: str = ""
    queue: str = ""
    resource: Mapping[str, int] = field(default_factory=dict)
    termination: str = ""
    state: str = ""
    text: str = ""
    """The reason or the message."""
    document: Json = field(default_factory=dict)

    def has(self, **facts: object) -> bool:
        """Whether its fields are these."""
        return all(getattr(self, name) == fact for name, fact in facts.items())

    @property
    def allocation(self) -> Allocation:
        """The allocation that a `new` tells of."""
        return Allocation(app=self.app, key=self.key, node=self.node, resource=self.resource, id=self.id)


class Spoken(Protocol):
    """What has to be known of a dialect to read it."""

    first_termination: str
    """The name of number 0 of its termination types, which does not travel."""
    allocation_has_id: bool


def answers_in(response: Json, fields: Mapping[str, str], dialect: Spoken) -> Iterator[Answer]:
    """The answers of a response; `fields` says which kind each of its lists holds.

    A list that is not in `fields`, and an id that the dialect has not, are nothing that an RM would see.
    """
    row = int(response.get(ROW, 0))
    if response.get("action") == "RESYNC":
        yield Answer(kind=RESYNC, row=row, document=response)
    for name, kind in fields.items():
        for each in response.get(name, []):
            yield Answer(
                kind=kind,
                row=row,
                app=each.get("applicationID", ""),
                key=each.get("allocationKey", each.get("allocationkey", "")),
                id=each.get("UUID", "") if dialect.allocation_has_id else "",
                node=each.get("nodeID", ""),
                partition=each.get("partitionName", ""),
                queue=each.get("queueName", ""),
                resource=amounts_in(each.get("resourcePerAlloc", {})),
                termination=each.get("terminationType", dialect.first_termination)
                if "released" in kind
                else "",
                state=each.get("state", ""),
                text=each.get("reason", each.get("message", "")),
                document=each,
            )


def amounts_in(resource: Json) -> dict[str, int]:
    """A Resource as amounts by name."""
    return {name: int(quantity.get("value", 0)) for name, quantity in resource.get("resources", {}).items()}
