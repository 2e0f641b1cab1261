# cython: language_level=3, annotation_typing=False, nonecheck=True
"""The only way to the operating system's files: nothing else in the store touches `os`.

A test puts another implementation here that records every call, so keep the calls few and plain.
Paths are relative to the data directory ("" is the directory itself, "data/7" a file in it) and
never come from a client.
"""

import contextlib
import ctypes
import errno
import fcntl
import logging
import os
import resource
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

from typing_extensions import Buffer

from store.errors import DiskFull, SegmentFailed, StoreError, StoreLocked
from store.kernel.file_writes import write_all
from store.kernel.syncing import NUMBER_BYTES, sync_on_request
from store.regular_file import open_regular

log = logging.getLogger(__name__)

NO_SPACE: Final = frozenset((errno.ENOSPC, errno.EDQUOT))
NO_DESCRIPTORS: Final = frozenset((errno.EMFILE, errno.ENFILE))

# Source: fallocate(2), linux/falloc.h.
_KEEP_SIZE: Final = 1
_PUNCH_HOLE: Final = 2
_CANNOT: Final = frozenset((errno.EOPNOTSUPP, errno.ENOSYS))

_QUICK_NS: Final = 400_000
"""Mean time of a sync, with the way to a thread and back, below which the loop may wait for it."""

Watch = Callable[[int, Callable[[], object] | None], object]
"""Registers a callback for whenever a descriptor can be read; None removes it."""


class OutOfDescriptors(SegmentFailed):
    """The process has no file descriptor left; closing some files helps, so it does not last."""


PASSING: Final = (DiskFull, OutOfDescriptors)
"""Failures that leave every file as it was: the next try may succeed."""


class File(Protocol):
    """An open file. Positions and sizes are bytes. All of it may be called from any thread."""

    @property
    def fileno(self) -> int:
        """The descriptor, for sendfile (a recording implementation may raise)."""
        ...

    def write_at(self, data: Buffer, position: int) -> None:
        """Write all of `data` (loops over short writes). DiskFull or OSError-free SegmentFailed."""
        ...

    def read_at(self, size: int, position: int) -> bytes:
        """Read up to `size` bytes; shorter only at the end of the file."""
        ...

    def read_cached_at(self, size: int, position: int) -> bytes | None:
        """Like read_at, but None if the bytes are not in memory (RWF_NOWAIT)."""
        ...

    def read_into(self, buffer: memoryview, position: int, *, waits: bool = True) -> int:
        """Fill a buffer; gives how much of it: less at the end of the file.

        Without `waits` it gives what is in memory (RWF_NOWAIT), up to the first byte that is not.
        """
        ...

    def will_read(self, size: int, position: int) -> None:
        """Have the system begin to read bytes from the disk; they need not be there."""
        ...

    def allocate(self, position: int, size: int) -> None:
        """Reserve zeroed space (fallocate); where the file system cannot, do nothing. DiskFull."""
        ...

    def punch(self, position: int, size: int) -> bool:
        """Release the space of some bytes, which are zeros then; the file keeps its size.

        False where the file system cannot.
        """
        ...

    def size(self) -> int: ...

    def cut(self, size: int) -> None:
        """Shorten (or extend with zeros) the file to `size`."""
        ...

    def sync(self) -> None:
        """Sync the data (fdatasync). If it fails, never acknowledge anything of it again."""
        ...

    def close(self) -> None:
        """Close the file; fine if it is closed. Whatever is asked of it later fails."""
        ...


