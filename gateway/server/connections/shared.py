"""State that the connections of a server share, whatever their protocol.

It includes the bytes that all backlogs together have on their way to the store. A slow disk must
not fill the memory, however many backlogs there are. Every backlog knows its own bytes; here they
are added up as connections see them, so that a connection that brings little pays nothing.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from gateway.network.addresses import host_of
from gateway.server.connections.unfinished import PreLoginInput, UnfinishedRequests
from gateway.server.front import WriteBacklog
from gateway.server.loop.schedule import Schedule
from gateway.server.loop.timers import HeartbeatTimers

NOTED_BYTES: Final = 64 * 1024
"""A backlog of no more than this is not counted."""

IN_FLIGHT_BYTES_MAX: Final = 256 * 1024 * 1024
_LOOK_AGAIN_S: Final = 0.01


class InFlight:
    """The backlogs that are large, by their sizes when last looked at."""

    def __init__(self, bytes_max: int = IN_FLIGHT_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._noted: dict[WriteBacklog, int] = {}
        self._total_bytes = 0
        self._waiting: list[Callable[[], object]] = []

    def is_too_much(self, backlog: WriteBacklog) -> bool:
        """Note a backlog that has grown; return whether the client that did it should wait."""
        size = backlog.in_flight_bytes
        self._total_bytes += size - self._noted.get(backlog, 0)
        self._noted[backlog] = size
        if self._total_bytes > self._bytes_max:
            self._look()  # others may have been stored since they were noted
        return self._total_bytes > self._bytes_max

    def when_drained(self, loop: asyncio.AbstractEventLoop, callback: Callable[[], object]) -> None:
        """Call `callback` when no more than half of the maximum is on its way."""
        self._waiting.append(callback)
        if len(self._waiting) == 1:
            loop.call_later(_LOOK_AGAIN_S, self._look_again, loop)

    def _look(self) -> None:
        self._noted = {
            backlog: backlog.in_flight_bytes for backlog in self._noted if backlog.in_flight_bytes
        }
        self._total_bytes = sum(self._noted.values())

    def _look_again(self, loop: asyncio.AbstractEventLoop) -> None:
        self._look()
        if self._total_bytes > self._bytes_max // 2:
            loop.call_later(_LOOK_AGAIN_S, self._look_again, loop)
            return
        waiting, self._waiting = self._waiting, []
        for callback in waiting:
            callback()


COMMANDS_READ_BYTES: Final = 512 * 1024
"""Size of one read while a client gives commands: a frame of staged records, which are written
for the price of one."""
Say: TypeAlias = Callable[..., object]
"""Writes a log line that any client could cause without end, or counts it instead: takes a method
of a logger, the client's address without the port, the line and its arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """Buffers that all connections use in turn, and all else they share.

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
    strangers_input: PreLoginInput = field(init=False)
    heartbeats: HeartbeatTimers = field(init=False)
    unfinished: UnfinishedRequests = field(init=False)
    commands_place: memoryview = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "heartbeats", HeartbeatTimers(self.loop))
        object.__setattr__(self, "unfinished", UnfinishedRequests(self.loop))
        object.__setattr__(self, "strangers_input", PreLoginInput(self.say))
        place = memoryview(self.receive_buffer)[:COMMANDS_READ_BYTES]
        object.__setattr__(self, "commands_place", place)

    def tell(self, write: Callable[..., object], line: str, peer: str, *arguments: object) -> None:
        """Log a line about a client, whose address and port are its first value; see `Say`."""
        self.say(write, host_of(peer), line, peer, *arguments)
