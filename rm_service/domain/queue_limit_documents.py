"""Reading the limits of users and groups in a queue."""

from dataclasses import dataclass, field

from rm_service.domain.queue_config import ANY, QueueConfigError, QueueLimit
from rm_service.domain.queue_fields import (
    read_amounts,
    read_applications,
    read_group,
    read_list,
    read_object,
    read_text,
    read_user,
)
from rm_service.domain.queue_resources import Room


def read_limits(document: object, path: str, room: Room) -> tuple[QueueLimit, ...]:
    """Read a list of limits; `room` is what the queue itself may hold. Raises QueueConfigError."""
    seen = _Seen()
    return tuple(
        [
            _read_limit(limit, f"{path}[{at}]", room, seen)
            for at, limit in enumerate(read_list(document, path))
        ]
    )


@dataclass(slots=True)
class _Seen:
    """Who has a limit already: nobody has two, and whoever is named comes before the wildcard."""

    users: set[str] = field(default_factory=set)
    groups: set[str] = field(default_factory=set)

    def add_user(self, document: object, path: str) -> str:
        return self._add(self.users, document if document == ANY else read_user(document, path), path)

    def add_group(self, document: object, path: str) -> str:
        if document == ANY and not self.groups:
            raise QueueConfigError(path, "the wildcard needs a named group before it")
        return self._add(self.groups, document if document == ANY else read_group(document, path), path)

    def _add(self, names: set[str], name: object, path: str) -> str:
        if name in names:
            raise QueueConfigError(path, "has a limit in this queue already")
        if ANY in names:
            raise QueueConfigError(path, "comes after the wildcard, which must be last")
        names.add(str(name))
        return str(name)


def _read_limit(document: object, path: str, room: Room, seen: _Seen) -> QueueLimit:
    fields = read_object(document, path, ("limit", "users", "groups", "maxresources", "maxapplications"))
    read_text(fields.get("limit"), f"{path}.limit")
    users = read_list(fields.get("users"), f"{path}.users")
    groups = read_list(fields.get("groups"), f"{path}.groups")
    if not users and not groups:
        raise QueueConfigError(path, "names neither users nor groups")
    limit = QueueLimit(
        users=tuple([seen.add_user(user, f"{path}.users[{at}]") for at, user in enumerate(users)]),
        groups=tuple([seen.add_group(group, f"{path}.groups[{at}]") for at, group in enumerate(groups)]),
        max=read_amounts(fields.get("maxresources"), f"{path}.maxresources"),
        max_applications=read_applications(fields.get("maxapplications"), f"{path}.maxapplications"),
    )
    if limit.max and not any(limit.max.values()):
        raise QueueConfigError(f"{path}.maxresources", "needs a quantity that is more than 0")
    if not limit.max and limit.max_applications is None:
        raise QueueConfigError(path, "needs a quantity that is more than 0")
    room.check(limit.max, f"{path}.maxresources")
    if limit.max_applications is not None:
        room.check_applications(limit.max_applications, f"{path}.maxapplications")
    return limit
