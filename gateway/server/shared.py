"""What the connections of a server have in common: settings, buffers, and whom they tell."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gateway.server.edge import PlainEdge
from gateway.server.in_flight import InFlight
from gateway.server.schedule import Schedule
from gateway.stream.link import Host

if TYPE_CHECKING:
    from gateway.server.connection import Connection


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """Limits of a connection; times in milliseconds, sizes in bytes."""

    frame_bytes_max: int
    initial_frame_bytes_max: int
    heartbeat_s: int
    handshake_step_timeout_ms: int
    close_timeout_ms: int
    unconfirmed_entries_max: int
    unconfirmed_entries_resume: int
    backlog_pause_bytes: int
    backlog_bytes_max: int


@dataclass(frozen=True, slots=True)
class Shared:
    """What all connections of a server use in turn."""

    loop: asyncio.AbstractEventLoop
    schedule: Schedule
    host: Host
    settings: ConnectionSettings
    receive_buffer: bytearray
    scratch: bytearray
    closed: Callable[["Connection"], object]
    in_flight: InFlight = field(default_factory=InFlight)
    logged_in: Callable[[PlainEdge], object] = lambda _edge: None
