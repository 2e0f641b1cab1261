"""The records of a sub-batch, decompressed into the room that its head asks for, and no more.

The framings are those that the official clients write: members of gzip, snappy in its framing
format, frames of lz4 and of zstd. A bare block of snappy is taken too: some clients leave the codec
to their users. `pyspark_hutch.decoding.decompressing` does the same without cramjam, which workers
of Spark may not have.

Source: the framing format of google/snappy; RabbitMQ's Java, Go and .NET clients.
"""

from collections.abc import Callable
from typing import Final

import cramjam

from gateway.log.entries import Codec, SubBatch

_SNAPPY_STREAM: Final = b"\xff\x06\x00\x00sNaPpY"


class BadSubBatch(ValueError):
    """A sub-batch that cannot be opened; says why."""


def decompress(source: bytes, sub_batch: SubBatch, bytes_max: int) -> bytes:
    """Return the records of a sub-batch, behind one another.

    Args:
        source: Where its body lies.
        sub_batch: Its head.
        bytes_max: What it may say that it has, uncompressed. The memory used meanwhile is twice
            what it says; for zstd a window of at most 128 MiB more, as far as it is filled.

    Raises:
        BadSubBatch: It says that it has more; its codec is unknown; its body is cut off, or is not
            what the head says, compressed.
    """
    codec, _, size, start, end = sub_batch
    if end > len(source):
        raise BadSubBatch("its body is cut off")
    if codec != Codec.NONE and size > bytes_max:
        raise BadSubBatch(f"it says that it has {size} bytes, more than {bytes_max}")
    body = source[start:end]
    if codec == Codec.NONE:
        return body
    if codec not in _INTO:
        raise BadSubBatch(f"its codec, {codec}, is unknown")
    if not size:
        return b""
    room = bytearray(size)
    try:
        written = _INTO[codec](body, room)
    except cramjam.DecompressionError:
        written = -1
    if written != size:
        raise BadSubBatch(f"it is not {size} bytes compressed by {Codec(codec).name.lower()}")
    return bytes(room)


def _unsnap(body: bytes, room: bytearray) -> int:
    if body.startswith(_SNAPPY_STREAM):
        return int(cramjam.snappy.decompress_into(body, room))
    return int(cramjam.snappy.decompress_raw_into(body, room))


_INTO: Final[dict[int, Callable[[bytes, bytearray], int]]] = {
    Codec.GZIP: cramjam.gzip.decompress_into,
    Codec.SNAPPY: _unsnap,
    Codec.LZ4: cramjam.lz4.decompress_into,
    Codec.ZSTD: cramjam.zstd.decompress_into,
}
"""Each fails where its output has no room for what it decompresses."""
