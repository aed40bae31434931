"""Writing down what a batch changed: one statement a table, then the numbers of its events."""

from collections.abc import Iterable
from dataclasses import asdict

from rm_service.domain.application import LIVE, Application, State
from rm_service.domain.view import View
from rm_service.ledger.turn import Turn, to_json


def write(turn: Turn, view: View) -> None:
    """Write every change of the view; on PostgreSQL tell the other replicas that there is something new."""
    texts = turn.texts
    _write_applications(turn, view)
    if view.changed_accounts:
        balances = [view.accounts[label_id].balance for label_id in view.changed_accounts]
        turn.execute(texts.update_balances, to_json(balances))
    _write_waiters(turn, view)
    _write_registrations(turn, view)
    if view.events:
        turn.execute(texts.insert_events, to_json(view.events))
        turn.execute(texts.give_back, view.seq, view.now, view.targets)
        if not turn.sqlite:
            turn.execute(texts.notify)


def _write_applications(turn: Turn, view: View) -> None:
    texts = turn.texts
    created = [view.applications[key] for key in view.created]
    changed = [view.applications[key] for key in view.changed if key not in view.created]
    if created:
        document = to_json(created)
        turn.execute(texts.insert_applications, document)
        if turn.sqlite:
            turn.execute(texts.insert_tags, to_json(_tagged(created, live=True)))
    if changed:
        turn.execute(texts.update_applications, to_json(changed))
        if turn.sqlite:
            turn.execute(texts.delete_tags, to_json(_tagged(changed, live=False)))
            turn.execute(texts.insert_tags, to_json(_tagged(changed, live=True)))
    if view.intervals:
        turn.execute(texts.insert_intervals, to_json(view.intervals))


def _tagged(applications: Iterable[Application], *, live: bool) -> list[dict[str, object]]:
    return [
        {"id": application.id, "tags": application.tags}
        for application in applications
        if (application.state in LIVE) is live
    ]


def _write_waiters(turn: Turn, view: View) -> None:
    if not view.requeued:
        return
    texts = turn.texts
    turn.execute(texts.delete_waiters, to_json(sorted(view.requeued)))
    rows = [
        {
            "label_id": label_id,
            "application_id": application.id,
            "priority": application.priority,
            "seq": application.wait_seq,
        }
        for application in (view.applications[key] for key in view.requeued if key in view.applications)
        if application.state is State.WAITING
        for label_id in application.waits_on
    ]
    if rows:
        turn.execute(texts.insert_waiters, to_json(rows))
    turn.execute(texts.rank_waiters, to_json(sorted(view.requeued_labels)))


def _write_registrations(turn: Turn, view: View) -> None:
    texts = turn.texts
    if view.changed_nodes:
        turn.execute(texts.upsert_nodes, to_json([view.nodes[label_id] for label_id in view.changed_nodes]))
    gone = [name for name in view.changed_engines if view.engines[name].removed]
    if gone:
        turn.execute(texts.delete_engines, to_json(gone))
    kept = [asdict(view.engines[name]) for name in view.changed_engines if not view.engines[name].removed]
    if kept:
        turn.execute(texts.upsert_engines, to_json(kept))
