# cython: language_level=3, annotation_typing=False, nonecheck=True
"""The journal: a ring of pre-zeroed files that take one frame per commit.

    journal/3   | frame 17 | frame 18 | frame 19 | old bytes ...      used, until a checkpoint
    journal/5   | frame 20 | frame 21 | zeros or frames of a former life ...    current
    journal/4   | frames of a former life ...                                   spare

A frame lies in one file. Where the next frame does not fit, a spare file becomes the current one;
recovery finds it because its first frame has the next sequence. A used file becomes a spare once a
checkpoint covers it. `append` has one caller at a time (the loop while no round is on its way, else
the journal's thread); `sync` may be called by anybody.
"""

import contextlib
import itertools
import logging
import threading
import time
from collections import deque
from typing import Final, NamedTuple

from store.errors import DiskFull, StoreClosed, StoreError
from store.local.files import File, Files
from store.local.records import FRAME_HEAD_BYTES, frame_of
from store.local.reserve import Reserve

log = logging.getLogger(__name__)

JOURNAL_DIRECTORY: Final = "journal"

# A frame is held in memory a few times while it is written and read: a round with more is several.
FRAME_BYTES_MAX: Final = 1024 * 1024

# The end of the current file that is kept while there is no other file, so that there is room to
# say what is deleted when the disk is full: 1,300 deletions in a file of 1 MiB.
RESERVE_PART: Final = 16

# After a spare file that could not be made: the disk is full, and a try takes what is left of it.
SPARE_AGAIN_S: Final = 5.0
_SAY_AGAIN_S: Final = 60.0

# Of the usual size: a file that is made on a full disk to say what is deleted.
SMALL_PART: Final = 16

# Written in small pieces: the pages of one write make one unit of the page cache, and some file
# systems go through the whole unit at every small write into it.
_ZEROS: Final = bytes(16 * 1024)


class JournalPlace(NamedTuple):
    """Where a frame is or will be."""

    sequence: int
    file: int
    position: int


class JournalFile(NamedTuple):
    """One file of the ring."""

    number: int
    file: File
    size: int


class Tail(NamedTuple):
    """The end of a journal that is to be gone on with.

    Attributes:
        files: The numbers of the files that hold the frames, in their order.
        end: Where the next frame goes; its file is the last of `files`, if there are any.
        salt: Seed of the frames' checksums.
    """

    files: tuple[int, ...]
    end: JournalPlace
    salt: int


def path_of(number: int) -> str:
    """Give the path of a journal file."""
    return f"{JOURNAL_DIRECTORY}/{number}"


