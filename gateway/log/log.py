# cython: language_level=3, annotation_typing=False, nonecheck=True
"""One stream's chunks in one segment: the open chunk, those on their way, and those committed.

The life of an entry: A handler lets the kernel copy it into the open chunk (`open_chunk`, `took`).
At the end of the turn of the event loop `flush` appends the chunk. If an append is under way, the
chunk keeps filling instead, and goes when that append is acknowledged (or when the chunk is full).
The store's acknowledgement commits the chunk: confirms go out and waiting cursors are woken.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from gateway.log.derived.filter_pages import FilterNotes, FilterPages
from gateway.log.derived.index import ChunkIndex
from gateway.log.derived.saved import Saved
from gateway.log.derived.sequences import PublisherSequences
from gateway.log.derived.snapshot import Snapshot
from gateway.log.open_chunk import (
    ChunkDelivery,
    ChunkSizes,
    ConfirmSink,
    OpenChunk,
    confirm_all,
    lose_all,
)
from gateway.log.ports import LogPorts
from gateway.log.unit import Unit
from gateway.pending import nothing
from hutch.formats.chunk import ALONE_BYTES, OFFSETS_END, event_number
from store.api import Appended, Reader, Writer
from store.errors import SegmentFailed, StoreError

log = logging.getLogger(__name__)

SNAPSHOT_BYTES: Final = 64 * 1024 * 1024
"""Bytes after which a snapshot is stored: it bounds the next opening's scan."""
SNAPSHOT_CHUNK_BYTES: Final = 4096
"""A chunk counts for no less, so that there are at most 16,384 chunks to scan."""

# Numbers of C when it is compiled.
_OFFSETS_END: Final = OFFSETS_END
_ALONE_BYTES: Final = ALONE_BYTES

DRAINED_BYTES: Final = 8 * 1024 * 1024
"""A publisher that waits because too much is on its way goes on at this much or less."""


@dataclass(slots=True)
class LogState:
    """The state that opening found: see `gateway.log.recovery.log_opening`."""

    seal_seed: int
    next_offset: int = 0
    epoch: int = 1
    timestamp_ms: int = 0
    first_chunk_id: int = 0
    last_chunk_id: int = -1
    last_chunk_position: int = 0
    length: int = 0
    index_saved_to: int = 0
    snapshot_position: int = 0
    scanned_chunks: int = 0
    read_only: StoreError | None = None
    filter_pages: FilterPages | None = None


class Readers:
    """Readers of one log: those that wait at its tail, and the delivery that several share.

    Attributes:
        waiting: Called once each when the next chunk is committed.
        has_company: True if several waited last; they will want the same chunk next.
        is_followed: True if one waits, or waited when the last chunk was committed.
        shared: A delivery for the readers that reach its place in this turn: the chunk that has
            just been committed, or what another reader got.
        shared_at: Its start; -1 without one.
        shared_end: Its end.
    """

    def __init__(self, stream: str, schedule: Callable[[Callable[[], None]], object]) -> None:
        """Begin; `schedule` calls a function at the end of this turn of the event loop."""
        self._stream = stream
        self.schedule = schedule
        self._call_unshare = self._unshare  # made once: each look-up makes an object
        self._has_odd_time = False
        self.waiting: list[Callable[[], object]] = []
        self.has_company = False
        self.is_followed = False
        self.shared: ChunkDelivery | None = None
        self.shared_at = self.shared_end = -1

    def when_more(self, wake: Callable[[], object]) -> None:
        """Call `wake` once when the next chunk is committed."""
        self.waiting.append(wake)
        self.is_followed = True

    def forget(self, wake: Callable[[], object]) -> None:
        """Cancel `when_more`."""
        if wake in self.waiting:
            self.waiting.remove(wake)

    def end(self) -> None:
        """Wake none any more, and refer to nothing that refers to this."""
        self.waiting.clear()
        self._call_unshare = nothing

    def committed(self, position: int, end: int, fresh: ChunkDelivery | None) -> None:
        """Wake the readers that wait for the chunk in [position, end); `fresh` is it, if in memory.

        They take it from there at the end of this turn, if nothing keeps them from it.
        """
        if fresh is None:
            self._wake()
            return
        is_first = self.shared is None
        self.shared, self.shared_at, self.shared_end = fresh, position, end
        self._wake()
        if is_first:
            self.schedule(self._call_unshare)  # after what the readers have just scheduled

    def _wake(self) -> None:
        waiting, self.waiting = self.waiting, []
        self.has_company = len(waiting) > 1
        for wake in waiting:
            try:
                wake()
            except Exception:
                # One reader's error must not keep the others waiting.
                log.exception("waking a reader failed stream=%s", self._stream)

    def share(self, position: int, end: int, delivery: ChunkDelivery) -> None:
        """Keep one reader's delivery for others that reach its place in this turn."""
        if self.shared is None:
            self.schedule(self._call_unshare)
        self.shared, self.shared_at, self.shared_end = delivery, position, end

    def _unshare(self) -> None:
        self.shared = None
        self.shared_at = -1

    def note_odd_time(self) -> bool:
        """Note that a reader asks for an implausible time; False if that was noted before."""
        is_new = not self._has_odd_time
        self._has_odd_time = True
        return is_new


