"""A data directory that is read and not changed: all writes stay in memory.

A store opens on it as on the real files: it recovers, makes its checkpoint and journal. All of that
is kept here in pages, and gone at the end. The real files are opened for reading alone; the real
lock is taken, so that no server changes them meanwhile.
"""

import threading
from typing import Final

from typing_extensions import Buffer

from store.errors import SegmentFailed, StoreError
from store.files import DirectoryFiles, File, PosixFile
from store.local.recovery.journal_damage import SET_ASIDE

PAGE_BYTES: Final = 16 * 1024
_ZEROS: Final = bytes(PAGE_BYTES)


class OverlayNode:
    """Content of a file, independent of its name and of its open handles.

    Args:
        files: The real directory.
        source: The real file that shows where nothing was written; None for a new file.
        keeps: False for what is never read: then only its size is kept.
    """

    def __init__(self, files: DirectoryFiles, source: str | None, *, keeps: bool = True) -> None:
        self._files = files
        self._source = source
        self._keeps = keeps
        self._lock = threading.Lock()
        self._pages: dict[int, bytes] = {}
        self._real: PosixFile | None = None
        self._users = 0
        self.size = 0
        # Bytes of the real file that still count: it may have been shortened here.
        self._real_size = 0
        if source is not None:
            file = files.open(source)
            self.size = self._real_size = file.size()
            file.close()

    def open(self) -> None:
        """Count one more that has the file open."""
        with self._lock:
            if self._source is not None and self._real is None:
                self._real = self._files.open(self._source)
            self._users += 1

    def close(self) -> None:
        """Take back one `open`."""
        with self._lock:
            self._users -= 1
            if not self._users and self._real is not None:
                self._real.close()
                self._real = None

    def read(self, size: int, position: int) -> bytes:
        """Read up to `size` bytes; shorter only at the end."""
        with self._lock:
            size = min(size, self.size - position)
            if size <= 0:
                return b""
            data = bytearray(self._real_bytes(size, position))
            first, last = position // PAGE_BYTES, (position + size - 1) // PAGE_BYTES
            for number in range(first, last + 1) if self._pages else ():
                page = self._pages.get(number)
                if page is not None:
                    begin = max(number * PAGE_BYTES, position)
                    end = min((number + 1) * PAGE_BYTES, position + size)
                    at = begin - number * PAGE_BYTES
                    data[begin - position : end - position] = page[at : at + end - begin]
            return bytes(data)

    def write(self, data: Buffer, position: int) -> None:
        """Write all of `data`."""
        view = memoryview(data).cast("B")
        with self._lock:
            self.size = max(self.size, position + len(view))
            while self._keeps and len(view):
                number, at = divmod(position, PAGE_BYTES)
                part = view[: PAGE_BYTES - at]
                page = bytes(part)
                if len(part) < PAGE_BYTES:
                    whole = bytearray(self._page(number))
                    whole[at : at + len(part)] = part
                    page = bytes(whole)
                # Journal files and the reserve are zeros for the most part.
                self._pages[number] = _ZEROS if page == _ZEROS else page
                position += len(part)
                view = view[len(part) :]

    def cut(self, size: int) -> None:
        """Shorten the file, or make it longer by zeros."""
        with self._lock:
            self.size = size
            self._real_size = min(self._real_size, size)
            last, at = divmod(size, PAGE_BYTES)
            for number in [each for each in self._pages if each >= last]:
                page = self._pages.pop(number)
                if number == last and at:
                    self._pages[number] = page[:at] + bytes(PAGE_BYTES - at)

    def _page(self, number: int) -> bytes:
        page = self._pages.get(number)
        return self._real_bytes(PAGE_BYTES, number * PAGE_BYTES) if page is None else page

    def _real_bytes(self, size: int, position: int) -> bytes:
        """Return the bytes of the real file there, filled up with zeros."""
        count = min(size, self._real_size - position)
        data = b""
        if count > 0 and self._real is not None:
            data = self._real.read_at(count, position)
        return data.ljust(size, b"\0")


