"""The records of a delivered chunk, those in sub-batches among them.

This package needs no library. To open sub-batches of other codecs than gzip, the program passes
in a function for each codec.

Source: RabbitMQ stream protocol, Deliver; RabbitMQ osiris, the log's header comment.
"""

import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from ..log.chunk import HEADER_BYTES, crc32, unpack_header
from ..log.entries import UNCOMPRESSED_BYTES_MAX, Codec, SubBatch, entries_in
from .errors import BadAnswer, ClientError

Decompress = Callable[[bytes, int], bytes]
"""Gives the raw bytes of a body, which must be as many as the second argument says."""

_KIND: Final = 1
_GZIP_WINDOW: Final = 31


def records_of(
    chunk: bytes, codecs: Mapping[int, Decompress] | None = None
) -> Iterator[tuple[int, bytes]]:
    """Yield offset and body of each record of a chunk; a chunk of another kind has none.

    Args:
        chunk: Header and data, as a Deliver carries them.
        codecs: Functions that open sub-batches, by the codec's number; beside none and gzip.

    Raises:
        BadAnswer: The chunk is damaged.
        ClientError: A sub-batch is compressed by a codec that is not among `codecs`.
    """
    if len(chunk) < HEADER_BYTES:
        raise BadAnswer(f"a chunk of {len(chunk)} bytes is cut short")
    header = unpack_header(chunk, 0)
    end = HEADER_BYTES + header.data_bytes
    if end > len(chunk) or crc32(memoryview(chunk)[HEADER_BYTES:end]) != header.crc:
        raise BadAnswer(f"the chunk at offset {header.chunk_id} is damaged")
    if chunk[_KIND]:
        return
    found = _entries(chunk, HEADER_BYTES, end, _CODECS_HERE | dict(codecs or {}))
    yield from enumerate(found, header.chunk_id)


def _entries(
    data: bytes, position: int, end: int, codecs: Mapping[int, Decompress] | None
) -> Iterator[bytes]:
    """Yield the records between two positions; without codecs there may be no sub-batch."""
    for start, stop, sub_batch in entries_in(data, position, end):
        position = stop
        if stop > end:
            break
        if sub_batch is None:
            yield data[start:stop]
        elif codecs is None:
            raise BadAnswer("a sub-batch lies in another one")
        else:
            yield from _opened(data[start:stop], sub_batch, codecs)
    if position != end:
        raise BadAnswer("an entry of a chunk is cut short")


def _opened(body: bytes, head: SubBatch, codecs: Mapping[int, Decompress]) -> list[bytes]:
    """Return the records of a sub-batch; one that is not compressed has the size that it has."""
    raw = body if head.codec == Codec.NONE else _decompressed(body, head, codecs)
    records = list(_entries(raw, 0, len(raw), None))
    if len(records) != head.records:
        raise BadAnswer(f"a sub-batch of {head.records} records has {len(records)}")
    return records


def _decompressed(body: bytes, head: SubBatch, codecs: Mapping[int, Decompress]) -> bytes:
    codec, size = head.codec, head.uncompressed_bytes
    if codec not in codecs:
        raise ClientError(f"a sub-batch is compressed by codec {codec}, which is not known here")
    if size > UNCOMPRESSED_BYTES_MAX:
        raise BadAnswer(f"a sub-batch announces {size} bytes, more than {UNCOMPRESSED_BYTES_MAX}")
    try:
        raw = codecs[codec](body, size)
    except (ValueError, OSError, zlib.error):
        raw = b""
    if len(raw) != size:
        raise BadAnswer(f"a sub-batch is not {size} bytes compressed by codec {codec}")
    return raw


def gunzip(body: bytes, raw_bytes: int) -> bytes:
    """Decompress gzip of one member or several, up to a limit of bytes.

    Raises:
        ValueError: It is cut short, or has more bytes.
        zlib.error: It is no gzip.
    """
    parts: list[bytes] = []
    left = raw_bytes
    while body:
        member = zlib.decompressobj(_GZIP_WINDOW)
        # One byte more than there may be: none at all would mean no limit.
        part = member.decompress(body, left + 1)
        if len(part) > left or not member.eof:
            raise ValueError("gzip is cut short, or larger than announced")
        parts.append(part)
        left -= len(part)
        body = member.unused_data
    return b"".join(parts)


_CODECS_HERE: Final[dict[int, Decompress]] = {Codec.GZIP: gunzip}
