# cython: language_level=3, annotation_typing=False, nonecheck=True
"""The journal: a ring of pre-zeroed files that take one frame per commit.

    journal/3   | head | frame 17 | 18 | link to 5 | old bytes ...      used, until a checkpoint
    journal/5   | head | frame 20 | frame 21 | zeros or frames of a former life ...      current
    journal/4   | head | frames of a former life ...                                     spare

A frame lies in one file. Where the next frame does not fit, a spare file becomes the current one; a
link, for which there is always room, is the last frame before it. A used file becomes a spare once
a checkpoint covers it. `append` has one caller at a time (the loop while no round is on its way,
else the journal's thread); any thread may call `sync`.

Each frame says which frames were durable when it was written. A sync notes what it made durable
when it has succeeded, on whichever thread; `append` reads that without a lock, so it may come by an
older number, and never by one that is not true yet.
"""

import contextlib
import logging
import threading
from collections import deque
from collections.abc import Collection
from typing import Final, NamedTuple

from store.errors import DiskFull, StoreClosed, StoreError
from store.files import File, Files
from store.local.commit.journal_files import (
    JOURNAL_DIRECTORY,
    ZEROS,
    JournalFile,
    SpareFiles,
    numbers_in,
    path_of,
)
from store.local.commit.records import (
    FILE_HEAD_BYTES,
    FRAME_HEAD_BYTES,
    LINK_FRAME_BYTES,
    frame_of,
    link_record,
)

log = logging.getLogger(__name__)

# Frames are held in memory a few times while written and read: a larger round is split.
FRAME_BYTES_MAX: Final = 1024 * 1024

# The end of the current file, kept for deletions while there is no other file. With a full disk a
# file of 1 MiB then has room for 1,300 deletions.
RESERVE_PART: Final = 16

# Numbers of C when it is compiled.
_FRAME_HEAD_BYTES: Final = FRAME_HEAD_BYTES
_FRAME_BYTES_MAX: Final = FRAME_BYTES_MAX


class JournalPlace(NamedTuple):
    """Place of a frame, present or future."""

    sequence: int
    file: int
    position: int


class Tail(NamedTuple):
    """The end of a journal that this opening continues.

    Attributes:
        files: The numbers of the files that hold the frames, in their order.
        end: Where the next frame goes; its file is the last of `files`.
        salt: Seed of the frames' checksums.
    """

    files: tuple[int, ...]
    end: JournalPlace
    salt: int


