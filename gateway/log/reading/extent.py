"""First and next offset and size of a stream, if it can be told without opening its log.

The last append's number says the next offset, and the oldest chunk's header the first one. So a
stream that is not in use costs three looks into the store, however much of it a log would scan.
"""

from dataclasses import dataclass

from gateway.log.log import StreamLog
from gateway.log.names import writer_of
from gateway.log.recovery.restoration import chunk_at
from gateway.pending import Pending
from hutch.formats.chunk import next_offset_and_epoch, seal_seed
from store.api import ABSENT, Reader, SegmentInfo, SegmentStore


@dataclass(frozen=True, slots=True)
class Extent:
    """Bounds of a stream.

    Attributes:
        first_offset: Of the oldest record; the next offset if there is none.
        next_offset: Of the next record.
        size_bytes: Of all chunks.
        start: Position of the oldest chunk.
    """

    first_offset: int
    next_offset: int
    size_bytes: int
    start: int

    @property
    def records(self) -> int:
        """Number of its records."""
        return self.next_offset - self.first_offset


def extent_of(log: StreamLog) -> Extent:
    """Return the bounds of an open log."""
    following = log.committed_next_offset
    first = following if log.is_empty else log.first_chunk_id
    return Extent(first, following, log.committed_length - log.start, log.start)


async def stored_extent(store: SegmentStore, segment: str, initial_offset: int) -> Extent | None:
    """Return the bounds of a stream whose log is not open.

    Args:
        store: Holds the segment.
        segment: That of the chunks.
        initial_offset: Of the stream's first record.

    Returns:
        None if only a log can tell: there is damage, or nothing says the next offset.

    Raises:
        StoreError: The segment cannot be read.
    """
    described: Pending[SegmentInfo] = Pending()
    store.info(segment, done=described.settle)
    info = await described
    numbered: Pending[int] = Pending()
    store.get_attribute(segment, writer_of(segment), done=numbered.settle)
    number = await numbered
    if info.is_damaged or (number == ABSENT and info.length):
        return None
    following = initial_offset if number == ABSENT else next_offset_and_epoch(number)[0]
    first: int | None = following
    if info.length > info.start:
        first = await _first_offset(store, segment, info.start, initial_offset)
    if first is None or first > following:
        return None
    return Extent(first, following, info.length - info.start, info.start)


async def _first_offset(
    store: SegmentStore,
    segment: str,
    start: int,
    initial_offset: int,
) -> int | None:
    """Return the offset of the oldest chunk; None if the chunk is damaged."""
    if not start:
        return initial_offset
    opened: Pending[Reader] = Pending()
    store.open_reader(segment, done=opened.settle)
    chunk = await chunk_at(await opened, seal_seed(segment), start)
    return None if chunk is None else chunk[2]
