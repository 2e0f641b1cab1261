"""Snapshot of a log, so that opening the log need not read all of it; pure bytes.

    head    | position u64 | next offset u64 | timestamp ms i64 | last chunk id u64
            | last chunk's position u64 | parts u32 | CRC-32 of all parts u32 |
    part n  | (size u8, reference, publishing id u64) … |     gateway.log.derived.sequences

A snapshot describes the log up to `position`; the chunks behind it are scanned. The table that
stores it guards each entry by itself. The checksum proves that head and parts are of one snapshot:
if an entry is damaged, an older one may come back.
"""

import struct
from dataclasses import dataclass, field
from typing import Final

from hutch.formats.chunk import crc32
from store.api import TABLE_BATCH_BYTES_MAX

PART_BYTES: Final = 512 * 1024
"""A part is closed when it becomes larger than this."""

_PARTS_MAX: Final = TABLE_BATCH_BYTES_MAX // PART_BYTES
"""All parts are stored in one batch."""

_HEAD: Final = struct.Struct(">QQqQQI")
_CHECK_BYTES: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The state of a log whose committed length is `position`.

    `gives_space`: chunks that it covers are about to be removed, so it may use the room that is
    reserved for that on a full disk.
    """

    position: int = 0
    next_offset: int = 0
    timestamp_ms: int = 0
    last_chunk_id: int = 0
    last_chunk_position: int = 0
    parts: list[bytes] = field(default_factory=list)
    gives_space: bool = field(default=False, compare=False)

    @property
    def stored_bytes(self) -> int:
        """The size of the stored snapshot, without its keys."""
        return _HEAD.size + _CHECK_BYTES + sum(map(len, self.parts))

    def pack_head(self) -> bytes:
        """Encode all but the parts."""
        return _HEAD.pack(
            self.position,
            self.next_offset,
            self.timestamp_ms,
            self.last_chunk_id,
            self.last_chunk_position,
            len(self.parts),
        ) + _checksum(self.parts)

    def is_of(self, head: bytes) -> bool:
        """Return whether the parts were stored together with a head."""
        return head[_HEAD.size :] == _checksum(self.parts)


def _checksum(parts: list[bytes]) -> bytes:
    crc = 0
    for part in parts:
        crc = crc32(part, crc)
    return crc.to_bytes(_CHECK_BYTES, "big")


def unpack_head(stored: bytes) -> tuple[Snapshot, int] | None:
    """Decode a head: the snapshot without its parts, and how many there are; None if damaged."""
    if len(stored) != _HEAD.size + _CHECK_BYTES:
        return None
    position, next_offset, timestamp_ms, chunk_id, chunk_position, parts = _HEAD.unpack_from(stored)
    if parts > _PARTS_MAX:
        return None
    return Snapshot(
        position=position,
        next_offset=next_offset,
        timestamp_ms=timestamp_ms,
        last_chunk_id=chunk_id,
        last_chunk_position=chunk_position,
    ), parts