class Journal:
    """The journal of an open store."""

    def __init__(
        self,
        files: Files,
        *,
        sequence: int,
        salt: int,
        file_bytes: int,
        spare_count_max: int,
        tail: Tail | None = None,
        reserve: Reserve | None = None,
    ) -> None:
        """Take over the ring as recovery left it: nothing in it is needed any more.

        Args:
            files: The data directory.
            sequence: The next frame's; must be above all that the ring ever held.
            salt: Seed of the frames' checksums.
            file_bytes: Size of new files.
            spare_count_max: More spare files than these are removed.
            tail: Instead, the frames up to here are still needed, and the next one goes behind
                them: `sequence` and `salt` are its. Other files than its are removed.
            reserve: Room for what deletes on a full disk, and for an opening there.
        """
        self._files = files
        self._reserve = reserve
        self._file_bytes = file_bytes
        self._spare_count_max = spare_count_max
        self._used: deque[JournalFile] = deque()
        self._spares: deque[JournalFile] = deque()
        self._dirty: set[File] = set()
        self._sync_lock = threading.Lock()
        self._preparing = False
        # When the next spare file is tried, after one that could not be made, and when that is said
        # again; and how many since it was.
        self._prepare_at = self._say_at = 0.0
        self._unsaid = 0
        self.failure: StoreClosed | None = None
        self.sequence = sequence
        self.salt = salt
        # Bytes of all frames since the opening.
        self.written_bytes = 0
        self._position = 0
        numbers = sorted(int(name) for name in files.names(JOURNAL_DIRECTORY))
        self._numbers = itertools.count(max(numbers, default=0) + 1)
        if tail is not None:
            self._current = self._go_on(numbers, tail)
            files.sync_directory(JOURNAL_DIRECTORY)
            return
        for number in numbers:
            self._take_over(number)
        # A process that died may have made them without syncing their names.
        files.sync_directory(JOURNAL_DIRECTORY)
        self.trim()
        self._current = self._spare_for(FRAME_HEAD_BYTES, may_be_small=True)

    def place(self) -> JournalPlace:
        """Tell where the next frame goes (or, if it does not fit, the start of another file)."""
        return JournalPlace(self.sequence, self._current.number, self._position)

    def fits(self, size: int) -> bool:
        """Tell whether records of `size` bytes can be written without making a file."""
        size += FRAME_HEAD_BYTES * (2 + size // FRAME_BYTES_MAX)
        if self._position + size <= self._current.size - self._current.size // RESERVE_PART:
            return True
        return size <= FRAME_BYTES_MAX and self._has_spare(size)

    def _has_spare(self, size: int) -> bool:
        return any(spare.size >= size for spare in tuple(self._spares))

    def append(self, records: list[bytes], at_ms: int, *, gives_space: bool = False) -> None:
        """Write one frame.

        Args:
            records: Its changes.
            at_ms: When they were made.
            gives_space: They delete or truncate: on a full disk they may use the reserve.

        Raises:
            DiskFull: No space; nothing was written that counts, and it may be tried again.
            StoreClosed: The write failed; the journal is dead.
        """
        if self.failure is not None:
            raise self.failure
        frame = frame_of(self.sequence, at_ms, records, self.salt)
        size = len(frame)
        reserve = 0 if gives_space or self._spares else self._current.size // RESERVE_PART
        if self._position + size > self._current.size - reserve:
            current = self._spare_for(size, may_be_small=gives_space)
            self._used.append(self._current)
            self._current = current
            self._position = 0
        file = self._current.file
        try:
            self._write(file, frame, gives_space=gives_space)
        except DiskFull:
            raise
        except StoreError as error:
            # It is unknown how much of the frame would be found again.
            raise self._fail(error) from error
        # After the write, so that a sync that finds the file in the set covers it.
        self._dirty.add(file)
        self._position += size
        self.sequence += 1
        self.written_bytes += size

    def _write(self, file: File, frame: bytes, *, gives_space: bool) -> None:
        """Write a frame. Space is there, but some file systems find it anew for every write."""
        while True:
            try:
                file.write_at(frame, self._position)
            except DiskFull:
                self._take_back(file, frame)
                if not gives_space or self._reserve is None or not self._reserve.give_up():
                    raise
            else:
                return

    def _take_back(self, file: File, frame: bytes) -> None:
        """See to it that a frame that was written in part is never found: another has its place.

        The rest of it may be what was there before, and after a power cut also what comes next.
        """
        head = frame[:FRAME_HEAD_BYTES]
        if file.read_at(len(head), self._position) != head:
            return
        try:
            file.write_at(bytes(len(head)), self._position)
        except DiskFull as error:
            if file.read_at(len(frame), self._position) == frame:
                raise self._fail(error) from error
            return
        self._dirty.add(file)
        self.sync()

    def sync(self) -> None:
        """Make every frame written so far durable.

        Raises:
            StoreClosed: A sync failed, now or before; the journal is dead.
        """
        with self._sync_lock:
            if self.failure is not None:
                raise self.failure
            files = list(self._dirty)
            self._dirty.difference_update(files)
            try:
                for file in files:
                    file.sync()
            except StoreError as error:
                raise self._fail(error) from error

    def sync_the_rest(self) -> None:
        """Sync, after a failure, what can be synced: it was promised to be on the disk soon."""
        with self._sync_lock:
            for each in (*self._used, self._current):
                with contextlib.suppress(StoreError):
                    each.file.sync()

    def begin_sync(self) -> int | None:
        """Begin what `sync` does, for somebody who syncs the descriptor and calls `end_sync`.

        Returns:
            The descriptor; None if that is not all: then `sync` must do it.
        """
        if self.failure is not None or len(self._dirty) != 1:
            return None
        if not self._sync_lock.acquire(blocking=False):
            return None
        (file,) = self._dirty
        self._dirty.clear()
        return file.fileno

    def end_sync(self, error: StoreError | None) -> None:
        """End what `begin_sync` began, with what failed: then the journal is dead.

        Raises:
            StoreClosed: It failed.
        """
        try:
            if error is not None:
                raise self._fail(error)
        finally:
            self._sync_lock.release()

    def claim_spare(self) -> bool:
        """Tell whether a spare file should be made now: no other is ready and half is written.

        Who is told so calls `prepare_spare`.
        """
        if self._spares or self._preparing or self._position * 2 < self._current.size:
            return False
        if self._prepare_at and time.monotonic() < self._prepare_at:
            return False
        self._preparing = True
        return True

    def prepare_spare(self) -> None:
        """Make a spare file, ahead of need and on another thread."""
        try:
            self._spares.append(self._make(self._file_bytes))
            self._prepare_at = self._say_at = 0.0
        except StoreError as error:
            # The round that finds no space says so itself.
            self._no_spare(error)
        finally:
            self._preparing = False

    def _no_spare(self, error: StoreError) -> None:
        now = time.monotonic()
        self._prepare_at = now + SPARE_AGAIN_S
        self._unsaid += 1
        if now >= self._say_at:
            log.warning("no spare journal file tries=%d error=%s", self._unsaid, error)
            self._say_at = now + _SAY_AGAIN_S
            self._unsaid = 0

    def release_before(self, place: JournalPlace) -> None:
        """Make spares of the files that only hold frames before `place`.

        A durable checkpoint contains these frames, and recovery begins behind them: nobody needs
        them on the disk any more, so a sync that they still waited for is given up.
        """
        while self._used and self._used[0].number != place.file:
            released = self._used.popleft()
            # Before it is a spare: a frame that is written into it from then on is to be synced.
            self._dirty.discard(released.file)
            self._spares.append(released)

    def trim(self) -> None:
        """Remove surplus spare files. Not on the loop's thread."""
        while len(self._spares) > self._spare_count_max:
            surplus = self._spares.pop()
            # A sync that began before the file was released may come to it yet.
            with self._sync_lock:
                surplus.file.close()
            self._files.remove(path_of(surplus.number))

    def close(self) -> None:
        """Close the files."""
        for journal_file in (*self._used, *self._spares, self._current):
            journal_file.file.close()

    def _take_over(self, number: int) -> None:
        file = self._files.open(path_of(number))
        size = file.size()
        if size >= self._file_bytes:
            self._spares.append(JournalFile(number, file, size))
        else:
            # Not finished, or made with another setting.
            file.close()
            self._files.remove(path_of(number))

    def _go_on(self, numbers: list[int], tail: Tail) -> JournalFile:
        """Keep the files of a tail and give the last: the next frame goes behind its last one."""
        kept = tail.files
        self._position = tail.end.position
        if not kept:
            if not numbers:
                return self._make_what_fits(FRAME_HEAD_BYTES)
            # There is no frame yet; the first is found by its sequence, at the start of any file.
            # The largest: another may be one that was not finished.
            kept, self._position = (max(numbers, key=self._size_of),), 0
        for number in kept:
            file = self._files.open(path_of(number))
            self._used.append(JournalFile(number, file, file.size()))
        current = self._used.pop()
        _clear(current, self._position)
        for number in numbers:
            if number not in kept:
                self._files.remove(path_of(number))
        return current

    def _size_of(self, number: int) -> int:
        file = self._files.open(path_of(number))
        try:
            return file.size()
        finally:
            file.close()

    def _spare_for(self, size: int, *, may_be_small: bool) -> JournalFile:
        for spare in tuple(self._spares):
            if spare.size >= size:
                # Only trimming takes spares away at the same time.
                with contextlib.suppress(ValueError):
                    self._spares.remove(spare)
                    return spare
        if may_be_small:
            return self._make_what_fits(size)
        return self._make(max(size, self._file_bytes))

    def _make_what_fits(self, size: int) -> JournalFile:
        """Make a file of `size` or more; on a full disk a small one, at the cost of the reserve."""
        try:
            return self._make(max(size, self._file_bytes))
        except DiskFull:
            if self._reserve is not None:
                self._reserve.give_up()
            return self._make(max(size, self._file_bytes // SMALL_PART))

    def _make(self, size: int) -> JournalFile:
        number = next(self._numbers)
        path = path_of(number)
        file = self._files.open(path, create=True)
        try:
            # Zeros, and not only allocated: a sync of a frame then moves no metadata.
            for position in range(0, size, len(_ZEROS)):
                file.write_at(_ZEROS[: size - position], position)
            file.sync()
            self._files.sync_directory(JOURNAL_DIRECTORY)
        except StoreError:
            file.close()
            self._files.remove(path)
            raise
        return JournalFile(number, file, size)

    def _fail(self, error: StoreError) -> StoreClosed:
        if self.failure is None:
            log.critical("journal failed, the store stops error=%s", error)
            self.failure = StoreClosed(f"the store has stopped because its journal failed: {error}")
        return self.failure


def _clear(journal_file: JournalFile, position: int) -> None:
    """Write zeros from a position on: frames behind a lost one must not join those to come."""
    file = journal_file.file
    for at in range(position, journal_file.size, len(_ZEROS)):
        size = min(len(_ZEROS), journal_file.size - at)
        # Not where there are zeros already: some file systems take new space for every write.
        if any(file.read_at(size, at)):
            file.write_at(_ZEROS[:size], at)
    file.sync()
