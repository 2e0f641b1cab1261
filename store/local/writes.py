# cython: language_level=3, annotation_typing=False, nonecheck=True
"""Appends: where the bytes go, their part in the journal, and the sessions of writers."""

from array import array
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from typing_extensions import Buffer
from xxhash import xxh3_64_intdigest

from store.api import APPEND_BYTES_MAX, RESEND_WINDOW, WRITERS_MAX, Appended, Done, Durability
from store.errors import (
    CorruptSegment,
    DiskFull,
    EventNumberTooLow,
    InvalidArgument,
    IsATable,
    LengthMismatch,
    NoSuchSegment,
    StoreError,
    WriterFenced,
)
from store.files import PASSING
from store.local.commit.changes import AppendChange, NoChange, sealed_error
from store.local.commit.records import APPEND_BYTES, DURABLE, HAS_WRITER, INLINE, NO_WRITER
from store.local.commit.rounds import Rounds
from store.local.kernel.journal_bytes import append_record
from store.local.state.catalogue import Catalogue
from store.local.state.data_file import ALLOCATE_STEP_MAX, DataFile, OpenFiles
from store.local.state.segment import Segment
from store.local.threads import Worker

EVENT_NUMBER_MAX: Final = 2**63 - 1
_FIRST_ROOM: Final = 8
_NEVER: Final = 2**63 - 1
"""No file becomes so long; the largest that a compiled position can be."""

# What the loop writes itself: into the page cache 1 MiB takes 0.1 to 0.3 ms.
LOOP_WRITE_BYTES_MAX: Final = 1024 * 1024

# Bound once: reading a member of an enum costs as much as the rest of the comparison.
_DISK: Final = Durability.DISK
_OS: Final = Durability.OS


@dataclass(frozen=True, slots=True)
class WriteSettings:
    """Settings that decide where bytes go.

    `inline_bytes_max`: new data of a segment in one round that is also put into the journal.
    """

    durability: Durability
    inline_bytes_max: int


