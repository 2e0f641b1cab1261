# cython: language_level=3, annotation_typing=False
"""The stored form of a chunk: pure bytes, no I/O.

A chunk is what RabbitMQ's osiris calls a chunk, wrapped in one Pravega event, all big-endian:

     0  u32 0, u32 size          head of the event; size counts everything after it
     8  u8  0x50                 magic 5, version 0
     9  u8  type                 0: records of users (the only one stored here)
    10  u16 entries
    12  u32 records              offsets used; a sub-batch of n is one entry, n records
    16  i64 timestamp ms         never below that of the chunk before
    24  u64 epoch
    32  u64 chunk id             offset of the first record
    40  u32 crc                  CRC-32 of the data section
    44  u32 data size
    48  u32 trailer size         only the publisher sequences, as RabbitMQ counts it
    52  u8  bloom size = 0, u24 reserved = 0
    56  data                     entries behind one another
        trailer                  (u8 0, u8 size, reference, u64 sequence) per named publisher
        filter values            if an entry has one: see gateway.log.derived.filters
        u32 seal                 CRC-32 of the header, the trailer and the filter values

Bytes 8 … 56 + data size are what a Deliver carries.

The header has the checksum of the data; the seal covers all the rest. The seal's CRC-32 starts from
the name of the segment, so a chunk of another stream is not taken for one of this stream. Chunks
that will be merged into another segment are sealed for that one: their writer uses the target's
`seal_seed`.

The append of a chunk has an event number: the offset behind the chunk, and the leader's epoch.

Source: RabbitMQ osiris, the log's header comment; Pravega wire protocol, Event.
"""

import struct
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

try:
    from isal.isal_zlib import crc32
except ImportError:  # pragma: no cover  # the wheel does not exist for every platform
    from zlib import crc32

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = [
    "ALONE_BYTES",
    "CRC_POSITION",
    "DATA_POSITION",
    "ENTRIES_MAX",
    "EPOCH_BITS",
    "EVENT_HEAD_BYTES",
    "HEADER_BYTES",
    "LAST_NUMBER",
    "OFFSETS_END",
    "SEAL_BYTES",
    "ChunkHeader",
    "crc32",
    "event_number",
    "next_offset_and_epoch",
    "pack_head",
    "pack_header",
    "pack_trailer",
    "seal_seed",
    "unpack_header",
    "unpack_trailer",
]

EVENT_HEAD_BYTES: Final = 8
HEADER_BYTES: Final = 48
DATA_POSITION: Final = EVENT_HEAD_BYTES + HEADER_BYTES
CRC_POSITION: Final = EVENT_HEAD_BYTES + 32
SEAL_BYTES: Final = 4
ENTRIES_MAX: Final = 65_535
ALONE_BYTES: Final = 64 * 1024
"""A chunk of this size is sent alone, from its file; smaller ones from memory, and joined."""
EPOCH_BITS: Final = 16
OFFSETS_END: Final = 1 << 47
"""Offsets are below this."""
LAST_NUMBER: Final = (OFFSETS_END << EPOCH_BITS) - 1
"""The event number that says that the offsets are used up; it says nothing of the epoch."""
# The same: C integers when it is compiled.
_EPOCH_BITS: Final = EPOCH_BITS
_OFFSETS_END: Final = OFFSETS_END
_LAST_NUMBER: Final = LAST_NUMBER
MAGIC_AND_VERSION: Final = 0x50
USER_CHUNK: Final = 0

_HEADER: Final = struct.Struct(">BBHIqQQIIII")
_HEAD: Final = struct.Struct(">IIBBHIqQQIIII")
_SEQUENCE: Final = 0


class ChunkHeader(NamedTuple):
    """The 48 bytes in front of a chunk's data."""

    entries: int
    records: int
    timestamp_ms: int
    epoch: int
    chunk_id: int
    crc: int
    data_bytes: int
    trailer_bytes: int


def seal_seed(segment: str) -> int:
    """Return the CRC-32 from which the seals of a segment start."""
    return crc32(segment.encode("utf-8", "surrogateescape"))


def pack_header(header: ChunkHeader) -> bytes:
    """Encode a header (48 bytes) for a chunk that is put together for delivery."""
    return _HEADER.pack(MAGIC_AND_VERSION, USER_CHUNK, *header, 0)


def pack_head(
    buffer: bytearray, header: tuple[int, int, int, int, int, int, int, int], event_bytes: int
) -> None:
    """Write the event's head and the header into the first 56 bytes of `buffer`.

    Args:
        buffer: A chunk's buffer; its data is in place.
        header: A ChunkHeader, or its fields in a plain tuple, which is cheaper to make.
        event_bytes: Size of the event after its own head: header, data and all behind them.
    """
    _HEAD.pack_into(buffer, 0, 0, event_bytes, MAGIC_AND_VERSION, USER_CHUNK, *header, 0)


def unpack_header(source: "Buffer", position: int) -> ChunkHeader:
    """Decode the header at `position` (the byte after the event's head)."""
    (_, _, entries, records, timestamp_ms, epoch, chunk_id, crc, data_bytes, trailer_bytes, _) = (
        _HEADER.unpack_from(source, position)
    )
    return ChunkHeader(
        entries, records, timestamp_ms, epoch, chunk_id, crc, data_bytes, trailer_bytes
    )


def event_number(next_offset: int, epoch: int) -> int:
    """Return an append's event number: the next offset (47 bits) and the leader's epoch (16 bits).

    The last number stands for a stream whose offsets are used up, whatever its epoch.
    """
    if next_offset >= _OFFSETS_END:
        return _LAST_NUMBER
    return next_offset << _EPOCH_BITS | epoch


def next_offset_and_epoch(number: int) -> tuple[int, int]:
    """Return the next offset and the epoch of an event number."""
    if number == LAST_NUMBER:
        return OFFSETS_END, (1 << EPOCH_BITS) - 1
    return number >> EPOCH_BITS, number & ((1 << EPOCH_BITS) - 1)


def pack_trailer(sequences: Mapping[bytes, int]) -> bytes:
    """Encode the last publishing id of each publisher reference (≤ 255 bytes) of a chunk."""
    return b"".join(
        struct.pack(f">BB{len(reference)}sQ", _SEQUENCE, len(reference), reference, sequence)
        for reference, sequence in sequences.items()
    )


def unpack_trailer(trailer: "Buffer") -> Iterable[tuple[bytes, int]]:
    """Yield the (reference, publishing id) pairs of a trailer; stop at the first unknown byte."""
    view = bytes(trailer)
    position = 0
    while position + 2 <= len(view) and view[position] == _SEQUENCE:
        size = view[position + 1]
        end = position + 2 + size
        if end + 8 > len(view):
            return
        yield view[position + 2 : end], int.from_bytes(view[end : end + 8], "big")
        position = end + 8
