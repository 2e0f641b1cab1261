"""State that the connections of a server share, whatever their protocol."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from gateway.server.heartbeats import HeartbeatTimers
from gateway.server.in_flight import InFlight
from gateway.server.schedule import Schedule

Say: TypeAlias = Callable[..., object]
"""Writes a log line that a stranger could cause without end, or counts it instead: takes a method
of a logger, the client's address without the port, the line and its arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """Buffers that all connections use in turn.

    Attributes:
        receive_buffer: What is read, before it is taken.
        scratch: Room for what a source puts together.
    """

    loop: asyncio.AbstractEventLoop
    schedule: Schedule
    receive_buffer: bytearray
    scratch: bytearray
    say: Say
    in_flight: InFlight = field(default_factory=InFlight)
    heartbeats: HeartbeatTimers = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "heartbeats", HeartbeatTimers(self.loop))
