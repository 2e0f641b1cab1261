"""State that the connections of a server share, whatever their protocol."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from gateway.network.addresses import host_of
from gateway.server.connections.in_flight import InFlight
from gateway.server.connections.unfinished import StrangersInput, Unfinished
from gateway.server.loop.heartbeats import HeartbeatTimers
from gateway.server.loop.schedule import Schedule

COMMANDS_READ_BYTES: Final = 512 * 1024
"""Size of one read while a client gives commands: a frame of staged records, which are written
for the price of one."""
Say: TypeAlias = Callable[..., object]
"""Writes a log line that a stranger could cause without end, or counts it instead: takes a method
of a logger, the client's address without the port, the line and its arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """Buffers that all connections use in turn, and what else they share.

    Attributes:
        open_ports: Addresses of the ports, by the words of what is spoken there.
        receive_buffer: What is read, before it is taken.
        scratch: Room for what a source puts together.
        commands_place: Part of the buffer that is read to while a client gives commands.
    """

    loop: asyncio.AbstractEventLoop
    schedule: Schedule
    receive_buffer: bytearray
    scratch: bytearray
    say: Say
    open_ports: dict[str, tuple[str, int]] = field(default_factory=dict)
    in_flight: InFlight = field(default_factory=InFlight)
    strangers_input: StrangersInput = field(init=False)
    heartbeats: HeartbeatTimers = field(init=False)
    unfinished: Unfinished = field(init=False)
    commands_place: memoryview = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "heartbeats", HeartbeatTimers(self.loop))
        object.__setattr__(self, "unfinished", Unfinished(self.loop))
        object.__setattr__(self, "strangers_input", StrangersInput(self.say))
        place = memoryview(self.receive_buffer)[:COMMANDS_READ_BYTES]
        object.__setattr__(self, "commands_place", place)

    def tell(self, write: Callable[..., object], line: str, peer: str, *arguments: object) -> None:
        """Log a line about a client, whose address and port are its first value; see `Say`."""
        self.say(write, host_of(peer), line, peer, *arguments)