class StreamLog:
    """A stream that is open for writing and reading."""

    def __init__(
        self,
        stream: str,
        writer: Writer,
        reader: Reader,
        ports: "LogPorts[StreamLog]",
        index: ChunkIndex,
        sequences: PublisherSequences,
        state: LogState,
    ) -> None:
        self.stream = stream
        self.reader = reader
        self.index = index
        self.sequences = sequences
        self.seal_seed = state.seal_seed
        self.failure: StoreError | None = None
        self._writer = writer
        self._ports = ports
        self._open: OpenChunk | None = None
        self._is_scheduled = False
        self._in_flight: list[OpenChunk] = []
        self._drained: list[Callable[[], object]] = []
        self.readers = Readers(stream, ports.schedule)
        # Made once: each look-up of a method makes an object.
        self._call_flush: Callable[[], None] = self.flush
        self._call_appended: Callable[[Appended | StoreError], None] = self.appended
        self.in_flight_bytes = 0
        self._sizes = ChunkSizes(ports.buffers)
        self.epoch = state.epoch
        # Issued: includes chunks on their way. Committed: may be confirmed and seen.
        self._next_offset = state.next_offset
        self._timestamp_ms = self._committed_timestamp_ms = state.timestamp_ms
        self.committed_next_offset = state.next_offset
        self.committed_length = state.length
        self.first_chunk_id = state.first_chunk_id
        self.last_chunk_id = state.last_chunk_id
        self.last_chunk_position = state.last_chunk_position
        index.trust(state.length, state.next_offset)
        self.saved = Saved(
            FilterNotes(state.epoch),
            state.filter_pages,
            index_end=state.index_saved_to,
            snapshot_position=state.snapshot_position,
        )
        self.read_only = state.read_only
        """The reason why nothing can be appended, though the chunks can be read; None if it can."""
        self._since_snapshot = state.scanned_chunks * SNAPSHOT_CHUNK_BYTES
        self._held: OpenChunk | None = None
        """The unit that the chunks behind it wait for: see `hold`."""

    @property
    def start(self) -> int:
        """The position of the oldest chunk."""
        return self.reader.start

    @property
    def is_empty(self) -> bool:
        """True if there is no committed chunk."""
        return self.last_chunk_id < 0

    @property
    def first_offset(self) -> int:
        """The offset of the oldest record; of the next one if all records were removed."""
        if self.is_empty:
            return self.committed_next_offset if self.start else 0
        return self.first_chunk_id

    @property
    def mark(self) -> int:
        """The mark of the last unit that is committed, 0 if there is none."""
        return self.sequences.mark

    @property
    def is_idle(self) -> bool:
        """True if nothing waits to be appended or acknowledged."""
        return not self._in_flight and (self._open is None or not self._open.entry_count)

    # Writing

    def open_chunk(self, bytes_expected: int) -> OpenChunk:
        """Return the chunk to fill; `flush` will be called at the end of the turn.

        Raises:
            StoreError: The log has failed; this is the error that ended it.
        """
        if self._open is not None and self._open.is_full:
            self._append(self._open)
        if self.failure is not None:
            raise self.failure
        if self._open is None:
            self._open = self._sizes.begin(bytes_expected)
        if not self._is_scheduled:
            self._is_scheduled = True
            self.readers.schedule(self._call_flush)
        self._open.entries_max = self._sizes.entries_max(bytes_expected)
        return self._open

    def make_room(self, bytes_expected: int) -> OpenChunk:
        """Return a chunk with room after the kernel found the open one full."""
        chunk = self._open
        assert chunk is not None
        if chunk.entry_count < chunk.entries_max and chunk.grow():
            return chunk
        return self.begin_another(bytes_expected)

    def begin_another(self, bytes_expected: int) -> OpenChunk:
        """Append the open chunk, full or not, and return the next one."""
        assert self._open is not None
        self._append(self._open)
        return self.open_chunk(bytes_expected)

    def flush(self) -> None:
        """Append the open chunk if it has entries and no append is under way."""
        self._is_scheduled = False
        chunk = self._open
        if chunk is None:
            return
        if not chunk.entry_count:
            if not chunk.confirms:
                chunk.release()
                self._open = None
            return
        if not self._in_flight or chunk.is_full:
            self._append(chunk)

    def last_publishing_id(self, reference: bytes) -> int | None:
        """Return the last id taken from a named publisher, stored or on its way."""
        if self._open is not None and reference in self._open.sequences:
            return self._open.sequences[reference]
        for chunk in reversed(self._in_flight):
            if reference in chunk.sequences:
                return chunk.sequences[reference]
        return self.sequences.last(reference)

    def confirm_when_committed(self, sink: ConfirmSink, tokens: bytes) -> None:
        """Confirm duplicates, but only once everything accepted so far is committed."""
        if self._open is not None and self._open.entry_count:
            self._open.add_confirm(sink, tokens)
        elif self._in_flight:
            self._in_flight[-1].confirms.append((sink, tokens))
        else:
            sink.confirm(tokens)

    def _append(self, chunk: OpenChunk) -> None:
        self._open = None
        self._sizes.note(chunk.written, chunk.entry_count)
        self.send(chunk)

    def close_chunk(self) -> None:
        """Append the open chunk, so that all that was put lies before all that is sent next."""
        if self._open is not None and self._open.entry_count:
            self._append(self._open)

    def send(self, chunk: OpenChunk) -> None:
        """Append a chunk or a unit, at once or at the end of a hold."""
        if self._held is None:
            self._issue(chunk)
            return
        chunk.event_bytes = chunk.written
        self._in_flight.append(chunk)
        self.in_flight_bytes += chunk.event_bytes

    def _issue(self, chunk: OpenChunk) -> None:
        chunk_id = self._next_offset
        if chunk_id + chunk.record_count > _OFFSETS_END:
            self._drop(chunk)
            return
        now_ms = self._ports.clock_ms()
        self._timestamp_ms = max(self._timestamp_ms, now_ms)
        self._next_offset += chunk.record_count
        event = chunk.finish(chunk_id, self.epoch, self._timestamp_ms, self.seal_seed)
        if self.readers.is_followed and chunk.event_bytes < _ALONE_BYTES:
            chunk.keep()
        self._in_flight.append(chunk)
        self.in_flight_bytes += chunk.event_bytes
        self._writer.append(
            event, event_number(self._next_offset, self.epoch), done=self._call_appended
        )
        if type(event) is memoryview:
            event.release()
        chunk.release()

    def hold(self, unit: Unit, before: ConfirmSink) -> None:
        """Let every chunk from now on wait behind a unit, which gets its place, up to `go_on`.

        `before` is confirmed when all chunks before the unit are committed. Then the unit may be
        stored, and `appended` takes the outcome.
        """
        assert self._held is None, "one hold at a time"
        self.close_chunk()
        self.confirm_when_committed(before, b"")
        self._timestamp_ms = max(self._timestamp_ms, self._ports.clock_ms())
        unit.begin(self._next_offset, self._timestamp_ms, self._writer.event_number)
        self._held = unit
        self._in_flight.append(unit)

    def go_on(self, writer: Writer | None = None) -> None:
        """End a hold: append the chunks that waited; a unit that was not stored is given up.

        `writer`: The log's new session, if the one that it had is fenced.
        """
        unit, self._held = self._held, None
        self._writer = writer or self._writer
        waiting, self._in_flight = self._in_flight, []
        for chunk in waiting:
            self.in_flight_bytes -= chunk.event_bytes
            if self.failure is not None:
                lose_all(chunk.confirms)
                chunk.release()
            elif chunk is not unit:
                self._issue(chunk)
        if self.failure is None and unit is not None and unit in waiting:
            confirm_all(unit.confirms)
        self._look_on()

    def _drop(self, chunk: OpenChunk) -> None:
        """Drop a chunk, since no offsets are left; the log fails at the end of the turn."""
        self._next_offset = OFFSETS_END
        lose_all(chunk.confirms)
        chunk.release()
        self.readers.schedule(self._exhausted)

    def _exhausted(self) -> None:
        self.fail(SegmentFailed("the stream has no offsets left"))

    def take_snapshot(self) -> Snapshot:
        """Describe the log as it is committed now."""
        self._since_snapshot = 0
        return Snapshot(
            position=self.committed_length,
            next_offset=self.committed_next_offset,
            timestamp_ms=self._committed_timestamp_ms,
            # The last chunk of a log that was emptied is never asked for.
            last_chunk_id=max(self.last_chunk_id, 0),
            last_chunk_position=self.last_chunk_position,
            parts=self.sequences.pack(),
        )

    def final_snapshot(self) -> Snapshot | None:
        """Describe the log as committed, for a graceful stop; None if nothing is new."""
        if self.failure is not None or not self.is_idle:
            return None
        # A stored snapshot from before the start lacks publishers whose chunks were removed.
        is_new = self._since_snapshot or self.saved.snapshot_position < self.start
        return self.take_snapshot() if is_new else None

    def appended(self, outcome: Appended | StoreError) -> None:
        """Take the outcome of the oldest append under way: commit its chunks, or fail."""
        chunk = self._in_flight.pop(0)
        self.in_flight_bytes -= chunk.event_bytes
        if not isinstance(outcome, Appended) or self.failure is not None:
            if not isinstance(outcome, Appended):
                self.fail(outcome)
            lose_all(chunk.confirms)
            return
        if chunk.is_unit:
            assert isinstance(chunk, Unit)
            is_indexed = self._show_unit(chunk, outcome)
        else:
            is_indexed = self._show(chunk, outcome)
        if self._since_snapshot >= SNAPSHOT_BYTES:
            self._ports.save(self, self.take_snapshot())
        if is_indexed:
            self._ports.grown(self)
        confirm_all(chunk.confirms)
        readers = self.readers
        if readers.waiting:
            readers.committed(self.last_chunk_position, self.committed_length, chunk.fresh)
        else:
            readers.is_followed = False
        chunk.fresh = None
        self._look_on()

    def _look_on(self) -> None:
        """Go on with the open chunk, and with publishers, if there is room for them."""
        if not self._in_flight and self._open is not None and not self._is_scheduled:
            self._is_scheduled = True
            self.readers.schedule(self._call_flush)
        if self._drained and self.in_flight_bytes <= DRAINED_BYTES:
            self._tell_drained()

    def _show(self, chunk: OpenChunk, appended: Appended) -> bool:
        """Show a chunk to readers; return whether the index has an entry for it."""
        position, size, _ = appended
        is_indexed = self.index.offer(chunk.chunk_id, chunk.timestamp_ms, position)
        filters = chunk.packed_filters
        notes = self.saved.filter_notes
        if filters or notes.has_values:
            notes.note(position, size, chunk.chunk_id, filters)
        if self.last_chunk_id < 0:
            self.first_chunk_id = chunk.chunk_id
        self.last_chunk_id = chunk.chunk_id
        self.last_chunk_position = position
        self.committed_next_offset = chunk.chunk_id + chunk.record_count
        self.committed_length = position + size
        self._committed_timestamp_ms = chunk.timestamp_ms
        if chunk.sequences:
            for reference, publishing_id in chunk.sequences.items():
                self.sequences.record(reference, publishing_id)
        self._since_snapshot += max(size, SNAPSHOT_CHUNK_BYTES)
        return is_indexed

    def _show_unit(self, unit: Unit, appended: Appended) -> bool:
        """Show the chunks of a unit; return whether the index has an entry for one."""
        are_indexed = [self._show(unit, place) for place in unit.each(appended)]
        self.sequences.note_mark(unit.mark)
        self._next_offset = max(self._next_offset, self.committed_next_offset)
        return any(are_indexed)

    def truncated(self, position: int, offset: int) -> int:
        """Note that the oldest chunk left begins at `position` with `offset`.

        Returns:
            The number of index entries that were dropped.
        """
        self.first_chunk_id = offset
        if position >= self.committed_length:
            self.last_chunk_id = -1
        return self.index.drop_before(position)

    def _tell_drained(self) -> None:
        drained, self._drained = self._drained, []
        for callback in drained:
            callback()

    def fail(self, error: StoreError) -> None:
        """Fail, since the segment cannot be written or read: no client can go on."""
        if self.failure is not None:
            return
        self.failure = error
        if self._open is not None:
            lose_all(self._open.confirms)
            self._open.release()
            self._open = None
        self.readers.end()
        self._ports.failed(self, error)
        self._tell_drained()
        self._call_flush = self._call_appended = nothing
        self._ports = self._ports.over()  # no ring is left that would wait for the collector

    def now_ms(self) -> int:
        """Return the time that a new chunk would get."""
        return self._ports.clock_ms()

    def when_drained(self, callback: Callable[[], object]) -> None:
        """Call `callback` when little is on its way any more (or the log has failed)."""
        self._drained.append(callback)
