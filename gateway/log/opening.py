"""Open a stream's log: find its end, rebuild what is derived, and take over as its leader.

The writer's stored event number says the offset of the next record and the epoch of the last
leader. Snapshot and stored index save a scan. If they are missing, or do not fit the segment,
everything is rebuilt from the chunks. They do not fit after a power cut that shortened only the
segment. Then they are removed durably before anything is appended, since they would seem to fit
once the segment has grown. A snapshot that fits stays, even if the index does not: it alone knows
the publishers whose chunks were removed.
"""

import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from gateway.log.errors import CorruptChunk
from gateway.log.filter_pages import FilterPages
from gateway.log.index import NO_END, ChunkIndex, entries_from, last_position
from gateway.log.kernel.chunks import (
    BAD_SEAL,
    NEEDS_BYTES,
    NOT_NEXT,
    verify_chunks,
    walk_chunks,
)
from gateway.log.log import LogState, StreamLog
from gateway.log.names import writer_of
from gateway.log.ports import LogPorts
from gateway.log.restoring import (
    check_bytes,
    chunk_at,
    find_chunk,
    read_index,
    restore,
)
from gateway.log.sequences import UNKNOWN, PublisherSequences
from gateway.log.snapshot import Snapshot
from gateway.log.verifying import NO_SIZE, Chunk, Verified, verify
from gateway.pending import Pending, asked
from hutch.formats.chunk import (
    DATA_POSITION,
    SEAL_BYTES,
    event_number,
    next_offset_and_epoch,
    seal_seed,
)
from store.api import (
    ABSENT,
    APPEND_BYTES_MAX,
    Appended,
    Reader,
    SegmentStore,
    Writer,
)
from store.errors import (
    CorruptSegment,
    EventNumberTooLow,
    InvalidArgument,
    NoSuchSegment,
    SegmentFailed,
    SegmentSealed,
    StoreError,
)

log = logging.getLogger(__name__)

T = TypeVar("T")

_SCAN_BYTES: Final = 1024 * 1024
_PASSED_OVER: Final = "damaged chunk is passed over stream=%s position=%d bytes=%d"

Walked = tuple[Verified, list[Chunk], list[bytes], int]
"""The result of the check, the sound chunks, their trailers, the size of a damaged next one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogNames:
    """The names of a stream: its own, for people, and those of its segments."""

    stream: str
    data_segment: str
    index_segment: str
    filter_segment: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """Settings of a log.

    Attributes:
        references_max: Most publisher references that are remembered.
        initial_offset: Offset of the stream's first record.
        span_bytes: Largest distance of the index's entries.
    """

    references_max: int
    initial_offset: int = 0
    span_bytes: int = NO_END


async def open_log(
    store: SegmentStore,
    names: LogNames,
    ports: LogPorts[StreamLog],
    *,
    snapshot: Snapshot | None,
    replace_snapshot: Callable[[Snapshot | None], Coroutine[Pending[Any], None, None]],
    epoch: int,
    settings: LogSettings,
) -> StreamLog:
    """Open a log for writing and reading.

    Args:
        store: Holds the segments.
        names: The names of these.
        ports: The ports of the log.
        snapshot: The stored one, if any.
        replace_snapshot: Stores a snapshot durably; given None, it removes the stored one.
        epoch: The epoch to lead under; stored at once if it is not the last leader's.
        settings: The settings of this log.

    Raises:
        StoreError: The store cannot give the segment.
        CorruptChunk: The stored bytes are not a run of chunks.
    """
    writer, reader = await _open_segment(store, names.data_segment)
    seed = seal_seed(names.data_segment)
    state = LogState(seed, epoch=epoch, length=reader.length, next_offset=settings.initial_offset)
    index = ChunkIndex(settings.span_bytes)
    sequences = PublisherSequences(names.stream, settings.references_max)
    stored = await read_index(store, names.index_segment)
    last = _end_offset(writer, reader)
    fitting = await restore(sequences, reader, seed, snapshot, last)
    if fitting is not snapshot:
        stored, snapshot = None, fitting
    is_restored = snapshot is None
    position, first = reader.start, None if reader.start else settings.initial_offset
    if snapshot is not None:
        state.snapshot_position = snapshot.position
        is_restored = (
            stored is not None
            and snapshot.position >= reader.start
            and index.restore(stored, start=reader.start, length=snapshot.position)
        )
        if is_restored:
            position, first = snapshot.position, snapshot.next_offset
            await _begin_with(reader, snapshot, state, index)
    following = await _scan(names.stream, reader, position, first, state, index, sequences)
    # Entries behind the snapshot: the scan has found the same ones, or they do not fit.
    surplus = entries_from(stored or b"", position)
    packed, _ = index.pack_after(position, NO_END, seal_seed(names.index_segment))
    if stored is not None and is_restored and packed.startswith(surplus):
        state.index_saved_to = max(position, last_position(surplus) + 1)
    else:
        await _begin_anew(store, names, state, replace_snapshot(snapshot))
    _agree(names.stream, state, following, last)
    if state.read_only is None:
        await _lead(names.stream, writer, state)
    state.filter_pages = FilterPages(store, names.filter_segment)
    return StreamLog(names.stream, writer, reader, ports, index, sequences, state)


async def _open_segment(store: SegmentStore, segment: str) -> tuple[Writer, Reader]:
    opened_writer: Pending[Writer] = Pending()
    store.open_writer(segment, writer_of(segment), done=opened_writer.settle)
    writer = await opened_writer
    opened_reader: Pending[Reader] = Pending()
    store.open_reader(segment, done=opened_reader.settle)
    return writer, await opened_reader


def _end_offset(writer: Writer, reader: Reader) -> int | None:
    """Return the offset behind the last chunk by the writer's number; None if it says nothing."""
    if writer.event_number == ABSENT or reader.length == 0:
        return None
    return next_offset_and_epoch(writer.event_number)[0]


