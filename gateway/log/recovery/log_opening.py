"""Open a stream's log: find its end, rebuild derived data, and take over as its leader.

The writer's stored event number says the offset of the next record and the epoch of the last
leader. Snapshot and stored index save a scan. If they are missing, or do not fit the segment,
everything is rebuilt from the chunks. They do not fit after a power cut that shortened only the
segment. Then they are removed durably before anything is appended, since they would seem to fit
once the segment has grown. A snapshot that fits stays, even if the index does not: it alone knows
the publishers whose chunks were removed.
"""

import logging
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from gateway.log.damage.errors import CorruptChunk
from gateway.log.damage.verification import Chunk
from gateway.log.derived.filter_pages import FilterPages
from gateway.log.derived.index import NO_END, ChunkIndex, entries_from, last_position
from gateway.log.derived.sequences import PublisherSequences
from gateway.log.derived.snapshot import Snapshot
from gateway.log.log import LogState, StreamLog
from gateway.log.names import writer_of
from gateway.log.ports import LogPorts
from gateway.log.recovery.chunk_walk import Damage, Trailer, walk
from gateway.log.recovery.restoration import chunk_at, read_index, restore
from gateway.pending import Pending, asked
from hutch.formats.chunk import (
    event_number,
    next_offset_and_epoch,
    seal_seed,
)
from store.api import (
    ABSENT,
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

_PASSED_OVER: Final = "damaged chunk is passed over stream=%s position=%d bytes=%d"


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
    _, stored = await read_index(store, names.index_segment)
    last = end_offset(writer.event_number, reader)
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
    rebuilding = _Rebuilding(names.stream, reader.length, state, index, sequences)
    following = await walk(reader, seed, position, first, rebuilding)
    # Entries behind the snapshot: the scan has found the same ones, or they do not fit.
    surplus = entries_from(stored or b"", position)
    packed, _ = index.pack_after(position, NO_END, seal_seed(names.index_segment))
    if stored is not None and is_restored and packed.startswith(surplus):
        state.index_saved_to = max(position, last_position(surplus) + 1)
    else:
        await _begin_anew(store, names, state, replace_snapshot(snapshot))
    _agree(names.stream, state, following, last)
    await _lead(names.stream, writer, state)
    state.filter_pages = FilterPages(store, names.filter_segment)
    return StreamLog(names.stream, writer, reader, ports, index, sequences=sequences, state=state)


async def _open_segment(store: SegmentStore, segment: str) -> tuple[Writer, Reader]:
    opened_writer: Pending[Writer] = Pending()
    store.open_writer(segment, writer_of(segment), done=opened_writer.settle)
    writer = await opened_writer
    opened_reader: Pending[Reader] = Pending()
    store.open_reader(segment, done=opened_reader.settle)
    return writer, await opened_reader


def end_offset(number: int, reader: Reader) -> int | None:
    """Return the offset behind the last chunk by the writer's number; None if it says nothing."""
    if number == ABSENT or reader.length == 0:
        return None
    return next_offset_and_epoch(number)[0]


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
    """Unless the log can only be read, compare the next offset with the writer's number.

    The epoch is stored if it is new.
    """
    if state.read_only is not None:
        return
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


@dataclass(slots=True)
class _Rebuilding:
    """Fills state, index and sequences with the chunks that the walk finds.

    A log with damage whose size is not known can only be read.
    """

    stream: str
    length: int
    state: LogState
    index: ChunkIndex
    sequences: PublisherSequences

    def take(self, position: int, chunks: Sequence[Chunk], trailers: Sequence[Trailer]) -> None:
        """Add sound chunks whose places count from a position."""
        state, index = self.state, self.index
        for place, _, chunk_id, records, timestamp_ms, _, _, _ in chunks:
            # Times never decrease. One that does is damaged, and would make later chunks seem too
            # old.
            if timestamp_ms >= state.timestamp_ms or not len(index):
                index.offer(chunk_id, timestamp_ms, position + place, verified=False)
            if state.last_chunk_id < 0:
                state.first_chunk_id = chunk_id
            state.last_chunk_id = chunk_id
            state.last_chunk_position = position + place
            state.next_offset = chunk_id + records
            state.timestamp_ms = timestamp_ms
        state.scanned_chunks += len(chunks)
        for _, trailer in trailers:
            self.sequences.take(trailer)

    def pass_over(self, damage: Damage) -> None:
        """Note damage. Raises CorruptChunk if there is no chunk at all."""
        if damage.trailer is None:
            self.sequences.lose()
        else:
            self.sequences.take(damage.trailer)
        if damage.is_chunk:
            log.error(_PASSED_OVER, self.stream, damage.begin, damage.end - damage.begin)
            return
        error = CorruptChunk(self.stream, damage.begin, "not a chunk")
        if damage.end == self.length:
            if self.state.last_chunk_id < 0:
                raise error
            self.state.length = damage.begin
        self.state.read_only = CorruptSegment(str(error))
        log.error("stream can only be read stream=%s error=%s", self.stream, error)
