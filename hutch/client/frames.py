"""Reads whole frames from a socket, in one buffer that is used again and again."""

import socket
import ssl
import time
from typing import Final

from hutch.client.errors import BadAnswer, ConnectionLost, ServerSilent

FRAME_BYTES_MAX: Final = 256 * 1024 * 1024
"""A larger size is taken for nonsense; servers and clients agree on no limit for these frames."""

_SIZE_BYTES: Final = 4
_BUFFER_BYTES: Final = 64 * 1024
_READ_BYTES: Final = 1024 * 1024


class FrameReader:
    """Reads frames from a connected socket.

    The memory of a frame is valid until the next call. The buffer grows with the bytes that have
    come, never with a size that was only announced.
    """

    def __init__(self, connected: socket.socket, place: str) -> None:
        self._socket = connected
        self._place = place
        self._buffer = bytearray(_BUFFER_BYTES)
        self._view = memoryview(self._buffer)
        self._begin = 0
        self._end = 0

    def next(self, deadline: float) -> memoryview:
        """Return the next frame without its size.

        Args:
            deadline: A moment of `time.monotonic()`. One that has passed takes what has come.

        Raises:
            ServerSilent: The deadline has passed; what has come of the frame is kept.
            ConnectionLost: The connection ended.
            BadAnswer: The size of the frame is above FRAME_BYTES_MAX.
        """
        while True:
            size = self._frame_bytes()
            if size and self._end - self._begin >= size:
                frame = self._view[self._begin + _SIZE_BYTES : self._begin + size]
                self._begin += size
                return frame
            self._make_room(size)
            self._receive(deadline)

    @property
    def rest(self) -> bytes:
        """Bytes that have come and were not given out: in the end a frame that was cut short."""
        return bytes(self._view[self._begin : self._end])

    def _frame_bytes(self) -> int:
        """Return the size of the frame in front, with its size field; 0 if that is not known."""
        if self._end - self._begin < _SIZE_BYTES:
            return 0
        size = int.from_bytes(self._view[self._begin : self._begin + _SIZE_BYTES], "big")
        if size > FRAME_BYTES_MAX:
            raise BadAnswer(f"{self._place} announced a frame of {size} bytes, which is too large")
        return size + _SIZE_BYTES

    def _make_room(self, size: int) -> None:
        """Move what has come to the front of the buffer if the frame would not fit behind it."""
        there = self._end - self._begin
        if there == 0:
            self._begin = self._end = 0
        if self._begin + max(size, _SIZE_BYTES) <= len(self._buffer) > self._end:
            return
        if self._begin:
            self._buffer[:there] = self._buffer[self._begin : self._end]
            self._begin, self._end = 0, there
        if self._end == len(self._buffer):
            larger = bytearray(2 * len(self._buffer))
            larger[:there] = self._buffer
            self._buffer = larger
            self._view = memoryview(larger)

    def _receive(self, deadline: float) -> None:
        try:
            self._socket.settimeout(max(deadline - time.monotonic(), 0.0))
            count = self._socket.recv_into(self._view[self._end : self._end + _READ_BYTES])
        except (TimeoutError, BlockingIOError, ssl.SSLWantReadError):
            raise ServerSilent(f"{self._place} did not answer in time") from None
        except OSError as error:
            raise ConnectionLost(f"the connection to {self._place} broke: {error}") from None
        if count == 0:
            raise ConnectionLost(f"{self._place} closed the connection")
        self._end += count
