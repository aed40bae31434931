"""What resource managers are answered: rows of the outbox as messages of their dialect.

A row holds one answer: a document with its `kind` and the fields that the kind has; what is absent is empty.
The rows stay in order. Whoever gets a message reads it field by field, so a row opens another message when
something about the same subject already stands in a field that is read later. A message holds answers of one
stream only.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from rm_service.facades.si.proto import si_pb2 as si
from rm_service.facades.si.proto import si_v0_pb2 as si_v0
from rm_service.services.si.requests import Dialect, Termination

Answer = Mapping[str, Any]
Response = si.AllocationResponse | si.ApplicationResponse | si.NodeResponse | si_v0.UpdateResponse

MOST_ROWS = 500
"""How many rows one message holds at most."""
MOST_TEXT = 2**20
"""So many characters of tags, about: a client takes messages of 4 MiB unless it was told otherwise."""


class Stream(StrEnum):
    """What an answer is about. The newer dialects have a stream for each, the old one sends all in one."""

    ALLOCATION = "allocation"
    APPLICATION = "application"
    NODE = "node"


STREAM_OF: Mapping[str, Stream] = {
    "new": Stream.ALLOCATION,
    "released": Stream.ALLOCATION,
    "released_ask": Stream.ALLOCATION,
    "rejected_ask": Stream.ALLOCATION,
    "rejected_allocation": Stream.ALLOCATION,
    "accepted_application": Stream.APPLICATION,
    "rejected_application": Stream.APPLICATION,
    "updated_application": Stream.APPLICATION,
    "accepted_node": Stream.NODE,
    "rejected_node": Stream.NODE,
}
"""The stream of every kind of answer."""


def render(rows: Iterable[tuple[int, Answer]], dialect: Dialect) -> Iterator[Response]:
    """The messages that carry these rows (number in the outbox, answer), in their order.

    `rmRow` of a message is the number of its last row.
    """
    places = _PLACES[dialect]
    message: Any = None
    stream: Stream | None = None
    room = text = last = 0
    read_at: dict[str, int] = {}  # when the latest answer about a subject is read
    for row, answer in rows:
        kind = answer["kind"]
        place = places[kind]
        subject = answer.get("key") or answer.get("app") or answer.get("node") or ""
        text -= sum(len(key) + len(value) for key, value in answer.get("tags", {}).items())
        if not room or text < 0 or stream is not STREAM_OF[kind] or read_at.get(subject, 0) > place.number:
            if message is not None:
                message.rmRow = last
                yield message
            stream = STREAM_OF[kind]
            message = _RESPONSE_OF[dialect, stream]()
            room, text = MOST_ROWS, MOST_TEXT
            read_at.clear()
        getattr(message, place.field).add(**place.fields(answer))
        read_at[subject] = place.number
        last = row
        room -= 1
    if message is not None:
        message.rmRow = last
        yield message


def own_fields(message: Response, dialect: Dialect) -> Response:
    """The message with the names of an allocation that its dialect has: the same object, changed.

    On the wire the others disturb nobody; a strict reader of JSON refuses what it does not know.
    """
    if isinstance(message, si.AllocationResponse):
        for item in (*message.new, *message.released):
            item.ClearField("allocationID")
            if dialect is Dialect.NEWEST:
                item.ClearField("UUID")
    return message


# ---- the fields of each kind of answer -------------------------------------------------------------------

_Fields = dict[str, Any]


def _new(answer: Answer) -> _Fields:
    fields = _placed(answer)
    fields["priority"] = _priority(answer)
    fields["allocationID"] = fields["UUID"]  # the same under the name that followed; neither disturbs anybody
    fields["originator"] = answer.get("originator", False)
    preemption = answer.get("preemption")
    if preemption is not None:
        fields["preemptionPolicy"] = {
            "allowPreemptSelf": preemption.get("allow_self", False),
            "allowPreemptOther": preemption.get("allow_other", False),
        }
    return fields


def _old_new(answer: Answer) -> _Fields:
    fields = _placed(answer)
    fields["priority"] = {"priorityValue": _priority(answer)}
    fields["queueName"] = answer.get("queue", "")
    return fields


def _placed(answer: Answer) -> _Fields:
    amounts = answer.get("resource", {})
    return {
        "allocationKey": answer["key"],
        "allocationTags": answer.get("tags"),
        "UUID": answer.get("id", ""),
        "resourcePerAlloc": {"resources": {name: {"value": amount} for name, amount in amounts.items()}},
        "nodeID": answer.get("node", ""),
        "applicationID": answer.get("app", ""),
        "partitionName": answer.get("partition", ""),
        "taskGroupName": answer.get("task_group", ""),
        "placeholder": answer.get("placeholder", False),
    }


def _priority(answer: Answer) -> int:
    """Within the 32 bits that the interface has; the ledger itself knows higher ones."""
    priority: int = answer.get("priority", 0)
    return max(-(2**31), min(priority, 2**31 - 1))


def _released(answer: Answer) -> _Fields:
    identity = answer.get("id", "")
    return {
        "partitionName": answer.get("partition", ""),
        "applicationID": answer.get("app", ""),
        "UUID": identity,
        "terminationType": _TERMINATIONS[answer["termination"]],
        "message": answer.get("message", ""),
        "allocationKey": answer.get("key", ""),
        "allocationID": identity,
    }


def _old_released(answer: Answer) -> _Fields:
    return {
        "partitionName": answer.get("partition", ""),
        "applicationID": answer.get("app", ""),
        "UUID": answer.get("id", ""),
        "terminationType": _OLD_TERMINATIONS[answer["termination"]],
        "message": answer.get("message", ""),
    }


def _released_ask(answer: Answer) -> _Fields:
    return {
        "partitionName": answer.get("partition", ""),
        "applicationID": answer.get("app", ""),
        "allocationKey": answer["key"],
        "terminationType": _TERMINATIONS[answer["termination"]],
        "message": answer.get("message", ""),
    }


def _old_released_ask(answer: Answer) -> _Fields:
    return {
        "partitionName": answer.get("partition", ""),
        "applicationID": answer.get("app", ""),
        "allocationkey": answer["key"],
        "terminationType": _OLD_TERMINATIONS[answer["termination"]],
        "message": answer.get("message", ""),
    }


def _rejected(answer: Answer) -> _Fields:
    return {
        "allocationKey": answer["key"],
        "applicationID": answer.get("app", ""),
        "reason": answer.get("reason", ""),
    }


def _accepted_application(answer: Answer) -> _Fields:
    return {"applicationID": answer["app"]}


def _rejected_application(answer: Answer) -> _Fields:
    return {"applicationID": answer["app"], "reason": answer.get("reason", "")}


def _updated_application(answer: Answer) -> _Fields:
    return {
        "applicationID": answer["app"],
        "state": answer["state"],
        "stateTransitionTimestamp": answer["at"],
        "message": answer.get("message", ""),
    }


def _accepted_node(answer: Answer) -> _Fields:
    return {"nodeID": answer["node"]}


def _rejected_node(answer: Answer) -> _Fields:
    return {"nodeID": answer["node"], "reason": answer.get("reason", "")}


# By name, never by number: the numbers of the dialects differ.
_TERMINATIONS: Mapping[str, int] = dict(si.TerminationType.items())
# What the old one has no name for is over all the same, as if the RM had stopped it.
_OLD_TERMINATIONS: Mapping[str, int] = {
    termination.value: si_v0.STOPPED_BY_RM for termination in Termination
} | dict(si_v0.TerminationType.items())


# ---- where each dialect has them -------------------------------------------------------------------------


class _Place(NamedTuple):
    """The field that takes answers of a kind: its name, its number, what it holds."""

    field: str
    number: int
    fields: Callable[[Answer], _Fields]


_NEWER: Mapping[str, _Place] = {
    "new": _Place("new", 1, _new),
    "released": _Place("released", 2, _released),
    "rejected_allocation": _Place("rejectedAllocations", 5, _rejected),
    "rejected_application": _Place("rejected", 1, _rejected_application),
    "accepted_application": _Place("accepted", 2, _accepted_application),
    "updated_application": _Place("updated", 3, _updated_application),
    "rejected_node": _Place("rejected", 1, _rejected_node),
    "accepted_node": _Place("accepted", 2, _accepted_node),
}
_PLACES: Mapping[Dialect, Mapping[str, _Place]] = {
    Dialect.NEWEST: {
        **_NEWER,
        "released_ask": _Place("released", 2, _released),
        "rejected_ask": _Place("rejectedAllocations", 5, _rejected),
    },
    Dialect.SEED: {
        **_NEWER,
        "released_ask": _Place("releasedAsks", 3, _released_ask),
        "rejected_ask": _Place("rejected", 4, _rejected),
    },
    Dialect.OLD: {
        "new": _Place("newAllocations", 2, _old_new),
        "released": _Place("releasedAllocations", 3, _old_released),
        "released_ask": _Place("releasedAllocationAsks", 4, _old_released_ask),
        "rejected_ask": _Place("rejectedAllocations", 5, _rejected),
        "rejected_allocation": _Place("rejectedAllocations", 5, _rejected),
        "rejected_application": _Place("rejectedApplications", 6, _rejected_application),
        "accepted_application": _Place("acceptedApplications", 7, _accepted_application),
        "updated_application": _Place("updatedApplications", 8, _updated_application),
        "rejected_node": _Place("rejectedNodes", 9, _rejected_node),
        "accepted_node": _Place("acceptedNodes", 10, _accepted_node),
    },
}

_RESPONSES: Mapping[Stream, Callable[[], Any]] = {
    Stream.ALLOCATION: si.AllocationResponse,
    Stream.APPLICATION: si.ApplicationResponse,
    Stream.NODE: si.NodeResponse,
}
_RESPONSE_OF: Mapping[tuple[Dialect, Stream], Callable[[], Any]] = {
    (dialect, stream): si_v0.UpdateResponse if dialect is Dialect.OLD else response
    for dialect in Dialect
    for stream, response in _RESPONSES.items()
}
