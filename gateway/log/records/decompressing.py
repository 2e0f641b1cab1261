"""The codecs of sub-batches: bodies decompressed into the room that a head asks for, and no more.

The framings are those that the official clients write: members of gzip, snappy in its framing
format, frames of lz4 and of zstd. A bare block of snappy is taken too, since some clients leave the
codec to their users. `pyspark_hutch.decoding.codecs` does the same without cramjam, which
Spark workers may lack. The memory used meanwhile is twice the room for bytes, and no more than the
room for memory apart; zstd takes a window of at most 128 MiB more, as far as it is filled.

Source: the framing format of google/snappy; RabbitMQ's Java, Go and .NET clients.
"""

from collections.abc import Callable
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from typing import Final, TypeAlias

import cramjam

from gateway.log.kernel.records import behind
from hutch.formats.entries import UNCOMPRESSED_BYTES_MAX, SubBatch, SubBatchCodec
from hutch.formats.sub_batches import BadSubBatch, Decompress, require_records, uncompressed

LARGE_BYTES: Final = 1 << 20
"""Uncompressed size above which a sub-batch is large: opening it takes milliseconds. It may hold
no record above that size, which no publisher could send by itself."""

_SNAPPY_STREAM: Final = b"\xff\x06\x00\x00sNaPpY"

_Fill: TypeAlias = Callable[[bytes, bytearray | mmap], int]
"""Decompresses a body into a room; returns the bytes, and fails if there are more than fit."""


def decompressed_apart(source: bytes, head: SubBatch, bytes_max: int) -> mmap:
    """Return the records of a large sub-batch, behind one another, in memory of their own.

    Other threads run meanwhile. When the memory is closed, the system has it back at once.

    Args:
        source: Holds its body.
        head: Its head; not of Codec.NONE, nor of no bytes.
        bytes_max: The largest size before compression that its head may say.

    Raises:
        BadSubBatch: As for `uncompressed`; or it does not hold its records, or holds a large one.
    """
    room = uncompressed(source, head, _APART, bytes_max)
    assert isinstance(room, mmap)
    try:
        check_records(room, head, LARGE_BYTES)
    except BadSubBatch:
        room.close()
        raise
    return room


def check_records(
    raw: bytes | mmap, head: SubBatch, bytes_max: int = UNCOMPRESSED_BYTES_MAX
) -> None:
    """Raise BadSubBatch if these are not the records that a head says, or one has more bytes."""
    size, count = len(raw), head.records
    require_records(head, size, count, behind(raw, 0, count, size))
    if behind(raw, 0, count, bytes_max) < 0:
        raise BadSubBatch(head, f"holds a record of more than {bytes_max} bytes")


def _filled(fill: _Fill, room: bytearray | mmap, body: bytes) -> bool:
    """Return whether a body has filled all of a room."""
    try:
        return fill(body, room) == len(room)
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException:  # noqa: BLE001  # a panic of a codec in Rust is no Exception
        return False


def _into_bytes(fill: _Fill) -> Decompress:
    def decompressed(body: bytes, size: int) -> bytes:
        room = bytearray(size)
        return bytes(room) if _filled(fill, room, body) else b""

    return decompressed


def _into_memory(fill: _Fill) -> Callable[[bytes, int], mmap | bytes]:
    def decompressed(body: bytes, size: int) -> mmap | bytes:
        try:
            room = mmap(-1, size, MAP_PRIVATE | MAP_ANONYMOUS)  # shared takes twice the time
        except OSError as error:  # which would seem to be the publisher's fault
            raise MemoryError(f"no room for {size} bytes: {error}") from error
        if _filled(fill, room, body):
            return room
        room.close()
        return b""

    return decompressed


def _unsnap(body: bytes, room: bytearray | mmap) -> int:
    if body.startswith(_SNAPPY_STREAM):
        return int(cramjam.snappy.decompress_into(body, room))
    return int(cramjam.snappy.decompress_raw_into(body, room))


_FILLS: Final[dict[int, _Fill]] = {
    SubBatchCodec.GZIP: cramjam.gzip.decompress_into,
    SubBatchCodec.SNAPPY: _unsnap,
    SubBatchCodec.LZ4: cramjam.lz4.decompress_into,
    SubBatchCodec.ZSTD: cramjam.zstd.decompress_into,
}
CODECS: Final[dict[int, Decompress]] = {codec: _into_bytes(fill) for codec, fill in _FILLS.items()}
_APART: Final = {codec: _into_memory(fill) for codec, fill in _FILLS.items()}
