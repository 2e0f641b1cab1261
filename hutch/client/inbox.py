"""Keeps what a server pushed while an answer was awaited."""

from collections import deque
from collections.abc import Callable
from typing import Final

INBOX_BYTES_MAX: Final = 64 * 1024 * 1024
"""Far more than the credit that a server has, which bounds what it may push."""

_FRAME_BYTES: Final = 128
"""Memory of a kept frame beside its own bytes, roughly."""


class Inbox:
    """Frames in the order in which they came, of bounded size."""

    def __init__(self) -> None:
        self._frames: deque[bytes] = deque()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._frames)

    def keep(self, frame: memoryview) -> bool:
        """Copy a frame; False if that would be too much. A first frame is always taken."""
        size = len(frame) + _FRAME_BYTES
        if self._frames and self._bytes + size > INBOX_BYTES_MAX:
            return False
        self._bytes += size
        self._frames.append(bytes(frame))
        return True

    def take(self) -> bytes:
        """Return the first frame; there must be one."""
        frame = self._frames.popleft()
        self._bytes -= len(frame) + _FRAME_BYTES
        return frame

    def take_first(self, is_wanted: Callable[[bytes], bool]) -> bytes | None:
        """Return the first frame that is wanted; None if there is none. The others stay."""
        for index, frame in enumerate(self._frames):
            if is_wanted(frame):
                del self._frames[index]
                self._bytes -= len(frame) + _FRAME_BYTES
                return frame
        return None

    def drop(self, is_unwanted: Callable[[bytes], bool]) -> None:
        """Drop frames; the others keep their order."""
        self._frames = deque(frame for frame in self._frames if not is_unwanted(frame))
        self._bytes = sum(len(frame) + _FRAME_BYTES for frame in self._frames)

    def clear(self) -> None:
        """Drop all."""
        self._frames.clear()
        self._bytes = 0
