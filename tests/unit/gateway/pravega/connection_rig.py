"""A connection of the wire protocol without a socket: a real store, ports that remember."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from gateway.broker.access.standings import Standings
from gateway.pravega.access.guard import Guard
from gateway.pravega.access.tokens import EVERYTHING, READ_UPDATE, Tokens
from gateway.pravega.connection import SegmentConnection
from gateway.pravega.context import WireContext
from gateway.server.front import DeliverySource
from gateway.settings.wire import WireSettings
from hutch.pravega.codec import HEAD, HEAD_BYTES, decode
from hutch.pravega.commands import CommandSender
from hutch.pravega.layout import WireMessage
from tests.pravega_rig import NOTHING
from tests.unit.gateway.log.log_rig import LogRig
from tests.unit.gateway.stream.link_rig import Ports


@dataclass(eq=False)
class WirePorts(Ports):
    """A connection of the protocol as its handlers see it."""

    sources: list[DeliverySource] = field(default_factory=list)
    """Those that have been woken, each once."""
    is_finished: bool = False
    ended_count: int = 0
    """Commands that were ended."""

    def wake(self, source: DeliverySource) -> None:
        if source not in self.sources:
            self.sources.append(source)

    def end_command(self) -> None:
        self.ended_count += 1

    def finish(self) -> None:
        self.is_finished = True


class ConnectionRig:
    """One connection, and the store behind it.

    Attributes:
        users: The standings of users by their names; `look_again` tells of a change.
        lines: Log lines that clients could cause without end.
    """

    def __init__(self, directory: Path, *, is_guarded: bool = False, reads_max: int = 100) -> None:
        self.store_rig = LogRig(directory)
        self.loop = self.store_rig.loop
        self.store = self.store_rig.store
        self.now_ms = 1_000_000
        self.lines: list[str] = []
        self.users = {"app": b"a password"}
        self.standings = Standings(self.users.get)
        self.tokens = Tokens(b"k" * 64, self.standings.of)
        self.context = WireContext(
            store=self.store,
            say=self._say,
            clock_ms=lambda: self.now_ms,
            guard=Guard(NOTHING, self.tokens if is_guarded else None),
            standings=self.standings,
            wire=WireSettings(reads_max=reads_max),
        )
        self.ports = WirePorts()
        self.connection = SegmentConnection(self.context, self.ports)

    def _say(
        self, _write: object, _address: str, line: str, *arguments: object, once: str = ""
    ) -> None:
        del once
        self.lines.append(line % arguments)

    def token(self, user: str | None = None, lifetime_ms: int | None = None) -> str:
        """Return a token for everything, of a user or of none."""
        rights = {EVERYTHING: READ_UPDATE}
        return self.tokens.mint(rights, now_ms=self.now_ms, lifetime_ms=lifetime_ms, user=user)

    def create(self, segment: str) -> None:
        """Make a segment."""
        self.store_rig.do(self.store.create_segment, segment)

    def write(self, segment: str, data: bytes, number: int = 1) -> None:
        """Append to a segment."""
        writer = self.store_rig.do(self.store.open_writer, segment, UUID(int=number))
        self.store_rig.do(writer.append, data, number)

    def turn_until(self, is_over: Callable[[], object]) -> None:
        """Turn the loop until something holds."""
        self.loop.run_until(lambda: bool(is_over()))

    def replies(self) -> list[WireMessage]:
        """Take away the messages that were sent."""
        frames, self.ports.frames = self.ports.frames, []
        return [_decoded(each) for each in frames]

    def delivered(self) -> list[WireMessage]:
        """Ask woken sources until they give nothing now; return the messages."""
        found: list[WireMessage] = []
        while self.ports.sources:
            source = self.ports.sources.pop(0)
            while (piece := source.next(bytearray())) is not None:
                found.append(_decoded(piece.head))
        return found

    def close(self) -> None:
        """Close the store."""
        self.store_rig.close()


def _decoded(frame: bytes) -> WireMessage:
    code, size = HEAD.unpack_from(frame)
    assert HEAD_BYTES + size == len(frame)
    return decode(code, memoryview(frame)[HEAD_BYTES:], CommandSender.SERVER)
