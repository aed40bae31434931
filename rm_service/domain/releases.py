"""What a client gives back: allocations, asks, whole applications, and what it no longer reports."""

from collections.abc import Sequence
from dataclasses import replace

from rm_service.domain import client_operations as op
from rm_service.domain import members
from rm_service.domain.application import HOLDING, LIVE, Application, Standing, State
from rm_service.domain.asks import ask_once
from rm_service.domain.clients import Client, Phase, Termination
from rm_service.domain.events import Kind
from rm_service.domain.lease import end, end_whole, unknown
from rm_service.domain.members import again_id, parent_of
from rm_service.domain.outcomes import Done, Outcome, Refused
from rm_service.domain.placing import read_placement
from rm_service.domain.rejections import reject
from rm_service.domain.view import View

BY_REQUEST = "allocation remove as per RM request"

_ENDED = {
    Termination.TIMEOUT: State.EXPIRED,
    Termination.PREEMPTED_BY_SCHEDULER: State.PREEMPTED,
    Termination.PLACEHOLDER_REPLACED: State.RELEASED,
}
"""What a client's confirmation, by the same word that it was told, makes of an allocation."""


def release_allocation(view: View, operation: op.ReleaseAllocation) -> Outcome:
    """Give back what is named; what is not known is none, and no error."""
    for application in _named(view, operation):
        if application.state is State.WAITING:
            if operation.only_ask or operation.termination is not Termination.TIMEOUT:
                end(view, application, State.RELEASED, "cancelled", quiet=True)
        elif application.state in HOLDING and not operation.only_ask:
            _release(view, operation, application)
    return Done()


def remove_application(view: View, operation: op.RemoveApplication) -> Outcome:
    """End an application and its members; one that is not known is no error."""
    for application in _own(view, operation.client, operation.name):
        end_whole(view, application, State.RELEASED, operation.message, asks_quiet=True)
    return Done()


def forget(view: View, operation: op.ForgetApplication) -> Outcome:
    """End what its client, registered anew, has not reported again."""
    application = view.applications.get(operation.id)
    if application is None:
        return unknown(operation.id)
    if application.state not in LIVE or reported(application.standing, operation.client):
        return Done(application=application, repeated=True)
    return Done(application=end_whole(view, application, State.RELEASED, operation.reason))


def tell(view: View, operation: op.Tell) -> Outcome:
    """Write down an answer that needed no decision."""
    answer, client = operation.answer, operation.client.id
    detail = {name: str(answer[name]) for name in ("kind", "reason") if name in answer}
    view.post(
        Kind.CLIENT_REJECTED,
        operation.subject,
        tags={"client": client},
        detail=detail,
        client=client,
        answer=answer,
    )
    return Done()


def reported(standing: Standing | None, client: Client) -> bool:
    """Whether something was reported under this registration of its client."""
    return standing is None or standing.registration >= client.registration


def _named(view: View, operation: op.ReleaseAllocation) -> Sequence[Application]:
    """What a release means: by id, else by key, else everything of an application."""
    client = operation.client
    if operation.id is not None:
        known = view.applications.get(operation.id)
        if known is not None and known.client == client.id and known.state in LIVE and not known.has_members:
            return [known] if known.tags.get("partition") == operation.partition else []
    if operation.name is not None:
        found = _own(view, client, operation.name)
    else:
        parents = [] if operation.parent is None else _own(view, client, operation.parent)
        ids = [member_id for parent in parents for member_id in view.lookup.members_of(parent.id)]
        found = [view.applications[member_id] for member_id in ids]
    return [each for each in found if operation.id is None or each.outside_id == operation.id]


def _own(view: View, client: Client, name: str) -> list[Application]:
    """What a client calls so: in another's partition there is nothing of its own."""
    return [each for each in view.named(name) if each.client == client.id]


def _release(view: View, operation: op.ReleaseAllocation, application: Application) -> None:
    termination = operation.termination
    if termination is Termination.SCHEDULING_FAILED_ON_RM and application.is_told_of:
        _ask_anew(view, operation, application)
    elif termination in _ENDED:
        end(view, application, _ENDED[termination], application.reason, quiet=True)
    else:
        end(view, application, State.RELEASED, BY_REQUEST)


def _ask_anew(view: View, operation: op.ReleaseAllocation, application: Application) -> None:
    """The client could not start it: it gives its room back and waits again, elsewhere if need be."""
    parent = parent_of(view, application)
    if parent is not None and (parent.standing or Standing()).phase not in {Phase.ACCEPTED, Phase.RUNNING}:
        return
    end(view, application, State.RELEASED, "could not be started", quiet=True, replaced=True)
    placement = None if application.placement is None else read_placement(application.placement)
    standing = application.standing or Standing()
    own = {key: value for key, value in application.tags.items() if placement is None or key != "node"}
    if standing.required_node is not None:
        own["node"] = standing.required_node
    again = op.Ask(
        client=replace(operation.client, registration=standing.registration),
        ids=(again_id(application.id, view.seq),),
        name=application.name or "",
        parent=None,
        tags=own,
        resource=application.requested,
        priority=application.priority,
        run_for=standing.run_for,
        placement=placement,
        request={key: value for key, value in application.request.items() if key != "uuid"},
    )
    outcome = ask_once(view, again, again.ids[0], own, parent)
    if isinstance(outcome, Refused):
        reject(view, again, outcome)
        members.settle(view, parent)
