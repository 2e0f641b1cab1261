"""Borders at which a range of a stream can be split into pieces of about one size.

The two ends are looked for among the chunks, all between them are entries of the index. So a plan
of any range reads at most two spans of the index.
"""

from collections.abc import Iterator
from typing import NamedTuple

from gateway.log.log import StreamLog
from gateway.log.reading.locations import Start, StartKind, locate, locate_border


class PlanBorder(NamedTuple):
    """The first offset of a chunk, and the bytes from the plan's first chunk to it."""

    offset: int
    size_bytes: int


async def ends_of(log: StreamLog, first_offset: int, end_offset: int) -> tuple[Start, Start]:
    """Find where a range begins and ends.

    Args:
        log: The stream.
        first_offset: The first wanted offset.
        end_offset: The first offset behind the range.

    Returns:
        The chunk that has the first offset, or the oldest one; and the first chunk behind the
        range, or the tail. They are the same, or in any order, if there is nothing in the range.

    Raises:
        StoreError: The segment cannot be read.
        CorruptChunk: It does not hold chunks where it should.
    """
    first = await locate(log, StartKind.OFFSET, first_offset)
    return first, await locate_border(log, end_offset)


def borders_between(
    log: StreamLog, first: Start, last: Start, span_bytes: int
) -> Iterator[PlanBorder]:
    """Yield growing borders: the first, some in between, and the last; one if there is nothing.

    Chunks may come and go meanwhile.

    Args:
        log: The stream.
        first: Where the range begins.
        last: Where it ends.
        span_bytes: Least size of a piece, 1 and up. A piece is larger by at most a span of the
            index and a chunk, and the last one may be smaller.
    """
    yield PlanBorder(first.offset, 0)
    if last.position <= first.position:
        return
    index, position = log.index, first.position
    while True:
        entry = index.first_from(position + span_bytes)
        if entry >= len(index) or index.positions[entry] >= last.position:
            break
        position = index.positions[entry]
        yield PlanBorder(index.offsets[entry], position - first.position)
    yield PlanBorder(last.offset, last.position - first.position)
