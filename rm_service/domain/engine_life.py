"""An engine's life: started and reported, alive, ended or silent."""

from dataclasses import replace

from rm_service.domain import operations as op
from rm_service.domain.amounts import Amounts, same
from rm_service.domain.application import HOLDING, SECOND, Application, State
from rm_service.domain.events import Kind
from rm_service.domain.lease import BELONGS_TO_CLIENT, book_use, end, named_outside, not_usable, unknown
from rm_service.domain.outcomes import Code, Done, Outcome, Refused
from rm_service.domain.registrations import Engine
from rm_service.domain.view import View


def register(view: View, operation: op.RegisterEngine) -> Outcome:
    """A started engine reports itself, and its application's lock becomes use.

    Without a lock it is an error - except that an application given up as LOST is booked again, since
    what runs cannot be refused. The reported amount is booked even where it is over the limit.
    """
    application = view.applications.get(operation.application)
    if application is None:
        return unknown(operation.application)
    refusal = _taken(view, operation, application)
    if refusal is None and application.client is not None:
        refusal = Refused(Code.NO_LOCK, BELONGS_TO_CLIENT, state=application.state)
    if refusal is None:
        lost = application.state is State.LOST
        refusal = _on_lost_node(view, application) if lost else not_usable(view, application)
    if refusal is not None:
        return refusal
    known = view.engines.get(operation.instance)
    is_new = known is None or known.removed
    application = _report(view, application, operation.resource)
    named = named_outside(application, operation.external_ids)
    if named is not application:
        application = named
        view.put_application(application)
    if application.engine != operation.instance:
        application = replace(application, engine=operation.instance)
        view.put_application(application)
    engine = Engine(
        instance=operation.instance,
        application_id=application.id,
        node=operation.node or application.tags.get("node"),
        tags=operation.tags,
        registered_at=view.now if known is None or is_new else known.registered_at,
        last_heartbeat=None if known is None or is_new else known.last_heartbeat,
        deadline=None if known is None or is_new else known.deadline,
    )
    if is_new:
        view.post(
            Kind.ENGINE_REGISTERED, engine.instance, tags=engine.tags, detail={"application": application.id}
        )
    view.put_engine(engine)
    return Done(application=application, engine=engine, created=is_new)


def heartbeat(view: View, operation: op.HeartbeatEngine) -> Outcome:
    """Note a sign of life, and what the engine uses now if it says so."""
    engine, application = _find(view, operation.instance)
    if engine is None or application is None:
        return _unknown(operation.instance)
    if operation.resource is not None:
        application = _report(view, application, operation.resource)
    deadline = view.now + operation.deadline_seconds * SECOND
    alive = replace(engine, last_heartbeat=view.now, deadline=deadline)
    view.put_engine(alive)
    return Done(application=application, engine=alive)


def remove(view: View, operation: op.RemoveEngine) -> Outcome:
    """The engine ended: its application gives everything back."""
    engine, application = _find(view, operation.instance)
    if engine is None or application is None:
        return _unknown(operation.instance)
    ended = _end(view, engine, application, State.RELEASED, None)
    return Done(application=ended, engine=engine)


def lose(view: View, operation: op.LoseEngine) -> Outcome:
    """The engine has been silent past its deadline; nothing happens if it spoke up meanwhile."""
    engine, application = _find(view, operation.instance)
    if engine is None or application is None:
        return _unknown(operation.instance)
    if engine.deadline is None or view.now < engine.deadline:
        return Done(application=application, engine=engine, repeated=True)
    ended = _end(view, engine, application, State.LOST, operation.reason)
    return Done(application=ended, engine=engine)


def _report(view: View, application: Application, resource: Amounts | None) -> Application:
    actual = application.resource if resource is None else {**application.resource, **resource}
    if application.state is State.USED and same(actual, application.resource):
        return application
    return book_use(view, application, actual, report=True)


def _end(
    view: View, engine: Engine, application: Application, state: State, reason: str | None
) -> Application:
    view.put_engine(replace(engine, removed=True))
    view.post(Kind.ENGINE_REMOVED, engine.instance, tags=engine.tags, detail={"application": application.id})
    return end(view, application, state, reason) if application.state in HOLDING else application


def _taken(view: View, operation: op.RegisterEngine, application: Application) -> Refused | None:
    known = view.engines.get(operation.instance)
    if known is not None and not known.removed and known.application_id != application.id:
        detail = f"engine {operation.instance} runs for application {known.application_id}"
        return Refused(Code.ENGINE_EXISTS, detail, field="instance")
    granted_on = application.tags.get("node")
    if operation.node is not None and granted_on not in {None, operation.node}:
        detail = f"application {application.id} was granted on node {granted_on}"
        return Refused(Code.WRONG_NODE, detail, field="node")
    if application.state in HOLDING and application.engine not in {None, operation.instance}:
        detail = f"application {application.id} is run by engine {application.engine}"
        return Refused(Code.ENGINE_EXISTS, detail, field="application")
    return None


def _on_lost_node(view: View, application: Application) -> Refused | None:
    for account in view.accounts_of(application.label_ids):
        if account.is_capacity and (account.total is None or account.balance.closed == "lost"):
            detail = f"its node has to register again first, naming application {application.id}"
            return Refused(Code.NODE_LOST, detail, label=account.label.tags)
    return None


def _find(view: View, instance: str) -> tuple[Engine | None, Application | None]:
    engine = view.engines.get(instance)
    if engine is None or engine.removed:
        return None, None
    return engine, view.applications.get(engine.application_id)


def _unknown(instance: str) -> Refused:
    return Refused(Code.UNKNOWN_ENGINE, f"no engine {instance} is registered")
