# cython: language_level=3, annotation_typing=False, nonecheck=True
"""Reading: places of bytes, readers, waiting reads, and the threads that may wait for a disk."""

import logging
from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

from store.api import (
    APPEND_BYTES_MAX,
    READ_BYTES_MAX,
    Done,
    FileRegion,
    ReadResult,
)
from store.errors import (
    CorruptSegment,
    NoSuchSegment,
    PositionOutOfRange,
    SegmentSealed,
    SegmentTruncated,
    StoreClosed,
    StoreError,
)
from store.local.state.checked import Checked
from store.local.state.data_file import DataFile, OpenFiles
from store.local.state.segment import Place, Segment
from store.local.threads import Worker

log = logging.getLogger(__name__)

T = TypeVar("T")

# Data that is in memory is checked by a thread of its own, so that a cold reader delays no hot one.
COLD_THREADS: Final = 2

# A reader that wants so much at once goes on with what follows.
AHEAD_FROM: Final = 1024 * 1024

# Distance of the pages that are probed to guess whether a run of bytes is in memory.
PROBE_STEP: Final = 256 * 1024


class Reading:
    """State that readers share."""

    def __init__(
        self,
        open_files: OpenFiles,
        call_soon: Callable[..., object],
        call_soon_threadsafe: Callable[..., object],
    ) -> None:
        self.call_soon = call_soon
        self._open_files = open_files
        self._call_soon_threadsafe = call_soon_threadsafe
        self._hot = Worker("read-hot")
        self._cold = Worker("read-cold", COLD_THREADS)
        self._checked = Checked()
        # Files that were found too short, which is said once.
        self._short: set[DataFile] = set()
        # Why nothing is answered any more.
        self.closed: StoreClosed | None = None

    def stop_threads(self) -> None:
        """Finish the reads under way and end the threads."""
        self._hot.stop_threads()
        self._cold.stop_threads()

    def cached(self, place: Place) -> bytes | None:
        """Read a place if that needs no disk."""
        handle = self._open_files.open(place.file)
        self._open_files.touch(place.file)
        data = handle.read_cached_at(place.size, place.position)
        return self._checked.find(place) if data is None else data

    def is_cached(self, place: Place) -> bool:
        """Guess whether all of a place is in memory, from a few of its pages."""
        handle = self._open_files.open(place.file)
        last = place.position + place.size - 1
        for position in (*range(place.position, last, PROBE_STEP), last):
            if handle.read_cached_at(1, position) is None:
                return False
        return True

    def region(self, place: Place) -> FileRegion:
        """Hold a place in its open file."""
        file = place.file
        handle = self._open_files.open(file)
        self._open_files.touch(file)
        self._open_files.begin_read(file, place.position)
        release = partial(self._open_files.end_read, file, place.position)
        self._open_files.trim()
        return FileRegion(handle.fileno, place.position, place.size, release)

    def load(
        self,
        places: list[Place],
        look: Callable[[memoryview], T],
        done: Done[T],
        *,
        hot: bool,
        fills: bool = False,
        keeps: bool = False,
    ) -> None:
        """Read places on a thread, hand their bytes to `look` there, and report its result.

        `look` must not keep the view: its buffer is used again.

        `keeps`: `cached` gives the bytes then, whatever the system keeps in memory. What was in
        memory is left to the system.
        """
        for place in places:
            self._open_files.begin_read(place.file, place.position)
            self._open_files.touch(place.file)

        def job() -> None:
            try:
                data = self._checked.room(sum(place.size for place in places))
                was_in_memory = self._read_into(data, places, hot=hot, fills=fills)
                result: T | StoreError = look(data.toreadonly())
                if keeps and not was_in_memory:
                    self._checked.keep(places, data)
                else:
                    self._checked.give_back(data)
            except StoreError as error:
                result = error
            except Exception as error:  # noqa: BLE001 (raised again on the loop: a caller's bug)
                self._call_soon_threadsafe(self._loaded_badly, places, error)
                return
            self._call_soon_threadsafe(self._loaded, places, done, result)

        (self._hot if hot else self._cold).submit(job)

    def _read_into(self, data: memoryview, places: list[Place], *, hot: bool, fills: bool) -> bool:
        """Read places into a buffer; tell whether all of them were in memory."""
        begin, was_in_memory = 0, hot
        for file, position, size in places:
            handle, part = self._open_files.open(file), data[begin : begin + size]
            got = handle.read_into(part, position, waits=False) if hot else 0
            if got < size:
                was_in_memory = False
                if size >= AHEAD_FROM:
                    # All at once, and what follows while this is looked at.
                    handle.will_read(2 * size, position)
                got += handle.read_into(part[got:], position + got)
            if got != size and fills:
                if file not in self._short:
                    self._short.add(file)
                    log.error("data file is too short file=%d position=%d", file.number, position)
                part[got:] = bytes(size - got)
            elif got != size:
                raise CorruptSegment(f"data file {file.number} ends before byte {position + size}")
            begin += size
        return was_in_memory

    def _loaded(self, places: list[Place], done: Done[T], result: T | StoreError) -> None:
        self._end(places)
        done(result)

    def _loaded_badly(self, places: list[Place], error: Exception) -> None:
        self._end(places)
        raise error

    def _end(self, places: list[Place]) -> None:
        for place in places:
            self._open_files.end_read(place.file, place.position)
        self._open_files.trim()


