"""Which groups a user is in, for applications whose resource manager names none."""

import grp
import os
import pwd
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from rm_service.domain.queue_config import GroupLookup, GroupSource


class UnknownUserError(LookupError):
    """The source of groups does not know this user."""

    def __init__(self, user: str) -> None:
        self.user = user
        super().__init__(f"user {user!r} is unknown")


class GroupResolver(Protocol):
    """Knows the groups of users."""

    def groups_of(self, user: str) -> tuple[str, ...]:
        """The user's groups, the primary one first. Raises UnknownUserError. May take as long as a lookup
        over the network.
        """
        ...


@dataclass(frozen=True, slots=True)
class NoGroups:
    """Nobody is in a group."""

    def groups_of(self, user: str) -> tuple[str, ...]:  # noqa: ARG002 - the same for everyone
        return ()


@dataclass(frozen=True, slots=True)
class FileGroups:
    """Groups by user, as the configuration lists them."""

    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def groups_of(self, user: str) -> tuple[str, ...]:
        try:
            return self.groups[user]
        except KeyError as error:
            raise UnknownUserError(user) from error


@dataclass(frozen=True, slots=True)
class SystemGroups:
    """Groups of the operating system that the service runs on."""

    def groups_of(self, user: str) -> tuple[str, ...]:
        try:
            primary = pwd.getpwnam(user).pw_gid
        except (KeyError, ValueError) as error:
            raise UnknownUserError(user) from error
        numbers = dict.fromkeys([primary, *os.getgrouplist(user, primary)])
        return tuple([name for name in map(_group_name, numbers) if name])


def resolver_for(lookup: GroupLookup) -> GroupResolver:
    """The resolver that a partition's configuration asks for."""
    match lookup.source:
        case GroupSource.FILE:
            return FileGroups(lookup.groups)
        case GroupSource.SYSTEM:
            return SystemGroups()
        case GroupSource.NONE:
            return NoGroups()


def _group_name(number: int) -> str:
    """The group's name, empty if it has none."""
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return ""
