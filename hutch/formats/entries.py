"""The form of a chunk's entries, for all modules that read or write them.

    entry      | record or sub-batch
    record     | 0:1 size:31 | bytes
    sub-batch  | 1:1 codec:3 0:4 | records u16 | uncompressed u32 | size u32 | body
    body       | record | record | …                  compressed as one by the codec

All integers are big-endian. The kernels that walk over entries have these numbers as C constants.

Source: RabbitMQ's stream protocol, Publish; the log of its osiris.
"""

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from typing_extensions import Buffer

RECORD_HEAD: Final = struct.Struct(">I")
SUB_BATCH_HEAD: Final = struct.Struct(">BHII")
SUB_BATCH_FLAG: Final = 0x80
"""Bit of an entry's first byte that marks a sub-batch; a record does not have it."""
SUB_BATCH_RECORDS_MAX: Final = 0xFFFF
"""The field has 16 bits."""
UNCOMPRESSED_BYTES_MAX: Final = 64 << 20
"""The largest uncompressed size in the head of a sub-batch that RabbitMQ takes."""


class SubBatchCodec(IntEnum):
    """The number of each codec in a sub-batch's head."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class SubBatch(NamedTuple):
    """The head of a sub-batch, and where its body lies.

    Attributes:
        codec: A number of `SubBatchCodec`, or 5 to 7, which stand for no codec.
        records: Number of records, as the head says.
        uncompressed_bytes: The size of the body before compression, as the head says.
        start: Where the body begins.
        end: Where the body ends by its size; the source may be shorter.
    """

    codec: int
    records: int
    uncompressed_bytes: int
    start: int
    end: int


def sub_batch_at(source: "Buffer", position: int) -> SubBatch:
    """Decode the head of the sub-batch at `position`. Raises struct.error where it is cut off."""
    kind, records, uncompressed_bytes, size = SUB_BATCH_HEAD.unpack_from(source, position)
    start = position + SUB_BATCH_HEAD.size
    return SubBatch(kind >> 4 & 7, records, uncompressed_bytes, start, start + size)


def pack_sub_batch(
    codec: int, records: int, uncompressed_bytes: int, body: "bytes | bytearray"
) -> bytes:
    """Encode a sub-batch: its head, and the body that `codec` has compressed."""
    kind = SUB_BATCH_FLAG | codec << 4
    return SUB_BATCH_HEAD.pack(kind, records, uncompressed_bytes, len(body)) + body


def entries_in(
    source: bytes, position: int, limit: int
) -> Iterator[tuple[int, int, SubBatch | None]]:
    """Walk over entries: yield start and end of each body, and the head of a sub-batch.

    The walk ends at `limit`, or at an entry whose head is cut off. The last end may be behind it.
    """
    while position < limit:
        if source[position] & SUB_BATCH_FLAG:
            if position + SUB_BATCH_HEAD.size > limit:
                return
            sub_batch = sub_batch_at(source, position)
            yield sub_batch.start, sub_batch.end, sub_batch
            position = sub_batch.end
        else:
            start = position + RECORD_HEAD.size
            if start > limit:
                return
            position = start + RECORD_HEAD.unpack_from(source, position)[0]
            yield start, position, None
