"""A disk in memory that records every step, in the order in which the steps took effect.

It is what the store sees while it runs: every write is there at once. What of it would survive a
crash is for crash.py to say.
"""

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from typing_extensions import Buffer

from store.errors import DiskFull, SegmentFailed, StoreLocked
from store.files import OutOfDescriptors

Inode = int
"""What a name leads to. A file removed and made again is another inode."""


@dataclass(frozen=True, slots=True)
class Step:
    """Something that changed the disk, or made changes durable."""


@dataclass(frozen=True, slots=True)
class Write(Step):
    inode: Inode
    position: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Allocate(Step):
    inode: Inode
    end: int


@dataclass(frozen=True, slots=True)
class Punch(Step):
    inode: Inode
    position: int
    size: int
    """No further than the file goes."""


@dataclass(frozen=True, slots=True)
class Cut(Step):
    inode: Inode
    size: int


@dataclass(frozen=True, slots=True)
class Sync(Step):
    inode: Inode
    has_failed: bool = False


@dataclass(frozen=True, slots=True)
class MakeDirectory(Step):
    path: str


@dataclass(frozen=True, slots=True)
class Create(Step):
    path: str
    inode: Inode


@dataclass(frozen=True, slots=True)
class Rename(Step):
    source: str
    target: str
    inode: Inode


@dataclass(frozen=True, slots=True)
class Remove(Step):
    path: str
    inode: Inode


@dataclass(frozen=True, slots=True)
class SyncDirectory(Step):
    directory: str
    has_failed: bool = False


@dataclass(frozen=True, slots=True)
class Image:
    """What is on a disk: directories, names, and the bytes of each inode."""

    directories: frozenset[str] = frozenset()
    names: dict[str, Inode] = field(default_factory=dict)
    contents: dict[Inode, bytes] = field(default_factory=dict)


@dataclass
class Failure:
    """A step that fails: asked before each step, and counted down."""

    does_meet: Callable[[Step], bool]
    after: int = 0
    """How many steps that it meets go well first."""
    times: int = 1
    """How many then fail."""
    is_full: bool = False
    """DiskFull, which a sync never is, instead of SegmentFailed."""
    keeps_bytes: int = 0
    """How much of a write that fails is written all the same; below 0: all but so much."""

    def does_hit(self, step: Step) -> bool:
        if not self.does_meet(step):
            return False
        self.after -= 1
        if self.after >= 0 or self.times <= 0:
            return False
        self.times -= 1
        return True


def _go_on(_: Step) -> None:
    """Let every write and sync happen at once."""


def parent_of(path: str) -> str:
    return path.rpartition("/")[0]


