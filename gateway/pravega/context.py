"""Parts of the server that every connection of the wire protocol shares."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from gateway.broker.access.standings import NO_USERS, Standings
from gateway.broker.locks import Locks
from gateway.pravega.access.guard import Guard
from gateway.pravega.segment_access import ListConnection, unlisted
from gateway.pravega.traffic import AppendsUnderWay, Boundaries, Traffic
from gateway.pravega.transients import Transients
from gateway.server.connections.shared import Say
from gateway.server.front import ConnectionLimits
from gateway.settings.wire import WireSettings
from store.api import Operations

PROTOCOL: Final = "pravega"
"""Word for the wire protocol, as administrators see it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WireContext:
    """Store, clock and settings behind all connections.

    Attributes:
        store: The store that requests go to.
        say: Writes a log line that a client without a login could cause without end.
        clock_ms: Milliseconds since the epoch.
        guard: Decides which requests may be done.
        standings: What the tokens of users rest on.
        wire: The settings.
        under_way: The appends of all connections.
        list_connection: Lists connections for administrators.
        boundaries: Where events begin in what they wrote.
        table_merges: The lock under '' of the merges of tables, which are done one by one.
        transients: The segments that go with their connections.
        traffic: Counts what clients write, for the controller.
    """

    store: Operations
    say: Say
    clock_ms: Callable[[], int]
    guard: Guard
    standings: Standings = NO_USERS
    wire: WireSettings = field(default_factory=WireSettings)
    under_way: AppendsUnderWay = field(default_factory=AppendsUnderWay)
    list_connection: ListConnection = unlisted
    boundaries: Boundaries = field(default_factory=Boundaries)
    traffic: Traffic = field(default_factory=Traffic)
    table_merges: Locks = field(default_factory=Locks)
    transients: Transients = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "transients", Transients(self.store))


def limits_of(wire: WireSettings) -> ConnectionLimits:
    """Return the limits of each connection."""
    return ConnectionLimits(
        close_timeout_ms=wire.close_timeout_ms,
        unconfirmed_max=wire.unacknowledged_appends_max,
        unconfirmed_resume=wire.unacknowledged_appends_resume,
        backlog_pause_bytes=wire.send_backlog_pause_bytes,
        backlog_bytes_max=wire.send_backlog_bytes_max,
    )
