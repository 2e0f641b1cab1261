"""Clients that hold rights: counted by the limits of users, and told of what changes."""

from collections.abc import Callable, Iterable
from typing import Protocol, TypeAlias

from gateway.broker.access.model import Right

May: TypeAlias = Callable[[Right, str], bool]
"""Returns whether a user has a right on a name, in the virtual host of its connection."""


class RightsHolder(Protocol):
    """A client that has logged in."""

    @property
    def virtual_host_name(self) -> str:
        """The virtual host that it entered."""
        ...

    def lose_access(self) -> None:
        """Drop every publisher and subscription, and tell the client of each stream."""
        ...

    def rights_changed(self, may: May) -> None:
        """Take note that the user has other rights now, as `may` says."""
        ...

    def end(self, reason: str) -> None:
        """End the connection, without a word to the client but what is queued already."""
        ...


class RightsHolders(Protocol):
    """Every client."""

    def count_of_user(self, name: str) -> int:
        """Return how many a user has, in all virtual hosts."""
        ...

    def count_of_virtual_host(self, name: str) -> int:
        """Return how many are in a virtual host."""
        ...

    def of(
        self, *, user: str | None = None, virtual_host: str | None = None
    ) -> Iterable[RightsHolder]:
        """Return those of a user, of a virtual host, or of both."""
        ...
