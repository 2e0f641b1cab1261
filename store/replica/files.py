"""A data directory whose changes are in a replicated log before they are made.

A change is at first in memory alone, and a file is read as if it were done. A sync sends
all of it, in its order, and returns when the log has it and it was applied to the files. The log
has one order, so a sync of a file that another sync follows, before any caller is told,
does not wait.
"""

import threading
from collections import deque
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Final

from typing_extensions import Buffer

from store.errors import DiskFull, SegmentFailed, StoreError
from store.files import File, Files
from store.replica.local_copy import is_own, name_of, parent_of
from store.replica.operations import (
    Create,
    Cut,
    MakeDirectory,
    Operation,
    Punch,
    Remove,
    Rename,
    Write,
    Zero,
)
from store.replica.shipping import Shipping

ROOM_BYTES: Final = 64 * 1024 * 1024
"""Space that the disk has to have beside a new file, or more of one: as much may wait for it."""
Change = Write | Zero | Cut | Punch
Waiting = Change | Create | Rename
HasRoom = Callable[[int], bool]
"""Returns whether the disk has room for some bytes."""


class _Node:
    """A file, whatever its name is: what it has on the disk, and what is not there yet.

    Attributes:
        path: Its name; None once it has none.
        local: Open; None where it is not on the disk yet.
        size: With all that is not there yet.
        waiting: What is not done there yet, in its order.
        handles: How many have it open.
    """

    __slots__ = ("handles", "local", "path", "size", "waiting")

    def __init__(self, path: str, local: File | None) -> None:
        self.path: str | None = path
        self.local = local
        self.size = 0 if local is None else local.size()
        self.waiting: deque[Waiting] = deque()
        self.handles = 0

    def seen(self) -> tuple[int, tuple[Waiting, ...], File | None]:
        """Return its size, what is not done on the disk yet, and what is there.

        In this order: a change that comes meanwhile is then behind the size, not zeros before it.
        """
        return self.size, tuple(self.waiting), self.local


class ReplicatedFile:
    """An open file of a replicated directory."""

    __slots__ = ("_files", "_is_open", "_node", "_path")

    def __init__(self, files: "ReplicatedFiles", node: _Node, path: str) -> None:
        self._files = files
        self._node = node
        self._path = path
        self._is_open = True

    @property
    def fileno(self) -> int:
        """The descriptor. Raises SegmentFailed: it is not on the disk yet."""
        self._need_open("send")
        return self._files.local(self._node, self._path).fileno

    def write_at(self, data: Buffer, position: int) -> None:
        self._need_open("write")
        whole = data if isinstance(data, bytes) else bytes(memoryview(data).cast("B"))
        self._files.write(self._node, whole, position)

    def read_at(self, size: int, position: int) -> bytes:
        buffer = bytearray(size)
        got = self.read_into(memoryview(buffer), position)
        return bytes(memoryview(buffer)[:got])

    def read_cached_at(self, size: int, position: int) -> bytes | None:
        self._need_open("read")
        end, waiting, local = self._node.seen()
        size = max(0, min(size, end - position))
        data: bytes | None = b""
        if local is not None:
            data = local.read_cached_at(size, position)
        if data is None or not waiting:
            return data
        buffer = bytearray(size)
        buffer[: len(data)] = data
        _lay_over(memoryview(buffer), position, waiting)
        return bytes(buffer)

    def read_into(self, buffer: memoryview, position: int, *, waits: bool = True) -> int:
        self._need_open("read")
        end, waiting, local = self._node.seen()
        if not waiting:
            return 0 if local is None else local.read_into(buffer, position, waits=waits)
        size = max(0, min(len(buffer), end - position))
        got = 0 if local is None else local.read_into(buffer[:size], position, waits=waits)
        if got < size:
            if not waits:
                return 0  # whether it ends there, or is on the disk alone, is not known
            buffer[got:size] = bytes(size - got)
        _lay_over(buffer[:size], position, waiting)
        return size

    def will_read(self, size: int, position: int) -> None:
        if self._node.local is not None:
            self._node.local.will_read(size, position)

    def allocate(self, position: int, size: int) -> None:  # noqa: ARG002  # its size alone counts
        self._need_open("allocate")
        self._files.need_room(self._path, size)

    def punch(self, position: int, size: int) -> bool:
        self._need_open("punch")
        self._files.change(self._node, Punch, position, size)
        return True

    def size(self) -> int:
        self._need_open("stat")
        return self._node.size

    def cut(self, size: int) -> None:
        self._need_open("cut")
        self._files.change(self._node, Cut, size)

    def sync(self) -> None:
        self._need_open("sync")
        self._files.sync(self._path)

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            self._files.leave(self._node)

    def _need_open(self, verb: str) -> None:
        if not self._is_open:
            raise SegmentFailed(f"{self._path}: cannot {verb}: the file is closed")