class Files(Protocol):
    """A data directory."""

    def make_directory(self, path: str) -> None:
        """Make a directory and those above it, durably; fine if it exists."""
        ...

    def open(self, path: str, *, create: bool = False) -> File:
        """Open for reading and writing. SegmentFailed if it is missing and not to be created."""
        ...

    def names(self, directory: str) -> list[str]:
        """List the names in a directory, in no promised order."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Rename a file, replacing the target in one step."""
        ...

    def remove(self, path: str) -> None:
        """Unlink a file; fine if it is not there."""
        ...

    def keep_open(self, directory: str) -> None:
        """Keep a directory open until `close`, so that no sync of it fails for a descriptor."""
        ...

    def sync_directory(self, directory: str) -> None:
        """Make the creations, renames and removals in a directory durable."""
        ...

    def lock(self, path: str) -> File:
        """Take an exclusive lock that ends with the process; StoreLocked names the holder."""
        ...

    def close(self) -> None:
        """Close the directories that are kept open."""
        ...


def descriptor_limit() -> int:
    """Return how many files this process may have open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft if soft > 0 else 1024


def store_descriptors(limit: int) -> int:
    """Return how many of the files that a process may have open the store keeps at most."""
    return max(16, limit // 3)


class PosixFile:
    """A file of the operating system."""

    __slots__ = ("_path", "fileno")

    def __init__(self, descriptor: int, path: str) -> None:
        self.fileno = descriptor
        self._path = path

    def write_at(self, data: Buffer, position: int) -> None:
        try:
            write_all(self.fileno, data, position)
        except OSError as error:
            raise _translated(error, "write", self._path) from error

    def read_at(self, size: int, position: int) -> bytes:
        try:
            data = os.pread(self.fileno, size, position)
            if len(data) == size or not data:
                return data
            parts = [data]
            got = len(data)
            while got < size and (data := os.pread(self.fileno, size - got, position + got)):
                parts.append(data)
                got += len(data)
        except OSError as error:
            raise _translated(error, "read", self._path) from error
        return b"".join(parts)

    def read_cached_at(self, size: int, position: int) -> bytes | None:
        buffer = bytearray(size)
        try:
            count = os.preadv(self.fileno, [buffer], position, os.RWF_NOWAIT)
        except BlockingIOError:
            return None
        except OSError as error:
            if error.errno == errno.EOPNOTSUPP:
                # tmpfs, which is memory, and some network file systems, which may make us wait.
                return self.read_at(size, position)
            raise _translated(error, "read", self._path) from error
        return bytes(memoryview(buffer)[:count])

    def read_into(self, buffer: memoryview, position: int, *, waits: bool = True) -> int:
        got, flags = 0, 0 if waits else os.RWF_NOWAIT
        try:
            while got < len(buffer) and (
                count := os.preadv(self.fileno, [buffer[got:]], position + got, flags)
            ):
                got += count
        except OSError as error:
            if waits or error.errno not in {errno.EAGAIN, errno.EOPNOTSUPP}:
                raise _translated(error, "read", self._path) from error
        return got

    def will_read(self, size: int, position: int) -> None:
        with contextlib.suppress(OSError):  # a hint
            os.posix_fadvise(self.fileno, position, size, os.POSIX_FADV_WILLNEED)

    def allocate(self, position: int, size: int) -> None:
        failure = _fallocate(self.fileno, 0, position, size)
        if failure == errno.EBADF:
            raise SegmentFailed(f"{self._path}: cannot allocate: {os.strerror(failure)}")
        if failure in NO_SPACE:
            raise DiskFull(f"{self._path}: no space to allocate {size} bytes")

    def punch(self, position: int, size: int) -> bool:
        failure = _fallocate(self.fileno, _PUNCH_HOLE | _KEEP_SIZE, position, size)
        if failure in _CANNOT:
            return False
        if failure:
            raise _translated(OSError(failure, os.strerror(failure)), "punch", self._path)
        return True

    def size(self) -> int:
        try:
            return os.fstat(self.fileno).st_size
        except OSError as error:
            raise _translated(error, "stat", self._path) from error

    def cut(self, size: int) -> None:
        try:
            os.ftruncate(self.fileno, size)
        except OSError as error:
            raise _translated(error, "cut", self._path) from error

    def sync(self) -> None:
        if self.fileno < 0:
            raise SegmentFailed(f"{self._path}: sync failed: the file is closed")
        try:
            os.fdatasync(self.fileno)
        except OSError as error:
            # Never DiskFull: after a failed sync it is unknown which bytes are on the disk.
            raise SegmentFailed(f"{self._path}: sync failed: {error.strerror}") from error

    def close(self) -> None:
        # The number may soon be another file's.
        descriptor, self.fileno = self.fileno, -1
        with contextlib.suppress(OSError):
            os.close(descriptor)


class JournalSync:
    """Syncs one file at a time, the shortest way there and back. Only the loop calls it.

    A thread does it, so that the loop can go on meanwhile. The way there and back costs half as
    much as a sync of a quick disk. So where the disk has been quick, the loop may do it: one sync
    that takes long ends that, until many in a row were quick again.
    """

    def __init__(self, watch: Watch) -> None:
        """Begin without a thread."""
        self._watch = watch
        self._done: Callable[[StoreError | None], object] | None = None
        self._thread: threading.Thread | None = None
        self._requests = self._answers = -1
        self._began_ns = 0
        # Mean time of the last syncs, each one counted a sixteenth less than the next.
        self._mean_ns = 16 * _QUICK_NS

    def start(self) -> bool:
        """Start the thread if there is none; tells whether there is one: it takes descriptors."""
        if self._thread is None:
            try:
                self._start()
            except OSError:
                return False
        return True

    def is_quick(self) -> bool:
        """Return whether the loop may wait for a sync, by how long the last ones took."""
        return self._mean_ns < _QUICK_NS

    def sync(self, fileno: int, done: Callable[[StoreError | None], object]) -> None:
        """Sync the data of a file; `done` gets the error, if any. Started, and one at a time."""
        assert self._done is None
        self._done = done
        self._began_ns = time.perf_counter_ns()
        os.write(self._requests, fileno.to_bytes(NUMBER_BYTES, sys.byteorder, signed=True))

    def sync_now(self, fileno: int) -> StoreError | None:
        """Sync the data of a file before this returns; the error is returned, if any."""
        self._began_ns = time.perf_counter_ns()
        try:
            os.fdatasync(fileno)
        except OSError as error:
            return SegmentFailed(f"sync failed: {error.strerror}")
        self._note_time()
        return None

    def stop(self) -> None:
        """End the thread; not while a sync is under way."""
        if self._thread is None:
            return
        assert self._done is None
        self._watch(self._answers, None)
        os.close(self._requests)
        self._thread.join()
        self._thread = None
        os.close(self._answers)

    def _start(self) -> None:
        requests = os.pipe()
        try:
            answers = os.pipe()
        except OSError:
            for descriptor in requests:
                os.close(descriptor)
            raise
        their_requests, self._requests = requests
        self._answers, their_answers = answers
        self._watch(self._answers, self._answered)

        def run() -> None:
            sync_on_request(their_requests, their_answers)
            os.close(their_requests)
            os.close(their_answers)

        self._thread = threading.Thread(target=run, name="store-journal-sync", daemon=True)
        self._thread.start()

    def _answered(self) -> None:
        answer = os.read(self._answers, NUMBER_BYTES)
        done, self._done = self._done, None
        assert done is not None
        self._note_time()
        number = int.from_bytes(answer, sys.byteorder, signed=True)
        done(SegmentFailed(f"sync failed: {os.strerror(number)}") if number else None)

    def _note_time(self) -> None:
        self._mean_ns += (time.perf_counter_ns() - self._began_ns - self._mean_ns) // 16


class DirectoryFiles:
    """A directory of the operating system; made when it is missing.

    Args:
        root: Where it is.
        is_read_only: Files are opened for reading alone, and the lock's holder is not written down.
    """

    def __init__(self, root: Path, *, is_read_only: bool = False) -> None:
        self._root = str(root)
        self._is_read_only = is_read_only
        self._kept: dict[str, int] = {}

    def make_directory(self, path: str) -> None:
        place = Path(self._place(path))
        try:
            for missing in reversed([p for p in (place, *place.parents) if not p.exists()]):
                missing.mkdir(mode=0o700, exist_ok=True)
                _sync_directory(str(missing.parent))
        except OSError as error:
            raise _translated(error, "make directory", str(place)) from error

    def open(self, path: str, *, create: bool = False) -> PosixFile:
        place = self._place(path)
        access = os.O_RDONLY if self._is_read_only else os.O_RDWR
        try:
            return PosixFile(open_regular(place, access | (os.O_CREAT if create else 0)), place)
        except OSError as error:
            raise _translated(error, "open", place) from error

    def names(self, directory: str) -> list[str]:
        place = self._place(directory)
        try:
            return os.listdir(place)  # noqa: PTH208 (names, not paths)
        except OSError as error:
            raise _translated(error, "list", place) from error

    def rename(self, source: str, target: str) -> None:
        place = self._place(target)
        try:
            os.replace(self._place(source), place)  # noqa: PTH105
        except OSError as error:
            raise _translated(error, "rename to", place) from error

    def remove(self, path: str) -> None:
        place = self._place(path)
        try:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(place)  # noqa: PTH108
        except OSError as error:
            raise _translated(error, "remove", place) from error

    def keep_open(self, directory: str) -> None:
        place = self._place(directory)
        try:
            if directory not in self._kept:
                self._kept[directory] = _open_directory(place)
        except OSError as error:
            raise _translated(error, "open", place) from error

    def sync_directory(self, directory: str) -> None:
        place = self._place(directory)
        kept = self._kept.get(directory)
        try:
            descriptor = _open_directory(place) if kept is None else kept
        except OSError as error:
            raise _translated(error, "open", place) from error
        try:
            os.fsync(descriptor)
        except OSError as error:
            raise SegmentFailed(f"{place}: sync failed: {error.strerror}") from error
        finally:
            if kept is None:
                os.close(descriptor)

    def lock(self, path: str) -> PosixFile:
        file = self.open(path, create=not self._is_read_only)
        try:
            fcntl.flock(file.fileno, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = file.read_at(32, 0).decode("ascii", "replace").strip() or "unknown"
            file.close()
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise _translated(error, "lock", self._place(path)) from error
            message = f"data directory {self._root} is in use by process {holder}"
            raise StoreLocked(message) from error
        if self._is_read_only:
            return file
        name = f"{os.getpid()}\n".encode()
        # The holder's id is for messages only; a full disk may have no room for it.
        with contextlib.suppress(DiskFull):
            # Over the old one, whose space is there.
            file.write_at(name, 0)
            file.cut(len(name))
        return file

    def close(self) -> None:
        kept, self._kept = self._kept, {}
        for descriptor in kept.values():
            os.close(descriptor)

    def _place(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root


def _open_directory(place: str) -> int:
    return os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def _sync_directory(place: str) -> None:
    descriptor = _open_directory(place)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _translated(error: OSError, verb: str, path: str) -> StoreError:
    if error.errno in NO_SPACE:
        return DiskFull(f"{path}: no space left to {verb}")
    kind = OutOfDescriptors if error.errno in NO_DESCRIPTORS else SegmentFailed
    return kind(f"{path}: cannot {verb}: {error.strerror}")


def _fallocate(descriptor: int, mode: int, position: int, size: int) -> int:
    """Reserve space (mode 0) or give it back; gives the errno, 0 if it is done.

    Not os.posix_fallocate: where the file system cannot do it, the C library writes a zero into
    every block instead, which would race with our own writes.
    """
    call = getattr(_LIBC, "fallocate", None)
    if call is None:
        return errno.EOPNOTSUPP
    offset, length = ctypes.c_int64(position), ctypes.c_int64(size)
    return ctypes.get_errno() if call(descriptor, mode, offset, length) else 0


_LIBC: Final = ctypes.CDLL(None, use_errno=True)
