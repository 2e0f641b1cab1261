"""Frames of a socket: whole ones read, sent while others come, and kept until they are wanted.

A server may write confirms and read frames in one thread. If it waits for room to write, and we
wait for room to write, neither goes on. So while it takes nothing, we read what it has sent.
"""

import select
import socket
import ssl
import time
from collections import deque
from collections.abc import Callable
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
            deadline: A moment of `time.monotonic()`. After it only bytes that have come count.

        Raises:
            ServerSilent: The deadline has passed; a frame's first part is kept.
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
        """Bytes that have come and are in no frame so far: in the end one that was cut short."""
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
        """Move the bytes that have come to the front, if the frame would not fit behind them."""
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


_FULL = (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError)


def send_both_ways(
    connected: socket.socket,
    data: bytes | bytearray | memoryview,
    deadline: float,
    take: Callable[[], None],
) -> None:
    """Send all bytes.

    Args:
        connected: The socket; its time limit is changed.
        data: The bytes.
        deadline: A moment of `time.monotonic()`.
        take: Reads from the socket; it is called whenever the other side takes no more but sends.

    Raises:
        TimeoutError: Not all was sent until then.
        OSError: The connection broke.
    """
    left = memoryview(data).cast("B")
    while True:
        left = left[_send_some(connected, left) :]
        if not left:
            return
        pause_s = deadline - time.monotonic()
        if pause_s <= 0:
            raise TimeoutError(f"{len(left)} bytes could not be sent in time")
        poll = select.poll()
        poll.register(connected, select.POLLIN | select.POLLOUT)
        if any(event & select.POLLIN for _, event in poll.poll(pause_s * 1000)):
            take()


def _send_some(connected: socket.socket, data: memoryview) -> int:
    connected.settimeout(0)
    try:
        return connected.send(data)
    except _FULL:
        return 0


INBOX_BYTES_MAX: Final = 64 * 1024 * 1024
"""Far more than a server may push, which its credit bounds."""

KEPT_FRAME_BYTES: Final = 128
"""Memory of a kept frame beside its own bytes, roughly."""


class PushedFrames:
    """Frames in the order in which they came, of bounded size."""

    def __init__(self) -> None:
        self._frames: deque[bytes] = deque()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._frames)

    def keep(self, frame: memoryview) -> bool:
        """Copy a frame; False if that would be too much. A first frame is always taken."""
        size = len(frame) + KEPT_FRAME_BYTES
        if self._frames and self._bytes + size > INBOX_BYTES_MAX:
            return False
        self._bytes += size
        self._frames.append(bytes(frame))
        return True

    def take(self) -> bytes:
        """Return the first frame; there must be one."""
        frame = self._frames.popleft()
        self._bytes -= len(frame) + KEPT_FRAME_BYTES
        return frame

    def take_first(self, is_wanted: Callable[[bytes], bool]) -> bytes | None:
        """Return the first frame that is wanted; None if there is none. The others stay."""
        for index, frame in enumerate(self._frames):
            if is_wanted(frame):
                del self._frames[index]
                self._bytes -= len(frame) + KEPT_FRAME_BYTES
                return frame
        return None

    def drop(self, is_unwanted: Callable[[bytes], bool]) -> None:
        """Drop frames; the others keep their order."""
        self._frames = deque(frame for frame in self._frames if not is_unwanted(frame))
        self._bytes = sum(len(frame) + KEPT_FRAME_BYTES for frame in self._frames)

    def clear(self) -> None:
        """Drop all."""
        self._frames.clear()
        self._bytes = 0
