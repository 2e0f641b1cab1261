"""Both dialects of Pravega's wire protocol on one store, and a client of the early one."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeVar
from uuid import UUID

from gateway.pravega.early.context import EarlyContext, is_of_the_gateway
from gateway.pravega.early.front import EarlyKind
from gateway.server.listener import Listener
from gateway.settings.wire import EarlySettings, WireSettings
from hutch.pravega import early_messages as m
from hutch.pravega.codec import HEAD, HEAD_BYTES
from hutch.pravega.commands import CommandSender
from hutch.pravega.early_codec import EARLY
from hutch.pravega.layout import WireMessage
from hutch.pravega.messages import Event
from tests.pravega_client import WireClient
from tests.pravega_rig import WireServer

M = TypeVar("M", bound=WireMessage)

APPENDER: Final = UUID("00010203-0405-0607-0809-0a0b0c0d0e0f")
SEGMENT: Final = "s/t/0.#epoch.0"
_MUCH: Final = 1_000_000


class EarlyServer(WireServer):
    """A server with a port for each dialect."""

    early: Listener

    def __init__(
        self, directory: Path, *, settings: EarlySettings, wire: WireSettings | None = None
    ) -> None:
        self._settings = settings
        super().__init__(directory, wire=wire)

    def _open(self, directory: Path) -> None:
        super()._open(directory)
        host = EarlyContext(
            store=self.store,
            say=self._say,
            is_closed=is_of_the_gateway,
            settings=self._settings,
            wire=self._wire,
        )
        self.early = self._serve(EarlyKind(host, self._limits))

    def early_client(self) -> EarlyClient:
        """Connect to the port of the early dialect."""
        return EarlyClient(*self.early.address)


@contextmanager
def serving_early(
    directory: Path, settings: EarlySettings | None = None, wire: WireSettings | None = None
) -> Iterator[EarlyServer]:
    """Serve while the block lasts."""
    server = EarlyServer(directory, settings=settings or EarlySettings(), wire=wire)
    try:
        yield server
    finally:
        server.close()


class EarlyClient:
    """One connection in the early dialect."""

    def __init__(self, host: str, port: int) -> None:
        self._wire = WireClient(host, port)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def socket(self) -> socket.socket:
        """The connection's socket."""
        return self._wire.socket

    def close(self) -> None:
        """Close the connection."""
        self._wire.close()

    def send(self, *messages: WireMessage) -> None:
        """Send messages, in one write."""
        self.socket.sendall(b"".join(EARLY.encode(each) for each in messages))

    def receive_bytes(self, size: int) -> bytes:
        """Return so many bytes; EOFError if the connection has ended before."""
        return self._wire.exactly(size)

    def receive(self) -> WireMessage:
        """Return the next message; EOFError if the connection has ended."""
        code, length = HEAD.unpack(self._wire.exactly(HEAD_BYTES))
        return EARLY.decode(code, self._wire.exactly(length), CommandSender.SERVER)

    def ask(self, message: WireMessage, kind: type[M]) -> M:
        """Send a message; return the next one, which is of this kind."""
        self.send(message)
        return self.must(kind)

    def must(self, kind: type[M]) -> M:
        """Return the next message, which is of this kind."""
        message = self.receive()
        assert isinstance(message, kind), message
        return message

    def is_ended(self) -> bool:
        """Wait for the next bytes; True if the server has ended the connection instead."""
        return self._wire.is_ended()

    def send_to_a_close(self, *messages: WireMessage) -> None:
        """Send messages that end the connection, perhaps before they are all sent."""
        with suppress(ConnectionError):
            self.send(*messages)
        self.drain()

    def drain(self) -> None:
        """Take what comes until the server ends the connection."""
        self._wire.drain()

    def set_up(self, segment: str = SEGMENT, appender: UUID = APPENDER) -> int:
        """Set an appender up; return its level."""
        reply = self.ask(m.SetupAppend(appender, segment), m.AppendSetup)
        assert (reply.segment, reply.connection_id) == (segment, appender)
        return reply.acknowledged

    def append(self, offset: int, *events: bytes, appender: UUID = APPENDER) -> int:
        """Send a block; return the level that acknowledges it."""
        self.send(*block(offset, *events, appender=appender))
        reply = self.must(m.DataAppended)
        assert reply.connection_id == appender
        return reply.acknowledged

    def read(self, segment: str = SEGMENT, offset: int = 0, size: int = _MUCH) -> m.SegmentRead:
        """Ask for bytes; return the first reply."""
        return self.ask(m.ReadSegment(segment, offset, size), m.SegmentRead)


def block(
    offset: int, *events: bytes, appender: UUID = APPENDER, length: int | None = None
) -> tuple[WireMessage, ...]:
    """Return the messages of a plain block."""
    size = sum(HEAD_BYTES + len(event) for event in events)
    stored = size if length is None else length
    return (
        m.BeginAppendBlock(appender, offset, size),
        *map(Event, events),
        m.EndAppendBlock(appender, offset + stored, stored),
    )


def stored(*events: bytes) -> bytes:
    """Return events as they are stored."""
    return b"".join(bytes(4) + len(event).to_bytes(4) + event for event in events)
