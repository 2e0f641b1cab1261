"""Retention by size and age: the index finds old chunks; they are removed at a chunk's border.

Chunks are grouped, from the oldest on, in *units*: runs that end with the first chunk at which the
stream's segment size is reached. Whole units go, and the newest never does.

    start                                          tail
      | unit        | unit        | unit     | newest |
      |-- goes -----|-- goes -----|          size: goes while what is left is above the limit
                                             age: goes while its last chunk is too old

Source: RabbitMQ, "Streams", Data Retention: the order (size, then age) and the rule for each.
"""

import logging
from dataclasses import dataclass
from typing import Final

from gateway.log.damage.errors import CorruptChunk
from gateway.log.damage.verification import verify
from gateway.log.kernel.chunks import NEEDS_BYTES, walk_chunks
from gateway.log.log import StreamLog
from gateway.pending import Pending
from hutch.formats.chunk import DATA_POSITION, EVENT_HEAD_BYTES, unpack_header
from store.api import APPEND_BYTES_MAX, SegmentStore

logger = logging.getLogger(__name__)

SPAN_BYTES_MIN: Final = 1024
"""The least distance of the index's entries, and so the least size that is removed at once."""


@dataclass(frozen=True, slots=True)
class RetentionLimits:
    """Limits of the records that a stream keeps.

    Attributes:
        max_bytes: Size above which the oldest units go; None for any size.
        max_age_ms: Age at which a unit goes; None for any age.
        unit_bytes: Size of a unit: it is removed as a whole, and the newest one is always kept.
    """

    max_bytes: int | None
    max_age_ms: int | None
    unit_bytes: int

    @property
    def is_endless(self) -> bool:
        """True if nothing is ever removed."""
        return self.max_bytes is None and self.max_age_ms is None

    def units_of(self, size: int) -> int:
        """Return the number of units of a size in bytes, with the newest, which may be empty."""
        return max(1, -(-size // max(1, self.unit_bytes)))


@dataclass(frozen=True, slots=True)
class Cut:
    """The new beginning of a log: position and offset of a chunk, or of the tail."""

    position: int
    offset: int


def span_for(unit_bytes: int) -> int:
    """Return the largest distance of the index's entries for units of this size."""
    return max(unit_bytes, SPAN_BYTES_MIN)


async def find_cut(log: StreamLog, limits: RetentionLimits, now_ms: int) -> Cut | None:
    """Find where a log must begin so that it is neither too large nor too old.

    Nothing else may be removed from it meanwhile.

    Args:
        log: The stream.
        limits: What it may keep.
        now_ms: The earliest time that it can be now, in milliseconds since the epoch.

    Returns:
        Where the log should begin; None if it may stay as it is.

    Raises:
        StoreError: The segment cannot be read.
        CorruptChunk: It does not hold chunks where it should.
    """
    entry = -1
    border = log.start
    if limits.max_bytes is not None:
        entry, border = _fitting(log, limits.unit_bytes, limits.max_bytes)
    if limits.max_age_ms is not None:
        oldest_ms = now_ms - limits.max_age_ms
        while (end := log.index.first_from(border + limits.unit_bytes)) < len(log.index):
            if not await _is_older(log, end, border, oldest_ms):
                break
            entry, border = end, log.index.positions[end]
    return None if entry < 0 else Cut(border, log.index.offsets[entry])


def _fitting(log: StreamLog, unit_bytes: int, max_bytes: int) -> tuple[int, int]:
    """Return entry and position of the oldest unit that may stay; entry -1 if all may."""
    index = log.index
    entry, border = -1, log.start
    while log.committed_length - border > max_bytes:
        found = index.first_from(border + unit_bytes)
        if found >= len(index):
            break
        entry, border = found, index.positions[found]
    return entry, border


async def _is_older(log: StreamLog, end: int, start: int, oldest_ms: int) -> bool:
    """Return whether the last chunk before entry `end` was written before a time."""
    index = log.index
    if index.timestamps_ms[end] < oldest_ms:
        return True
    if end and index.timestamps_ms[end - 1] >= oldest_ms:
        return False
    first = max(index.positions[end - 1], start) if end else start
    timestamp_ms = await _last_timestamp_ms(log, first, index.positions[end])
    return timestamp_ms is not None and timestamp_ms < oldest_ms


async def _last_timestamp_ms(log: StreamLog, position: int, end: int) -> int | None:
    """Return the time of the last chunk in [position, end), both of which are bounds of chunks.

    None if a damaged chunk hides it.
    """
    seed = log.seal_seed

    def look(view: memoryview) -> tuple[bool, int, int | None]:
        _, consumed, chunks = walk_chunks(view, 0, len(view))
        reason = verify(view, seed).reason
        return reason == NEEDS_BYTES, consumed, chunks[-1][4] if chunks else None

    timestamp_ms: int | None = None
    while position < end:
        looked: Pending[tuple[bool, int, int | None]] = Pending()
        size = min(end - position, APPEND_BYTES_MAX)
        log.reader.check(position, size, look, done=looked.settle)
        is_sound, consumed, found = await looked
        if found is None or not is_sound:
            return None
        timestamp_ms = found
        position += consumed
    return timestamp_ms


def cut_within(log: StreamLog, cut: Cut, end: int) -> Cut | None:
    """Return `cut`, or the last known cut up to `end` if `cut` is behind that."""
    if cut.position <= end:
        return cut
    entry = log.index.first_from(end + 1) - 1
    if entry < 0 or log.index.positions[entry] <= log.start:
        return None
    return Cut(log.index.positions[entry], log.index.offsets[entry])


def cut_before(log: StreamLog, cut: Cut, offset: int) -> Cut | None:
    """Return `cut`, or the last known cut that leaves the chunk of `offset` if `cut` does not."""
    position = log.index.position_before_offset(offset)
    if position is None or log.index.offsets[0] > offset:
        return None
    return cut_within(log, cut, position)


async def remove_before(store: SegmentStore, segment: str, log: StreamLog, cut: Cut) -> int:
    """Remove the chunks before a cut.

    Returns:
        The number of index entries that were dropped.

    Raises:
        StoreError: The store refused.
        CorruptChunk: No chunk with that offset begins there; nothing was removed.
    """
    if cut.position < log.committed_length:
        read: Pending[bytes] = Pending()
        log.reader.check(cut.position, DATA_POSITION, bytes, done=read.settle)
        head = await read
        if (
            len(head) < DATA_POSITION
            or unpack_header(head, EVENT_HEAD_BYTES).chunk_id != cut.offset
        ):
            raise CorruptChunk(log.stream, cut.position, "not the chunk that the index names")
    truncated: Pending[None] = Pending()
    store.truncate_segment(segment, cut.position, done=truncated.settle)
    await truncated
    return log.truncated(cut.position, cut.offset)
