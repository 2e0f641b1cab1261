"""Access to the segments of a store, as the ports of Pravega's clients have it."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from gateway.broker.access.standings import NO_USERS, Standings
from gateway.server.front import Ports
from store.api import SegmentStore

if TYPE_CHECKING:
    # loaded where their ports are on
    from gateway.pravega.access.callers import LogIn
    from gateway.pravega.access.guard import Ownership
    from gateway.pravega.controller.lists import ScopeLists

_NS_A_MS: Final = 1_000_000

ListConnection: TypeAlias = Callable[[Ports], Callable[[], object]]
"""Lists a client that has sent its first frame; returns a call for when it is gone."""


def unlisted(_ports: Ports) -> Callable[[], object]:
    """List nothing: administrators see no connections."""
    return _nothing


def _nothing() -> None:
    pass


def _show_none(_lists: "ScopeLists") -> None:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentAccess:
    """Access to the segments.

    Attributes:
        store: The open store.
        holds_streams: Whether streams are kept in the store, served or not. Then each request
            needs a token, and what belongs to the streams is kept from clients.
        ownership: The segments that are the server's own.
        is_closed: Returns of a segment's name whether the early dialect may not touch it.
        standings: State of users that their tokens rest on.
        log_in: Lets callers of the controller in; None lets all in, to do everything.
        listing_of: Returns the function that lists connections of a protocol for administrators.
        show: Shows the lists of the controller to administrators.
    """

    store: SegmentStore
    holds_streams: bool
    ownership: "Ownership"
    is_closed: Callable[[str], bool]
    standings: Standings = NO_USERS
    log_in: "LogIn | None" = None
    listing_of: Callable[[str], ListConnection] = lambda _protocol: unlisted
    show: "Callable[[ScopeLists], object]" = _show_none

    @property
    def has_users(self) -> bool:
        """True if users log in to the controller, which gives them tokens."""
        return self.log_in is not None


class SegmentBackend(Protocol):
    """A backend that has segments for clients."""

    @property
    def segments(self) -> SegmentAccess:
        """Access to the segments of the open store."""
        ...

    async def token_key(self) -> bytes:
        """Return the key of tokens where no file is named. Raises ConfigError or StoreError."""
        ...


def clock_ms() -> int:
    """Return the time, in milliseconds since 1970."""
    return time.time_ns() // _NS_A_MS
