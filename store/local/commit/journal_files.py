"""The files of the journal: each is made whole, with its head and zeros, before it is used."""

import contextlib
import itertools
import logging
import time
from collections import deque
from collections.abc import Collection
from typing import Final, NamedTuple

from store.errors import DiskFull, StoreError
from store.files import File, Files
from store.local.commit.records import (
    FILE_HEAD_BYTES,
    FRAME_HEAD_BYTES,
    LINK_FRAME_BYTES,
    file_head,
)
from store.local.reserve import Reserve

log = logging.getLogger(__name__)

JOURNAL_DIRECTORY: Final = "journal"

# What a file holds beside its frames.
OWN_BYTES: Final = FILE_HEAD_BYTES + LINK_FRAME_BYTES

# Wait after a spare file could not be made: the disk is full, and each try takes the rest of it.
SPARE_AGAIN_S: Final = 5.0
_SAY_AGAIN_S: Final = 60.0

# Of the usual size: a file that is made on a full disk to say what is deleted.
SMALL_PART: Final = 16

# A file has 8 MiB, and a frame little more than 1 MiB. No more than this is read of a file, however
# large it says it is.
FILE_BYTES_MAX: Final = 128 * 1024 * 1024

# Written in small pieces: the pages of one write make one unit of the page cache, and some file
# systems go through the whole unit at every small write into it.
ZEROS: Final = bytes(16 * 1024)


class JournalFile(NamedTuple):
    """One file of the ring; `size` in bytes."""

    number: int
    file: File
    size: int


def path_of(number: int) -> str:
    """Return the path of a journal file."""
    return f"{JOURNAL_DIRECTORY}/{number}"


def numbers_in(files: Files) -> list[int]:
    """Return the numbers of the journal's files, the lowest first."""
    names = files.names(JOURNAL_DIRECTORY)
    return sorted(int(name) for name in names if name.isdecimal() and str(int(name)) == name)


def content_of(files: Files, number: int) -> bytes:
    """Return the bytes of a journal file."""
    file = files.open(path_of(number))
    try:
        return file.read_at(min(file.size(), FILE_BYTES_MAX), 0)
    finally:
        file.close()


def is_in_use(files: Files) -> bool:
    """Return whether a journal holds more than the first frame of a first opening."""
    for number in numbers_in(files):
        data = content_of(files, number)
        if any(data[FILE_HEAD_BYTES + FRAME_HEAD_BYTES :].strip(b"\0")):
            return True
    return False


class SpareFiles:
    """The files that the journal may go on in.

    Attributes:
        reserve: Room for what deletes on a full disk.
        store_id: Seed of the files' heads.
        ready: Those that hold nothing that is needed. Only the journal and trimming take from it.
    """

    def __init__(
        self,
        files: Files,
        reserve: Reserve | None,
        *,
        store_id: int,
        file_bytes: int,
        count_max: int,
    ) -> None:
        """Begin with none.

        Args:
            files: The data directory.
            reserve: Room for what deletes on a full disk, and for an opening there.
            store_id: Seed of the files' heads.
            file_bytes: Size of new files.
            count_max: More than these are surplus.
        """
        self._files = files
        self.store_id = store_id
        self._file_bytes = file_bytes
        self._count_max = count_max
        self.reserve = reserve
        self._numbers = itertools.count(max(numbers_in(files), default=0) + 1)
        self.ready: deque[JournalFile] = deque()
        self._preparing = False
        # When the next one is tried, after one that could not be made, and when that is said again;
        # and how many since it was.
        self._prepare_at = self._say_at = 0.0
        self._unsaid = 0

    def take_over(self, numbers: Collection[int]) -> None:
        """Make spare files of those that are there; files of another store go."""
        for number in numbers:
            file = self._files.open(path_of(number))
            size = file.size()
            head = file_head(number, size, self.store_id)
            if size >= self._file_bytes and file.read_at(len(head), 0) == head:
                # A process that died may have made it without syncing it.
                file.sync()
                self.ready.append(JournalFile(number, file, size))
            else:
                # Not finished, or made with another setting.
                file.close()
                self._files.remove(path_of(number))

    def has_room_for(self, size: int) -> bool:
        """Return whether a frame of `size` bytes fits into one that is ready."""
        return any(spare.size >= size + OWN_BYTES for spare in tuple(self.ready))

    def take(self, size: int, *, may_be_small: bool) -> JournalFile:
        """Return a file that a frame of `size` bytes fits into, made if need be.

        With `may_be_small` a full disk gets a small one, at the cost of the reserve.

        Raises:
            DiskFull: There is no space for one.
        """
        size += OWN_BYTES
        for spare in tuple(self.ready):
            if spare.size >= size:
                # Only trimming takes spares away at the same time.
                with contextlib.suppress(ValueError):
                    self.ready.remove(spare)
                    return spare
        try:
            return self._make(max(size, self._file_bytes))
        except DiskFull:
            if not may_be_small:
                raise
            if self.reserve is not None:
                self.reserve.give_up()
            return self._make(max(size, self._file_bytes // SMALL_PART))

    def claim(self) -> bool:
        """Return whether one should be made now: none is ready. The caller then calls `prepare`."""
        if self.ready or self._preparing:
            return False
        if self._prepare_at and time.monotonic() < self._prepare_at:
            return False
        self._preparing = True
        return True

    def prepare(self) -> None:
        """Make a spare file, ahead of need and on another thread."""
        try:
            self.ready.append(self._make(self._file_bytes))
            self._prepare_at = self._say_at = 0.0
        except StoreError as error:
            # The round that finds no space says so itself.
            self._no_spare(error)
        finally:
            self._preparing = False

    def surplus(self) -> JournalFile | None:
        """Remove one surplus file."""
        return self.ready.pop() if len(self.ready) > self._count_max else None

    def _no_spare(self, error: StoreError) -> None:
        now = time.monotonic()
        self._prepare_at = now + SPARE_AGAIN_S
        self._unsaid += 1
        if now >= self._say_at:
            log.warning("no spare journal file tries=%d error=%s", self._unsaid, error)
            self._say_at = now + _SAY_AGAIN_S
            self._unsaid = 0

    def _make(self, size: int) -> JournalFile:
        assert size <= FILE_BYTES_MAX
        number = next(self._numbers)
        path = path_of(number)
        file = self._files.open(path, create=True)
        try:
            file.write_at(file_head(number, size, self.store_id), 0)
            # Zeros, and not only allocated: a sync of a frame then moves no metadata.
            for position in range(FILE_HEAD_BYTES, size, len(ZEROS)):
                file.write_at(ZEROS[: size - position], position)
            file.sync()
            self._files.sync_directory(JOURNAL_DIRECTORY)
        except StoreError:
            file.close()
            self._files.remove(path)
            raise
        return JournalFile(number, file, size)
