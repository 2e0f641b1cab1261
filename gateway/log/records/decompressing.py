"""The codecs of sub-batches: bodies decompressed into the room that a head asks for, and no more.

The framings are those that the official clients write: members of gzip, snappy in its framing
format, frames of lz4 and of zstd. A bare block of snappy is taken too, since some clients leave the
codec to their users. `pyspark_hutch.decoding.decompressing` does the same without cramjam, which
Spark workers may lack. The memory used meanwhile is twice the room; zstd takes a window of at most
128 MiB more, as far as it is filled.

Source: the framing format of google/snappy; RabbitMQ's Java, Go and .NET clients.
"""

from collections.abc import Callable
from typing import Final

import cramjam

from gateway.log.entries import Codec
from gateway.log.sub_batches import Decompress

_SNAPPY_STREAM: Final = b"\xff\x06\x00\x00sNaPpY"


def _into(decompress: Callable[[bytes, bytearray], int]) -> Decompress:
    """Return a codec out of a function that fails if its output is too small for what comes."""

    def decompressed(body: bytes, size: int) -> bytes:
        room = bytearray(size)
        try:
            written = decompress(body, room)
        except cramjam.DecompressionError as error:
            raise ValueError(str(error)) from None
        return bytes(room) if written == size else b""

    return decompressed


def _unsnap(body: bytes, room: bytearray) -> int:
    if body.startswith(_SNAPPY_STREAM):
        return int(cramjam.snappy.decompress_into(body, room))
    return int(cramjam.snappy.decompress_raw_into(body, room))


CODECS: Final[dict[int, Decompress]] = {
    Codec.GZIP: _into(cramjam.gzip.decompress_into),
    Codec.SNAPPY: _into(_unsnap),
    Codec.LZ4: _into(cramjam.lz4.decompress_into),
    Codec.ZSTD: _into(cramjam.zstd.decompress_into),
}