class Staging:
    """Puts data into data files and into the round that gathers."""

    def __init__(
        self,
        rounds: Rounds,
        catalogue: Catalogue,
        open_files: OpenFiles,
        settings: WriteSettings,
        call_soon_threadsafe: Callable[..., object],
    ) -> None:
        self.rounds = rounds
        self.catalogue = catalogue
        self.durability = settings.durability
        self._open_files = open_files
        self._inline_bytes_max = settings.inline_bytes_max
        self._call_soon_threadsafe = call_soon_threadsafe
        self._allocator = Worker("allocate")
        # Bytes of data since the opening.
        self.written_bytes = 0
        # All room is kept for deletions; and the callback for more room, when that refuses data.
        self.is_short = False
        self.ask_for_room: Callable[[], object] = _do_nothing

    def stop_threads(self) -> None:
        """End the thread."""
        self._allocator.stop_threads()

    def append(
        self, change: AppendChange, data: Buffer, size: int, durability: Durability | None
    ) -> None:
        """Issue an append that was checked: write its data, number it, put it into the round.

        Raises:
            StoreError: The data could not be written; nothing has changed.
        """
        if self.is_short and size and not change.gives_space:
            self.ask_for_room()
            raise DiskFull("no space left but for deletions")
        segment = change.segment
        pending = segment.pending
        durability = durability or self.durability
        position = pending.length
        change.position = position
        change.size = size
        flags = DURABLE if durability is _DISK else 0
        file_number = data_hash = 0
        inline = False
        if size:
            file = self._write(change, data, size)
            file_number = file.number
            inline = self._place_in_round(segment, file, size, durability)
        elif durability is _DISK:
            self.make_durable(segment)
        writer = change.writer
        if writer is None:
            writer = NO_WRITER
        else:
            flags |= HAS_WRITER
            pending.attributes.append(writer, change.event_number)
        record_size = APPEND_BYTES
        if inline:
            flags |= INLINE
            record_size += size
        elif size:
            data_hash = xxh3_64_intdigest(data)
        record = append_record(
            record_size,
            flags,
            segment.number,
            file_number,
            position,
            size,
            data_hash,
            writer,
            change.event_number,
        )
        change.record = b"".join((record, data)) if inline else record
        pending.length = position + size
        self.written_bytes += size
        self.rounds.add(change, segment)

    def repeat(self, change: NoChange, durability: Durability | None) -> None:
        """Issue the acknowledgement of something that was issued before."""
        segment = change.segment
        durability = durability or self.durability
        if durability is _DISK:
            self.make_durable(segment)
        elif durability is not _OS:
            self.rounds.gathering.sync_soon(segment.bulk_files)
        self.rounds.add(change, segment)

    def make_durable(self, segment: Segment) -> None:
        """Let the round sync bytes of the segment that neither a sync nor the journal covers."""
        round_ = self.rounds.gathering
        round_.must_sync = True
        for file in segment.bulk_files:
            if file.writes != file.synced and not file.dead:
                round_.sync(file)

    def failed(self, segment: Segment, error: StoreError) -> None:
        """Note that the append that raised `error` was the last for the segment, if it was."""
        if not isinstance(error, PASSING):
            self.catalogue.file_failed(segment.pending.extents[-1][1], error)
        elif isinstance(error, DiskFull):
            self.catalogue.is_full = True

    def _write(self, change: AppendChange, data: Buffer, size: int) -> DataFile:
        pending = change.segment.pending
        position = pending.length
        file = None
        place = 0
        if pending.extents:
            base, file = pending.extents[-1]
            place = position - base
            if place + size > file.size_max and place > 0:
                file = None
        if file is None:
            place = 0
            file = self.catalogue.new_file(change.segment)
            change.extent = (position, file)
            pending.extents += (change.extent,)
        change.file = file
        change.place = place
        handle = file.handle
        if handle is None or size > LOOP_WRITE_BYTES_MAX:
            self._write_later(change, file, data)
        else:
            try:
                handle.write_at(data, place)
            except DiskFull:
                if not change.gives_space:
                    raise
                self._write_later(change, file, data)
            self._note_write(file)
            if place + size > file.allocate_at:
                self._allocate(file, place + size)
        self._open_files.touch(file)
        return file

    def _write_later(self, change: AppendChange, file: DataFile, data: Buffer) -> None:
        """Leave a write to the journal's thread, which may open, and wait for space."""
        change.late = bytes(data)
        self.rounds.gathering.pin(file)
        # Counted again when it is written: no sync before that covers it.
        self._note_write(file)

    def _note_write(self, file: DataFile) -> None:
        file.writes += 1
        self.catalogue.dirty.add(file)

    def _place_in_round(
        self, segment: Segment, file: DataFile, size: int, durability: Durability
    ) -> bool:
        """Return whether the journal gets the data itself; see to the sync of the file if not."""
        if durability is _OS:
            segment.note_bulk(file)
            return False
        round_ = self.rounds.gathering
        if segment.inline_round is not round_:
            segment.inline_round = round_
            segment.inline_bytes = 0
        segment.inline_bytes += size
        inline = segment.inline_bytes <= self._inline_bytes_max
        if durability is _DISK:
            self.make_durable(segment)
            if not inline:
                round_.sync(file)
        else:
            round_.sync_soon(() if inline else (file,))
            if not inline:
                segment.note_bulk(file)
        return inline

    def _allocate(self, file: DataFile, end: int) -> None:
        """Reserve space ahead of need: appends into reserved space cost a fifth of the CPU."""
        step = min(file.allocate_step, max(0, file.size_max - end))
        file.allocate_step = min(2 * file.allocate_step, ALLOCATE_STEP_MAX)
        file.allocate_at = end + step // 2 if step else _NEVER
        handle = file.handle
        if handle is None or not step or self.is_short:
            return
        file.pins += 1

        def allocate() -> None:
            try:
                handle.allocate(end, step)
            except StoreError:
                # The append that finds no space says so itself.
                file.allocate_at = _NEVER
            self._call_soon_threadsafe(self._open_files.unpin, file)

        self._allocator.submit(allocate)


class Stored:
    """The last appends of a session: event number, position and size of each.

    In arrays, and not in a dict of tuples, which would take 200 KiB for a session.
    """

    __slots__ = ("_count", "_numbers", "_positions", "_sizes", "room")

    def __init__(self) -> None:
        self._count = self.room = 0
        self._numbers = self._positions = self._sizes = array("q")

    def add(self, event_number: int, position: int, size: int) -> None:
        """Remember an append; its number is above all before."""
        if self._count == self.room:
            self._make_room()
        index = self._count
        self._numbers[index] = event_number
        self._positions[index] = position
        self._sizes[index] = size
        self._count = index + 1

    def _make_room(self) -> None:
        """Forget entries that are older than the window, or double the room."""
        kept = min(self._count, RESEND_WINDOW)
        room = min(max(2 * self.room, _FIRST_ROOM), 2 * RESEND_WINDOW)
        start = self._count - kept
        self._numbers = _moved(self._numbers, start, kept, room)
        self._positions = _moved(self._positions, start, kept, room)
        self._sizes = _moved(self._sizes, start, kept, room)
        self._count, self.room = kept, room

    def find(self, event_number: int) -> Appended | None:
        """Return an append that is one of the last RESEND_WINDOW."""
        numbers, count = self._numbers, self._count
        index = bisect_left(numbers, event_number, max(0, count - RESEND_WINDOW), count)
        if index == count or numbers[index] != event_number:
            return None
        return Appended(self._positions[index], self._sizes[index], event_number)