class ReplicatedFiles:
    """A data directory of which each change is in the log first; `Files`."""

    def __init__(
        self,
        own: Files,
        ship: Callable[[Callable[[Operation], object]], Shipping],
        *,
        lock: File,
        ordered: Collection[str] = (),
        has_room: HasRoom = lambda _: True,
    ) -> None:
        """Begin with nothing on its way.

        Args:
            own: The member's directory.
            ship: Makes the shipping, which tells of each operation that was applied.
            lock: The directory's lock, which is held.
            ordered: Directories in which a sync need not wait: another one always follows.
            has_room: Whether the disk has room.
        """
        self._own = own
        self._held = lock
        self._ordered = frozenset(ordered)
        self._has_room = has_room
        self._lock = threading.Lock()
        self._nodes: dict[str, _Node] = {}
        self._names: dict[str, set[str]] = {}
        # By the paths that operations name: a file may have another one by now.
        self._waiting: dict[str, deque[_Node]] = {}
        self.shipping = ship(self._applied)

    # A directory

    def make_directory(self, path: str) -> None:
        if not path or is_own(path):
            self._own.make_directory(path)
            return
        with self._lock:
            is_missing = not self._has_directory(path)
            if is_missing:
                self.shipping.add(MakeDirectory(path))
        if is_missing:
            self.shipping.settle()

    def open(self, path: str, *, create: bool = False) -> File:
        if is_own(path):
            return self._own.open(path, create=create)
        with self._lock:
            node = self._nodes.get(path)
            if node is None:
                node = self._nodes[path] = self._found(path, create=create)
            node.handles += 1
        return ReplicatedFile(self, node, path)

    def names(self, directory: str) -> list[str]:
        if is_own(directory):
            return self._own.names(directory)
        with self._lock:
            names = sorted(self._names_in(directory))
        own = [] if directory else [each for each in self._own.names("") if is_own(each)]
        return [*names, *own]

    def rename(self, source: str, target: str) -> None:
        if is_own(source) and is_own(target):
            self._own.rename(source, target)
            return
        if is_own(target):
            self._set_aside(source, target)
            return
        with self._lock:
            if not self._has(source):
                raise SegmentFailed(f"{target}: cannot rename to: {source} is not there")
            node = self._nodes.get(source) or self._found(source, create=False)
            self._forget(target)
            self._nodes.pop(source, None)
            self._nodes[target] = node
            node.path = target
            self._names_in(parent_of(source)).discard(name_of(source))
            self._names_in(parent_of(target)).add(name_of(target))
            self._add(Rename(source, target), node)

    def remove(self, path: str) -> None:
        if is_own(path):
            self._own.remove(path)
            return
        with self._lock:
            if self._has(path):
                self._forget(path)
                self._names_in(parent_of(path)).discard(name_of(path))
                self.shipping.add(Remove(path))

    def keep_open(self, directory: str) -> None:
        self._own.keep_open(directory)

    def sync_directory(self, directory: str) -> None:
        if is_own(directory):
            self._own.sync_directory(directory)
        elif directory not in self._ordered:
            self.shipping.settle()

    def lock(self, path: str) -> File:  # noqa: ARG002  # there is one
        return self._held

    def close(self) -> None:
        self._own.close()

    # What its files call

    def write(self, node: _Node, data: bytes, position: int) -> None:
        """Write bytes, or zeros."""
        if len(data) > 1 and data[0] == data[-1] == 0 and data.count(0) == len(data):
            self.change(node, Zero, position, len(data))
            return
        step = self.shipping.data_bytes_max
        for begin in range(0, len(data), step):
            self.change(node, Write, position + begin, data[begin : begin + step])

    def change(self, node: _Node, kind: Callable[..., Change], *values: object) -> None:
        """Note a change of a file, and have it sent; one that has no name is in no message."""
        with self._lock:
            if node.path is None:
                return
            change = kind(node.path, *values)
            self._add(change, node)
            node.size = _size_after(node.size, change)

    def sync(self, path: str) -> None:
        """Have what was changed in the log, if no other sync will see to it."""
        if self.shipping.failure is not None:
            raise self.shipping.failure
        if parent_of(path) not in self._ordered:
            self.shipping.settle()

    def need_room(self, path: str, size: int) -> None:
        """Demand room on the disk. Raises DiskFull."""
        if not self._has_room(size + ROOM_BYTES):
            raise DiskFull(f"{path}: no space left for {size} bytes")

    def local(self, node: _Node, path: str) -> File:
        """Return a file as it is on the disk. Raises SegmentFailed: it is not there yet."""
        if node.local is None:
            raise SegmentFailed(f"{path}: it is not on the disk yet")
        return node.local

    def leave(self, node: _Node) -> None:
        """Take back one `open`."""
        with self._lock:
            node.handles -= 1
            self._close_if_unused(node)

    # What was applied

    def _applied(self, operation: Operation) -> None:
        """Note that an operation is on the disk."""
        if isinstance(operation, Remove | MakeDirectory):
            return
        with self._lock:
            nodes = self._waiting[operation.path]
            node = nodes[0]
            is_used = node.handles or len(node.waiting) > 1
            if isinstance(operation, Create) and is_used:
                node.local = self._own.open(operation.path)  # first: it may fail, and come again
            nodes.popleft()
            if not nodes:
                del self._waiting[operation.path]
            node.waiting.popleft()
            self._close_if_unused(node)

    def _close_if_unused(self, node: _Node) -> None:
        if node.handles or node.waiting:
            return
        if node.path is not None and self._nodes.get(node.path) is node:
            del self._nodes[node.path]
        local, node.local = node.local, None
        if local is not None:
            local.close()

    # Names

    def _found(self, path: str, *, create: bool) -> _Node:
        if self._has(path):
            return _Node(path, self._own.open(path))
        if not create:
            raise SegmentFailed(f"{path}: cannot open: it is not there")
        self.need_room(path, 0)
        self._names_in(parent_of(path)).add(name_of(path))
        node = _Node(path, None)
        self._add(Create(path), node)
        return node

    def _add(self, operation: Waiting, node: _Node) -> None:
        """Have an operation sent, and the node wait for it."""
        node.waiting.append(operation)
        self._waiting.setdefault(operation.path, deque()).append(node)
        self.shipping.add(operation)

    def _forget(self, path: str) -> None:
        node = self._nodes.pop(path, None)
        if node is not None:
            node.path = None

    def _has(self, path: str) -> bool:
        return name_of(path) in self._names_in(parent_of(path))

    def _has_directory(self, path: str) -> bool:
        """Return whether a directory is there; it is from now on, with those above it."""
        above = parent_of(path)
        is_above = not above or self._has_directory(above)
        names = self._names_in(above)
        if is_above and name_of(path) in names:
            return True
        names.add(name_of(path))
        self._names[path] = set()
        return False

    def _names_in(self, directory: str) -> set[str]:
        """Return the names in a directory, with all changes that are not on the disk yet."""
        names = self._names.get(directory)
        if names is None:
            found = self._own.names(directory)
            names = self._names[directory] = {
                each for each in found if directory or not is_own(each)
            }
        return names

    def _set_aside(self, source: str, target: str) -> None:
        """Keep a damaged file for people to look at: it goes from the others' copies."""
        self.shipping.settle()
        self._own.rename(source, target)
        with suppress(StoreError):
            self.remove(source)


def _size_after(size: int, change: Change) -> int:
    match change:
        case Write(_, position, data):
            return max(size, position + len(data))
        case Zero(_, position, count):
            return max(size, position + count)
        case Cut(_, end):
            return end
        case _:
            return size


def _lay_over(buffer: memoryview, position: int, changes: tuple[Waiting, ...]) -> None:
    """Do changes to bytes that were read at a position."""
    for change in changes:
        match change:
            case Write(_, begin, data):
                first, last = max(begin, position), min(begin + len(data), position + len(buffer))
                if first < last:
                    buffer[first - position : last - position] = data[first - begin : last - begin]
            case Zero(_, begin, size) | Punch(_, begin, size):
                _clear(buffer, begin - position, begin + size - position)
            case Cut(_, end):
                _clear(buffer, end - position, len(buffer))


def _clear(buffer: memoryview, begin: int, end: int) -> None:
    begin, end = max(begin, 0), min(end, len(buffer))
    if begin < end:
        buffer[begin:end] = bytes(end - begin)
