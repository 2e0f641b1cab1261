"""Permissions by their users, and what it costs to delete one user of many."""

from __future__ import annotations

from typing import ClassVar

import pytest

from gateway.broker.access.model import Permission, User
from gateway.broker.access.permissions import Permissions
from tests.unit.gateway.broker.access.access_rig import AccessRig


def permission(user: str, virtual_host: str = "/", write: str = "") -> Permission:
    return Permission(user=user, virtual_host=virtual_host, configure="", write=write, read="")


def test_permissions_are_found_by_user_and_virtual_host_replaced_and_removed() -> None:
    permissions = Permissions()
    permissions.put([permission("a"), permission("a", "v"), permission("b", write="x")])
    permissions.put([permission("b", write="y")])

    assert permissions.of("a") == {"/": permission("a"), "v": permission("a", "v")}
    assert permissions.find("b", "/") == permission("b", write="y")
    assert permissions.find("b", "v") is permissions.find("c", "/") is None
    assert len(list(permissions)) == 3

    permissions.remove([("a", "/"), ("b", "/")])
    assert list(permissions) == [permission("a", "v")]
    assert permissions.of("b") == permissions.of("c") == {}


class Name(str):
    """A name that counts how often it is compared with another one."""

    __slots__ = ()
    compared: ClassVar[int] = 0

    def __eq__(self, other: object) -> bool:
        Name.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


@pytest.mark.parametrize("others", [50, 500])
def test_who_else_there_is_adds_nothing_to_the_work_of_deleting_a_user(
    rig: AccessRig, others: int
) -> None:
    left: list[str] = []

    async def user_left(name: str) -> None:
        left.append(name)

    rig.access.user_left = user_left
    names = [Name(f"user{number}") for number in range(others)]
    rig.run(rig.access.seed(map(User, names, [None] * others), map(permission, names)))
    for name in names:
        rig.connect(name)
        rig.access.standings.of(name)
    some = names[::10][:5]

    Name.compared = 0
    for name in some:
        rig.run(rig.access.delete_user(name))
        assert rig.access.standings.of(name) is None
        assert rig.access.virtual_hosts_of(name) == frozenset()
    rig.access.standings.of(names[1])

    assert Name.compared < 20 * len(some)
    assert left == some
    assert len(rig.access.permissions()) == others - len(some)
