"""Find where reading starts: the chunk for an offset specification.

Reading always starts at a chunk's boundary. No specification fails: beyond the tail means the tail,
before the start means the oldest chunk.

Source: RabbitMQ's behaviour for each kind of specification on empty and non-empty streams.
"""

import enum
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from gateway.log.damage.errors import CorruptChunk
from gateway.log.damage.resync import next_chunk
from gateway.log.damage.verification import Chunk, Mark, Verified, verify
from gateway.log.kernel.chunks import BAD_SEAL, MALFORMED, NEEDS_BYTES, NOT_NEXT, walk_chunks
from gateway.log.log import StreamLog
from gateway.log.reading.known_chunks import marks_of, span_around
from gateway.pending import Pending
from store.api import APPEND_BYTES_MAX
from store.errors import SegmentTruncated

logger = logging.getLogger(__name__)

_SCAN_BYTES: Final = 512 * 1024
_PLAUSIBLE_FROM_MS: Final = 1_000_000_000_000
"""In 2001. As seconds this would be in the year 33,658."""
_DAY_MS: Final = 86_400_000


class StartKind(enum.Enum):
    """The kinds of offset specification."""

    FIRST = 1
    LAST = 2
    NEXT = 3
    OFFSET = 4
    TIMESTAMP = 5


@dataclass(frozen=True, slots=True)
class Start:
    """The place where a reader begins: offset and position of a chunk, or of the tail."""

    offset: int
    position: int


async def locate(log: StreamLog, kind: StartKind, value: int = 0) -> Start:
    """Find the chunk where a subscription with this specification starts reading.

    Args:
        log: The stream.
        kind: Which specification.
        value: The offset (u64), or the timestamp in milliseconds (i64).

    Raises:
        StoreError: The segment cannot be read.
        CorruptChunk: It does not hold chunks where it should.
    """
    if kind is StartKind.TIMESTAMP:
        _remark(log, value)
    while True:
        try:
            return await _locate(log, kind, value)
        except SegmentTruncated:
            continue  # the oldest chunks were removed meanwhile


async def locate_border(log: StreamLog, offset: int) -> Start:
    """Find the first chunk that begins at an offset or behind it; the tail if there is none.

    Args:
        log: The stream.
        offset: Any u64.

    Raises:
        StoreError: The segment cannot be read.
        CorruptChunk: It does not hold chunks where it should.
    """
    while True:
        tail = Start(log.committed_next_offset, log.committed_length)
        if log.is_empty or offset >= tail.offset:
            return tail
        if offset <= log.first_chunk_id:
            return Start(log.first_chunk_id, log.start)
        try:
            return await _scan(
                log,
                lambda: log.index.position_before_offset(offset),
                tail,
                lambda chunk: chunk[2] >= offset,
            )
        except SegmentTruncated:
            continue  # the oldest chunks were removed meanwhile


def tell_removed(log: StreamLog, offset: int) -> None:
    """Log it if a reader asks for an offset before the stream's first one."""
    if offset < log.first_offset:
        logger.info(
            "reading begins behind what was removed stream=%s offset=%d first_offset=%d",
            log.stream,
            offset,
            log.first_offset,
        )


def _remark(log: StreamLog, timestamp_ms: int) -> None:
    """Log, once for a stream, a requested time that is not plausible: it may be in seconds."""
    is_odd = 0 < timestamp_ms < _PLAUSIBLE_FROM_MS or timestamp_ms > log.now_ms() + _DAY_MS
    if is_odd and log.readers.note_odd_time():
        logger.warning(
            "a time that is sought is not plausible, it has to be in milliseconds since 1970"
            " stream=%s timestamp_ms=%d",
            log.stream,
            timestamp_ms,
        )


async def _locate(log: StreamLog, kind: StartKind, value: int) -> Start:
    tail = Start(log.committed_next_offset, log.committed_length)
    if log.is_empty or kind is StartKind.NEXT:
        return tail
    if kind is StartKind.FIRST or (kind is StartKind.OFFSET and value <= log.first_chunk_id):
        return Start(log.first_chunk_id, log.start)
    if kind is StartKind.LAST:
        return Start(log.last_chunk_id, log.last_chunk_position)
    if kind is StartKind.OFFSET:
        if value >= tail.offset:
            return tail
        return await _scan(
            log,
            lambda: log.index.position_before_offset(value),
            tail,
            lambda chunk: chunk[2] + chunk[3] > value,
        )
    return await _scan(
        log,
        lambda: log.index.position_before_timestamp(value),
        tail,
        lambda chunk: chunk[4] >= value,
    )