async def _begin_with(
    reader: Reader, snapshot: Snapshot, state: LogState, index: ChunkIndex
) -> None:
    """Begin with the snapshot's state, and with the index of the oldest chunk."""
    state.next_offset = snapshot.next_offset
    state.timestamp_ms = snapshot.timestamp_ms
    if snapshot.position > reader.start:
        state.last_chunk_id = snapshot.last_chunk_id
        state.last_chunk_position = snapshot.last_chunk_position
        state.first_chunk_id = await _first_chunk_id(reader, snapshot, state.seal_seed, index)


async def _first_chunk_id(reader: Reader, snapshot: Snapshot, seed: int, index: ChunkIndex) -> int:
    """Return the offset of the oldest chunk by the index, or by the chunk itself if it is sound.

    If the chunk is damaged, return the offset of a chunk behind it.
    """
    entry = index.first_from(reader.start)
    known = index.offsets[entry] if entry < len(index) else snapshot.next_offset
    if index.offset_at(reader.start) == known:
        return known
    chunk = await chunk_at(reader, seed, reader.start)
    return known if chunk is None else min(chunk[2], known)


async def _begin_anew(
    store: SegmentStore,
    names: LogNames,
    state: LogState,
    replaced: Coroutine[Pending[Any], None, None],
) -> None:
    """Remove a snapshot and an index that do not fit; until that succeeds, append nothing."""
    log.warning("stored index or snapshot does not fit and is dropped stream=%s", names.stream)
    deleted: Pending[None] = Pending()
    store.delete_segment(names.index_segment, done=deleted.settle)
    try:
        with suppress(NoSuchSegment):
            await deleted
        # This is synced, and so is the deletion that was written before it.
        await replaced
    except StoreError as error:
        state.read_only = error
        log.error("stream can only be read stream=%s error=%s", names.stream, error)  # noqa: TRY400  # for the operator


def _agree(stream: str, state: LogState, following: int | None, last: int | None) -> None:
    """Compare the offset behind the last chunk with the writer's; if they differ, only read.

    If the last chunk is damaged and so says no offset, the writer's number counts.
    """
    if following is not None:
        state.next_offset = following
    elif last is not None:
        state.next_offset = last
    if (
        state.read_only is None
        and state.last_chunk_id >= 0
        and None not in {last, following}
        and last != following
    ):
        reason = f"next offset is {last} by the writer, {following} by the chunks"
        state.read_only = CorruptSegment(str(CorruptChunk(stream, state.length, reason)))
        log.error("stream can only be read stream=%s error=%s", stream, state.read_only)


async def _lead(stream: str, writer: Writer, state: LogState) -> None:
    """Compare the next offset with the writer's number; store the epoch if it is new."""
    last_number = writer.event_number
    if last_number == ABSENT:
        await _note_refusal(stream, writer, last_number, state)
        return
    next_offset, last_epoch = next_offset_and_epoch(last_number)
    state.next_offset = next_offset
    if state.epoch <= last_epoch:
        state.epoch = last_epoch
        await _note_refusal(stream, writer, last_number, state)
        return
    await _note_refusal(stream, writer, event_number(next_offset, state.epoch), state)


async def _note_refusal(stream: str, writer: Writer, number: int, state: LogState) -> None:
    """Try an append that writes nothing, to learn whether the segment takes no appends at all.

    Nothing is written under a number that is stored already. The store reports a fault of the
    segment before a fault of the number.
    """
    try:
        await _nothing_appended(writer, number)
    except (EventNumberTooLow, InvalidArgument):
        pass  # it would take other numbers
    except (CorruptSegment, SegmentFailed, SegmentSealed) as error:
        state.read_only = error
        log.error("stream can only be read stream=%s error=%s", stream, error)  # noqa: TRY400  # for the operator


def _nothing_appended(writer: Writer, number: int) -> Pending[Appended]:
    return asked(lambda done: writer.append(b"", number, done=done))


