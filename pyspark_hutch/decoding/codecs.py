"""The codecs of sub-batches: bodies decompressed to the size that a head says, and no further.

The clients write gzip; snappy in Google's framing format (Java, Go); frames of lz4 (Java, Go,
.NET) and of zstd (Java, Go). A bare block of snappy is taken too: some clients leave the codec to
their users.

    framed snappy   | frame | frame | …     a frame: u8 kind, u24 size (little-endian), bytes
    kind            | ff stream identifier | 00 crc u32, block | 01 crc u32, bytes | 80..fe skip

The checksums in frames of snappy are not looked at: the chunk has one over all of them.

Source: the framing format of google/snappy; RabbitMQ's Java, Go and .NET clients.
"""

from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from hutch.client.entries import gunzip
from hutch.formats.entries import SubBatchCodec
from hutch.formats.sub_batches import Decompress

_SNAPPY_STREAM: Final = b"\xff\x06\x00\x00sNaPpY"
_BLOCK, _PLAIN = 0x00, 0x01
_SKIPPED_MIN: Final = 0x80
_CRC_BYTES: Final = 4
_VARINT_BYTES_MAX: Final = 5
_NO_SNAPPY: Final = "no snappy, or more bytes than were announced"


def _unsnap(body: bytes, raw_size: int) -> bytes:
    is_framed = body.startswith(_SNAPPY_STREAM)
    blocks = _snappy_frames(body) if is_framed else iter([(_BLOCK, body)])
    parts: list[bytes] = []
    left = raw_size
    for kind, block in blocks:
        part = block if kind == _PLAIN else _unsnap_block(block, left)
        left -= len(part)
        if left < 0:
            raise ValueError(_NO_SNAPPY)
        parts.append(part)
    return b"".join(parts)


def _snappy_frames(body: bytes) -> Iterator[tuple[int, bytes]]:
    position = 0
    while position < len(body):
        kind = body[position]
        start = position + 4
        position = start + int.from_bytes(body[position + 1 : start], "little")
        if position > len(body):
            raise ValueError(_NO_SNAPPY)
        if kind in {_BLOCK, _PLAIN}:
            yield kind, body[start + _CRC_BYTES : position]
        elif kind < _SKIPPED_MIN:
            raise ValueError(_NO_SNAPPY)


def _unsnap_block(block: bytes, size_max: int) -> bytes:
    """Decompress a block; its size is the varint in front, which is looked at first."""
    size = shift = 0
    for byte in block[:_VARINT_BYTES_MAX]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:  # noqa: PLR2004  # the last byte of a varint
            break
    else:
        raise ValueError(_NO_SNAPPY)
    if size > size_max:
        raise ValueError(_NO_SNAPPY)
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


CODECS: Final[dict[int, Decompress]] = {
    SubBatchCodec.GZIP: gunzip,
    SubBatchCodec.SNAPPY: _unsnap,
    SubBatchCodec.LZ4: _unlz4,
    SubBatchCodec.ZSTD: _unzstd,
}
