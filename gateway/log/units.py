"""Append a unit: many chunks that become visible together, all of them or none after any crash.

A unit that fits an append is one. A larger one is written, with its final offsets, to a segment of
its own, which the store then merges into the stream's in one step. Meanwhile the chunks of live
publishers wait in the log. The merge sets the number of the log's writer, which fences the session
that the log had, so that the log goes on with a new one.
"""

from contextlib import suppress
from typing import Final, NamedTuple, Protocol

from gateway.log.derived.sequences import MARKS_END
from gateway.log.log import StreamLog
from gateway.log.names import writer_of
from gateway.log.ports import Barrier
from gateway.log.unit import Unit, UnitPart, add_mark, number_chunks, pack_blank, parts_of
from gateway.pending import Pending
from hutch.formats.chunk import OFFSETS_END, event_number
from store.api import (
    APPEND_BYTES_MAX,
    Appended,
    AttributeUpdate,
    SegmentStore,
    Writer,
)
from store.errors import CorruptSegment, NoSuchSegment, SegmentFailed, StoreError

__all__ = ["UnitPlace", "UnitSegments", "UnitSource", "append_unit", "pack_blank"]

MARK_BYTES: Final = 10
"""A mark in a trailer."""

ONE_APPEND_BYTES_MAX: Final = APPEND_BYTES_MAX
"""A unit that is larger, with its mark, is merged."""


class UnitSource(Protocol):
    """Stored blank chunks of a unit.

    Attributes:
        size: Bytes of all of them.
    """

    @property
    def size(self) -> int: ...

    async def read(self, position: int) -> bytes | memoryview:
        """Return whole chunks from a position on, a few MiB at most. Raises StoreError."""
        ...


class UnitSegments(NamedTuple):
    """Names of segments: the stream's chunks, and the one to which a large unit is written."""

    data: str
    aside: str


class UnitPlace(NamedTuple):
    """The offset of a unit's first record, and the one behind its last."""

    first_offset: int
    next_offset: int


async def append_unit(
    store: SegmentStore,
    stream_log: StreamLog,
    segments: UnitSegments,
    source: UnitSource,
    *,
    mark: int,
) -> UnitPlace:
    """Append a unit. A log takes one large unit at a time.

    Args:
        store: Holds the segments.
        stream_log: Gets the unit.
        segments: The names of the log's segment, and of one that may be written and deleted.
        source: The unit.
        mark: Above the log's mark.

    Raises:
        StoreError: The unit is not stored. If `failure` of the log is set, it may be stored after
            all: the mark of the log says so when the log is opened again. CorruptSegment if the
            unit's own bytes are damaged.
    """
    error = stream_log.failure or stream_log.read_only
    if error is not None:
        raise error
    assert stream_log.mark < mark < MARKS_END, "marks grow"
    if source.size + MARK_BYTES <= ONE_APPEND_BYTES_MAX:
        unit = await _append_small(stream_log, source, mark)
    else:
        unit = await _append_large(store, stream_log, segments, source, mark)
    return UnitPlace(unit.first_offset, unit.next_offset)


async def _append_small(stream_log: StreamLog, source: UnitSource, mark: int) -> Unit:
    blanks = bytearray()
    parts: list[UnitPart] = []
    position = 0
    while position < source.size:
        piece = await source.read(position)
        parts += _parts_of(stream_log, source, mark, position, piece)
        blanks += piece
        position = len(blanks)
    add_mark(blanks, parts, mark)
    unit = Unit(mark, blanks, parts)
    stored = Barrier()
    unit.confirms.append((stored, b""))
    stream_log.close_chunk()
    if stream_log.failure is None:
        stream_log.send(unit)
        await stored.passed
    if stream_log.mark < mark:
        raise stream_log.failure or _no_offsets(stream_log)
    return unit


def _parts_of(
    stream_log: StreamLog,
    source: UnitSource,
    mark: int,
    position: int,
    blanks: bytes | memoryview,
) -> list[UnitPart]:
    """Check blank chunks that were read at a position of the source, and take them apart."""
    parts = parts_of(blanks, stream_log.seal_seed)
    if not parts or position + len(blanks) > source.size:
        raise CorruptSegment(
            f"unit {mark} for stream {stream_log.stream!r} is damaged at byte {position}"
        )
    return parts


