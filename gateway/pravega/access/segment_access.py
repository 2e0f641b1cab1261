"""Access to the segments of a store: what is given to the ports of Pravega's clients."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from gateway.broker.access.standings import NO_USERS, Standings
from gateway.pravega.access.entering import Entered, unnoted
from store.api import SegmentStore

if TYPE_CHECKING:
    # loaded where their ports are on
    from gateway.pravega.access.guard import Ownership
    from gateway.pravega.controller.lists.lists import Lists
    from gateway.pravega.controller.rights import LogIn

_NS_A_MS: Final = 1_000_000


def _show_nobody(_lists: "Lists") -> None:
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
        entering: Returns what notes the connections of a protocol for administrators.
        show: Shows the lists of the controller to administrators.
    """

    store: SegmentStore
    holds_streams: bool
    ownership: "Ownership"
    is_closed: Callable[[str], bool]
    standings: Standings = NO_USERS
    log_in: "LogIn | None" = None
    entering: Callable[[str], Entered] = lambda _protocol: unnoted
    show: "Callable[[Lists], object]" = _show_nobody

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


def clock_ms() -> int:
    """Return the time, in milliseconds since 1970."""
    return time.time_ns() // _NS_A_MS
