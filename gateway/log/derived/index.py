# cython: language_level=3, annotation_typing=False, nonecheck=True
"""Sparse index of a stream: maps offset and timestamp to a chunk's position; derived, no I/O.

The first chunk gets an entry, and then each chunk that begins 256 KiB or more after the last entry
(less for streams that are removed in smaller pieces). A *span* is the bytes between two entries. A
search scans one span, and bytes that this process did not write are checked one span at a time.

    stored entry, 28 bytes, big-endian:
        u64 offset | i64 timestamp ms | u64 position | u32 CRC-32 of the name of the index's
        segment and of all before
"""

import struct
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Final

from hutch.formats.chunk import crc32

SPAN_BYTES: Final = 256 * 1024
NO_END: Final = 2**63
_ENTRY: Final = struct.Struct(">QqQ")
_STORED: Final = struct.Struct(">QqQI")
ENTRY_BYTES: Final = _STORED.size


class ChunkIndex:
    """Offsets, timestamps and positions of chunks, each growing.

    Attributes:
        trusted_position: From here on every byte was written by this process.
        trusted_offset: The offset of the first chunk there.
    """

    def __init__(self, span_bytes: int = NO_END) -> None:
        self.set_span(span_bytes)
        self.offsets = array("Q")
        self.timestamps_ms = array("q")
        self.positions = array("Q")
        self._verified = bytearray()
        self.trust(0, 0)

    def __len__(self) -> int:
        return len(self.offsets)

    def set_span(self, span_bytes: int) -> None:
        """Set the distance of new entries; at most 256 KiB."""
        self._span_bytes = min(span_bytes, SPAN_BYTES)

    def trust(self, position: int, offset: int) -> None:
        """Note that this process writes every byte from a position on, where an offset begins."""
        self.trusted_position = position
        self.trusted_offset = offset

    def offer(
        self,
        offset: int,
        timestamp_ms: int,
        position: int,
        verified: bool = True,  # noqa: FBT001, FBT002 (a function in C)
    ) -> bool:
        """Add a chunk if it is far enough behind the last entry; return whether it was added."""
        if self.positions:
            last = self.positions[-1]
            if position - last < self._span_bytes:
                return False
        self._take(offset, timestamp_ms, position, verified=verified)
        return True

    def _take(self, offset: int, timestamp_ms: int, position: int, *, verified: bool) -> None:
        self.offsets.append(offset)
        self.timestamps_ms.append(timestamp_ms)
        self.positions.append(position)
        self._verified.append(verified)

    def drop_before(self, position: int) -> int:
        """Forget spans that end at or before `position`, the new start; return how many."""
        count = max(bisect_right(self.positions, position) - 1, 0)
        if count:
            del self.offsets[:count]
            del self.timestamps_ms[:count]
            del self.positions[:count]
            del self._verified[:count]
        return count

    def first_from(self, position: int) -> int:
        """Return the number of the first entry at or behind `position`; `len` if there is none."""
        return bisect_left(self.positions, position)

    def offset_at(self, position: int) -> int | None:
        """Return the offset of the entry for a position, None if there is none."""
        index = bisect_left(self.positions, position)
        is_there = index < len(self.positions) and self.positions[index] == position
        return self.offsets[index] if is_there else None

    def timestamp_at(self, position: int) -> int | None:
        """Return the timestamp of the entry for a position, None if there is none."""
        index = bisect_left(self.positions, position)
        is_there = index < len(self.positions) and self.positions[index] == position
        return self.timestamps_ms[index] if is_there else None

    def correct(self, position: int, offset: int) -> None:
        """Change the offset of the entry for a position."""
        self.offsets[bisect_left(self.positions, position)] = offset

    def drop(self, position: int) -> None:
        """Forget the entry for a position: no such chunk is there."""
        index = bisect_left(self.positions, position)
        self._verified[max(index - 1, 0)] = 0
        for column in (self.offsets, self.timestamps_ms, self.positions, self._verified):
            del column[index]

    def span_start(self, position: int) -> int:
        """Return where the span of a position begins; 0 if it is before the first entry."""
        index = bisect_right(self.positions, position) - 1
        return self.positions[index] if index >= 0 else 0

    def position_before_offset(self, offset: int) -> int | None:
        """Return where to start scanning for the chunk that holds `offset`; None if empty."""
        index = bisect_right(self.offsets, offset) - 1
        return self.positions[max(index, 0)] if self.positions else None

    def position_before_timestamp(self, timestamp_ms: int) -> int | None:
        """Return where to start scanning for the first chunk not older; None if empty."""
        index = bisect_left(self.timestamps_ms, timestamp_ms) - 1
        return self.positions[max(index, 0)] if self.positions else None

    def verified_end(self, position: int) -> int:
        """Return the end of the verified bytes from `position` on; `position` if there are none."""
        index = bisect_right(self.positions, position) - 1
        if index < 0 or not self._verified[index]:
            return position
        next_bad = self._verified.find(0, index)
        return self.positions[next_bad] if next_bad >= 0 else NO_END

    def marks(self, position: int, end: int) -> list[tuple[int, int]]:
        """Return place and offset of the entries in [position, end), and of one on either side.

        Places count from `position`. The entry before is left out if one is at `position` itself.
        """
        first = max(bisect_right(self.positions, position) - 1, 0)
        stop = bisect_left(self.positions, end) + 1
        places = [each - position for each in self.positions[first:stop]]
        return list(zip(places, self.offsets[first:stop], strict=True))

    def span_end(self, position: int, size: int) -> int:
        """Return the end of the last span that ends within `size`, else that of the first."""
        last = bisect_right(self.positions, position + size) - 1
        if last >= 0 and self.positions[last] > position:
            return self.positions[last]
        return self.positions[last + 1] if last + 1 < len(self.positions) else NO_END

    def verify(self, first: int, end: int, *, is_rest_trusted: bool = False) -> None:
        """Note that [first, end) has been checked: this marks the spans that lie wholly in it.

        `is_rest_trusted`: bytes behind `end` need no check, so a span may end behind it.
        """
        index = bisect_left(self.positions, first)
        stop = bisect_left(self.positions, end)
        if not is_rest_trusted:
            stop = bisect_right(self.positions, end) - 1
        if stop > index:
            self._verified[index:stop] = b"\x01" * (stop - index)

    def pack_after(self, saved_to: int, position: int, seed: int) -> tuple[bytes, int]:
        """Encode the entries whose chunks begin in [saved_to, position).

        Args:
            saved_to: Where the call before ended.
            position: Where this one is to end.
            seed: CRC-32 of the name of the segment that gets them.

        Returns:
            The bytes, and the `saved_to` of the next call.
        """
        first = bisect_left(self.positions, saved_to)
        last = bisect_left(self.positions, position)
        entries = b"".join(
            _pack(self.offsets[i], self.timestamps_ms[i], self.positions[i], seed)
            for i in range(first, last)
        )
        return entries, position

    def restore(self, stored: bytes, *, start: int, length: int) -> bool:
        """Take over stored entries in [start, length), and the one whose span holds the start.

        Entries are unverified: this process did not write the chunks that they point at.

        Returns:
            True if they make sense: they grow, an entry that was stored twice was the same both
            times, and they begin no later than the segment. False: nothing was taken over.
        """
        entries: dict[int, tuple[int, int]] = {}
        for position, offset, timestamp_ms in unpack_entries(stored):
            entry = offset, timestamp_ms
            if position < length and entries.setdefault(position, entry) != entry:
                return False
        if min(entries, default=length) > start or not _grow(entries):
            return False
        first = max((position for position in entries if position <= start), default=start)
        for position, (offset, timestamp_ms) in entries.items():
            if position >= first:
                self._take(offset, timestamp_ms, position, verified=False)
        return True


