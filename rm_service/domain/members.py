"""An application with members: which phase it is in, by how many of its asks wait and how many run.

New ──first ask──▶ Accepted ──first allocation──▶ Running ──nothing left──▶ Completing ──a while──▶ Completed
                      └──────────nothing left────────────────▲  └──new ask──▶ Running
"""

from dataclasses import replace
from uuid import UUID, uuid5

from rm_service.domain import answers
from rm_service.domain.application import HOLDING, Application, Instant, Standing, State
from rm_service.domain.clients import Phase
from rm_service.domain.events import Kind
from rm_service.domain.view import View

_MESSAGES = {
    Phase.ACCEPTED: "runApplication",
    Phase.RUNNING: "runApplication",
    Phase.COMPLETING: "completeApplication",
    Phase.COMPLETED: "completeApplication",
    Phase.FAILING: "failApplication",
    Phase.FAILED: "failApplication",
}
"""What the reference calls the transitions."""


def parent_of(view: View, application: Application) -> Application | None:
    """The application that this one is a member of."""
    return None if application.parent is None else view.applications[application.parent]


def moved(view: View, before: State | None, after: Application, *, settled: bool = True) -> None:
    """Count a member that came, was granted or ended, and let its parent pass into its next phase.

    `settled` is False while another member is about to take its place.
    """
    parent = parent_of(view, after)
    if parent is None or parent.standing is None or parent.finished_at is not None:
        return
    waiting = (after.state is State.WAITING) - (before is State.WAITING)
    holding = (after.state in HOLDING) - (before in HOLDING)
    if not waiting and not holding:
        return
    standing = parent.standing
    counted = replace(standing, waiting=standing.waiting + waiting, holding=standing.holding + holding)
    parent = _put(view, parent, counted)
    if not settled:
        return
    is_real = holding > 0 and not after.request.get("placeholder")
    for phase in _passed(Phase(standing.phase or Phase.NEW), counted, is_real=is_real):
        parent = enter(view, parent, phase)


def settle(view: View, parent: Application | None) -> None:
    """Let an application pass into its next phase after all, when nothing took the place of a member."""
    parent = None if parent is None else view.applications[parent.id]
    if parent is None or parent.standing is None or parent.finished_at is not None:
        return
    for phase in _passed(Phase(parent.standing.phase or Phase.NEW), parent.standing, is_real=False):
        parent = enter(view, parent, phase)


def again_id(application_id: str, seq: int) -> str:
    """The id of what takes the place of an application, made of its id and the number of the last event."""
    return str(uuid5(UUID(application_id), str(seq)))


def enter(view: View, parent: Application, phase: Phase, message: str | None = None) -> Application:
    """Pass into a phase, and tell the client."""
    standing = parent.standing or Standing()
    if phase is Phase.RUNNING and standing.run_until is None and standing.run_for > 0:
        standing = replace(standing, run_until=view.now + standing.run_for)
    parent = _put(view, parent, replace(standing, phase=phase.value))
    app = parent.tags.get("app", "")
    told = answers.updated_application(app, phase, view.now, message or _MESSAGES[phase])
    view.post(
        Kind.APPLICATION_PHASE,
        parent.id,
        tags=parent.tags,
        detail={"phase": phase.value},
        client=parent.client,
        answer=told,
    )
    return parent


def _passed(phase: Phase, counted: Standing, *, is_real: bool) -> list[Phase]:
    """The phases that follow one after another."""
    passed: list[Phase] = []
    anything = counted.waiting > 0 or counted.holding > 0
    if phase is Phase.NEW and anything:
        passed.append(Phase.ACCEPTED)
    if (phase in {Phase.NEW, Phase.ACCEPTED} and is_real) or (phase is Phase.COMPLETING and anything):
        passed.append(Phase.RUNNING)
    if phase in {Phase.ACCEPTED, Phase.RUNNING} and not anything:
        passed.append(Phase.COMPLETING)
    return passed


def _put(view: View, parent: Application, standing: Standing) -> Application:
    """Keep the row, with the moment when it ends by itself."""
    was = None if parent.standing is None else parent.standing.phase
    deadline = parent.deadline
    if parent.state is not State.WAITING and not (was == standing.phase == Phase.COMPLETING):
        deadline = ends(view, standing)
    changed = replace(parent, standing=standing, deadline=deadline)
    view.put_application(changed)
    return changed


def overrun(view: View, parent: Application) -> bool:
    """Whether its execution time is over."""
    run_until = None if parent.standing is None else parent.standing.run_until
    return run_until is not None and view.now >= run_until


def ends(view: View, standing: Standing) -> Instant | None:
    """When it ends by itself: its execution time is over, or it has been without members for a while."""
    if standing.phase == Phase.FAILING:  # until every allocation is confirmed to have ended
        return view.now + (view.periods.echo if standing.holding else 0)
    if standing.phase != Phase.COMPLETING:
        return standing.run_until
    completed = view.now + view.periods.completing
    return completed if standing.run_until is None else min(completed, standing.run_until)
