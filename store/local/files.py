"""The one door to the operating system's files: nothing else in the store touches `os`.

A test puts another implementation here that records every call, so keep the calls few and plain.
Paths are relative to the data directory and never come from a client.
"""


from typing import Protocol

from typing_extensions import Buffer


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

    def allocate(self, position: int, size: int) -> None:
        """Reserve zeroed space (posix_fallocate); where the file system cannot, do nothing."""
        ...

    def size(self) -> int: ...

    def cut(self, size: int) -> None:
        """Shorten (or extend with zeros) the file to `size`."""
        ...

    def sync(self) -> None:
        """fdatasync. If it fails, the caller must never acknowledge anything of this file again."""
        ...

    def close(self) -> None: ...


class Files(Protocol):
    """A data directory."""

    def make_directory(self, path: str) -> None: ...
    def open(self, path: str, *, create: bool = False) -> File: ...
    def names(self, directory: str) -> list[str]: ...
    def rename(self, source: str, target: str) -> None: ...
    def remove(self, path: str) -> None: ...
    def sync_directory(self, directory: str) -> None: ...
    def lock(self, path: str) -> File:
        """Take an exclusive lock that ends with the process; StoreLocked names the holder."""
        ...
