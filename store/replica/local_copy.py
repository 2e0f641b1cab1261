"""A member's own copy of the directory: operations are applied to it, and it knows how far it is.

The file `member` says up to which message all that was applied is on the disk. After a crash the
operations behind that are applied again. That gives what the last of them leaves, since operations
say what is there afterwards; but a file that was renamed, and then made anew under its old name,
would be renamed again. So all is synced and noted before and behind a renaming, which is seldom.
"""

import json
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from store.errors import SegmentFailed, StoreError
from store.files import PASSING, File, Files
from store.replica.log import NOTHING
from store.replica.message import BEGINNING, Link
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

LOCK: Final = "lock"
MEMBER: Final = "member"
_UNFINISHED: Final = "member.new"
COPIES: Final = "copies"
"""Folder of links to files, which other members copy."""
JOINING: Final = "joining"
"""Folder of what was copied of another member, until it is whole and in place."""
OWN: Final = frozenset(
    (
        *(MEMBER, _UNFINISHED, LOCK, COPIES, JOINING),
        *("reserve", "set-aside", "admin.sock", "token.key", "token.new"),
    )
)
"""Names in the directory that are each member's own, and in no message."""
_OPEN_MAX: Final = 64
_ZEROS: Final = bytes(256 * 1024)
_FORMAT: Final = 1


def is_own(path: str) -> bool:
    """Return whether a path is the member's own: it is never in a message."""
    return path.partition("/")[0] in OWN


def _is_of_own(operation: Operation) -> bool:
    is_to_own = isinstance(operation, Rename) and is_own(operation.target)
    return is_to_own or is_own(operation.path)


def parent_of(path: str) -> str:
    """Return the directory of a path."""
    return path.rpartition("/")[0]


def name_of(path: str) -> str:
    """Return the name of a file in its directory."""
    return path.rpartition("/")[2]


def _tell_nobody(_: Operation) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Place:
    """The progress of a copy.

    Attributes:
        cluster: Id of the cluster, 16 bytes.
        link: The last message that it has.
        position: A position in the log that is not behind the next message.
        done: Operations of the next message that it has as well.
    """

    cluster: bytes
    link: Link = BEGINNING
    position: int = NOTHING
    done: int = 0

    @property
    def reached(self) -> tuple[int, int]:
        """The number of the last message, and the operations behind it; it grows."""
        return self.link.number, self.done

    def pack(self) -> bytes:
        """Return its bytes: JSON, for people too."""
        link = self.link
        values = {
            "format": _FORMAT,
            "cluster": self.cluster.hex(),
            "term": link.term,
            "number": link.number,
            "hash": link.hash.hex(),
            "position": self.position,
            "done": self.done,
        }
        return json.dumps(values, indent=1).encode() + b"\n"

    @classmethod
    def unpack(cls, data: bytes) -> "Place":
        """Return the place that some bytes say. Raises SegmentFailed."""
        try:
            values: dict[str, Any] = json.loads(data)
            if values["format"] != _FORMAT:
                raise SegmentFailed(
                    f"the file {MEMBER} of the data directory has format {values['format']}, and"
                    f" this version reads {_FORMAT}"
                )
            link = Link(values["number"], values["term"], bytes.fromhex(values["hash"]))
            cluster = bytes.fromhex(values["cluster"])
            return cls(cluster, link, values["position"], values["done"])
        except (ValueError, KeyError, TypeError) as error:
            raise SegmentFailed(f"the file {MEMBER} of the data directory is damaged") from error


def place_in(files: Files) -> Place | None:
    """Return how far the copy in a directory is; None if that is no member's. Raises StoreError."""
    if MEMBER not in files.names(""):
        return None
    file = files.open(MEMBER)
    try:
        return Place.unpack(file.read_at(file.size(), 0))
    finally:
        file.close()


@dataclass(frozen=True, slots=True)
class Unsynced:
    """A part of a copy that may not be on the disk yet.

    Attributes:
        place: How far the copy is on the disk once this is synced.
        paths: Files.
        directories: Directories whose names were changed.
    """

    place: Place
    paths: frozenset[str]
    directories: frozenset[str]

    def with_all_of(self, other: "Unsynced") -> "Unsynced":
        """Return it with the files and directories of an earlier part."""
        return Unsynced(self.place, self.paths | other.paths, self.directories | other.directories)

    def sync(self, files: Files) -> None:
        """Sync it; any thread. A file that is not there any more is left out. Raises StoreError."""
        for path in sorted(self.paths):  # a crash in the middle can be had again
            try:
                file = files.open(path)
            except StoreError:
                if name_of(path) in files.names(parent_of(path)):
                    raise
                continue
            try:
                file.sync()
            finally:
                file.close()
        for directory in sorted(self.directories):
            files.sync_directory(directory)


