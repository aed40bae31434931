"""The documents that the API answers with."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

from rm_service.domain.accounts import Account
from rm_service.domain.amounts import minus, plus, without_zeros
from rm_service.domain.application import Application, Instant, State
from rm_service.domain.events import Event
from rm_service.domain.limits import Limit
from rm_service.domain.tags import Tags
from rm_service.facades.http.device_rendering import (
    application_devices,
    free_devices,
    held_document,
    without_devices,
)
from rm_service.facades.http.problems import shortfall_document
from rm_service.ledger.queries.clients import ResourceManager
from rm_service.ledger.queries.engines import EngineRecord
from rm_service.ledger.queries.nodes import NodeRecord
from rm_service.ledger.queries.usage import Usage
from rm_service.services.explanations import Explanation

Document = dict[str, Any]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def time_text(instant: Instant) -> str:
    """RFC 3339 in UTC with microseconds."""
    return (_EPOCH + timedelta(microseconds=instant)).isoformat(timespec="microseconds")[:-6] + "Z"


def time_or_none(instant: Instant | None) -> str | None:
    return None if instant is None else time_text(instant)


def application_document(
    application: Application, labels: Iterable[Tags], position: int | None = None
) -> Document:
    """An application with its labels, its deadlines and its transitions."""
    state = application.state
    deadline = time_or_none(application.deadline)
    return {
        "id": application.id,
        "state": state.value,
        "node": application.tags.get("node"),
        "labels": list(labels),
        "resource": application.resource,
        "requested": application.requested,
        "tags": application.tags,
        "lock_deadline": deadline if state is State.LOCKED else None,
        "wait_deadline": deadline if state is State.WAITING else None,
        "reason": application.reason,
        "position": position,
        "priority": application.priority,
        "over_limit": application.over_limit,
        "engine": application.engine,
        "placement": _placement(application),
        "client": application.client,
        "parent": application.parent,
        "phase": application.standing.phase if application.standing is not None else None,
        "external": _external(application),
        **application_devices(application),
        "transitions": transitions(application),
    }


def _external(application: Application) -> Document | None:
    external = application.external
    return None if external is None else {"ids": list(external.ids), "shown": external.shown}


def _placement(application: Application) -> Document | None:
    placement = application.placement
    return None if placement is None else {name: placement[name] for name in ("selector", "strategy")}


def transitions(application: Application) -> list[Document]:
    """Each state that it came into, with the time; of a life that was booked again, the last one."""
    times: list[tuple[State, Instant | None]] = [
        (State.WAITING, None if application.wait_seq is None else application.created_at),
        (State.LOCKED, None if application.locked_at == application.used_at else application.locked_at),
        (State.USED, application.used_at),
        (application.state, application.finished_at),
    ]
    return [{"state": state.value, "time": time_text(time)} for state, time in times if time is not None]


def event_document(event: Event, labels: Iterable[Tags]) -> Document:
    """An event of the outbox. `resource` is how much it moved, `locked` and `used` in which direction."""
    moved: Mapping[str, int] = event.used if any(event.used.values()) else event.locked
    return {
        "seq": event.seq,
        "time": time_text(event.time),
        "kind": event.kind.value,
        "subject": event.subject,
        "tags": event.tags,
        "labels": list(labels),
        "resource": {dimension: abs(amount) for dimension, amount in moved.items()},
        "locked": event.locked,
        "used": event.used,
        "detail": event.detail,
    }


def node_document(record: NodeRecord) -> Document:
    """A node with its amounts."""
    node, account = record.node, record.account
    return {
        "instance": node.instance,
        "partition": node.partition or None,
        "state": record.state.value,
        "resource_type": node.resource_type,
        "target": node.target,
        **{name: without_devices(amounts) for name, amounts in amounts_document(account).items()},
        "applications": account.balance.applications,
        "tags": node.tags,
        "attributes": node.attributes,
        "devices": list(node.devices),
        "free_devices": free_devices(account),
        "over_limit": record.over_limit,
        "reason": node.reason,
        "registered_at": time_text(node.registered_at),
        "last_heartbeat": time_or_none(node.last_heartbeat),
        "heartbeat_deadline": time_or_none(node.deadline),
    }


def resource_manager_document(manager: ResourceManager) -> Document:
    """A resource manager, without its secrets."""
    return {
        **asdict(manager),
        "registered_at": time_text(manager.registered_at),
        "resync_until": time_or_none(manager.resync_until),
    }


def amounts_document(account: Account) -> Document:
    """What an account has, by dimension; a label without a limit has no total, and nothing is left of it."""
    balance = account.balance
    has_total = account.total is not None
    return {
        "total": account.total,
        "protected": account.protected if has_total else None,
        "locked": without_zeros(balance.locked),
        "used": without_zeros(balance.used),
        "left": account.left() if has_total else None,
    }


def label_document(account: Account) -> Document:
    """A label with its balance and, as its total, the limit that counts for it."""
    label = account.label
    return {
        "id": label.id,
        "tags": label.tags,
        "rule": None if label.rule is None else label.rule.name,
        "kind": None if label.rule is None else label.rule.kind.value,
        **amounts_document(account),
        "applications": account.balance.applications,
        "closed": account.balance.closed,
        "over_limit": account.over_limit(),
        "waiters": account.balance.first_priority is not None,
        "external": _place(account),
    }


def _place(account: Account) -> Document | None:
    """What an external manager was last seen to say of the label."""
    balance, observation = account.balance, account.balance.observation
    if observation is None:
        return None
    held = plus(balance.locked, balance.used)
    used_there = set(observation.observed).union(*[amounts for _, amounts in observation.ended])
    return {
        "provider": observation.provider,
        "observed": observation.observed,
        "others": without_zeros({name: account.others(name) for name in used_there}),
        "observed_at": time_text(observation.at),
        "stale_at": time_or_none(observation.stale_at),
        "ignored_when_stale": observation.ignored_when_stale,
        "seen": without_zeros(balance.seen),
        "unseen": without_zeros(minus(held, balance.seen)),
    }


def engine_document(record: EngineRecord, labels: Iterable[Tags]) -> Document:
    """An engine with what its application holds."""
    engine, application = record.engine, record.application
    return {
        "instance": engine.instance,
        "application": application.id,
        "state": application.state.value,
        "node": engine.node,
        "resource": application.resource,
        "tags": record.tags,
        "labels": list(labels),
        "over_limit": application.over_limit,
        "registered_at": time_text(engine.registered_at),
        "last_heartbeat": time_or_none(engine.last_heartbeat),
        "heartbeat_deadline": time_or_none(engine.deadline),
    }


def limit_document(limit: Limit) -> Document:
    """A limit as it was set."""
    return {
        "id": limit.id,
        "tags": limit.tags,
        "total": limit.total,
        "protected": limit.protected,
        "source": limit.source,
    }


def usage_document(usage: Usage) -> Document:
    """Usage by tags; `source` says what it was read from."""
    rows = []
    for row in usage.rows:
        document: Document = {
            "tags": row.tags,
            "locked": row.locked,
            "used": row.used,
            "total": row.total,
            "protected": row.protected,
            "left": row.left,
            "applications": row.applications,
        }
        rows.append(document)
    return {"by": list(usage.by), "source": usage.source.value, "rows": rows}


def explanation_document(explanation: Explanation, labels: Iterable[Tags]) -> Document:
    """Would it fit, where, and if not why and because of whom."""
    granted, refused = explanation.granted, explanation.refused
    return {
        "would_fit": granted is not None,
        "node": None if granted is None else granted.tags.get("node"),
        "labels": list(labels),
        "devices": [] if granted is None else [held_document(each) for each in granted.devices],
        "code": None if refused is None else refused.code.value,
        "detail": None if refused is None else refused.detail,
        "shortfalls": [] if refused is None else [shortfall_document(each) for each in refused.shortfalls],
        "waiters_ahead": explanation.waiters_ahead,
        "warnings": list(explanation.warnings),
        "largest_holders": [
            {
                "label": each.label,
                "dimension": each.dimension,
                "holders": [
                    {
                        "id": holder.application.id,
                        "state": holder.application.state.value,
                        "tags": holder.application.tags,
                        "amount": holder.amount,
                    }
                    for holder in each.holders
                ],
            }
            for each in explanation.in_the_way
        ],
    }


def page_document(items: Iterable[Document], next_cursor: str | None) -> Document:
    """One page of a list."""
    return {"items": list(items), "next_cursor": next_cursor}
