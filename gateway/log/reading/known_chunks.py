"""Known places of a log's chunks: readers check bytes by them, and go on there behind damage."""

import logging
from typing import Final

from gateway.log.damage.resync import next_chunk
from gateway.log.damage.verification import Mark
from gateway.log.derived.index import NO_END
from gateway.log.kernel.chunks import BAD_CRC, BAD_HEADER, BAD_SEAL, NOT_NEXT
from gateway.log.log import StreamLog
from hutch.formats.chunk import EVENT_HEAD_BYTES

log = logging.getLogger(__name__)


def marks_of(log: StreamLog, position: int, end: int) -> list[Mark]:
    """Return the known places of chunks in [position, end) and next to it.

    As `ChunkIndex.marks`, with the end of the bytes that another process wrote, or of all.
    """
    last, offset = log.index.trusted_position, log.index.trusted_offset
    if position >= last:
        last, offset = log.committed_length, log.committed_next_offset
    known = [mark for mark in log.index.marks(position, end) if position + mark[0] < last]
    return [*known, (last - position, offset)]


def span_around(log: StreamLog, position: int) -> tuple[int, int, int]:
    """Return the size up to the next place that `marks_of` knows, and the bounds of offsets."""
    marks = marks_of(log, position, position + 1)
    first_offset = max((offset for place, offset in marks if place <= 0), default=0)
    size, end_offset = next(mark for mark in marks if mark[0] > 0)
    return size, first_offset, end_offset


ONE_CHUNK: Final = frozenset((BAD_CRC, BAD_HEADER, NOT_NEXT))
"""Reasons that concern one chunk whose size can be trusted."""


def end_of_damage(stream_log: StreamLog, position: int, reason: int) -> int:
    """Return where damage ends, by the sizes of the chunk there or by the index.

    If only the chunk's data is damaged, it ends behind the chunk. If the chunk's sizes cannot be
    trusted, it ends at the next chunk that the index knows.
    """
    end = min(stream_log.index.span_end(position, 0), stream_log.committed_length)
    if position < stream_log.index.trusted_position:
        end = min(end, stream_log.index.trusted_position)
    head = stream_log.reader.read_cached(position, EVENT_HEAD_BYTES)
    if reason in ONE_CHUNK and head is not None and len(head) == EVENT_HEAD_BYTES:
        end = position + EVENT_HEAD_BYTES + int.from_bytes(head[4:], "big")
    return end


def find_behind(stream_log: StreamLog, position: int, source: bytes, reason: int) -> int:
    """Find the next chunk behind one whose size cannot be trusted; 0 if none is at hand."""
    if reason != BAD_SEAL:
        return 0
    place = next_chunk(memoryview(source), stream_log.seal_seed, 0, NO_END)
    return 0 if place is None else position + place


def say_damaged(stream_log: StreamLog, begin: int, end: int) -> None:
    """Log that [begin, end) is not delivered."""
    log.error(
        "damaged chunk is not delivered stream=%s position=%d bytes=%d",
        stream_log.stream,
        begin,
        end - begin,
    )