class LocalCopy:
    """The copy of one member. One thread at a time calls it.

    Attributes:
        files: Its directory.
        place: How far it is, with all that was applied.
        synced: How far it is on the disk.
        is_begun: Whether the directory says that it is a member's.
    """

    def __init__(self, files: Files, place: Place, *, is_begun: bool = True) -> None:
        self.files = files
        self.place = self.synced = place
        self.is_begun = is_begun
        self._is_lasting = False  # `synced` is what a start after a power cut finds
        self._failure: StoreError | None = None
        self._open: OrderedDict[str, File] = OrderedDict()
        # What was changed since the last call of `unsynced`, and what that has returned.
        self._dirty: set[str] = set()
        self._directories: set[str] = set()
        self._syncing: Unsynced | None = None

    def apply(
        self,
        link: Link,
        position: int,
        operations: Iterable[Operation],
        applied: Callable[[Operation], object] = _tell_nobody,
    ) -> None:
        """Apply a message. Raises StoreError; the next call goes on where this one failed.

        Args:
            link: The message's.
            position: A position in the log that is not behind the message after it.
            operations: What it holds.
            applied: Is told of each operation that was applied.
        """
        done, count = self.place.done, 0
        self.begin()
        try:
            for count, operation in enumerate(operations):  # said where it fails
                if count >= done and not _is_of_own(operation):
                    self._do(operation, count)
                    applied(operation)
        except StoreError:
            self.place = replace(self.place, done=max(done, count))
            raise
        self.place = Place(self.place.cluster, link, position)

    def begin(self) -> None:
        """Have the directory say that it is a member's, before anything of a message is in it.

        Raises:
            StoreError: It cannot, or a sync has failed before.
        """
        if self._failure is not None:
            raise self._failure
        if not self.is_begun:
            self._note(self.place)
            self.is_begun = True
        elif not self._is_lasting:
            self._synced(self.files.sync_directory, "")  # the last process may not have come to it
        self._is_lasting = True

    def adopt(self, cluster: bytes) -> None:
        """Become a copy of a cluster; nothing has been applied."""
        self.place = self.synced = Place(cluster)
        self.is_begun = False

    def sync(self) -> None:
        """Have all that was applied on the disk, and note it there.

        Raises:
            StoreError: It cannot. After a sync that failed it never will: what is on the disk is
                not known, and the next start applies it again.
        """
        if not self.is_begun and self._failure is None:
            return  # nothing was applied
        part = self.unsynced()
        self.sync_part(part)
        self.note(part)

    def unsynced(self) -> Unsynced:
        """Return what has to be synced for all that was applied to be on the disk.

        What an earlier call returned is in it until it is noted. Raises as `sync`.
        """
        self.begin()
        part = Unsynced(self.place, frozenset(self._dirty), frozenset(self._directories))
        if self._syncing is not None:
            part = part.with_all_of(self._syncing)
        self._syncing = part
        self._dirty, self._directories = set(), set()
        return part

    def sync_part(self, part: Unsynced) -> None:
        """Sync a part, on any thread. Raises as `sync`."""
        self._synced(part.sync, self.files)

    def note(self, part: Unsynced) -> None:
        """Note durably that a part is synced. Raises StoreError."""
        if self._syncing is part:
            self._syncing = None
        if part.place.reached > self.synced.reached:
            self._note(part.place)

    def close(self) -> None:
        """Close the files."""
        while self._open:
            self._open.popitem()[1].close()

    def _do(self, operation: Operation, count: int) -> None:
        if isinstance(operation, Rename):
            self._rename(operation, count)
        else:
            self._APPLY[type(operation)](self, operation)

    def _synced(self, sync: Callable[..., None], *arguments: object) -> None:
        """Sync something; one that fails is the last one."""
        try:
            sync(*arguments)
        except PASSING:
            raise
        except StoreError as error:
            self._failure = error
            raise

    def _note(self, place: Place) -> None:
        data = place.pack()
        file = self.files.open(_UNFINISHED, create=True)
        try:
            file.cut(0)
            file.write_at(data, 0)
            self._synced(file.sync)
        finally:
            file.close()
        self.files.rename(_UNFINISHED, MEMBER)
        self._synced(self.files.sync_directory, "")
        self.synced = place

    def _file(self, path: str) -> File:
        """Return a file, open; it is made if it is not there, since it may be removed later on."""
        file = self._open.get(path)
        if file is None:
            if len(self._open) >= _OPEN_MAX:
                self._close(next(iter(self._open)))
            file = self._open[path] = self.files.open(path, create=True)
            self._directories.add(parent_of(path))
        else:
            self._open.move_to_end(path)
        self._dirty.add(path)
        return file

    def _close(self, path: str) -> None:
        file = self._open.pop(path, None)
        if file is not None:
            file.close()

    def _write(self, operation: Write) -> None:
        self._file(operation.path).write_at(operation.data, operation.position)

    def _zero(self, operation: Zero) -> None:
        _write_zeros(self._file(operation.path), operation.position, operation.size)

    def _cut(self, operation: Cut) -> None:
        self._file(operation.path).cut(operation.size)

    def _punch(self, operation: Punch) -> None:
        file, position, size = self._file(operation.path), operation.position, operation.size
        if not file.punch(position, size):
            _write_zeros(file, position, min(size, file.size() - position))

    def _create(self, operation: Create) -> None:
        self._file(operation.path)

    def _make_directory(self, operation: MakeDirectory) -> None:
        self._synced(self.files.make_directory, operation.path)

    def _rename(self, operation: Rename, count: int) -> None:
        source, target = operation.path, operation.target
        if name_of(source) in self.files.names(parent_of(source)):
            self.place = replace(self.place, done=count)
            self.sync()
            for path in (source, target):
                self._close(path)
            self.files.rename(source, target)
        # It was done before, if it is not there: maybe by a process that died at once.
        self._directories |= {parent_of(source), parent_of(target)}
        self.place = replace(self.place, done=count + 1)
        self.sync()

    def _remove(self, operation: Remove) -> None:
        path = operation.path
        self._dirty.discard(path)
        self._close(path)
        self.files.remove(path)
        self._directories.add(parent_of(path))

    _APPLY: Final[dict[type[Operation], Callable[["LocalCopy", Any], None]]] = {
        Write: _write,
        Zero: _zero,
        Cut: _cut,
        Punch: _punch,
        Create: _create,
        MakeDirectory: _make_directory,
        Remove: _remove,
    }


def _write_zeros(file: File, position: int, size: int) -> None:
    end = position + size
    for begin in range(position, end, len(_ZEROS)):
        file.write_at(_ZEROS[: end - begin], begin)
