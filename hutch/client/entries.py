"""The records of a delivered chunk, those in sub-batches among them.

This package needs no library. To open sub-batches of other codecs than gzip, the program passes
in a function for each codec.

Source: RabbitMQ stream protocol, Deliver; RabbitMQ osiris, the log's header comment.
"""

import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from hutch.client.errors import BadAnswer, ClientError
from hutch.formats.chunk import HEADER_BYTES, crc32, unpack_header
from hutch.formats.entries import SubBatch, SubBatchCodec, entries_in
from hutch.formats.sub_batches import BadSubBatch, Decompress, require_records, uncompressed

_KIND: Final = 1
_GZIP_WINDOW: Final = 31

Refused = Callable[[int, bytes, BadSubBatch], None]
"""Takes the first offset of a sub-batch that cannot be opened, its body, and why."""


def records_of(
    chunk: bytes, codecs: Mapping[int, Decompress] | None = None, refused: Refused | None = None
) -> Iterator[tuple[int, bytes]]:
    """Yield offset and body of each record of a chunk; a chunk of another kind has none.

    Args:
        chunk: Header and data, as a Deliver carries them.
        codecs: Functions that open sub-batches, by the codec's number; beside none and gzip.
        refused: Is told of a sub-batch that cannot be opened, which then has no records; else it is
            an error.

    Raises:
        BadAnswer: The chunk is damaged.
        ClientError: A sub-batch is compressed by a codec that is not among `codecs`, or does not
            agree with its head.
    """
    offset, end = _checked(chunk)
    position = HEADER_BYTES
    if chunk[_KIND]:
        return
    for start, position, sub_batch in entries_in(chunk, HEADER_BYTES, end):
        if position > end:
            break
        records, count = [chunk[start:position]], 1
        if sub_batch is not None:
            count = sub_batch.records
            try:
                records = _opened(chunk, sub_batch, _CODECS_HERE | dict(codecs or {}))
            except BadSubBatch as error:
                if refused is None:
                    raise ClientError(f"at offset {offset} {error}") from None
                refused(offset, chunk[start:position], error)
                records = []
        yield from enumerate(records, offset)
        offset += count
    if position != end:
        raise BadAnswer("an entry of a chunk is cut short")


def _checked(chunk: bytes) -> tuple[int, int]:
    """Return the first offset of a chunk, and the end of its data. Raises BadAnswer."""
    if len(chunk) < HEADER_BYTES:
        raise BadAnswer(f"a chunk of {len(chunk)} bytes is cut short")
    header = unpack_header(chunk, 0)
    end = HEADER_BYTES + header.data_bytes
    if end > len(chunk) or crc32(memoryview(chunk)[HEADER_BYTES:end]) != header.crc:
        raise BadAnswer(f"the chunk at offset {header.chunk_id} is damaged")
    return header.chunk_id, end


def _opened(chunk: bytes, head: SubBatch, codecs: Mapping[int, Decompress]) -> list[bytes]:
    """Return the records of a sub-batch. Raises BadSubBatch and, for its codec, ClientError."""
    codec = head.codec
    if codec <= SubBatchCodec.ZSTD and codec not in codecs:
        raise ClientError(f"a sub-batch is compressed by codec {codec}, which is not known here")
    records: list[bytes] = []
    position = 0
    raw = uncompressed(chunk, head, codecs)
    for start, stop, inner in entries_in(raw, 0, len(raw)):
        if inner is not None or stop > len(raw):
            break
        records.append(raw[start:stop])
        position = stop
    require_records(head, len(raw), len(records), position)
    return records


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


_CODECS_HERE: Final[dict[int, Decompress]] = {
    SubBatchCodec.NONE: lambda body, _: body,
    SubBatchCodec.GZIP: gunzip,
}