def _moved(column: Buffer, start: int, count: int, room: int) -> "array[int]":
    """Return an array of so much room that begins with `count` numbers of another."""
    numbers = bytes(memoryview(column)[start : start + count])
    return array("q", numbers + bytes(8 * (room - count)))


class LocalWriter:
    """A session of a writer on one segment."""

    __slots__ = (
        "_aborts",
        "_error",
        "_gives_space",
        "_id",
        "_segment",
        "_staging",
        "_stored",
        "event_number",
    )

    def __init__(
        self, staging: Staging, segment: Segment, writer: bytes, *, gives_space: bool
    ) -> None:
        self._staging = staging
        self._gives_space = gives_space
        self._segment = segment
        self._id = writer
        self.event_number = segment.pending.attributes.get(writer)
        self._aborts = segment.aborts
        # Why the session is dead.
        self._error: StoreError | None = None
        self._stored = Stored()

    @property
    def length(self) -> int:
        return self._segment.pending.length

    def append(
        self,
        data: Buffer,
        event_number: int,
        *,
        done: Done[Appended],
        expected_length: int | None = None,
        durability: Durability | None = None,
    ) -> None:
        segment = self._segment
        pending = segment.pending
        size = len(data) if type(data) is bytes else memoryview(data).nbytes
        if (
            segment.blocked
            or self._error is not None
            or segment.aborts != self._aborts
            or pending.attributes.get(self._id) != self.event_number
            or not self.event_number < event_number <= EVENT_NUMBER_MAX
            or event_number < 0
            or size > APPEND_BYTES_MAX
            or (expected_length is not None and expected_length != pending.length)
        ):
            self._do_not_append(size, event_number, done, durability)
            return
        staging = self._staging
        change = AppendChange(staging.catalogue, segment, self._id, event_number)
        change.done = done
        if self._gives_space:
            change.gives_space = True
        try:
            staging.append(change, data, size, durability)
        except StoreError as error:
            self._error = error
            staging.failed(segment, error)
            staging.rounds.after(segment, partial(done, error))
            return
        self.event_number = event_number
        self._stored.add(event_number, change.position, size)

    def _do_not_append(
        self,
        size: int,
        event_number: int,
        done: Done[Appended],
        durability: Durability | None,
    ) -> None:
        """Acknowledge a resend, or report the first reason, in the promised order."""
        segment = self._segment
        error = self._refusal(size, event_number)
        appended = self._stored.find(event_number) if error is None else None
        if appended is not None:
            change = NoChange(segment, lambda error: done(error or appended))
            self._staging.repeat(change, durability)
            return
        if error is None:
            if event_number <= self.event_number:
                error = EventNumberTooLow(
                    f"event number {event_number} is not above {self.event_number}"
                )
            else:
                length = segment.pending.length
                error = LengthMismatch(
                    f"segment {segment.name!r} is {length} bytes long, not as expected", length
                )
        refuse = partial(done, error)
        if segment.gone:
            # Results keep the order of the calls by name, and another may have the name by now.
            heir = self._staging.catalogue.names.get(segment.name)
            heirs = [] if heir is None else [heir]
            self._staging.rounds.after_all(refuse, [segment.name], heirs)
        else:
            self._staging.rounds.after(segment, refuse)

    def _refusal(self, size: int, event_number: int) -> StoreError | None:
        segment = self._segment
        error = self._staging.rounds.closed or blocked_error(segment) or self._lost()
        if error is not None:
            return error
        if segment.is_table:
            return IsATable(f"segment {segment.name!r} is a table")
        if segment.pending.attributes.get(self._id) != self.event_number:
            self._error = WriterFenced(
                f"another session has appended to segment {segment.name!r} as this writer, or so "
                f"many writers have that it is forgotten ({WRITERS_MAX})"
            )
            return self._error
        if not 0 <= event_number <= EVENT_NUMBER_MAX:
            return InvalidArgument(f"event number {event_number} is not in 0 … 2^63-1")
        if size > APPEND_BYTES_MAX:
            return InvalidArgument(f"append of {size} bytes is above {APPEND_BYTES_MAX}")
        return None

    def _lost(self) -> StoreError | None:
        """Return the reason why issued appends of the session may be lost."""
        if self._error is None and self._segment.aborts != self._aborts:
            self._error = self._segment.abort_error
        return self._error


def _do_nothing() -> None:
    pass


def blocked_error(segment: Segment) -> StoreError | None:
    """Return why a segment takes no appends, in the promised order."""
    if segment.gone:
        return NoSuchSegment(f"no segment {segment.name!r}")
    if segment.pending.sealed:
        return sealed_error(segment)
    if segment.corrupt:
        return corrupt_error(segment)
    return segment.failure


def corrupt_error(segment: Segment) -> CorruptSegment:
    """The error of a change to a damaged segment."""
    return CorruptSegment(f"segment {segment.name!r} is damaged and can only be read")
