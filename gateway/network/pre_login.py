"""Connections that have not logged in: counted by address, so that the right one gives way.

If there is no room for another connection, the address with most of them loses its oldest one.
One address may have a share of the places and no more; with one more its oldest goes. A connection
that has logged in is not counted any more, and gives way to none.
"""

from collections.abc import Hashable
from typing import Final, Generic, TypeVar

from gateway.network.addresses import source_of

T = TypeVar("T", bound=Hashable)

OWN_SHARE: Final = 2
"""Divides the places: one address may hold one part."""


class PreLogin(Generic[T]):
    """Connections without a login, by address, the oldest first; every step takes constant time."""

    def __init__(self, places: int) -> None:
        """Begin with none; `places` is how many connections there may be in all."""
        self._share = max(1, places // OWN_SHARE)
        self._by_source: dict[str, dict[T, None]] = {}
        self._source_of: dict[T, str] = {}
        # Addresses by how many connections they have, and the largest number of them.
        self._by_count: dict[int, dict[str, None]] = {}
        self._most = 0

    def __len__(self) -> int:
        return len(self._source_of)

    def address_of(self, connection: T) -> str:
        """Return the address or network that a connection counts as; empty if it has logged in."""
        return self._source_of.get(connection, "")

    def in_the_way(self, address: str, *, is_full: bool) -> T | None:
        """Return the connection that has to go before one comes from an address; None if none has.

        Args:
            address: Where the next one comes from.
            is_full: There is no room for it.
        """
        source = source_of(address)
        own = self._by_source.get(source, {})
        if len(own) >= self._share:
            return next(iter(own))
        return self.first_to_go() if is_full else None

    def first_to_go(self) -> T | None:
        """Return the oldest one of the address that has most; None if there are no connections."""
        if not self._most:
            return None
        source = next(iter(self._by_count[self._most]))
        return next(iter(self._by_source[source]))

    def add(self, connection: T, address: str) -> None:
        """Note one that has come."""
        source = source_of(address)
        own = self._by_source.setdefault(source, {})
        own[connection] = None
        self._source_of[connection] = source
        self._moved(source, len(own) - 1, len(own))

    def remove(self, connection: T) -> None:
        """Note that one has logged in, or is gone; fine if it is not there."""
        source = self._source_of.pop(connection, None)
        if source is None:
            return
        own = self._by_source[source]
        del own[connection]
        if not own:
            del self._by_source[source]
        self._moved(source, len(own) + 1, len(own))

    def replace(self, connection: T, other: T) -> None:
        """Let another object stand for a connection, as its newest; fine if it is not there."""
        source = self._source_of.get(connection)
        if source is not None:
            self.remove(connection)
            self.add(other, source)

    def _moved(self, source: str, before: int, after: int) -> None:
        """Keep an address where its count is, which has changed by one."""
        if before:
            bucket = self._by_count[before]
            del bucket[source]
            if not bucket:
                del self._by_count[before]
        if after:
            self._by_count.setdefault(after, {})[source] = None
        if after > self._most or (before not in self._by_count and before == self._most):
            self._most = after
