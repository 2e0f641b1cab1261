"""The sockets of clients, over all listeners: how many there may be, and which of them give way.

A socket is a stranger's until its client has logged in. Those that say farewell count as well: each
holds a descriptor until it is closed.
"""

from collections.abc import Callable
from typing import Final, Protocol

from gateway.network.strangers import Strangers

_OWN_MAX: Final = 256
_OWN_PART: Final = 8


class Holder(Protocol):
    """What holds a socket."""

    def __hash__(self) -> int: ...

    def abort(self) -> None:
        """Close it now; `Sockets.discard` is told before this returns."""
        ...


def kept_for_strangers(places: int) -> int:
    """How many of so many sockets clients that have logged in leave to those that have not."""
    return min(_OWN_MAX, places // _OWN_PART)


class Sockets:
    """Who holds a socket."""

    def __init__(self, places: int, displaced: Callable[[str], object]) -> None:
        """Begin with none.

        Args:
            places: How many there may be.
            displaced: Told of each stranger that gives way, by what its address counts as.
        """
        self.places: Final = places
        self._displaced = displaced
        self._all: set[Holder] = set()
        self._strangers: Strangers[Holder] = Strangers(places)

    def __len__(self) -> int:
        return len(self._all)

    def make_room(self, address: str) -> bool:
        """Make room for a client that comes from an address; False if there is none."""
        is_full = len(self._all) >= self.places
        stranger = self._strangers.in_the_way(address, is_full=is_full)
        if stranger is None:
            return not is_full
        self._displaced(self._strangers.address_of(stranger))
        stranger.abort()
        return True

    def add(self, holder: Holder, address: str) -> None:
        """Note a stranger that has come; `make_room` first."""
        self._all.add(holder)
        self._strangers.add(holder, address)

    def replace(self, holder: Holder, other: Holder) -> None:
        """Let another object hold a socket, as when a handshake is done."""
        self._all.discard(holder)
        self._all.add(other)
        self._strangers.replace(holder, other)

    def logged_in(self, holder: Holder) -> None:
        """Note that the client is no stranger any more."""
        self._strangers.remove(holder)

    def discard(self, holder: Holder) -> None:
        """Note that a socket is closed."""
        self._all.discard(holder)
        self._strangers.remove(holder)
