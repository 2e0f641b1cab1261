"""The body of a sub-batch, uncompressed, never larger than it says and than a limit.

What the clients write: gzip; snappy in Google's framing format (Java, Go); frames of lz4 (Java, Go,
.NET) and of zstd (Java, Go). A bare block of snappy is taken too: some clients leave the codec to
their users.

    framed snappy   | frame | frame | …     a frame: u8 kind, u24 size (little-endian), bytes
    kind            | ff stream identifier | 00 crc u32, block | 01 crc u32, bytes | 80..fe skip

The checksums in frames of snappy are not looked at: the chunk has one over all of them.

Source: the framing format of google/snappy; RabbitMQ's Java, Go and .NET clients.
"""

import zlib
from collections.abc import Callable, Iterator
from typing import Final

import pyarrow as pa

from pyspark_hutch.shared.client.entries import gunzip
from pyspark_hutch.shared.log.amqp.sections import Source
from pyspark_hutch.shared.log.entries import UNCOMPRESSED_BYTES_MAX, Codec

_SNAPPY_STREAM: Final = b"\xff\x06\x00\x00sNaPpY"
_BLOCK, _PLAIN = 0x00, 0x01
_SKIPPED_MIN: Final = 0x80
_CRC_BYTES: Final = 4
_VARINT_BYTES_MAX: Final = 5


class BadCompression(ValueError):
    """A body that cannot be decompressed; says why."""


def decompress(codec: int, source: Source, start: int, end: int, raw_size: int) -> Source:
    """Return the records of the sub-batch whose body is in [start, end).

    Args:
        codec: The number in the head.
        source: The chunk.
        start: Where the body begins.
        end: Where it ends.
        raw_size: The size that the sub-batch says it has. An uncompressed one is what it is.

    Raises:
        BadCompression: For a codec that there is not, and for bytes that are not `raw_size` bytes
            compressed by it.
    """
    body = bytes(source[start:end])
    if codec == Codec.NONE:
        return body
    if codec not in _CODECS:
        raise BadCompression(f"is compressed by an unknown codec, {codec}")
    name, function = Codec(codec).name.lower(), _CODECS[codec]
    if raw_size == 0:
        return b""
    if raw_size > UNCOMPRESSED_BYTES_MAX:
        raise BadCompression(
            f"says that it has {raw_size} bytes, more than {UNCOMPRESSED_BYTES_MAX}"
        )
    try:
        raw = function(body, raw_size)
    except (ValueError, OSError, zlib.error, IndexError):
        raise BadCompression(f"is not {raw_size} bytes compressed by {name}") from None
    if len(raw) != raw_size:
        raise BadCompression(f"is not {raw_size} bytes compressed by {name}")
    return raw


def _unsnap(body: bytes, raw_size: int) -> bytes:
    is_framed = body.startswith(_SNAPPY_STREAM)
    blocks = _snappy_frames(body) if is_framed else iter([(_BLOCK, body)])
    parts: list[bytes] = []
    left = raw_size
    for kind, block in blocks:
        part = block if kind == _PLAIN else _unsnap_block(block, left)
        left -= len(part)
        if left < 0:
            raise BadCompression
        parts.append(part)
    return b"".join(parts)


def _snappy_frames(body: bytes) -> Iterator[tuple[int, bytes]]:
    position = 0
    while position < len(body):
        kind = body[position]
        start = position + 4
        position = start + int.from_bytes(body[position + 1 : start], "little")
        if position > len(body):
            raise BadCompression
        if kind in {_BLOCK, _PLAIN}:
            yield kind, body[start + _CRC_BYTES : position]
        elif kind < _SKIPPED_MIN:
            raise BadCompression


def _unsnap_block(block: bytes, size_max: int) -> bytes:
    """Decompress a block; its size is the varint in front, which is looked at first."""
    size = shift = 0
    for byte in block[:_VARINT_BYTES_MAX]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:  # noqa: PLR2004  # the last byte of a varint
            break
    else:
        raise BadCompression
    if size > size_max:
        raise BadCompression
    if not size:
        return b""
    raw: bytes = pa.Codec("snappy").decompress(block, size, asbytes=True)
    return raw


def _unlz4(body: bytes, raw_size: int) -> bytes:
    # Asked for too much at once, Arrow's codec says nothing and leaves the rest as it was.
    raw: bytes = pa.CompressedInputStream(pa.BufferReader(body), "lz4").read(raw_size + 1)
    return raw


def _unzstd(body: bytes, raw_size: int) -> bytes:
    raw: bytes = pa.Codec("zstd").decompress(body, raw_size, asbytes=True)
    return raw


_CODECS: Final[dict[int, Callable[[bytes, int], bytes]]] = {
    Codec.GZIP: gunzip,
    Codec.SNAPPY: _unsnap,
    Codec.LZ4: _unlz4,
    Codec.ZSTD: _unzstd,
}
