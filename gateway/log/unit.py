"""A unit on its way: chunks that are stored, and become visible, together; no I/O.

A unit comes as *blank* chunks: stored chunks whose offset, epoch and time are 0. When its turn has
come they get these. The data and its checksum stay as they are, only the seals are made anew. The
last chunk gets the unit's *mark*, a growing number, in its trailer under the empty reference. So a
stream that ends inside a unit, after bytes were lost, does not have its mark.
"""

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from gateway.log.damage.verification import verify_data
from gateway.log.derived.filters import FILTER_BYTES_MAX
from gateway.log.kernel.chunks import NEEDS_BYTES, check_seals, follow_chunks, walk_chunks
from gateway.log.open_chunk import ConfirmSink, OpenChunk
from hutch.formats.chunk import (
    DATA_POSITION,
    ENTRIES_MAX,
    EVENT_HEAD_BYTES,
    SEAL_BYTES,
    crc32,
    pack_head,
    pack_trailer,
    unpack_header,
)
from store.api import ABSENT, APPEND_BYTES_MAX, Appended

if TYPE_CHECKING:
    from typing_extensions import Buffer

DATA_BYTES_MAX: Final = APPEND_BYTES_MAX // 2 - FILTER_BYTES_MAX - 128
"""A search behind damage relies on it that no chunk is larger than half of the largest append."""

_PLACE: Final = struct.Struct(">qQQ")
_PLACE_POSITION: Final = 16
"""The place of the time, the epoch and the offset of a chunk in its event."""
_RECORDS_MAX: Final = 0xFFFF_FFFF


def pack_blank(
    entries: int,
    records: int,
    data: "Buffer",
    *,
    seal_seed: int,
    packed_filters: bytes = b"",
    data_bytes_max: int = DATA_BYTES_MAX,
    room: "Callable[[int], bytearray]" = bytearray,
) -> memoryview:
    """Make a blank chunk.

    Args:
        entries: Number of entries, 1 to 65,535.
        records: Number of records in them.
        data: The entries, as `hutch.formats.entries` describes them.
        seal_seed: That of the segment that will get the chunk.
        packed_filters: The filter values, packed as by `gateway.log.derived.filters`; or empty.
        data_bytes_max: The largest data: what fits a frame to a client.
        room: Returns a buffer of a size or larger; the chunk fills its front.

    Raises:
        ValueError: The data has other numbers of entries or records, or is too large.
    """
    data = memoryview(data).cast("B")
    size = DATA_POSITION + len(data) + len(packed_filters) + SEAL_BYTES
    if len(data) > data_bytes_max:
        raise ValueError(f"a chunk has at most {data_bytes_max} bytes of data, not {len(data)}")
    if len(packed_filters) > FILTER_BYTES_MAX:
        raise ValueError(f"a chunk has at most {FILTER_BYTES_MAX} bytes of filter values")
    if not (1 <= entries <= ENTRIES_MAX and 1 <= records <= _RECORDS_MAX):
        raise ValueError(f"a chunk cannot have {entries} entries with {records} records")
    buffer = room(size)
    header = (entries, records, 0, 0, 0, crc32(data), len(data), 0)
    pack_head(buffer, header, size - EVENT_HEAD_BYTES)
    data_end = DATA_POSITION + len(data)
    blank = memoryview(buffer)[:size]
    blank[DATA_POSITION:data_end] = data
    blank[data_end : size - SEAL_BYTES] = packed_filters
    if follow_chunks(blank, 0, size)[0] != NEEDS_BYTES:
        raise ValueError(f"the data is not {entries} entries with {records} records")
    _seal(blank, seal_seed)
    return blank


class UnitPart(NamedTuple):
    """One chunk of a unit: its size, its number of records, and its filter values."""

    size: int
    records: int
    packed_filters: bytes


def parts_of(blanks: "Buffer", seal_seed: int) -> list[UnitPart] | None:
    """Take a run of whole blank chunks apart; None if it is no such run, or is damaged."""
    view = memoryview(blanks)
    reason, end, chunks = walk_chunks(view, 0, len(view))
    if reason != NEEDS_BYTES or end != len(view):
        return None
    seals = check_seals(view, 0, end, seal_seed)
    if seals[0] != NEEDS_BYTES or verify_data(view)[0] != NEEDS_BYTES:
        return None
    parts = []
    for place, size, chunk_id, records, timestamp_ms, epoch, data_bytes, trailer_bytes in chunks:
        if chunk_id or timestamp_ms or epoch or trailer_bytes:
            return None
        filters_at = place + DATA_POSITION + data_bytes
        packed_filters = bytes(view[filters_at : place + size - SEAL_BYTES])
        parts.append(UnitPart(size, records, packed_filters))
    return parts