async def _scan(
    stream: str,
    reader: Reader,
    position: int,
    first: int | None,
    state: LogState,
    index: ChunkIndex,
    sequences: PublisherSequences,
) -> int | None:
    """Walk the chunks from `position` on, and fill state, index and sequences.

    Damaged chunks are skipped; if the size of one is damaged, the log can only be read. Raises
    CorruptChunk if there is no chunk at all.

    Args:
        stream: Its name.
        reader: Its chunks.
        position: Where to begin.
        first: The offset of the first chunk; None if it is not known.
        state: Is completed.
        index: Gets entries.
        sequences: Gets the publishers of the trailers.

    Returns:
        The offset behind the last chunk, by the chunks; None if they do not say it.
    """
    size = _SCAN_BYTES
    following = first
    while position < reader.length:
        look = partial(_walk, seed=state.seal_seed, first=following)
        verified, chunks, trailers, damaged_bytes = await check_bytes(reader, position, size, look)
        _note(position, chunks, state, index)
        for trailer in trailers:
            sequences.take(trailer)
        position += verified.end
        following = verified.next
        if verified.reason == BAD_SEAL:
            damaged_bytes = await _damage_at(reader, position, damaged_bytes, state, sequences)
        if damaged_bytes:
            log.error(_PASSED_OVER, stream, position, damaged_bytes)
            position += damaged_bytes
            following = verified.following
        elif verified.reason in NO_SIZE or (not chunks and size >= APPEND_BYTES_MAX):
            damage = CorruptChunk(stream, position, "not a chunk")
            found = await find_chunk(reader, state.seal_seed, position, state.next_offset)
            if found is None and state.last_chunk_id < 0:
                raise damage
            state.read_only = CorruptSegment(str(damage))
            log.error("stream can only be read stream=%s error=%s", stream, damage)
            sequences.lose()
            if found is None:
                state.length = position
                return following
            position, following = found, None
        is_under_way = chunks or damaged_bytes or verified.reason in NO_SIZE
        size = _SCAN_BYTES if is_under_way else APPEND_BYTES_MAX
    return following


async def _damage_at(
    reader: Reader, position: int, size: int, state: LogState, sequences: PublisherSequences
) -> int:
    """Return the size of a chunk whose seal, and so perhaps its `size` field, is wrong.

    0: the size is not known, since neither a chunk nor the end was found behind it.
    """
    found = await find_chunk(reader, state.seal_seed, position, state.next_offset)
    if found is None:
        found = reader.length if position + size == reader.length else position
    if found != position + size:
        sequences.lose()
    return found - position


def _note(position: int, chunks: list[Chunk], state: LogState, index: ChunkIndex) -> None:
    """Add chunks that were found from `position` on to state and index."""
    for place, _, chunk_id, records, timestamp_ms, _, _, _ in chunks:
        # Times never decrease. One that does is damaged, and would make later chunks seem too old.
        if timestamp_ms >= state.timestamp_ms or not len(index):
            index.offer(chunk_id, timestamp_ms, position + place, verified=False)
        if state.last_chunk_id < 0:
            state.first_chunk_id = chunk_id
        state.last_chunk_id = chunk_id
        state.last_chunk_position = position + place
        state.next_offset = chunk_id + records
        state.timestamp_ms = timestamp_ms
    state.scanned_chunks += len(chunks)


def _walk(view: memoryview, seed: int, first: int | None) -> Walked:
    """On a thread of the store: check the chunks, list the sound ones, copy their trailers."""
    verified = verify(view, seed, first)
    _, _, chunks = walk_chunks(view, 0, len(view))
    sound = [chunk for chunk in chunks if chunk[0] < verified.end]
    damaged = chunks[len(sound) : len(sound) + 1]
    if verified.reason == NEEDS_BYTES:
        damaged = []
    trailers = [_trailer(view, chunk) for chunk in sound if chunk[7]]
    for chunk in damaged:
        if verified.reason == BAD_SEAL:
            trailers += [] if _has_no_trailer(view, chunk) else [UNKNOWN]
        elif verified.reason == NOT_NEXT:
            trailers.append(UNKNOWN)  # another chunk lies where this one was
        else:
            trailers.append(_trailer(view, chunk))
    damaged_bytes = verified.damaged_bytes or sum(chunk[1] for chunk in damaged)
    return verified, sound, trailers, damaged_bytes


def _trailer(view: memoryview, chunk: Chunk) -> bytes:
    place, _, _, _, _, _, data_bytes, trailer_bytes = chunk
    trailer_at = place + DATA_POSITION + data_bytes
    return bytes(view[trailer_at : trailer_at + trailer_bytes])


def _has_no_trailer(view: memoryview, chunk: Chunk) -> bool:
    """Return whether a chunk with a wrong seal certainly had no named publishers.

    Then its sizes leave no room for them, and its data is as long as they say.
    """
    place, size, _, _, _, _, data_bytes, _ = chunk
    if size != DATA_POSITION + data_bytes + SEAL_BYTES:
        return False
    return verify_chunks(view, place, place + size)[0] == NEEDS_BYTES