class Disk:
    """A data directory in memory: an implementation of store.files.Files."""

    def __init__(self, image: Image | None = None, *, is_cold: bool = False) -> None:
        """Begin with an image; with `is_cold` no byte is ever in the page cache."""
        image = image or Image()
        self.record: list[Step] = []
        self.failures: list[Failure] = []
        # Called before each write, on the thread that writes: it may hold the write up.
        self.before_write: Callable[[Write], object] = _go_on
        # The same before each sync of a file.
        self.before_sync: Callable[[Sync], object] = _go_on
        self.is_cold = is_cold
        # How many files and directories may be open at once, and how many are.
        self.descriptors_max = math.inf
        self.descriptors = 0
        # Bytes of all files that have a name, in whole sectors; None: there is no end to it.
        self.capacity: int | None = None
        # Any thread of the store may call: this makes one order of it.
        self._lock = threading.Lock()
        self._directories = {"", *image.directories}
        self._names = dict(image.names)
        # Bytes until the first write, so that images share what does not change.
        self._contents: dict[Inode, bytes | bytearray] = dict(image.contents)
        # Sectors that take no space.
        self._holes: dict[Inode, set[int]] = {}
        self._next_inode = max(self._contents, default=0) + 1
        self._locked: set[str] = set()
        self._kept: set[str] = set()

    def image(self) -> Image:
        """Give the disk as it is seen now."""
        with self._lock:
            contents = {inode: bytes(self._contents[inode]) for inode in self._names.values()}
            return Image(frozenset(self._directories), dict(self._names), contents)

    def forget(self) -> None:
        """Let go of all bytes, and of what is to be called: the disk is not used any more."""
        self.record.clear()
        self._contents.clear()
        self._names.clear()
        self.before_write, self.before_sync = _go_on, _go_on

    # Files

    def make_directory(self, path: str) -> None:
        with self._lock:
            for end in [index for index, sign in enumerate(path) if sign == "/"] + [len(path)]:
                directory = path[:end]
                if directory not in self._directories:
                    self._take(MakeDirectory(directory))
                    self._directories.add(directory)
                    self._sync(parent_of(directory))

    def open(self, path: str, *, create: bool = False) -> "MemoryFile":
        with self._lock:
            self._need_descriptor(path)
            inode = self._names.get(path)
            if inode is None:
                if not create or parent_of(path) not in self._directories:
                    raise SegmentFailed(f"{path}: cannot open: it is not there")
                inode = self._next_inode
                self._take(Create(path, inode))
                self._next_inode += 1
                self._names[path] = inode
                self._contents[inode] = b""
            self.descriptors += 1
            return MemoryFile(self, inode, path)

    def names(self, directory: str) -> list[str]:
        with self._lock:
            self._need_descriptor(directory)
            if directory not in self._directories:
                raise SegmentFailed(f"{directory}: cannot list: it is not there")
            paths = [*self._names, *(path for path in self._directories if path)]
            return [path.rpartition("/")[2] for path in paths if parent_of(path) == directory]

    def rename(self, source: str, target: str) -> None:
        with self._lock:
            if source not in self._names:
                raise SegmentFailed(f"{source}: cannot rename: it is not there")
            self._take(Rename(source, target, self._names[source]))
            self._names[target] = self._names.pop(source)

    def remove(self, path: str) -> None:
        with self._lock:
            if path in self._names:
                self._take(Remove(path, self._names[path]))
                del self._names[path]

    def keep_open(self, directory: str) -> None:
        with self._lock:
            if directory not in self._kept:
                self._need_descriptor(directory)
                self._kept.add(directory)
                self.descriptors += 1

    def sync_directory(self, directory: str) -> None:
        with self._lock:
            if directory not in self._kept:
                self._need_descriptor(directory)
            if directory not in self._directories:
                raise SegmentFailed(f"{directory}: sync failed: it is not there")
            self._sync(directory)

    def lock(self, path: str) -> "MemoryFile":
        file = self.open(path, create=True)
        with self._lock:
            file.holds_lock = path not in self._locked
            self._locked.add(path)
        if not file.holds_lock:
            file.close()
            raise StoreLocked(f"{path} is in use")
        return file

    def close(self) -> None:
        with self._lock:
            self.descriptors -= len(self._kept)
            self._kept.clear()

    # What an open file does

    def write(self, inode: Inode, position: int, data: bytes) -> None:
        step = Write(inode, position, data)
        self.before_write(step)
        with self._lock:
            failure = next((each for each in self.failures if each.does_hit(step)), None)
            if failure is None:
                self._need(inode, position + len(data))
                self._put(step)
                return
            if failure.keeps_bytes:
                self._put(Write(inode, position, data[: failure.keeps_bytes]))
            kind = DiskFull if failure.is_full else SegmentFailed
            raise kind("no space left to write" if failure.is_full else "cannot write")

    def read(self, inode: Inode, size: int, position: int) -> bytes:
        with self._lock:
            return bytes(memoryview(self._contents[inode])[position : position + size])

    def size(self, inode: Inode) -> int:
        with self._lock:
            return len(self._contents[inode])

    def allocate(self, inode: Inode, end: int) -> None:
        with self._lock:
            self._need(inode, end)
            self._take(Allocate(inode, end))
            content = self._changing(inode)
            content.extend(bytes(max(0, end - len(content))))

    def punch(self, inode: Inode, position: int, size: int) -> None:
        with self._lock:
            size = max(0, min(size, len(self._contents[inode]) - position))
            self._take(Punch(inode, position, size))
            put(self._changing(inode), position, bytes(size))
            whole = range(_whole_sectors(position), position + size - SECTOR_BYTES + 1)
            self._holes.setdefault(inode, set()).update(
                at // SECTOR_BYTES for at in whole[::SECTOR_BYTES]
            )

    def cut(self, inode: Inode, size: int) -> None:
        with self._lock:
            self._take(Cut(inode, size))
            content = self._changing(inode)
            del content[size:]
            content.extend(bytes(size - len(content)))

    def sync(self, inode: Inode) -> None:
        step = Sync(inode)
        self.before_sync(step)
        with self._lock:
            self._record_sync(step, Sync(inode, has_failed=True))

    def close_file(self, file: "MemoryFile") -> None:
        with self._lock:
            self.descriptors -= 1
            if file.holds_lock:
                self._locked.discard(file.path)

    def used(self) -> int:
        """Tell how much of the capacity is taken."""
        with self._lock:
            return self._used()

    # All of it under the lock

    def _need_descriptor(self, path: str) -> None:
        if self.descriptors >= self.descriptors_max:
            raise OutOfDescriptors(f"{path}: cannot open: too many open files")

    def _used(self) -> int:
        return sum(map(self._space_of, self._names.values()))

    def _space_of(self, inode: Inode) -> int:
        holes = len(self._holes.get(inode, ()))
        return _whole_sectors(len(self._contents[inode])) - holes * SECTOR_BYTES

    def _need(self, inode: Inode, end: int) -> None:
        """Have room for a file to become so long, or raise DiskFull."""
        growth = _whole_sectors(end) - _whole_sectors(len(self._contents[inode]))
        if self.capacity is not None and growth > max(0, self.capacity - self._used()):
            raise DiskFull("no space left on the disk")

    def _take(self, step: Step) -> None:
        """Record a step, or let it fail with nothing done."""
        for failure in self.failures:
            if failure.does_hit(step):
                raise (DiskFull if failure.is_full else SegmentFailed)("this step fails")
        self.record.append(step)

    def _put(self, step: Write) -> None:
        self.record.append(step)
        content = self._changing(step.inode)
        put(content, step.position, step.data)
        if (holes := self._holes.get(step.inode)) is not None:
            end = step.position + len(step.data)
            holes.difference_update(range(step.position // SECTOR_BYTES, end // SECTOR_BYTES + 1))

    def _sync(self, directory: str) -> None:
        self._record_sync(SyncDirectory(directory), SyncDirectory(directory, has_failed=True))

    def _record_sync(self, good: Step, bad: Step) -> None:
        if any(failure.does_hit(good) for failure in self.failures):
            self.record.append(bad)
            raise SegmentFailed("sync failed")
        self.record.append(good)

    def _changing(self, inode: Inode) -> bytearray:
        content = self._contents[inode]
        if not isinstance(content, bytearray):
            content = self._contents[inode] = bytearray(content)
        return content


def _whole_sectors(size: int) -> int:
    return -(-size // SECTOR_BYTES) * SECTOR_BYTES


def put(content: bytearray, position: int, data: bytes) -> None:
    """Write into a file's bytes; a hole before the position is zeros. Nothing changes nothing."""
    if data and position > len(content):
        content.extend(bytes(position - len(content)))
    content[position : position + len(data)] = data


class MemoryFile:
    """An open file of the disk; closed, it fails whatever is asked of it, as a descriptor would."""

    def __init__(self, disk: Disk, inode: Inode, path: str) -> None:
        self.path = path
        self.holds_lock = False
        self._disk = disk
        self._open_inode: Inode | None = inode

    @property
    def _inode(self) -> Inode:
        inode = self._open_inode
        if inode is None:
            raise SegmentFailed(f"{self.path}: the file is closed")
        return inode

    @property
    def fileno(self) -> int:
        raise NotImplementedError("a file in memory has no descriptor")

    def write_at(self, data: Buffer, position: int) -> None:
        self._disk.write(self._inode, position, bytes(data))

    def read_at(self, size: int, position: int) -> bytes:
        return self._disk.read(self._inode, size, position)

    def read_cached_at(self, size: int, position: int) -> bytes | None:
        inode = self._inode
        return None if self._disk.is_cold else self._disk.read(inode, size, position)

    def read_into(self, buffer: memoryview, position: int, *, waits: bool = True) -> int:
        data = self.read_at(len(buffer), position) if waits or not self._disk.is_cold else b""
        buffer[: len(data)] = data
        return len(data)

    def will_read(self, size: int, position: int) -> None:
        """Do nothing: it is only a hint."""

    def allocate(self, position: int, size: int) -> None:
        self._disk.allocate(self._inode, position + size)

    def punch(self, position: int, size: int) -> bool:
        self._disk.punch(self._inode, position, size)
        return True

    def size(self) -> int:
        return self._disk.size(self._inode)

    def cut(self, size: int) -> None:
        self._disk.cut(self._inode, size)

    def sync(self) -> None:
        self._disk.sync(self._inode)

    def close(self) -> None:
        if self._open_inode is not None:
            self._open_inode = None
            self._disk.close_file(self)


SECTOR_BYTES: Final = 512
"""What a disk writes as a whole."""
