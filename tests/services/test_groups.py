import grp
import os
import pwd

import pytest

from rm_service.domain.queue_config import GroupLookup, GroupSource
from rm_service.services.si.groups import (
    FileGroups,
    NoGroups,
    SystemGroups,
    UnknownUserError,
    resolver_for,
)


def test_without_a_source_nobody_is_in_a_group() -> None:
    assert resolver_for(GroupLookup()) == NoGroups()
    assert NoGroups().groups_of("anyone") == ()


def test_groups_of_the_configuration_are_found_by_user() -> None:
    resolver = resolver_for(GroupLookup(GroupSource.FILE, {"alice": ("dev", "ops"), "bob": ()}))
    assert resolver.groups_of("alice") == ("dev", "ops")
    assert resolver.groups_of("bob") == ()


def test_groups_of_the_system_begin_with_the_primary_one() -> None:
    user = pwd.getpwuid(os.getuid())
    groups = resolver_for(GroupLookup(GroupSource.SYSTEM)).groups_of(user.pw_name)
    assert groups[0] == grp.getgrgid(user.pw_gid).gr_name
    assert len(set(groups)) == len(groups)


@pytest.mark.parametrize("resolver", [FileGroups({"alice": ("dev",)}), SystemGroups()])
@pytest.mark.parametrize("user", ["no-such-user-here", "a\x00b", ""])
def test_an_unknown_user_is_an_error_that_names_it(resolver: FileGroups | SystemGroups, user: str) -> None:
    with pytest.raises(UnknownUserError) as caught:
        resolver.groups_of(user)
    assert caught.value.user == user
