"""Publish bodies and chunks for tests, written apart from the server's own code for them.

chunk   | magic 5, version 0 | type | entries | records | timestamp | epoch | chunk id | crc
bytes   | 1                  | 1    | 2       | 4       | 8         | 8     | 8        | 4
        | data size | trailer size | bloom size | reserved | data
        | 4         | 4            | 1          | 3        |

simple entry   | 0 and size, u32 | body
sub-batch      | 1, compression, 4 unused bits: u8 | records u16 | raw size u32 | size u32 | body
"""

import gzip
import struct
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import cramjam

from hutch.stream import messages as m
from hutch.stream.codec import Decoded

HEADER = struct.Struct(">BBHIqQQIIIB3s")
SUB_BATCH = struct.Struct(">BHII")
MAGIC_AND_VERSION = 0x50
NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
COMPRESS: dict[int, Callable[[bytes], Any]] = {
    NONE: bytes,
    GZIP: gzip.compress,
    SNAPPY: cramjam.snappy.compress,
    LZ4: cramjam.lz4.compress,
    ZSTD: cramjam.zstd.compress,
}


@dataclass(frozen=True, slots=True)
class SubBatch:
    """An entry of several records; `body` as it stands in the chunk, compressed or not."""

    compression: int
    record_count: int
    raw_size: int
    body: bytes

    @classmethod
    def of(cls, records: Sequence[bytes], compression: int = NONE) -> Self:
        """Pack records by any codec."""
        raw = b"".join(len(record).to_bytes(4) + record for record in records)
        return cls(compression, len(records), len(raw), bytes(COMPRESS[compression](raw)))

    def encoded(self) -> bytes:
        """Return head and body."""
        head = 0x80 | self.compression << 4
        return SUB_BATCH.pack(head, self.record_count, self.raw_size, len(self.body)) + self.body

    def records(self) -> list[bytes]:
        """Unpack the records; of compressions only gzip."""
        assert self.compression in (NONE, GZIP), self.compression
        raw = gzip.decompress(self.body) if self.compression == GZIP else self.body
        assert len(raw) == self.raw_size
        found: list[bytes] = []
        position = 0
        while position < len(raw):
            first = position + 4
            position = first + int.from_bytes(raw[position:first])
            assert position <= len(raw)
            found.append(raw[first:position])
        assert len(found) == self.record_count
        return found


Entry = bytes | SubBatch


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk as delivered: the header's numbers, and the data."""

    kind: int
    entry_count: int
    record_count: int
    timestamp_ms: int
    epoch: int
    chunk_id: int
    crc: int
    trailer_size: int
    bloom_size: int
    data: bytes

    def entries(self) -> list[Entry]:
        """Take the data apart; assert that the header told the truth about it."""
        found: list[Entry] = []
        position = 0
        while position < len(self.data):
            entry, position = entry_at(self.data, position)
            found.append(entry)
        assert len(found) == self.entry_count
        counts = (entry.record_count if isinstance(entry, SubBatch) else 1 for entry in found)
        assert sum(counts) == self.record_count
        return found

    def records(self) -> list[bytes]:
        """Return every record; the first has the offset `chunk_id`."""
        found: list[bytes] = []
        for entry in self.entries():
            found += entry.records() if isinstance(entry, SubBatch) else [entry]
        return found


@dataclass(frozen=True, slots=True)
class Delivery:
    """A Deliver frame, taken apart; `committed_chunk_id` is None in version 1."""

    subscription_id: int
    committed_chunk_id: int | None
    chunk: Chunk


def entry_at(data: bytes, position: int) -> tuple[Entry, int]:
    """Return the entry at a position and the position after it."""
    if data[position] < 0x80:
        first = position + 4
        end = first + int.from_bytes(data[position:first])
        assert end <= len(data)
        return data[first:end], end
    head, record_count, raw_size, size = SUB_BATCH.unpack_from(data, position)
    first = position + SUB_BATCH.size
    end = first + size
    assert end <= len(data)
    assert head & 0x0F == 0
    return SubBatch((head >> 4) & 7, record_count, raw_size, data[first:end]), end


def chunk_of(data: bytes) -> Chunk:
    """Take a delivered chunk apart; assert its magic, its size and its CRC."""
    magic, kind, entries, records, timestamp, epoch, chunk_id, crc, size, trailer, bloom, zero = (
        HEADER.unpack_from(data)
    )
    assert magic == MAGIC_AND_VERSION
    assert zero == bytes(3)
    body = data[HEADER.size :]
    assert len(body) == size
    assert zlib.crc32(body) == crc
    return Chunk(kind, entries, records, timestamp, epoch, chunk_id, crc, trailer, bloom, data=body)


def delivery_of(decoded: Decoded) -> Delivery:
    """Take a decoded Deliver apart, of either version."""
    assert isinstance(decoded.message, m.KernelBody)
    body = decoded.message.body
    if decoded.version == 1:
        return Delivery(body[0], None, chunk_of(body[1:]))
    return Delivery(body[0], int.from_bytes(body[1:9]), chunk_of(body[9:]))


def publish_body(publisher_id: int, entries: Sequence[tuple[int, Entry]]) -> bytes:
    """Build what follows key and version in a Publish v1."""
    parts = [publisher_id.to_bytes(1), len(entries).to_bytes(4)]
    for publishing_id, entry in entries:
        parts.append(publishing_id.to_bytes(8))
        if isinstance(entry, SubBatch):
            parts.append(entry.encoded())
        else:
            parts += (len(entry).to_bytes(4), entry)
    return b"".join(parts)


def filtered_body(publisher_id: int, entries: Sequence[tuple[int, str | None, bytes]]) -> bytes:
    """Build what follows key and version in a Publish v2; None is the null filter value."""
    parts = [publisher_id.to_bytes(1), len(entries).to_bytes(4)]
    for publishing_id, filter_value, body in entries:
        parts.append(publishing_id.to_bytes(8))
        if filter_value is None:
            parts.append(b"\xff\xff")
        else:
            value = filter_value.encode()
            parts += (len(value).to_bytes(2), value)
        parts += (len(body).to_bytes(4), body)
    return b"".join(parts)
