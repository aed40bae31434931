"""Answers: what a client is told, in words that all dialects of the Scheduler Interface share.

An answer is a JSON object in the outbox, `kind` first, written by the same commit as what it tells of;
absent means empty. A façade puts it into its dialect.
"""

from collections.abc import Mapping

from rm_service.domain.amounts import Amounts, without_ports
from rm_service.domain.application import Application, Instant, State
from rm_service.domain.clients import Phase, Termination
from rm_service.domain.device_annotations import annotations
from rm_service.domain.device_selection import UNIT

Answer = Mapping[str, object]

TERMINATIONS = {
    State.RELEASED: Termination.STOPPED_BY_RM,
    State.EXPIRED: Termination.TIMEOUT,
    State.PREEMPTED: Termination.PREEMPTED_BY_SCHEDULER,
    State.LOST: Termination.STOPPED_BY_RM,
    State.RECLAIMED: Termination.TIMEOUT,
}
"""What an ending is called when a client is told of it."""


def new(application: Application, resource: Amounts) -> Answer:
    """An allocation: granted, or known from before."""
    ask = application.request
    tags = application.tags
    return {
        "kind": "new",
        "partition": tags.get("partition", ""),
        "app": tags.get("app", ""),
        "key": ask.get("key", ""),
        "id": application.outside_id,
        "node": tags.get("node", ""),
        "resource": {**without_ports(resource), **_classes(application)},
        "tags": {**_tags(ask), **annotations(application.devices)} if application.devices else _tags(ask),
        "priority": application.priority,
        "task_group": tags.get("taskGroup", ""),
        "placeholder": ask.get("placeholder", False),
        "originator": ask.get("originator", False),
        "preemption": ask.get("preemption"),
        "queue": tags.get("queue", ""),
    }


def _tags(ask: Mapping[str, object]) -> Mapping[str, object]:
    tags = ask.get("tags", {})
    return tags if isinstance(tags, Mapping) else {}


def _classes(application: Application) -> Amounts:
    """What was asked of resource classes, which an ask names like any other resource: so many devices."""
    asked = (application.placement or {}).get("classes", ())
    return {name: milli // UNIT for name, milli in asked}


def released(application: Application, termination: Termination, message: str) -> Answer:
    """An allocation that is over, or (TIMEOUT, PREEMPTED_BY_SCHEDULER) to be ended and confirmed."""
    tags = application.tags
    return {
        "kind": "released",
        "partition": tags.get("partition", ""),
        "app": tags.get("app", ""),
        "key": application.request.get("key", ""),
        "id": application.outside_id,
        "termination": termination.value,
        "message": message,
    }


def released_ask(application: Application, termination: Termination, message: str) -> Answer:
    """An ask that waits no more although its client did not say so."""
    return {**released(application, termination, message), "kind": "released_ask"}


def rejected_ask(application: str, key: str, reason: str) -> Answer:
    return {"kind": "rejected_ask", "app": application, "key": key, "reason": reason}


def rejected_allocation(application: str, key: str, reason: str) -> Answer:
    return {"kind": "rejected_allocation", "app": application, "key": key, "reason": reason}


def accepted_application(application: str) -> Answer:
    return {"kind": "accepted_application", "app": application}


def rejected_application(application: str, reason: str) -> Answer:
    return {"kind": "rejected_application", "app": application, "reason": reason}


def updated_application(application: str, phase: Phase, at: Instant, message: str) -> Answer:
    """`at` is told in nanoseconds, as the reference does."""
    return {
        "kind": "updated_application",
        "app": application,
        "state": phase.value,
        "at": at * 1000,
        "message": message,
    }


def accepted_node(node: str) -> Answer:
    return {"kind": "accepted_node", "node": node}


def rejected_node(node: str, reason: str) -> Answer:
    return {"kind": "rejected_node", "node": node, "reason": reason}