class LocalReader:
    """Reads one segment."""

    __slots__ = ("_reading", "_segment")

    def __init__(self, reading: Reading, segment: Segment) -> None:
        self._reading = reading
        self._segment = segment

    @property
    def start(self) -> int:
        return self._segment.committed.start

    @property
    def length(self) -> int:
        return self._segment.committed.length

    def read_cached(self, position: int, size: int) -> bytes | None:
        segment = self._segment
        state = segment.committed
        if segment.dead or position < state.start:
            return None
        if position >= state.length:
            return b""
        return self._reading.cached(state.place_of(position, min(size, READ_BYTES_MAX)))

    def region(self, position: int, size: int) -> FileRegion | None:
        segment = self._segment
        state = segment.committed
        if segment.dead or not state.start <= position < state.length:
            return None
        return self._reading.region(state.place_of(position, size))

    def is_cached(self, position: int, size: int) -> bool:
        segment = self._segment
        if segment.dead or position < segment.committed.start:
            return False
        return all(map(self._reading.is_cached, places_of(segment, position, size)))

    def check(
        self,
        position: int,
        size: int,
        look: Callable[[memoryview], T],
        *,
        done: Done[T],
        fills: bool = False,
    ) -> None:
        reading = self._reading
        error: StoreError | None = reading.closed or reading_error(self._segment, position)
        if error is not None:
            reading.call_soon(done, error)
            return
        places = places_of(self._segment, position, min(size, APPEND_BYTES_MAX))
        try:
            hot = all(map(reading.is_cached, places))
        except StoreError as failure:
            reading.call_soon(done, failure)
            return
        reading.load(places, look, done, hot=hot, fills=fills, keeps=True)


class PendingRead:
    """One call of `read`, which may wait."""

    __slots__ = (
        "_done",
        "_finished",
        "_has_waited",
        "_loading",
        "_position",
        "_reading",
        "_segment",
        "_size",
        "_wait",
    )

    def __init__(
        self,
        reading: Reading,
        segment: Segment,
        position: int,
        size: int,
        done: Done[ReadResult],
        *,
        wait: bool,
    ) -> None:
        self._reading = reading
        self._segment = segment
        self._position = position
        self._size = max(1, min(size, READ_BYTES_MAX))
        self._done = done
        self._wait = wait
        self._finished = False
        self._has_waited = False
        # A thread reads the bytes: waiting is over, but the read can still be cancelled.
        self._loading = False

    def cancel(self) -> None:
        """Cancel it; `done` is then not called."""
        is_waiting = self._has_waited and not (self._finished or self._loading)
        self._finished = True
        self._done = _nothing  # a segment may keep this for long, and the caller with it
        if is_waiting and self._segment.waiters is not None:
            self._segment.waiters.give_up()

    @property
    def is_finished(self) -> bool:
        return self._finished

    def begin(self) -> None:
        """Answer, or wait."""
        state = self._segment.committed
        if state.sealed and self._position > state.length and not self._segment.dead:
            self._finish(PositionOutOfRange(_outside(self._segment, self._position)))
        elif not self.attempt():
            self._has_waited = True
            self._segment.wait(self._position, self)

    def attempt(self) -> bool:
        if self._finished:
            return True
        segment, position = self._segment, self._position
        state = segment.committed
        error = self._reading.closed or reading_error(segment, position)
        if error is not None:
            self._finish(error)
        elif position < state.length:
            self._read()
        elif not state.sealed:
            if not self._wait:
                self._finish(ReadResult(position, b"", end_of_segment=False, at_tail=True))
        elif position == state.length:
            self._finish(ReadResult(position, b"", end_of_segment=True, at_tail=True))
        else:
            self._finish(SegmentSealed(f"segment {segment.name!r} was sealed before {position}"))
        if self._loading:
            return True
        return self._finished

    def _read(self) -> None:
        place = self._segment.committed.place_of(self._position, self._size)
        try:
            data = self._reading.cached(place)
        except StoreError as error:
            self._finish(error)
            return
        if data:
            self._deliver(data)
            return
        self._loading = True
        self._reading.load([place], bytes, self._loaded, hot=False)

    def _loaded(self, data: bytes | StoreError) -> None:
        if self._finished:
            return
        if isinstance(data, bytes):
            self._deliver(data)
        else:
            self._finish(data)

    def _deliver(self, data: bytes) -> None:
        state = self._segment.committed
        at_tail = self._position + len(data) == state.length
        self._finish(ReadResult(self._position, data, at_tail and state.sealed, at_tail))

    def _finish(self, result: ReadResult | StoreError) -> None:
        if not self._finished:
            self._finished = True
            self._done(result)


def _nothing(_outcome: object) -> None:
    pass


def places_of(segment: Segment, position: int, size: int) -> list[Place]:
    """Return the places of committed bytes from `position` ≥ start on."""
    state = segment.committed
    places = []
    end = min(position + size, state.length)
    while position < end:
        place = state.place_of(position, end - position)
        places.append(place)
        position += place.size
    return places


def reading_error(segment: Segment, position: int) -> StoreError | None:
    """Return why nothing can be read at a position, now or later."""
    if segment.dead:
        return NoSuchSegment(f"no segment {segment.name!r}")
    if position < 0:
        return PositionOutOfRange(_outside(segment, position))
    start = segment.committed.start
    if position < start:
        return SegmentTruncated(f"segment {segment.name!r} begins at {start}", start)
    return None


def _outside(segment: Segment, position: int) -> str:
    return f"position {position} can never be read in segment {segment.name!r}"
