"""What the Publish kernel must do, said slowly: frames to entries first, then one rule at a time.

Written apart from the kernel; shares with it only the names of what is in `state`.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

NEEDS_BYTES, OTHER_FRAME, CHUNK_FULL, BAD_SUB_BATCH, MALFORMED = range(5)
PUBLISH_V1 = b"\0\2\0\1"
ENTRIES_IN_EMPTY = 65_535


@dataclass(frozen=True)
class Call:
    """What one call is given."""

    source: bytes
    position: int = 0
    frame_end: int = 0
    limit: int = -1
    frame_bytes_max: int = 1 << 20
    publisher: int = 0
    uncompressed_max: int = 64 << 20
    written: int = 56
    capacity: int = 1 << 14
    target_bytes: int = 1 << 14
    entries_max: int = ENTRIES_IN_EMPTY
    duplicates_max: int = 512
    last: int | None = None
    is_named: bool = False
    filtered: bool = False
    """A Publish v2: `take_filtered` instead of `take_publishes`."""

    @property
    def end(self) -> int:
        return len(self.source) if self.limit < 0 else self.limit


@dataclass
class Outcome:
    """What one call gives back."""

    reason: int
    position: int
    frame_end: int
    last: int | None
    ids: list[int] = field(default_factory=list)
    duplicates: list[int] = field(default_factory=list)
    stored: bytes = b""
    records: int = 0
    filters: set[bytes] = field(default_factory=set)


@dataclass(frozen=True)
class Parsed:
    """An entry as it stands in a frame."""

    position: int
    end: int
    publishing_id: int
    stored: bytes
    records: int
    is_good: bool = True
    filter_value: bytes = b""


class Cut(Exception):
    """An entry does not fit its frame."""

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


class Bytes:
    """Takes bytes from the front; Cut when there are none."""

    def __init__(self, data: bytes, position: int, end: int) -> None:
        self.data = data
        self.position = position
        self.end = end
        self.first = position

    def take(self, size: int) -> bytes:
        if self.position + size > self.end:
            raise Cut(self.first)
        self.position += size
        return self.data[self.position - size : self.position]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")


def entry_at(call: Call, position: int, frame_end: int) -> Parsed:
    """Take one entry apart. Raises Cut."""
    source = Bytes(call.source, position, frame_end)
    publishing_id = source.number(8)
    filter_value = b""
    if call.filtered:
        size = source.number(2)
        filter_value = b"" if size == 0xFFFF else source.take(size)
    head = source.take(4)
    if head[0] < 0x80:
        stored = head + source.take(int.from_bytes(head))
        end = source.position
        return Parsed(position, end, publishing_id, stored, 1, filter_value=filter_value)
    if call.filtered:
        raise Cut(position)
    head += source.take(7)
    first, records, uncompressed, size = struct.unpack(">BHII", head)
    codec = (first >> 4) & 7
    body = source.take(size)
    is_good = (
        codec in (0, 1, 2, 3, 4)
        and records > 0
        and uncompressed <= call.uncompressed_max
        and records * 4 <= uncompressed
        and (size > 0 or codec == 0)
    )
    stored = bytes([0x80 | codec << 4]) + head[1:] + body
    return Parsed(position, source.position, publishing_id, stored, records, is_good)


def take(call: Call) -> Outcome:
    """Do what one call of the kernel does."""
    out = Outcome(NEEDS_BYTES, call.position, call.frame_end, call.last)
    if call.filtered:
        out.reason = _take_frame(call, out)
        return out
    while True:
        if out.frame_end == 0:
            reason = _open_frame(call, out)
            if reason is not None:
                out.reason = reason
                return out
        out.reason = _take_frame(call, out)
        if out.reason != NEEDS_BYTES:
            return out
        out.frame_end = 0


def _open_frame(call: Call, out: Outcome) -> int | None:
    left = call.source[out.position : call.end]
    if len(left) < 4:
        return NEEDS_BYTES
    if len(left) < 13:
        return OTHER_FRAME
    size = int.from_bytes(left[:4])
    is_ours = left[4:8] == PUBLISH_V1 and left[8] == call.publisher
    if not is_ours or not 9 <= size <= call.frame_bytes_max:
        return OTHER_FRAME
    if len(left) < 4 + size:
        return NEEDS_BYTES
    out.frame_end = out.position + 4 + size
    out.position += 13
    return None


def _take_frame(call: Call, out: Outcome) -> int:
    while out.position < out.frame_end:
        try:
            entry = entry_at(call, out.position, out.frame_end)
        except Cut:
            return MALFORMED
        if not entry.is_good:
            return BAD_SUB_BATCH
        if not (_is_duplicate if _repeats(call, out, entry) else _is_stored)(call, out, entry):
            return CHUNK_FULL
        out.position = entry.end
    return NEEDS_BYTES


def _repeats(call: Call, out: Outcome, entry: Parsed) -> bool:
    return call.is_named and out.last is not None and entry.publishing_id <= out.last


def _is_duplicate(call: Call, out: Outcome, entry: Parsed) -> bool:
    if len(out.duplicates) == call.duplicates_max:
        return False
    out.duplicates.append(entry.publishing_id)
    return True


def _is_stored(call: Call, out: Outcome, entry: Parsed) -> bool:
    if not _fits(call, out, len(entry.stored)):
        return False
    out.ids.append(entry.publishing_id)
    out.stored += entry.stored
    out.records += entry.records
    if call.filtered:
        out.filters.add(entry.filter_value)
    if call.is_named:
        out.last = entry.publishing_id
    return True


def _fits(call: Call, out: Outcome, size: int) -> bool:
    if len(out.ids) == call.entries_max:
        return False
    end = call.written + len(out.stored) + size
    is_alone = not out.ids and call.entries_max == ENTRIES_IN_EMPTY
    return end <= call.capacity or (is_alone and end <= call.target_bytes)


def whole(call: Call) -> Iterator[Outcome]:
    """Make calls as the server does: a chunk that is full is exchanged for an empty one."""
    while True:
        out = take(call)
        yield out
        if out.reason != CHUNK_FULL:
            return
        call = replace(call, position=out.position, frame_end=out.frame_end, last=out.last)
        if len(out.duplicates) < call.duplicates_max:
            call = replace(call, written=56, entries_max=ENTRIES_IN_EMPTY)
        else:
            written = call.written + len(out.stored)
            call = replace(call, written=written, entries_max=call.entries_max - len(out.ids))
