"""One raw connection of a case: it sends bytes and takes in frames; it answers nothing itself."""

from __future__ import annotations

import socket
import time
from typing import Final

from hutch.pravega.codec import HEAD, HEAD_BYTES, decode, frame_bytes
from hutch.pravega.commands import CommandSender
from hutch.pravega.errors import WireError
from hutch.pravega.layout import WireMessage

CONNECT_TIMEOUT_S: Final = 10.0
PIECE_BYTES: Final = 1 << 18


class Ended(Exception):
    """The server closed the connection."""


class Garbled(Exception):
    """The server sent what is no message of its side; the text says what."""


class Connection:
    """A connection to one server.

    Raises:
        OSError: There is no server.
    """

    def __init__(self, address: tuple[str, int]) -> None:
        self._socket: Final = socket.create_connection(address, CONNECT_TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received: Final = bytearray()
        self.has_ended = False

    def close(self) -> None:
        """Close it."""
        self._socket.close()
        self.has_ended = True

    def send(self, data: bytes) -> None:
        """Send bytes; what a server that has closed does not take is lost."""
        try:
            self._socket.settimeout(CONNECT_TIMEOUT_S)
            self._socket.sendall(data)
        except OSError:  # what it said before is still to be read
            return

    def message(self, deadline: float) -> WireMessage | None:
        """Return the next message; None if none came in time.

        Args:
            deadline: By `time.monotonic()`; what has already come is returned in any case.

        Raises:
            Ended: The connection is over.
            Garbled: A message cannot be decoded.
        """
        while (size := self._frame_bytes()) is None:
            left = deadline - time.monotonic()
            self._socket.settimeout(max(left, 0.0001))
            try:
                data = self._socket.recv(PIECE_BYTES)
            except TimeoutError:
                if left <= 0:
                    return None
                continue
            except OSError:
                data = b""
            if not data:
                self.has_ended = True
                raise Ended
            self._received.extend(data)
        code, _ = HEAD.unpack_from(self._received)
        payload = bytes(self._received[HEAD_BYTES:size])
        del self._received[:size]
        try:
            return decode(code, payload, CommandSender.SERVER)
        except WireError as error:
            raise Garbled(f"{error}: {payload[:80].hex()}") from error

    def _frame_bytes(self) -> int | None:
        """Return the size of the first frame; None while it is not complete."""
        try:
            size = frame_bytes(self._received, 0, len(self._received))
        except WireError as error:
            raise Garbled(str(error)) from error
        return size if size and size <= len(self._received) else None