async def _append_large(
    store: SegmentStore,
    stream_log: StreamLog,
    segments: UnitSegments,
    source: UnitSource,
    mark: int,
) -> Unit:
    unit = Unit(mark, bytearray(), [])
    try:
        await _delete(store, segments.aside)
        aside = await _create(store, segments.aside)
        await _store_held(store, stream_log, segments, source, unit, aside)
    except Exception:
        with suppress(StoreError):
            await _delete(store, segments.aside)
        raise
    return unit


async def _store_held(
    store: SegmentStore,
    stream_log: StreamLog,
    segments: UnitSegments,
    source: UnitSource,
    unit: Unit,
    aside: Writer,
) -> None:
    """Store a large unit while the log holds all chunks behind it."""
    before = Barrier()
    stream_log.hold(unit, before)
    session: Writer | None = None
    try:
        await before.passed
        await _write(stream_log, source, unit, aside)
        if stream_log.failure is not None:
            raise stream_log.failure
        number = event_number(unit.next_offset, stream_log.epoch)
        stream_log.appended(await _merge(store, segments, unit, number))
        if stream_log.failure is not None:
            raise stream_log.failure
        session = await _open_session(store, stream_log, segments.data)
    finally:
        stream_log.go_on(session)


async def _write(stream_log: StreamLog, source: UnitSource, unit: Unit, aside: Writer) -> None:
    """Write the chunks of a unit, numbered; a piece is read while the one before is stored."""
    position = number = 0
    offset = unit.first_offset
    piece = bytearray()
    before: Pending[Appended] | None = None
    while position < source.size and stream_log.failure is None:
        blanks = await source.read(position)
        parts = _parts_of(stream_log, source, unit.mark, position, blanks)
        _fill(piece, blanks)
        position += len(blanks)
        if position == source.size:
            add_mark(piece, parts, unit.mark)
        end_offset = offset + sum(part.records for part in parts)
        if end_offset > OFFSETS_END:
            raise _no_offsets(stream_log)
        seed = stream_log.seal_seed
        number_chunks(piece, parts, offset, stream_log.epoch, unit.timestamp_ms, seed)
        unit.parts += parts
        offset = end_offset
        if before is not None:
            await before
        before = Pending()
        number += 1
        aside.append(piece, number, done=before.settle)
    if before is not None:
        await before


def _fill(room: bytearray, data: bytes | memoryview) -> None:
    """Copy bytes to where others were: fresh memory costs more than the copy."""
    del room[len(data) :]
    room += bytes(len(data) - len(room))
    memoryview(room)[:] = data


async def _merge(
    store: SegmentStore, segments: UnitSegments, unit: Unit, number: int
) -> Appended | StoreError:
    """Move the unit's segment into the stream's, and return where it lies there."""
    writer = AttributeUpdate(writer_of(segments.data), number, expected=unit.last_number)
    merged: Pending[int] = Pending()
    store.merge_segments(segments.data, segments.aside, attributes=[writer], done=merged.settle)
    try:
        length = await merged
    except StoreError as error:
        return error
    size = sum(part.size for part in unit.parts)
    return Appended(length - size, size, number)


async def _open_session(store: SegmentStore, stream_log: StreamLog, segment: str) -> Writer | None:
    """Open a new session on the log's segment; if that fails, the log has failed."""
    opened: Pending[Writer] = Pending()
    store.open_writer(segment, writer_of(segment), done=opened.settle)
    try:
        return await opened
    except StoreError as error:
        stream_log.fail(error)
        return None


async def _create(store: SegmentStore, segment: str) -> Writer:
    created: Pending[None] = Pending()
    store.create_segment(segment, done=created.settle)
    await created
    opened: Pending[Writer] = Pending()
    store.open_writer(segment, writer_of(segment), done=opened.settle)
    return await opened


async def _delete(store: SegmentStore, segment: str) -> None:
    deleted: Pending[None] = Pending()
    store.delete_segment(segment, done=deleted.settle)
    with suppress(NoSuchSegment):
        await deleted


def _no_offsets(stream_log: StreamLog) -> SegmentFailed:
    return SegmentFailed(f"stream {stream_log.stream!r} has no offsets left")