def _grow(entries: Mapping[int, tuple[int, int]]) -> bool:
    return all(
        one[0] < next_one[0] and one[1][0] < next_one[1][0] and one[1][1] <= next_one[1][1]
        for one, next_one in pairwise(entries.items())
    )


def are_sound(stored: bytes, seed: int) -> bool:
    """Return whether each of some stored entries matches its checksum.

    `seed`: CRC-32 of the name of the segment that they are from.
    """
    return all(
        crc32(stored[end - ENTRY_BYTES : end - 4], seed) == int.from_bytes(stored[end - 4 : end])
        for end in range(ENTRY_BYTES, len(stored) + 1, ENTRY_BYTES)
    )


def entries_from(stored: bytes, position: int) -> bytes:
    """Return the stored entries whose chunks begin at `position` or later."""
    return b"".join(
        stored[place * ENTRY_BYTES : (place + 1) * ENTRY_BYTES]
        for place, (at, _, _) in enumerate(unpack_entries(stored))
        if at >= position
    )


def last_position(stored: bytes) -> int:
    """Return the position of the last of some stored entries, -1 if there are none."""
    return max((position for position, _, _ in unpack_entries(stored)), default=-1)


def last_place_before(stored: bytes, start: int) -> int:
    """Return the number of the last stored entry that begins at or before `start`, or -1.

    Entries stored twice do no harm: the count runs from the front to the first behind `start`.
    """
    place = -1
    for place, (position, _, _) in enumerate(unpack_entries(stored)):
        if position > start:
            return place - 1
    return place


def unpack_entries(stored: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield position, offset and timestamp of each whole entry."""
    whole = stored[: len(stored) // ENTRY_BYTES * ENTRY_BYTES]
    for offset, timestamp_ms, position, _ in _STORED.iter_unpack(whole):
        yield position, offset, timestamp_ms


def _pack(offset: int, timestamp_ms: int, position: int, seed: int) -> bytes:
    entry = _ENTRY.pack(offset, timestamp_ms, position)
    return entry + crc32(entry, seed).to_bytes(4, "big")
