"""Writing down what a batch changed: one statement a table, then the numbers of its events."""

from collections.abc import Iterable
from dataclasses import dataclass

from rm_service.domain.application import LIVE, Application, State
from rm_service.domain.view import View
from rm_service.ledger.device_rows import write_device_changes
from rm_service.ledger.documents import to_json
from rm_service.ledger.label_ids import LabelIds
from rm_service.ledger.turn import Turn


@dataclass(frozen=True, slots=True)
class _Waiter:
    """An application in the queue of one label."""

    label_id: int
    application_id: str
    priority: int
    seq: int | None


@dataclass(frozen=True, slots=True)
class _Tag:
    """One tag of a live application (SQLite's index)."""

    key: str
    value: str
    application_id: str


def write(turn: Turn, view: View, ids: LabelIds) -> None:
    """Write every change of the view; on PostgreSQL tell the other replicas that there is something new."""
    texts = turn.texts
    turn.stream()
    if ids.new:
        ids.write(_used_labels(view))
    _write_waiters(turn, view)
    _write_registrations(turn, view)
    if view.changed_claims or view.signatures:
        write_device_changes(turn, view)
    created = [view.applications[key] for key in view.created]
    changed = [view.applications[key] for key in view.changed if key not in view.created]
    turn.write_together(
        [
            (texts.insert_applications, created),
            (texts.update_applications, changed),
            (texts.insert_intervals, view.intervals),
            (texts.update_balances, [view.accounts[key].balance for key in view.changed_accounts]),
            (texts.insert_events, view.events),
        ],
        (view.seq, view.now, view.targets) if view.events else (),
    )
    if turn.sqlite:
        _write_tags(turn, view, created, changed)


def _used_labels(view: View) -> set[int]:
    used = view.changed_accounts | view.changed_nodes | view.changed_rooms
    for key in [*view.created, *view.changed]:
        used.update(view.applications[key].label_ids, view.applications[key].waits_on)
    return used


def _write_tags(turn: Turn, view: View, created: list[Application], changed: list[Application]) -> None:
    """Keep SQLite's index equal to the tags of live applications."""
    texts = turn.texts
    for application in changed:
        lives = application.state in LIVE
        before = view.tags_before.get(application.id, {} if lives else application.tags)
        now = application.tags if lives else {}
        for key, value in before.items():
            if now.get(key) != value:
                turn.execute(texts.delete_tags, key, value, application.id)
    live = (application for application in created + changed if application.state in LIVE)
    turn.write(texts.insert_tags, _tags(live))


def _tags(applications: Iterable[Application]) -> list[_Tag]:
    return [
        _Tag(key, value, application.id)
        for application in applications
        for key, value in application.tags.items()
    ]


def _write_waiters(turn: Turn, view: View) -> None:
    if not view.requeued:
        return
    texts = turn.texts
    turn.execute(texts.delete_waiters, to_json(sorted(view.requeued)))
    rows = [
        _Waiter(label_id, application.id, application.priority, application.wait_seq)
        for application in (view.applications[key] for key in view.requeued if key in view.applications)
        if application.state is State.WAITING
        for label_id in application.waits_on
    ]
    turn.write(texts.insert_waiters, rows)
    turn.execute(texts.rank_waiters, to_json(sorted(view.requeued_labels)))


def _write_registrations(turn: Turn, view: View) -> None:
    texts = turn.texts
    rooms = [view.accounts[label_id].balance for label_id in view.changed_nodes | view.changed_rooms]
    turn.write(texts.update_rooms, rooms)
    turn.write(texts.upsert_nodes, [view.nodes[label_id] for label_id in view.changed_nodes])
    engines = [view.engines[name] for name in view.changed_engines]
    gone = [engine.instance for engine in engines if engine.removed]
    if gone:
        turn.execute(texts.delete_engines, to_json(gone))
    turn.write(texts.upsert_engines, [engine for engine in engines if not engine.removed])
