"""Scopes of Pravega's controller, as administrators see them, where there is a controller."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Final, Protocol, TypeAlias

from gateway.broker.access.model import Right
from gateway.management.errors import NotFound
from gateway.pending import Pending

Listing: TypeAlias = tuple[Sequence[Any], Callable[[Any], Mapping[str, object]]]
"""Things in the order of their names, and what shows one of them."""
OfOne: TypeAlias = Coroutine[Pending[Any], None, Listing | None]
"""A list of a scope; None if there is no such scope, or the caller may see nothing of it."""

OFF: Final = "the controller's port is off: wire.controller_port opens it"


class ScopeRights(Protocol):
    """Rights of a caller of the controller."""

    def may(self, right: Right, scope: str, stream: str) -> bool:
        """Return whether there is a right on a stream; on its scope if the stream is ''."""
        ...


class ScopeLists(Protocol):
    """Lists of what the controller knows, each of what a caller may see."""

    def scopes(self, caller: ScopeRights) -> Coroutine[Pending[Any], None, Listing]:
        """Return the scopes."""
        ...

    def streams(self, caller: ScopeRights, scope: str) -> OfOne:
        """Return the streams of a scope."""
        ...

    def reader_groups(self, caller: ScopeRights, scope: str) -> OfOne:
        """Return the groups of readers of a scope."""
        ...

    def tables(self, caller: ScopeRights, scope: str) -> OfOne:
        """Return the tables of keys and values of a scope."""
        ...


class _Owner:
    """The owner of the server's files: it may do everything."""

    def may(self, right: Right, scope: str, stream: str) -> bool:  # noqa: ARG002
        return True


class Scopes:
    """The lists of the controller, for users by their names; None is the server's owner.

    Its methods are coroutines on `gateway.pending`, and raise NotFound while the controller's port
    is off, or if there is no such scope for the user.
    """

    def __init__(self) -> None:
        self._open: tuple[ScopeLists, Callable[[str], ScopeRights]] | None = None

    def open(self, lists: ScopeLists, rights_of: Callable[[str], ScopeRights]) -> None:
        """Show the lists from now on, with the rights that users have."""
        self._open = lists, rights_of

    async def scopes(self, user: str | None) -> Listing:
        """Return the scopes."""
        lists, rights = self._for(user)
        return await lists.scopes(rights)

    async def streams(self, user: str | None, scope: str) -> Listing:
        """Return the streams of a scope."""
        lists, rights = self._for(user)
        return _found(await lists.streams(rights, scope), scope)

    async def reader_groups(self, user: str | None, scope: str) -> Listing:
        """Return the groups of readers of a scope."""
        lists, rights = self._for(user)
        return _found(await lists.reader_groups(rights, scope), scope)

    async def tables(self, user: str | None, scope: str) -> Listing:
        """Return the tables of keys and values of a scope."""
        lists, rights = self._for(user)
        return _found(await lists.tables(rights, scope), scope)

    def _for(self, user: str | None) -> tuple[ScopeLists, ScopeRights]:
        if self._open is None:
            raise NotFound(OFF)
        lists, rights_of = self._open
        return lists, _Owner() if user is None else rights_of(user)


def _found(listing: Listing | None, scope: str) -> Listing:
    if listing is None:
        raise NotFound(f"there is no scope {scope!r}")
    return listing
