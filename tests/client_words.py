"""What a resource manager says to the ledger, in short forms, and what it knows from the answers."""

from collections.abc import Iterable, Mapping
from itertools import count
from typing import Any

from rm_service.domain import operations as op
from rm_service.domain.amounts import Amounts
from rm_service.domain.clients import Client, Termination

RM = Client("rm-1")
AGAIN = Client("rm-1", 2)
"""The same resource manager after it has registered a second time."""
OTHER = Client("rm-2")
GIVES_BACK = frozenset({"STOPPED_BY_RM"})
"""Terminations with which `released` is the end; all others are confirmed by the client."""

_numbers = count(1)


def fresh_id() -> str:
    """An id that nobody had before, the same in every run."""
    return f"00000000-0000-7000-8000-{next(_numbers):012x}"


def partition_of(client: Client) -> str:
    return f"[{client.id}]default"


def application_name(app: str, client: Client = RM) -> str:
    return f"{partition_of(client)}/{app}"


def allocation_name(app: str | None, key: str, client: Client = RM) -> str:
    return f"{partition_of(client)}/{app or ''}/{key}"


def application_tags(app: str, client: Client = RM, user: str = "alice", queue: str = "root.a") -> Any:
    return {"partition": partition_of(client), "app": app, "queue": queue, "user": user}


def adding(
    app: str = "app-1", *, client: Client = RM, user: str = "alice", queue: str = "root.a", run_for: int = 0
) -> op.AddApplication:
    """Add an application; `run_for` in seconds."""
    return op.AddApplication(
        client=client,
        id=fresh_id(),
        name=application_name(app, client),
        tags=application_tags(app, client, user, queue),
        resource={"apps": 1},
        run_for=run_for * 1_000_000,
    )


def asking(
    key: str,
    app: str | None = "app-1",
    *,
    memory: int = 1,
    count: int = 1,
    client: Client = RM,
    priority: int = 0,
    run_for: int = 0,
    node: str | None = None,
    queue: str = "root.a",
    request: Mapping[str, Any] | None = None,
    resource: Amounts | None = None,
) -> op.Ask:
    """Ask for `count` allocations; with `node` only there, else wherever there is room."""
    partition = partition_of(client)
    own: dict[str, str] = {"partition": partition, "allocationKey": key}
    if app is not None:
        own |= application_tags(app, client, queue=queue)
    if node is not None:
        own["node"] = node
    return op.Ask(
        client=client,
        ids=tuple([fresh_id() for _ in range(count)]),
        name=allocation_name(app, key, client),
        parent=None if app is None else application_name(app, client),
        tags=own,
        resource={"memory": memory} if resource is None else resource,
        priority=priority,
        run_for=run_for * 1_000_000,
        placement=None if node is not None else op.Placement("", "fair", partition),
        request={"key": key, **(request or {})},
    )


def booking(
    key: str,
    node: str,
    app: str | None = "app-1",
    *,
    memory: int = 1,
    id: str | None = None,  # noqa: A002 - the name of the field
    uuid: str | None = None,
    client: Client = RM,
    anonymous: bool = False,
    foreign: bool = False,
    required_node: str | None = None,
    resource: Amounts | None = None,
) -> op.BookAllocation:
    """Report what runs: under our id, under one of the client's own (`uuid`), or without any."""
    own = {"partition": partition_of(client), "allocationKey": key, "node": node}
    if app is not None:
        own |= application_tags(app, client)
    request: dict[str, object] = {"key": key}
    if uuid is not None:
        request["uuid"] = uuid
    if anonymous:
        request["anonymous"] = True
    if foreign:
        request["foreign"] = True
    return op.BookAllocation(
        client=client,
        id=id or fresh_id(),
        spare_id=fresh_id(),
        name=allocation_name(app, key, client),
        parent=None if app is None else application_name(app, client),
        tags=own,
        resource={"memory": memory} if resource is None else resource,
        placement=op.Placement("", "fair", partition_of(client)),
        required_node=required_node,
        request=request,
    )


def releasing(
    key: str | None = None,
    app: str | None = "app-1",
    *,
    id: str | None = None,  # noqa: A002 - the name of the field
    termination: Termination = Termination.STOPPED_BY_RM,
    only_ask: bool = False,
    client: Client = RM,
) -> op.ReleaseAllocation:
    """Release by id, else by key, else everything of the application."""
    return op.ReleaseAllocation(
        client=client,
        partition=partition_of(client),
        parent=None if app is None else application_name(app, client),
        name=None if key is None else allocation_name(app, key, client),
        id=id,
        termination=termination,
        only_ask=only_ask,
        spare_id=fresh_id(),
    )


def removing(app: str = "app-1", *, client: Client = RM) -> op.RemoveApplication:
    name = application_name(app, client)
    return op.RemoveApplication(client=client, name=name, message=f"Application {app} Removed")


def creating_node(
    instance: str = "n1",
    memory: int = 10,
    *,
    client: Client = RM,
    occupied: int = 0,
    closed: str | None = None,
    **attributes: str,
) -> op.CreateNode:
    return op.CreateNode(
        client=client,
        instance=instance,
        partition=partition_of(client),
        total={"memory": memory},
        occupied={"memory": occupied} if occupied else {},
        attributes=attributes,
        closed=closed,
    )


def updating_node(instance: str = "n1", *, client: Client = RM, **changed: Any) -> op.UpdateNode:
    return op.UpdateNode(client=client, instance=instance, partition=partition_of(client), **changed)


def decommissioning(
    instance: str = "n1", *, client: Client = RM, only_unreported: bool = False
) -> op.DecommissionNode:
    return op.DecommissionNode(
        client=client,
        instance=instance,
        partition=partition_of(client),
        only_unreported=only_unreported,
    )


def kinds(answers: Iterable[Mapping[str, Any]]) -> list[str]:
    return [str(answer["kind"]) for answer in answers]


def of_kind(answers: Iterable[Mapping[str, Any]], kind: str) -> list[Mapping[str, Any]]:
    return [answer for answer in answers if answer["kind"] == kind]


def phases(answers: Iterable[Mapping[str, Any]], app: str = "app-1") -> list[str]:
    """The states of an application that its client was told of, one after another."""
    return [
        str(answer["state"]) for answer in of_kind(answers, "updated_application") if answer["app"] == app
    ]


def running(answers: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """What a client that only listens believes to run, by id: told `new` and not that it is over."""
    known: dict[str, Mapping[str, Any]] = {}
    for answer in answers:
        if answer["kind"] == "new":
            known[str(answer["id"])] = answer
        elif answer["kind"] == "released" and answer["termination"] in GIVES_BACK:
            del known[str(answer["id"])]
    return known
