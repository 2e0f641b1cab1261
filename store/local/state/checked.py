"""Bytes that were checked last, for a reader that comes when the system has dropped them."""

import threading
from collections import deque
from collections.abc import Sequence
from typing import Final

from store.api import CHECKED_BYTES_KEPT, CHECKS_KEPT
from store.local.state.segment import Place

_PIECE_BYTES: Final = 8 * 1024 * 1024
"""Buffers of this size are used again, for half as much or more: a new one costs as much as reading
into it."""
_SPARE_MAX: Final = 2


class Checked:
    """Keeps the bytes that were read last. Reading threads put them in, the loop takes them out."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: deque[tuple[Sequence[Place], memoryview]] = deque()
        self._bytes = 0
        self._spare: list[bytearray] = []

    def room(self, size: int) -> memoryview:
        """Return a buffer for bytes that will be kept or given back, with any content."""
        if not _PIECE_BYTES // 2 < size <= _PIECE_BYTES:
            return memoryview(bytearray(size))
        with self._lock:
            buffer = self._spare.pop() if self._spare else None
        return memoryview(bytearray(_PIECE_BYTES) if buffer is None else buffer)[:size]

    def keep(self, places: Sequence[Place], data: memoryview) -> None:
        """Keep the bytes of places that were read in one go; those of the oldest are let go.

        `data` came from `room`, and no thread needs it any more but to read it here.
        """
        with self._lock:
            self._kept.append((places, data))
            self._bytes += len(data)
            # Those behind the oldest are enough without it.
            while (
                len(self._kept) > CHECKS_KEPT
                or self._bytes - len(self._kept[0][1]) >= CHECKED_BYTES_KEPT
            ):
                self._bytes -= len(self._kept[0][1])
                self._reuse(self._kept.popleft()[1])

    def give_back(self, data: memoryview) -> None:
        """Take back the room of `room`, for bytes that will not be kept."""
        with self._lock:
            self._reuse(data)

    def _reuse(self, data: memoryview) -> None:
        buffer = data.obj
        if (
            isinstance(buffer, bytearray)
            and len(buffer) == _PIECE_BYTES
            and len(self._spare) < _SPARE_MAX
        ):
            self._spare.append(buffer)

    def find(self, wanted: Place) -> bytes | None:
        """Return bytes from the start of a place on, perhaps not all; None if they are not kept."""
        with self._lock:
            for places, data in reversed(self._kept):
                begin = 0
                for place in places:
                    skipped = wanted.position - place.position
                    if place.file is wanted.file and 0 <= skipped < place.size:
                        size = min(wanted.size, place.size - skipped)
                        return bytes(data[begin + skipped : begin + skipped + size])
                    begin += place.size
        return None
