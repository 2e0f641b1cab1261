"""Operations on the files of a data directory, and their bytes. Pure: values to bytes and back.

Each operation says what is there afterwards, not what is different, so that a run of them may be
done again from an earlier place of the log. Little-endian:

    operation   | kind | path size | path | body ...
    bytes       | 1    | 2         |

    write       position u64, size u32, data
    joined      position u64, size u32, pieces u32; pieces: place i32, size u32, and the data itself
                where place is -1. Other pieces repeat data of an earlier write, each behind the
                one before: `place` is the byte of the message's operations at which they begin.
                So what a message holds is never more than its size
    zero        position u64, size u64
    cut         size u64
    punch       position u64, size u64
    create      nothing
    directory   nothing
    rename      size of the target u16, target
    remove      nothing
"""

import enum
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from store.errors import StoreError

_HEAD: Final = struct.Struct("<BH")
_WRITE: Final = struct.Struct("<QI")
_PIECES: Final = struct.Struct("<I")
_PIECE: Final = struct.Struct("<iI")
_RANGE: Final = struct.Struct("<QQ")
_SIZE: Final = struct.Struct("<Q")
_NAME: Final = struct.Struct("<H")

OPERATION_BYTES: Final = _HEAD.size + _WRITE.size
"""Size of a write without its path and its data."""
REPEATED_BYTES_MIN: Final = 64
"""A shorter write is not worth a reference."""
_LITERAL: Final = -1


class UnreadableOperation(StoreError):
    """Bytes are no operations: the log holds something else, or a newer version wrote it."""


class Kind(enum.IntEnum):
    """Kinds of operations."""

    WRITE = 1
    JOINED = 2
    ZERO = 3
    CUT = 4
    PUNCH = 5
    CREATE = 6
    DIRECTORY = 7
    RENAME = 8
    REMOVE = 9


@dataclass(frozen=True, slots=True)
class Write:
    """Bytes at a position of a file."""

    path: str
    position: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Zero:
    """Zeros at a position of a file."""

    path: str
    position: int
    size: int


@dataclass(frozen=True, slots=True)
class Cut:
    """The size of a file; what is new are zeros."""

    path: str
    size: int


@dataclass(frozen=True, slots=True)
class Punch:
    """Bytes of a file that are given back: zeros, and the size stays."""

    path: str
    position: int
    size: int


@dataclass(frozen=True, slots=True)
class Create:
    """An empty file; one that is there stays as it is."""

    path: str


@dataclass(frozen=True, slots=True)
class MakeDirectory:
    """A directory, with those above it."""

    path: str


@dataclass(frozen=True, slots=True)
class Rename:
    """Another name for a file, in place of one that has it."""

    path: str
    target: str


@dataclass(frozen=True, slots=True)
class Remove:
    """A file that is gone."""

    path: str


Operation: TypeAlias = Write | Zero | Cut | Punch | Create | MakeDirectory | Rename | Remove


def size_of(operation: Operation) -> int:
    """Return the bytes that an operation takes in a message at most, for a path of ASCII."""
    more = len(operation.data) if isinstance(operation, Write) else 0
    target = len(operation.target) if isinstance(operation, Rename) else 0
    return OPERATION_BYTES + 8 + len(operation.path) + target + more


def pack(operations: Iterable[Operation]) -> bytearray:
    """Return the bytes of operations; what a write repeats of earlier ones is referred to."""
    target = bytearray()
    writes: list[tuple[bytes, int]] = []
    for operation in operations:
        if isinstance(operation, Write):
            _pack_write(target, operation, writes)
        else:
            _pack_other(target, operation)
    return target


def _pack_write(target: bytearray, write: Write, writes: list[tuple[bytes, int]]) -> None:
    path, data = write.path.encode(), write.data
    repeated = list(_repeated(data, writes))
    if not repeated:
        target += _HEAD.pack(Kind.WRITE, len(path)) + path + _WRITE.pack(write.position, len(data))
        if len(data) >= REPEATED_BYTES_MIN:
            writes.append((data, len(target)))
        target += data
        return
    target += _HEAD.pack(Kind.JOINED, len(path)) + path + _WRITE.pack(write.position, len(data))
    count_at = len(target)
    target += _PIECES.pack(0)
    count = end = 0
    for at, place, size in (*repeated, (len(data), _LITERAL, 0)):
        if at > end:
            target += _PIECE.pack(_LITERAL, at - end) + data[end:at]
            count += 1
        if size:
            target += _PIECE.pack(place, size)
            count += 1
        end = at + size
    _PIECES.pack_into(target, count_at, count)
    writes.clear()  # a journal's frame holds what was written before it, once


