"""The records of a sub-batch, decompressed into the room that its head asks for, and no more.

The framings are those that the official clients write: members of gzip, snappy in its framing
format, frames of lz4 and of zstd. A bare block of snappy is taken too, since some clients leave the
codec to their users. `pyspark_hutch.decoding.decompressing` does the same without cramjam, which
Spark workers may lack.

Source: the framing format of google/snappy; RabbitMQ's Java, Go and .NET clients.
"""

from collections.abc import Callable
from typing import Final

import cramjam

from gateway.log.entries import Codec, SubBatch

_SNAPPY_STREAM: Final = b"\xff\x06\x00\x00sNaPpY"


class BadSubBatch(ValueError):
    """A sub-batch that cannot be opened; the text says why."""


def decompress(source: bytes, sub_batch: SubBatch, bytes_max: int) -> bytes:
    """Return the records of a sub-batch, behind one another.

    Args:
        source: Holds its body.
        sub_batch: Its head.
        bytes_max: Largest uncompressed size that its head may say. The memory used meanwhile is
            twice the size in the head; zstd takes a window of at most 128 MiB more, as far as it
            is filled.

    Raises:
        BadSubBatch: The head says a larger size; the codec is unknown; or the body is cut off or
            does not decompress to that size.
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
"""Each fails if its output is too small for the decompressed bytes."""