class Journal:
    """The journal of an open store."""

    def __init__(
        self,
        files: Files,
        spares: SpareFiles,
        *,
        sequence: int,
        salt: int,
        kept: Collection[int] = (),
        tail: Tail | None = None,
        may_be_small: bool = False,
    ) -> None:
        """Continue the ring as recovery left it.

        Args:
            files: The data directory.
            spares: Gets the files that are not needed.
            sequence: The next frame's; must be above all that the ring ever held.
            salt: Seed of the frames' checksums.
            kept: Numbers of the files that stay as they are until `release_kept`.
            tail: See `going_on`.
            may_be_small: The first file may be small where there is no space for a whole one.

        Raises:
            DiskFull: There is no space for the first file.
        """
        self._files = files
        self._spares = spares
        self._used: deque[JournalFile] = deque()
        self._dirty: set[File] = set()
        self._sync_lock = threading.Lock()
        self.failure: StoreClosed | None = None
        self.sequence = sequence
        self.salt = salt
        self.store_id = spares.store_id
        # All frames with a sequence below it are durable.
        self._synced = sequence
        # What it will be if the sync that was begun succeeds.
        self._syncing = sequence
        # Bytes of all frames since the opening.
        self.written_bytes = 0
        self._kept = kept
        numbers = numbers_in(files)
        if tail is not None:
            self._go_on(numbers, tail)
            files.sync_directory(JOURNAL_DIRECTORY)
            return
        spares.take_over([number for number in numbers if number not in kept])
        # A process that died may have made them without syncing their names.
        files.sync_directory(JOURNAL_DIRECTORY)
        self.trim()
        self._begin(spares.take(FRAME_HEAD_BYTES, may_be_small=may_be_small))

    @classmethod
    def going_on(cls, files: Files, spares: SpareFiles, tail: Tail) -> "Journal":
        """Go on behind the frames of a tail, which are still needed. Other files are removed."""
        return cls(files, spares, sequence=tail.end.sequence, salt=tail.salt, tail=tail)

    def place(self) -> JournalPlace:
        """Return where the next frame goes (or, if it does not fit, a link to another file)."""
        return JournalPlace(self.sequence, self._current.number, self._position)

    @property
    def file_size(self) -> int:
        """Bytes of the file of `place`."""
        return self._current.size

    def fits(self, size: int) -> bool:
        """Return whether records of `size` bytes can be written without making a file."""
        size += _FRAME_HEAD_BYTES * (2 + size // _FRAME_BYTES_MAX)
        if self._position + size <= self._reserved_from:
            return True
        return size <= _FRAME_BYTES_MAX and self._spares.has_room_for(size)

    def append(
        self,
        records: list[bytes],
        at_ms: int,
        gives_space: bool = False,  # noqa: FBT001, FBT002 (a function in C)
    ) -> None:
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
        frame = frame_of(self.sequence, at_ms, self._synced, records, self.salt)
        end = self._position + len(frame)
        if end > self._reserved_from and (
            end > self._end or not (gives_space or self._spares.ready)
        ):
            self._roll(len(frame), at_ms, gives_space=gives_space)
            frame = frame_of(self.sequence, at_ms, self._synced, records, self.salt)
        self._put(frame, gives_space)

    def _put(self, frame: bytes, gives_space: bool) -> None:  # noqa: FBT001 (a function in C)
        file = self._current.file
        try:
            file.write_at(frame, self._position)
        except DiskFull:
            # Space was there, but some file systems find it anew for every write.
            self._take_back(file, frame)
            reserve = self._spares.reserve
            if not gives_space or reserve is None or not reserve.give_up():
                raise
            self._put(frame, gives_space)
            return
        except StoreError as error:
            # It is unknown how much of the frame would be found again.
            raise self._fail(error) from error
        # After the write, so that a sync that finds the file in the set covers it; and before the
        # sequence, so that a sync that finds that one covers the frame.
        self._dirty.add(file)
        self._position += len(frame)
        self.sequence += 1
        self.written_bytes += len(frame)

    def _roll(self, size: int, at_ms: int, *, gives_space: bool) -> None:
        """Go on in another file, into which a frame of `size` bytes fits."""
        following = self._spares.take(size, may_be_small=gives_space)
        record = link_record(following.number, following.size)
        link = frame_of(self.sequence, at_ms, self._synced, [record], self.salt)
        try:
            self._put(link, gives_space)
        except DiskFull:
            self._spares.ready.appendleft(following)
            raise
        self._used.append(self._current)
        self._begin(following)

    def _begin(self, file: JournalFile, position: int = FILE_HEAD_BYTES) -> None:
        self._current = file
        self._position = position
        # Behind it there is only room for a link.
        self._end = file.size - LINK_FRAME_BYTES
        # And from here on only for what deletes, while there is no other file.
        self._reserved_from = self._end - file.size // RESERVE_PART

    def _take_back(self, file: File, frame: bytes) -> None:
        """Make sure that a partly written frame is never found: another one takes its place.

        The rest of it may be what was there before, and after a power cut also what comes next.
        """
        head = frame[:FRAME_HEAD_BYTES]
        try:
            if file.read_at(len(head), self._position) != head:
                return
            try:
                file.write_at(bytes(len(head)), self._position)
            except DiskFull:
                if file.read_at(len(frame), self._position) == frame:
                    raise
        except StoreError as error:
            raise self._fail(error) from error
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
            # Before the set: the files of all these frames are in it, or were synced.
            self._syncing = self.sequence
            files = list(self._dirty)
            self._dirty.difference_update(files)
            try:
                for file in files:
                    file.sync()
            except StoreError as error:
                raise self._fail(error) from error
            self._synced = self._syncing

    def sync_before(self, place: JournalPlace) -> None:
        """Make every frame before a place durable. Raises what `sync` raises."""
        if self._synced < place.sequence:
            self.sync()

    def sync_the_rest(self) -> None:
        """Sync all that can be synced, after a failure: the data was promised to be on disk."""
        with self._sync_lock:
            for each in (*self._used, self._current):
                with contextlib.suppress(StoreError):
                    each.file.sync()

    def begin_sync(self) -> int | None:
        """Begin a sync, for a caller that syncs the descriptor and calls `end_sync`.

        Returns:
            The descriptor; None if that is not all: then `sync` must do it.
        """
        if self.failure is not None or len(self._dirty) != 1:
            return None
        if not self._sync_lock.acquire(blocking=False):
            return None
        self._syncing = self.sequence
        (file,) = self._dirty
        self._dirty.clear()
        return file.fileno

    def end_sync(self, error: StoreError | None) -> None:
        """End the sync of `begin_sync`, with its error: then the journal is dead.

        Raises:
            StoreClosed: It failed.
        """
        try:
            if error is not None:
                raise self._fail(error)
            self._synced = self._syncing
        finally:
            self._sync_lock.release()

    def claim_spare(self) -> bool:
        """Return whether a spare file should be made now: no other is ready and half is written.

        The caller then calls `prepare_spare`.
        """
        return self._position * 2 >= self._current.size and self._spares.claim()

    def prepare_spare(self) -> None:
        """Make a spare file, ahead of need and on another thread."""
        self._spares.prepare()

    def release_kept(self) -> None:
        """Make spares of the files that recovery needed: a durable checkpoint is in their place."""
        there = set(numbers_in(self._files))
        self._spares.take_over([number for number in self._kept if number in there])
        self._kept = ()
        self.trim()

    def release_before(self, place: JournalPlace) -> None:
        """Make spares of the files that only hold frames before `place`.

        A durable checkpoint contains these frames, and recovery begins behind them. So they are
        not needed on the disk any more, and a pending sync of them is dropped.
        """
        while self._used and self._used[0].number != place.file:
            released = self._used.popleft()
            # Before it is a spare: a frame that is written into it from then on is to be synced.
            self._dirty.discard(released.file)
            self._spares.ready.append(released)

    def trim(self) -> None:
        """Remove surplus spare files. Not on the loop's thread."""
        while (surplus := self._spares.surplus()) is not None:
            # A sync that began before the file was released may come to it yet.
            with self._sync_lock:
                surplus.file.close()
            self._files.remove(path_of(surplus.number))

    def close(self) -> None:
        """Close the files."""
        for journal_file in (*self._used, *self._spares.ready, self._current):
            journal_file.file.close()

    def _go_on(self, numbers: list[int], tail: Tail) -> None:
        """Keep the files of a tail; the next frame goes behind its last one."""
        for number in tail.files:
            file = self._files.open(path_of(number))
            self._used.append(JournalFile(number, file, file.size()))
        self._begin(self._used.pop(), tail.end.position)
        _clear(self._current, self._position)
        for number in numbers:
            if number not in tail.files:
                self._files.remove(path_of(number))

    def _fail(self, error: StoreError) -> StoreClosed:
        if self.failure is None:
            log.critical("journal failed, the store stops error=%s", error)
            self.failure = StoreClosed(f"the store has stopped because its journal failed: {error}")
        return self.failure


def _clear(journal_file: JournalFile, position: int) -> None:
    """Write zeros from a position on: frames behind a lost one must not join those to come."""
    file = journal_file.file
    for at in range(position, journal_file.size, len(ZEROS)):
        size = min(len(ZEROS), journal_file.size - at)
        # Not where there are zeros already: some file systems take new space for every write.
        if any(file.read_at(size, at)):
            file.write_at(ZEROS[:size], at)
    file.sync()