def _repeated(data: bytes, writes: list[tuple[bytes, int]]) -> Iterator[tuple[int, int, int]]:
    """Yield where data repeats earlier writes, in their order: its position, their place, size."""
    position = 0
    for earlier, place in writes:
        if len(earlier) > len(data) - position:
            continue
        at = data.find(earlier, position)
        if at >= 0:
            yield at, place, len(earlier)
            position = at + len(earlier)


def _pack_other(target: bytearray, operation: Operation) -> None:
    path = operation.path.encode()
    head = _HEAD.pack(_KINDS[type(operation)], len(path)) + path
    match operation:
        case Zero(_, position, size) | Punch(_, position, size):
            target += head + _RANGE.pack(position, size)
        case Cut(_, size):
            target += head + _SIZE.pack(size)
        case Rename(_, name):
            target += head + _NAME.pack(len(name.encode())) + name.encode()
        case _:
            target += head


_KINDS: Final[dict[type[Operation], Kind]] = {
    Write: Kind.WRITE,
    Zero: Kind.ZERO,
    Cut: Kind.CUT,
    Punch: Kind.PUNCH,
    Create: Kind.CREATE,
    MakeDirectory: Kind.DIRECTORY,
    Rename: Kind.RENAME,
    Remove: Kind.REMOVE,
}


_NAMED: Final[dict[int, Callable[[str], Operation]]] = {
    Kind.CREATE: Create,
    Kind.DIRECTORY: MakeDirectory,
    Kind.REMOVE: Remove,
}
"""Kinds that are no more than a path."""


def unpack(data: memoryview) -> Iterator[Operation]:
    """Yield the operations of some bytes. Raises UnreadableOperation."""
    reader = _Reader(data)
    while reader.place < len(data):
        yield reader.next()


class _Reader:
    """Reads operations, one after the other; a piece of one may lie in an earlier one."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self.place = 0

    def next(self) -> Operation:
        """Return the next operation. Raises UnreadableOperation."""
        number, size = self._numbers(_HEAD)
        path = self._path(size)
        if number in _NAMED:
            return _NAMED[number](path)
        match number:
            case Kind.WRITE:
                position, size = self._numbers(_WRITE)
                return Write(path, position, bytes(self._bytes(size)))
            case Kind.JOINED:
                return self._joined(path)
            case Kind.ZERO | Kind.PUNCH:
                kind = Zero if number == Kind.ZERO else Punch
                return kind(path, *self._numbers(_RANGE))
            case Kind.CUT:
                return Cut(path, *self._numbers(_SIZE))
            case Kind.RENAME:
                return Rename(path, self._path(*self._numbers(_NAME)))
        raise UnreadableOperation(f"an operation of kind {number} is not known")

    def _joined(self, path: str) -> Write:
        position, size = self._numbers(_WRITE)
        (count,) = self._numbers(_PIECES)
        begin, data, repeated = self.place, bytearray(), 0
        for _ in range(count):
            place, length = self._numbers(_PIECE)
            if place == _LITERAL:
                data += self._bytes(length)
            elif repeated <= place <= begin - length:
                repeated = place + length
                data += self._data[place:repeated]
            else:
                raise UnreadableOperation("an operation repeats bytes that are not before it")
        if len(data) != size:
            raise UnreadableOperation("the pieces of an operation have another size than it")
        return Write(path, position, bytes(data))

    def _numbers(self, form: struct.Struct) -> tuple[int, ...]:
        return form.unpack(self._bytes(form.size))

    def _path(self, size: int) -> str:
        try:
            path = str(self._bytes(size), "utf-8")
        except UnicodeDecodeError as error:
            raise UnreadableOperation("the path of an operation is no text") from error
        if "\0" in path or not {"", ".."}.isdisjoint(path.split("/")):
            raise UnreadableOperation("the path of an operation leads out of the data directory")
        return path

    def _bytes(self, size: int) -> memoryview:
        end = self.place + size
        if end > len(self._data):
            raise UnreadableOperation("an operation is cut short")
        piece = self._data[self.place : end]
        self.place = end
        return piece