async def _scan(
    log: StreamLog,
    indexed: Callable[[], int | None],
    tail: Start,
    is_wanted: Callable[[Chunk], bool],
) -> Start:
    """Walk from the index's position to the first wanted chunk; the tail if there is none.

    An entry that proves wrong is forgotten: after a power cut it may be newer than the chunks.
    """
    while True:
        position = indexed()
        if position is None or position <= log.start:
            return await _walk(log, log.start, tail, is_wanted)
        try:
            return await _walk(log, position, tail, is_wanted)
        except CorruptChunk as error:
            logger.warning("index is wrong stream=%s error=%s", log.stream, error)
            if log.index.offset_at(position) is None:  # it was forgotten meanwhile
                return await _walk(log, log.start, tail, is_wanted)
            log.index.drop(position)


async def _walk(
    log: StreamLog, position: int, tail: Start, is_wanted: Callable[[Chunk], bool]
) -> Start:
    begin, size = position, _SCAN_BYTES
    following: int | None = None
    while position < tail.position:
        seed = None if position >= log.index.trusted_position else log.seal_seed
        end = log.index.trusted_position if position < log.index.trusted_position else tail.position
        available = min(size, end - position)
        marks = marks_of(log, position, position + available)
        look = partial(_look, seed=seed, first=following, marks=marks)
        looked: Pending[tuple[Verified, list[Chunk], int]] = Pending()
        log.reader.check(position, available, look, done=looked.settle, fills=True)
        verified, chunks, damaged_bytes = await looked
        if position == begin > log.start and marks[0][0]:
            _compare_with_index(log, position, verified, chunks)
        for chunk in chunks:
            if is_wanted(chunk):
                return Start(chunk[2], position + chunk[0])
        position += verified.end + damaged_bytes
        following = verified.following if damaged_bytes else verified.next
        found = bool(chunks or damaged_bytes)
        if verified.reason in {MALFORMED, BAD_SEAL} or (not found and size >= APPEND_BYTES_MAX):
            position = await _behind_damage(log, position)
            following = None
            size = _SCAN_BYTES
        else:
            size = _SCAN_BYTES if found else APPEND_BYTES_MAX
    return tail


def _look(
    view: memoryview, seed: int | None, first: int | None, marks: Sequence[Mark]
) -> tuple[Verified, list[Chunk], int]:
    """On a thread of the store: list the sound chunks, and size a damaged one behind them.

    `seed`: of the seals; None if no chunk needs to be checked.
    """
    reason, end, chunks = walk_chunks(view, 0, len(view))
    if seed is None:
        return Verified(reason, end, None, None), chunks, 0
    verified = verify(view, seed, first, marks)
    sound = [chunk for chunk in chunks if chunk[0] < verified.end]
    damaged = chunks[len(sound) : len(sound) + 1]
    if verified.reason in {NEEDS_BYTES, BAD_SEAL, NOT_NEXT}:
        damaged = []
    return verified, sound, verified.damaged_bytes or sum(chunk[1] for chunk in damaged)


def _compare_with_index(
    log: StreamLog, position: int, verified: Verified, chunks: list[Chunk]
) -> None:
    """Compare the first chunk with the entry that led to it. Raises CorruptChunk."""
    if verified.end == 0 and verified.reason == MALFORMED:
        raise CorruptChunk(log.stream, position, "not a chunk")
    entry = log.index.offset_at(position), log.index.timestamp_at(position)
    if chunks and (chunks[0][2], chunks[0][4]) != entry:
        raise CorruptChunk(log.stream, position, "not the chunk of the index")


async def _behind_damage(log: StreamLog, position: int) -> int:
    """Find the next whole chunk behind a position where there is none, or where one must begin."""
    looked: Pending[int | None] = Pending()
    size, first_offset, end_offset = span_around(log, position)
    size = min(APPEND_BYTES_MAX, size)
    look = partial(next_chunk, seed=log.seal_seed, first_offset=first_offset, end_offset=end_offset)
    log.reader.check(position, size, look, done=looked.settle, fills=True)
    place = await looked
    if place is None:
        place = size
    logger.error(
        "damaged chunk is passed over stream=%s position=%d bytes=%d", log.stream, position, place
    )
    return position + place
