"""A client of Pravega's wire protocol for tests: messages out and in, over a real socket."""

from __future__ import annotations

import socket
import ssl
from types import TracebackType
from typing import Final, Self, TypeVar
from uuid import UUID

from hutch.pravega import messages as m
from hutch.pravega.codec import HEAD, HEAD_BYTES, decode, encode
from hutch.pravega.commands import CommandSender
from hutch.pravega.layout import WireMessage
from tests.waiting import HANG_S

M = TypeVar("M", bound=WireMessage)

WRITER: Final = UUID("00010203-0405-0607-0809-0a0b0c0d0e0f")


class WireClient:
    """One connection.

    Attributes:
        token: The token that the common requests bring.
    """

    def __init__(
        self, host: str, port: int, tls: ssl.SSLContext | None = None, *, token: str = ""
    ) -> None:
        self.token = token
        self.socket = socket.create_connection((host, port), timeout=HANG_S)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_hostname="localhost")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self.socket.close()

    def send(self, *messages: WireMessage) -> None:
        """Send messages, in one write."""
        self.socket.sendall(b"".join(encode(each) for each in messages))

    def receive(self) -> WireMessage:
        """Return the next message; EOFError if the connection has ended."""
        code, length = HEAD.unpack(self.exactly(HEAD_BYTES))
        return decode(code, self.exactly(length), CommandSender.SERVER)

    def must(self, kind: type[M]) -> M:
        """Return the next message, which is of this kind."""
        message = self.receive()
        assert isinstance(message, kind), message
        return message

    def ask(self, message: WireMessage, kind: type[M]) -> M:
        """Send a message; return the next one, which is of this kind."""
        self.send(message)
        return self.must(kind)

    def is_ended(self) -> bool:
        """Wait for the next bytes; True if the server has ended the connection instead."""
        try:
            return not self.socket.recv(1)
        except ConnectionResetError:
            return True

    def drain(self) -> None:
        """Take what comes until the server ends the connection."""
        while not self.is_ended():
            pass

    def exactly(self, size: int) -> bytes:
        """Return so many bytes; EOFError if the connection has ended before."""
        data = bytearray()
        while len(data) < size:
            part = self.socket.recv(size - len(data))
            if not part:
                raise EOFError
            data += part
        return bytes(data)

    # Common requests

    def hello(self) -> m.Hello:
        """Say Hello as today's clients do."""
        return self.ask(m.Hello(17, 5), m.Hello)

    def create(self, segment: str) -> None:
        """Create a segment."""
        self.ask(m.CreateSegment(1, segment, 0, 0, self.token), m.SegmentCreated)

    def set_up(self, segment: str, writer: UUID = WRITER) -> m.AppendSetup:
        """Set a writer up."""
        return self.ask(m.SetupAppend(2, writer, segment, self.token), m.AppendSetup)

    def append(
        self, number: int, data: bytes, *, writer: UUID = WRITER, count: int = 1
    ) -> m.DataAppended:
        """Append, and wait until it is stored."""
        return self.ask(end(number, data, writer=writer, count=count), m.DataAppended)

    def read(self, segment: str, offset: int = 0, size: int = 1 << 20) -> m.SegmentRead:
        """Read once."""
        return self.ask(m.ReadSegment(segment, offset, size, self.token, 5), m.SegmentRead)

    def content(self, segment: str) -> bytes:
        """Return all bytes of a segment."""
        info = self.ask(m.GetStreamSegmentInfo(7, segment, self.token), m.StreamSegmentInfo)
        data = bytearray()
        while len(data) < info.write_offset - info.start_offset:
            data += self.read(segment, info.start_offset + len(data), 2 << 20).data
        return bytes(data)


def end(
    number: int, data: bytes, *, writer: UUID = WRITER, count: int = 1, whole: int | None = None
) -> m.AppendBlockEnd:
    """Return the End of a block, or an append by itself."""
    size = len(data) if whole is None else whole
    return m.AppendBlockEnd(writer, size, data, count, number, 2)


def event(data: bytes) -> bytes:
    """Return an event as it is stored."""
    return bytes(4) + len(data).to_bytes(4) + data
