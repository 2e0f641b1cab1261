"""The five codecs of sub-batches, in the framings that the official clients write and read.

    gzip     RFC 1952
    snappy   the framing format (not a raw block), chunks of up to 64 KiB
    lz4      the frame format, blocks that do not depend on each other: the Java client reads no
             others, and neither pyarrow nor cramjam write such
    zstd     RFC 8878

Workers may have numpy and pyarrow alone, so the framings are made from what these and Python have.
cramjam, where it is installed, makes snappy's ten times as fast; for gzip zlib is as fast.

Source: rabbitmq-stream-java-client, CompressionUtils; the frame formats of snappy and LZ4.
"""

import zlib
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Final

import pyarrow as pa

from hutch.formats.entries import SubBatchCodec
from pyspark_hutch.encoding.crc32c import masked_crc32c


def _cramjam() -> ModuleType | None:
    try:
        return import_module("cramjam")
    except ImportError:  # pragma: no cover  # tests take the loaded module away instead
        return None


cramjam = _cramjam()


_GZIP_LEVEL: Final = 6
_GZIP_FORM: Final = 16 + zlib.MAX_WBITS

# Magic; version 1, independent blocks, no checksums, no size; blocks of up to 4 MiB; the second
# byte of the xxHash of the two bytes before.
_LZ4_HEAD: Final = bytes.fromhex("04224d18 60 70 73")
_LZ4_END: Final = bytes(4)
_LZ4_BLOCK_BYTES: Final = 4 << 20
_LZ4_STORED: Final = 1 << 31

_SNAPPY_HEAD: Final = b"\xff\x06\x00\x00sNaPpY"
_SNAPPY_COMPRESSED: Final = b"\x00"
_SNAPPY_BLOCK_BYTES: Final = 64 << 10
_CRC_BYTES: Final = 4


def compress(codec: SubBatchCodec, source: memoryview) -> bytes:
    """Compress the items of a sub-batch."""
    return _WAYS[codec](source)


def _gzip(source: memoryview) -> bytes:
    made = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, _GZIP_FORM)
    return made.compress(source) + made.flush()


def _snappy(source: memoryview) -> bytes:
    if cramjam is not None:
        return bytes(cramjam.snappy.compress(source))
    codec = pa.Codec("snappy")
    parts = [_SNAPPY_HEAD]
    for place in range(0, len(source), _SNAPPY_BLOCK_BYTES):
        block = source[place : place + _SNAPPY_BLOCK_BYTES]
        packed = codec.compress(block, asbytes=True)
        size = len(packed) + _CRC_BYTES
        crc = masked_crc32c(block).to_bytes(_CRC_BYTES, "little")
        parts += [_SNAPPY_COMPRESSED, size.to_bytes(3, "little"), crc, packed]
    return b"".join(parts)


def _lz4(source: memoryview) -> bytes:
    codec = pa.Codec("lz4_raw")
    parts = [_LZ4_HEAD]
    for place in range(0, len(source), _LZ4_BLOCK_BYTES):
        block = source[place : place + _LZ4_BLOCK_BYTES]
        packed = codec.compress(block, asbytes=True)
        if len(packed) < len(block):
            parts += [len(packed).to_bytes(4, "little"), packed]
        else:  # a block that does not shrink is stored, and has to be
            parts += [(len(block) | _LZ4_STORED).to_bytes(4, "little"), bytes(block)]
    return b"".join([*parts, _LZ4_END])


def _zstd(source: memoryview) -> bytes:
    return bytes(pa.Codec("zstd").compress(source, asbytes=True))


_WAYS: Final[dict[SubBatchCodec, Callable[[memoryview], bytes]]] = {
    SubBatchCodec.NONE: bytes,
    SubBatchCodec.GZIP: _gzip,
    SubBatchCodec.SNAPPY: _snappy,
    SubBatchCodec.LZ4: _lz4,
    SubBatchCodec.ZSTD: _zstd,
}
