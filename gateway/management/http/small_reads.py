"""Reads of a bounded size: those of asyncio bring up to 256 KiB that a protocol has to take."""

import asyncio
from typing import Final, Protocol

_CLIENT_READ_BYTES: Final = 64 * 1024
_STRANGER_READ_BYTES: Final = 16 * 1024  # the rest stays with the system until the login

_shared: Final = memoryview(bytearray(_CLIENT_READ_BYTES))
"""Buffer that all connections are read to, in turn."""


class Reader(Protocol):
    """Protocol of a connection that is handed what was read."""

    is_stranger: bool

    def connection_made(self, transport: asyncio.Transport) -> None: ...

    def connection_lost(self, exc: Exception | None) -> None: ...

    def pause_writing(self) -> None: ...

    def resume_writing(self) -> None: ...

    def data_received(self, data: bytes) -> None: ...

    def eof_received(self) -> None: ...


class SmallReads(asyncio.BufferedProtocol):
    """One connection; everything that happens there goes on to its protocol."""

    def __init__(self, protocol: Reader) -> None:
        self._protocol = protocol
        self.connection_lost = protocol.connection_lost  # type: ignore[method-assign]
        self.pause_writing = protocol.pause_writing  # type: ignore[method-assign]
        self.resume_writing = protocol.resume_writing  # type: ignore[method-assign]
        self.eof_received = protocol.eof_received  # type: ignore[method-assign]

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Learn of the socket."""
        self._protocol.connection_made(transport)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        """Return where the next bytes are read to."""
        return _shared[:_STRANGER_READ_BYTES] if self._protocol.is_stranger else _shared

    def buffer_updated(self, nbytes: int) -> None:
        """Hand over what was read."""
        self._protocol.data_received(bytes(_shared[:nbytes]))