def add_mark(blanks: bytearray, parts: list[UnitPart], mark: int) -> None:
    """Put the mark of a unit into the trailer of its last chunk, whose seal is then wrong."""
    last = parts[-1]
    start = len(blanks) - last.size
    header = unpack_header(blanks, start + EVENT_HEAD_BYTES)
    trailer = pack_trailer({b"": mark})
    size = last.size + len(trailer)
    data_end = start + DATA_POSITION + header.data_bytes
    blanks[data_end:data_end] = trailer
    head = bytearray(DATA_POSITION)
    pack_head(head, header._replace(trailer_bytes=len(trailer)), size - EVENT_HEAD_BYTES)
    blanks[start : start + DATA_POSITION] = head
    parts[-1] = last._replace(size=size)


class Unit(OpenChunk):
    """A unit among the chunks that are on their way.

    Attributes:
        mark: Its mark.
        parts: Its chunks; of a large unit those that were written.
        first_offset: The offset of its first record, once it has one.
        last_number: The number of the append before it, of a unit that is merged.
    """

    __slots__ = ("_data", "first_offset", "last_number", "mark", "parts")

    def __init__(self, mark: int, data: bytearray, parts: list[UnitPart]) -> None:
        """Begin with the blank chunks of `data`; it is empty if the unit is stored elsewhere."""
        # A unit has no buffer of its own, so it does not begin as an open chunk does.
        self.mark = mark
        self.parts = parts
        self.first_offset = 0
        self.last_number = ABSENT
        self._data = data
        self.record_count = sum(part.records for part in parts)
        self.written = self.event_bytes = len(data)
        self.chunk_id = 0
        self.timestamp_ms = 0
        self.packed_filters = b""
        self.fresh = None
        self.is_unit = True
        self.sequences: dict[bytes, int] = {}
        self.confirms: list[tuple[ConfirmSink, bytes]] = []

    @property
    def next_offset(self) -> int:
        """The offset behind its last record."""
        return self.first_offset + sum(part.records for part in self.parts)

    def begin(self, offset: int, timestamp_ms: int, last_number: int) -> None:
        """Set the unit's first offset, its time, and the number of the append before it."""
        self.first_offset = self.chunk_id = offset
        self.timestamp_ms = timestamp_ms
        self.last_number = last_number

    def keep(self) -> None:
        """Keep nothing: readers get its chunks from the store."""

    def finish(self, chunk_id: int, epoch: int, timestamp_ms: int, seal_seed: int) -> memoryview:
        """Number the chunks and return them."""
        self.first_offset = self.chunk_id = chunk_id
        self.timestamp_ms = timestamp_ms
        number_chunks(self._data, self.parts, chunk_id, epoch, timestamp_ms, seal_seed)
        self.event_bytes = len(self._data)
        return memoryview(self._data)

    def each(self, appended: Appended) -> Iterator[Appended]:
        """Become each chunk of the unit in turn; yield where that one is stored.

        `appended`: where the unit is stored.
        """
        position = appended.position
        for part in self.parts:
            self.record_count = part.records
            self.packed_filters = part.packed_filters
            yield Appended(position, part.size, appended.event_number)
            position += part.size
            self.chunk_id += part.records

    def release(self) -> None:
        """Release the bytes, which the store has taken."""
        self._data = bytearray()


def number_chunks(
    blanks: bytearray,
    parts: Sequence[UnitPart],
    offset: int,
    epoch: int,
    timestamp_ms: int,
    seal_seed: int,
) -> None:
    """Write offsets, from `offset` on, epoch, time and seals into a run of blank chunks."""
    view = memoryview(blanks)
    start = 0
    for part in parts:
        _PLACE.pack_into(blanks, start + _PLACE_POSITION, timestamp_ms, epoch, offset)
        _seal(view[start : start + part.size], seal_seed)
        offset += part.records
        start += part.size


def _seal(event: memoryview, seal_seed: int) -> None:
    """Write the seal of a chunk."""
    header = unpack_header(event, EVENT_HEAD_BYTES)
    seal_at = len(event) - SEAL_BYTES
    seal = crc32(event[EVENT_HEAD_BYTES:DATA_POSITION], seal_seed)
    rest = event[DATA_POSITION + header.data_bytes : seal_at]
    if rest:
        seal = crc32(rest, seal)
    event[seal_at:] = seal.to_bytes(SEAL_BYTES, "big")
