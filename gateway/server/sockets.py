"""The sockets of clients, over all listeners: how many there may be, and which of them give way.

A socket gives way to others until its client has logged in. Those that say farewell count as well:
each holds a descriptor until it is closed.
"""

import logging
from typing import Final, Protocol

from gateway.network.pre_login import PreLogin
from gateway.server.connections.shared import Say

log = logging.getLogger(__name__)

_OWN_MAX: Final = 256
_OWN_PART: Final = 8


class Holder(Protocol):
    """An owner of a socket."""

    def __hash__(self) -> int: ...

    def abort(self) -> None:
        """Close it now; `Sockets.discard` is told before this returns."""
        ...


WITHOUT_LOGIN_PART: Final = 4
"""Divides the sockets: a protocol without a login gets one part."""


def kept_for_strangers(places: int) -> int:
    """Return how many of the sockets are left to clients that have not logged in."""
    return min(_OWN_MAX, places // _OWN_PART)


class SocketPlaces(Protocol):
    """Room for sockets, as a listener sees it."""

    @property
    def places(self) -> int:
        """The largest number of them."""
        ...

    def __len__(self) -> int: ...

    def make_room(self, address: str) -> bool:
        """Make room for a client that comes from an address; False if there is none."""
        ...

    def add(self, holder: Holder, address: str) -> None:
        """Note a connection that has come; `make_room` first."""
        ...

    def replace(self, holder: Holder, other: Holder) -> None:
        """Let another object hold a socket, as when a handshake is done."""
        ...

    def logged_in(self, holder: Holder) -> None:
        """Note that the client has logged in."""
        ...

    def discard(self, holder: Holder) -> None:
        """Note that a socket is closed."""
        ...


class Sockets:
    """The sockets that are held, of every protocol."""

    def __init__(self, places: int, say: Say) -> None:
        """Begin with none; `places` is how many there may be."""
        self.places: Final = places
        self._say = say
        self._all: set[Holder] = set()
        self._strangers: PreLogin[Holder] = PreLogin(places)

    def __len__(self) -> int:
        return len(self._all)

    def make_room(self, address: str) -> bool:
        """Make room for a client that comes from an address; False if there is none."""
        is_full = len(self._all) >= self.places
        stranger = self._strangers.in_the_way(address, is_full=is_full)
        if stranger is None:
            return not is_full
        source = self._strangers.address_of(stranger)
        line = "connection without a login gives way to another address=%s sockets=%d limit=%d"
        self._say(log.warning, source, line, source, len(self._all), self.places)
        stranger.abort()
        return True

    def add(self, holder: Holder, address: str) -> None:
        """Note a connection that has come; `make_room` first."""
        self._all.add(holder)
        self._strangers.add(holder, address)

    def replace(self, holder: Holder, other: Holder) -> None:
        """Let another object hold a socket, as when a handshake is done."""
        self._all.discard(holder)
        self._all.add(other)
        self._strangers.replace(holder, other)

    def logged_in(self, holder: Holder) -> None:
        """Note that the client has logged in."""
        self._strangers.remove(holder)

    def discard(self, holder: Holder) -> None:
        """Note that a socket is closed."""
        self._all.discard(holder)
        self._strangers.remove(holder)


class Quota:
    """A part of the sockets, for a protocol without a login: others keep the rest.

    Whatever its clients do, they give way to each other as connections without a login do.
    """

    def __init__(self, sockets: Sockets, places: int) -> None:
        """Begin with none; `places` is how many there may be."""
        self.places: Final = places
        self._sockets = sockets
        self._own: PreLogin[Holder] = PreLogin(places)

    def __len__(self) -> int:
        return len(self._own)

    def make_room(self, address: str) -> bool:
        """Make room for a client that comes from an address; False if there is none."""
        other = self._own.in_the_way(address, is_full=len(self._own) >= self.places)
        if other is not None:
            other.abort()
        return self._sockets.make_room(address)

    def add(self, holder: Holder, address: str) -> None:
        """Note a client that has come; `make_room` first."""
        self._own.add(holder, address)
        self._sockets.add(holder, address)

    def replace(self, holder: Holder, other: Holder) -> None:
        """Let another object hold a socket."""
        self._own.replace(holder, other)
        self._sockets.replace(holder, other)

    def logged_in(self, holder: Holder) -> None:
        """Note that the client gives way to no connection at another port."""
        self._sockets.logged_in(holder)

    def discard(self, holder: Holder) -> None:
        """Note that a socket is closed."""
        self._own.remove(holder)
        self._sockets.discard(holder)
