"""Events in the bytes of a segment: `int 0, int length, bytes`, one behind the other."""

import struct
from typing import Final

_HEAD: Final = struct.Struct(">ii")
_EVENT: Final = 0


class Events:
    """Counts the events of a segment that is fed in pieces."""

    def __init__(self) -> None:
        """Begin at the segment's start."""
        self._count = 0
        self._are_events = True
        self._left = b""
        self._to_skip = 0
        """Bytes of the last event that are still to come."""

    @property
    def count(self) -> int:
        """The events; 0 if they do not add up: bytes may be written as a stream of bytes."""
        is_whole = self._are_events and not self._left and not self._to_skip
        return self._count if is_whole else 0

    def feed(self, data: bytes) -> None:
        """Take the next piece."""
        if not self._are_events:
            return
        data, place = self._left + data, self._to_skip
        while place + _HEAD.size <= len(data):
            kind, size = _HEAD.unpack_from(data, place)
            if kind != _EVENT or size < 0:
                self._are_events = False
                return
            place += _HEAD.size + size
            self._count += 1
        self._left = data[place:]
        self._to_skip = max(0, place - len(data))
