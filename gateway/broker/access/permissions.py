"""Permissions by their users: a user's are found without a look at those of others."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from types import MappingProxyType
from typing import Final, TypeAlias

from gateway.broker.access.model import Permission

PermissionKey: TypeAlias = tuple[str, str]
"""A user and a virtual host."""

_NONE: Final[Mapping[str, Permission]] = MappingProxyType({})


class Permissions:
    """The permissions of all users, in no order."""

    def __init__(self) -> None:
        self._by_user: dict[str, dict[str, Permission]] = {}

    def __iter__(self) -> Iterator[Permission]:
        return chain.from_iterable(each.values() for each in self._by_user.values())

    def of(self, user: str) -> Mapping[str, Permission]:
        """Return the permissions of a user, by virtual host."""
        return self._by_user.get(user, _NONE)

    def find(self, user: str, virtual_host: str) -> Permission | None:
        """Return what a user may do in a virtual host, None if nothing is said."""
        return self.of(user).get(virtual_host)

    def put(self, some: Iterable[Permission]) -> None:
        """Add permissions, or replace those of the same user and virtual host."""
        for one in some:
            self._by_user.setdefault(one.user, {})[one.virtual_host] = one

    def remove(self, keys: Iterable[PermissionKey]) -> None:
        """Take permissions out, which are there."""
        for user, virtual_host in keys:
            theirs = self._by_user[user]
            del theirs[virtual_host]
            if not theirs:
                del self._by_user[user]