class OverlayFile:
    """An open file of the overlay."""

    def __init__(self, node: OverlayNode, path: str) -> None:
        self._node: OverlayNode | None = node
        self._path = path
        node.open()

    @property
    def fileno(self) -> int:
        """The system does not know this file. SegmentFailed."""
        raise SegmentFailed(f"{self._path}: a file in memory has no descriptor")

    def write_at(self, data: Buffer, position: int) -> None:
        self._found().write(data, position)

    def read_at(self, size: int, position: int) -> bytes:
        return self._found().read(size, position)

    def read_cached_at(self, size: int, position: int) -> bytes | None:
        return self._found().read(size, position)

    def read_into(self, buffer: memoryview, position: int, *, waits: bool = True) -> int:  # noqa: ARG002
        data = self._found().read(len(buffer), position)
        buffer[: len(data)] = data
        return len(data)

    def will_read(self, size: int, position: int) -> None:
        """Do nothing: it is only a hint."""

    def allocate(self, position: int, size: int) -> None:
        """Do nothing: there is always room."""

    def punch(self, position: int, size: int) -> bool:  # noqa: ARG002  # of the interface
        return False

    def size(self) -> int:
        return self._found().size

    def cut(self, size: int) -> None:
        self._found().cut(size)

    def sync(self) -> None:
        self._found()

    def close(self) -> None:
        node, self._node = self._node, None
        if node is not None:
            node.close()

    def _found(self) -> OverlayNode:
        if self._node is None:
            raise SegmentFailed(f"{self._path}: the file is closed")
        return self._node


class OverlayFiles:
    """A data directory with all changes in memory."""

    def __init__(self, real: DirectoryFiles) -> None:
        """Begin with the real directory, which is opened for reading alone."""
        self._real = real
        self._lock = threading.Lock()
        self._directories: set[str] = set()
        # What differs from the real directory: path → file, None where one is gone.
        self._nodes: dict[str, OverlayNode | None] = {}

    def make_directory(self, path: str) -> None:
        with self._lock:
            self._directories.add(path)

    def open(self, path: str, *, create: bool = False) -> OverlayFile:
        with self._lock:
            return OverlayFile(self._node(path, create=create), path)

    def names(self, directory: str) -> list[str]:
        with self._lock:
            names = set(self._real_names(directory))
            prefix = f"{directory}/" if directory else ""
            for path, node in self._nodes.items():
                name = path.removeprefix(prefix)
                if path.startswith(prefix) and "/" not in name:
                    (names.discard if node is None else names.add)(name)
            return list(names)

    def rename(self, source: str, target: str) -> None:
        with self._lock:
            self._nodes[target] = self._node(source, create=False)
            self._nodes[source] = None

    def remove(self, path: str) -> None:
        with self._lock:
            self._nodes[path] = None

    def keep_open(self, directory: str) -> None:
        """Do nothing: a directory here has no descriptor."""

    def sync_directory(self, directory: str) -> None:
        """Do nothing: these files are not meant to last."""

    def lock(self, path: str) -> File:
        """Take the real lock. Without its file no server has ever been here."""
        if path in self._real_names(""):
            return self._real.lock(path)
        return self.open(path, create=True)

    def close(self) -> None:
        self._real.close()

    def _node(self, path: str, *, create: bool) -> OverlayNode:
        if path not in self._nodes:
            directory, _, name = path.rpartition("/")
            if name in self._real_names(directory):
                self._nodes[path] = OverlayNode(self._real, path)
        node = self._nodes.get(path)
        if node is None:
            if not create:
                raise SegmentFailed(f"{path}: cannot open: there is no such file")
            keeps = not path.startswith(f"{SET_ASIDE}/")
            node = self._nodes[path] = OverlayNode(self._real, None, keeps=keeps)
        return node

    def _real_names(self, directory: str) -> list[str]:
        try:
            return self._real.names(directory)
        except StoreError:
            if directory in self._directories:
                return []
            raise
