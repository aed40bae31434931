"""Questions about clients: the resource managers that have registered."""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, select

from rm_service.domain.application import Instant
from rm_service.ledger import tables

_TABLE = tables.si_client
HIDDEN = "***"


@dataclass(frozen=True, slots=True)
class ResourceManager:
    """What a resource manager said about itself; what may be secret is hidden. Times are microseconds UTC."""

    id: str
    dialect: str | None
    version: str
    policy_group: str
    build_info: Mapping[str, str]
    extra_config: Mapping[str, str]
    """Only its keys are told."""
    state: str
    registrations: int
    registered_at: Instant
    resync_until: Instant | None
    """When what it has not reported again is given up; None when nothing is outstanding."""


def list_resource_managers(connection: Connection) -> list[ResourceManager]:
    """All of them, by id."""
    rows = connection.execute(select(_TABLE).order_by(_TABLE.c.rm_id))
    return [
        ResourceManager(
            id=row.rm_id,
            dialect=row.dialect,
            version=row.version,
            policy_group=row.policy_group,
            build_info=row.build_info,
            extra_config=dict.fromkeys(row.extra_config, HIDDEN),
            state=row.state,
            registrations=row.registration,
            registered_at=row.registered_at,
            resync_until=row.resync_until,
        )
        for row in rows
    ]
