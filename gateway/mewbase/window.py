"""The window of a subscription or query: the events that are sent and not acknowledged yet."""

from array import array
from typing import Final

_SOME: Final = 4096
"""Number of acknowledged events at which the arrays are shortened."""


class Window:
    """Events that were sent and are not acknowledged.

    Attributes:
        bytes: Their size, with their frames.
        is_full: True from the event that takes them above the window's size, until no more than
            the second size is left.
    """

    def __init__(self, full_bytes: int, open_bytes: int) -> None:
        """Begin empty; above `full_bytes` no more is sent, until `open_bytes` or less are left."""
        self.bytes = 0
        self.is_full = False
        self._full_bytes = full_bytes
        self._open_bytes = open_bytes
        # Twelve bytes an event: a window of small ones has some forty thousand.
        self._positions = array("q")
        self._sizes = array("I")
        self._first = 0

    @property
    def room_bytes(self) -> int:
        """Bytes that may still be sent."""
        return max(self._full_bytes - self.bytes, 0)

    @property
    def oldest(self) -> int | None:
        """Position of the oldest event that is not acknowledged; None if there is none."""
        return self._positions[self._first] if self._first < len(self._positions) else None

    def sent(self, position: int, size: int) -> None:
        """Note an event that is sent; positions rise."""
        self._positions.append(position)
        self._sizes.append(size)
        self.bytes += size
        if self.bytes > self._full_bytes:
            self.is_full = True

    def acknowledge(self, position: int | None) -> None:
        """Forget all events up to a position; without one, the oldest event."""
        first, positions = self._first, self._positions
        while first < len(positions) and (position is None or positions[first] <= position):
            self.bytes -= self._sizes[first]
            first += 1
            if position is None:
                break
        self._first = first
        if first == len(positions) or first >= _SOME:
            del positions[:first]
            del self._sizes[:first]
            self._first = 0
        if self.bytes <= self._open_bytes:
            self.is_full = False
