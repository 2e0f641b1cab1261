"""Sparse index of a stream: offset and timestamp to the position of a chunk; derived, no I/O.

An entry is made for the first chunk and then for a chunk that begins 256 KiB or more after the last
entry. A *span* is what lies between two entries: searches scan one, and bytes that this process did
not write are checked one span at a time.

    stored entry, 24 bytes, big-endian: u64 offset | i64 timestamp ms | u64 position
"""

import struct
from array import array
from bisect import bisect_left, bisect_right
from typing import Final

SPAN_BYTES: Final = 256 * 1024
_ENTRY: Final = struct.Struct(">QqQ")


class ChunkIndex:
    """Offsets, timestamps and positions of chunks, each growing."""

    def __init__(self) -> None:
        self.offsets = array("Q")
        self.timestamps_ms = array("q")
        self.positions = array("Q")
        self._verified = bytearray()

    def __len__(self) -> int:
        return len(self.offsets)

    def offer(
        self, offset: int, timestamp_ms: int, position: int, *, verified: bool = True
    ) -> None:
        """Take a chunk into the index if it is far enough behind the last entry."""
        if self.positions and position - self.positions[-1] < SPAN_BYTES:
            return
        self.offsets.append(offset)
        self.timestamps_ms.append(timestamp_ms)
        self.positions.append(position)
        self._verified.append(verified)

    def drop_before(self, position: int) -> None:
        """Forget spans that end at or before `position` (the segment was truncated)."""
        count = max(bisect_right(self.positions, position) - 1, 0)
        if count:
            del self.offsets[:count]
            del self.timestamps_ms[:count]
            del self.positions[:count]
            del self._verified[:count]

    def position_before_offset(self, offset: int) -> int | None:
        """Return where to start scanning for the chunk that holds `offset`; None if empty."""
        index = bisect_right(self.offsets, offset) - 1
        return self.positions[max(index, 0)] if self.positions else None

    def position_before_timestamp(self, timestamp_ms: int) -> int | None:
        """Return where to start scanning for the first chunk not older; None if empty."""
        index = bisect_left(self.timestamps_ms, timestamp_ms) - 1
        return self.positions[max(index, 0)] if self.positions else None

    def span_at(self, position: int) -> tuple[int, int, bool]:
        """Return (index of the span, its end or -1 for the last, whether it is verified)."""
        index = bisect_right(self.positions, position) - 1
        if index < 0:
            return -1, self.positions[0] if self.positions else -1, False
        end = self.positions[index + 1] if index + 1 < len(self.positions) else -1
        return index, end, bool(self._verified[index])

    def verify(self, position: int) -> None:
        """Note that the span that begins at `position` has been checked."""
        index = bisect_left(self.positions, position)
        if index < len(self.positions) and self.positions[index] == position:
            self._verified[index] = 1

    def pack_after(self, saved_to: int, position: int) -> tuple[bytes, int]:
        """Encode the entries whose chunks begin in [saved_to, position).

        Returns:
            The bytes, and the `saved_to` of the next call.
        """
        first = bisect_left(self.positions, saved_to)
        last = bisect_left(self.positions, position)
        entries = b"".join(
            _ENTRY.pack(self.offsets[i], self.timestamps_ms[i], self.positions[i])
            for i in range(first, last)
        )
        return entries, position

    def restore(self, stored: bytes, *, start: int, length: int) -> bool:
        """Take over stored entries in [start, length); False if they make no sense.

        Entries are unverified: this process did not write what they point at.
        """
        offset_before = timestamp_before = position_before = -1
        for offset, timestamp_ms, position in _ENTRY.iter_unpack(
            stored[: len(stored) // _ENTRY.size * _ENTRY.size]
        ):
            if position <= position_before or position >= length:
                continue  # written again after an opening that had to scan
            if offset <= offset_before or timestamp_ms < timestamp_before:
                return False
            offset_before, timestamp_before, position_before = offset, timestamp_ms, position
            if position >= start:
                self.offer(offset, timestamp_ms, position, verified=False)
        return True
