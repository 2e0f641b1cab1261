"""Known places of a log's chunks, against which bytes that are read are compared."""

from gateway.log.damage.verification import Mark
from gateway.log.log import StreamLog


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
