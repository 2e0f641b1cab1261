# cython: language_level=3, annotation_typing=False, nonecheck=True
"""Data files as the running store sees them: numbers, open handles, unsynced writes.

A data file holds bytes of one segment only and is never reused or shortened, only unlinked. Holes
are made only where no reader is. So an open descriptor is all that a reader needs.
"""

import heapq
import threading
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Final

import cython

from store.errors import StoreError
from store.files import File, Files

DATA_DIRECTORY: Final = "data"

# Tiny segments stay tiny: nothing is allocated ahead in the first half MiB of a file.
ALLOCATE_FROM: Final = 512 * 1024
ALLOCATE_STEP_MIN: Final = 1024 * 1024
ALLOCATE_STEP_MAX: Final = 32 * 1024 * 1024
# One for each file would be an object that the garbage collector looks at.
_LOCKS: Final = tuple(threading.Lock() for _ in range(64))


def path_of(number: int) -> str:
    """Return the path of a data file."""
    return f"{DATA_DIRECTORY}/{number}"


@cython.no_gc
@cython.cclass
class DataFile:
    """One data file. Everything but `sync` and opening happens on the loop's thread.

    `writes` counts writes, and `synced` is its value when the last good sync began; so the file is
    clean when they are equal. `pins` counts the users that need an open handle, and `reads` says
    where in the file they read. The bytes before `hole_end` are given up for good, and those before
    `punched` are given back, or about to be.
    """

    __slots__ = (
        "allocate_at",
        "allocate_step",
        "dead",
        "failure",
        "handle",
        "hole_end",
        "in_directory",
        "lock",
        "made",
        "number",
        "owner",
        "pins",
        "punched",
        "reads",
        "size_max",
        "synced",
        "used",
        "writes",
    )

    def __init__(self, number: int, owner: int, *, is_found: bool = False) -> None:
        self.number = number
        # The number of the segment that the file belongs to, as committed.
        self.owner = owner
        self.handle: File | None = None
        # An append that would make the file longer begins another one.
        self.size_max = 0
        self.pins = 0
        # Position → number of readers there.
        self.reads: dict[int, int] = {}
        self.hole_end = 0
        self.punched = 0
        self.used = 0
        self.writes = 0
        self.synced = 0
        self.dead = False
        # Whether the file exists, and whether the directory was synced since it was made.
        self.made = is_found
        self.in_directory = is_found
        self.allocate_at = ALLOCATE_FROM
        self.allocate_step = ALLOCATE_STEP_MIN
        # Set for good by a failed sync. Two threads may sync one descriptor, and the system tells
        # a write-back error to only one of them; this flag tells the other.
        self.failure: StoreError | None = None
        self.lock = _LOCKS[number % len(_LOCKS)]

    def sync(self, handle: File) -> None:
        """Sync through `handle`. Raises what failed now or ever before."""
        with self.lock:
            if self.failure is not None:
                raise self.failure
            try:
                handle.sync()
            except StoreError as error:
                self.failure = error
                raise


class OpenFiles:
    """The handles of data files, of which a bounded number is open at once."""

    def __init__(
        self, files: Files, count_max: int, retire: Callable[[DataFile, File], None]
    ) -> None:
        """Begin with no open file.

        Args:
            files: The data directory.
            count_max: Number of handles that may be open, unless more are pinned.
            retire: Syncs (if need be) and closes a handle on another thread.
        """
        self._files = files
        self._count_max = count_max
        self._retire = retire
        self._open: set[DataFile] = set()
        self._lock = threading.Lock()
        self._tick = 0
        # Told of files that may not be read before `hole_end` any more.
        self.left: Callable[[DataFile], object] = _do_nothing

    def open(self, file: DataFile, *, create: bool = False) -> File:
        """Return the file's handle, opening it if need be. Any thread."""
        handle = file.handle
        if handle is None:
            with self._lock:
                handle = file.handle
                if handle is None:
                    handle = self._files.open(path_of(file.number), create=create)
                    self._open.add(file)
                    file.made = True
                    file.handle = handle
        return handle

    def sync(self, file: DataFile) -> None:
        """Sync a file; nothing to do for one that is deleted. Any thread. Raises what failed."""
        try:
            file.sync(self.open(file))
        except StoreError:
            if not file.dead:
                raise

    def touch(self, file: DataFile) -> None:
        """Note that the file is in use, so that others are closed before it."""
        self._tick += 1
        file.used = self._tick

    def trim(self) -> None:
        """Close the least recently used files, if too many are open. The loop's thread."""
        if len(self._open) <= self._count_max:
            return
        with self._lock:
            idle = [file for file in self._open if not file.pins]
            # A quarter at once, so that looking through all of them is paid for rarely.
            surplus = len(self._open) - self._count_max + self._count_max // 4
            chosen = heapq.nsmallest(surplus, idle, key=attrgetter("used"))
        self._close(chosen)

    def close_dead(self, files: Iterable[DataFile]) -> None:
        """Close the handles of deleted files that have no pins."""
        self._close([file for file in files if not file.pins])

    def begin_read(self, file: DataFile, position: int) -> None:
        """Pin a file, and keep its bytes from a position on."""
        file.pins += 1
        file.reads[position] = file.reads.get(position, 0) + 1

    def end_read(self, file: DataFile, position: int) -> None:
        """Take back one `begin_read`."""
        count = file.reads.pop(position)
        if count > 1:
            file.reads[position] = count - 1
        if position < file.hole_end:
            self.left(file)
        self.unpin(file)

    def unpin(self, file: DataFile) -> None:
        """Take back one pin."""
        file.pins -= 1
        if file.dead and not file.pins:
            self._close([file])

    def close_all(self) -> None:
        """Close everything (a pinned file with its last pin), when no thread works any more."""
        for file in self._open:
            file.dead = True
        self._close([file for file in self._open if not file.pins])

    def _close(self, files: list[DataFile]) -> None:
        for file in files:
            with self._lock:
                handle, file.handle = file.handle, None
                self._open.discard(file)
            if handle is not None:
                self._retire(file, handle)


def _do_nothing(_: DataFile) -> None:
    pass
