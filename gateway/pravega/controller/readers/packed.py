"""Values in the bytes of Pravega's Java client: texts, numbers and maps, with a limit of work.

A state is a client's own bytes, so that nothing in them is trusted: any bytes give values or
UnreadableValue, and what is read and changed for one state is counted. What may take long is a
generator: it yields after a few hundred entries, so that its caller can let others have their turn.

Source: Pravega, io.pravega.common.io.serialization (VersionedSerializer, RevisionDataInput).
"""

import struct
from collections.abc import Callable, Generator, Iterator
from typing import Final, TypeAlias, TypeVar

T = TypeVar("T")
Steps: TypeAlias = Generator[None, None, T]
"""Work in steps, each of which takes some 0.3 ms."""

ENTRIES_A_STEP: Final = 256
ENTRIES_MAX: Final = 20_000
"""Entries of one map: the controller takes 10,000 segments in the cuts of a group, and a scaling
may have as many behind them."""
WORK_MAX: Final = 400_000
"""Entries of one state that are read, copied or changed: 0.5 s of CPU, and 80 MB in maps, at most.
A whole state of 10,000 segments has 50,000."""

_HEAD: Final = struct.Struct(">ii")
_EVENT: Final = 0
_INT: Final = struct.Struct(">i")
_LONG: Final = struct.Struct(">q")
_SHORT: Final = struct.Struct(">H")
_FORMAT: Final = 0
_VERSION: Final = 0
_REVISIONS_MAX: Final = 127
_OF_TWO: Final = 0x80
_OF_FOUR: Final = 0xC0
_OF_HEAD: Final = 0x40
"""Least first bytes of counts of two and of four bytes; what the first two bits count for."""


class UnreadableValue(Exception):
    """Bytes are no state of a group, or one that is too large; the text says why."""


class Work:
    """Entries that were read, copied or changed for one state."""

    def __init__(self) -> None:
        self._done = 0
        self._done_before = 0
        """At the end of the last step."""

    def count(self, entries: int = 1) -> None:
        """Count some more. Raises UnreadableValue above WORK_MAX."""
        self._done += entries
        if self._done > WORK_MAX:
            raise UnreadableValue(f"it takes more than {WORK_MAX} entries")

    def is_step_over(self) -> bool:
        """Count one entry more; return whether it is time for a step to end."""
        self.count()
        if self._done - self._done_before < ENTRIES_A_STEP:
            return False
        self._done_before = self._done
        return True


class Framed:
    """Finds the events in the bytes of a segment: `int 0, int size, bytes`, one after the other."""

    def __init__(self) -> None:
        """Begin where an event begins."""
        self._data = bytearray()

    @property
    def is_whole(self) -> bool:
        """True if no part of an event is left."""
        return not self._data

    def fed(self, data: bytes) -> Iterator[bytes]:
        """Take the next piece; yield the events that are whole now. Raises UnreadableValue."""
        self._data += data
        place = 0
        while place + _HEAD.size <= len(self._data):
            kind, size = _HEAD.unpack_from(self._data, place)
            if kind != _EVENT or size < 0:
                raise UnreadableValue("it holds what is no event")
            end = place + _HEAD.size + size
            if end > len(self._data):
                break
            yield bytes(self._data[place + _HEAD.size : end])
            place = end
        del self._data[:place]


class Packed:
    """Reads values one after the other. Every method raises UnreadableValue if bytes lack."""

    def __init__(self, data: bytes, work: Work) -> None:
        """Begin at the first byte."""
        self._data = data
        self._place = 0
        self._work = work

    @property
    def is_at_end(self) -> bool:
        """True if every byte is read."""
        return self._place == len(self._data)

    def bytes_of(self, size: int) -> bytes:
        """Return the next bytes."""
        end = self._place + size
        if not self._place <= end <= len(self._data):
            raise UnreadableValue(f"{size} bytes are wanted of {len(self._data) - self._place}")
        found = self._data[self._place : end]
        self._place = end
        return found

    def byte(self) -> int:
        """Return a byte without a sign."""
        return self.bytes_of(1)[0]

    def integer(self) -> int:
        """Return a number of 4 bytes, with its sign."""
        number: int = _INT.unpack(self.bytes_of(_INT.size))[0]
        return number

    def long(self) -> int:
        """Return a number of 8 bytes, with its sign."""
        number: int = _LONG.unpack(self.bytes_of(_LONG.size))[0]
        return number

    def count(self) -> int:
        """Return a number of entries or bytes, in 1, 2 or 4 bytes as the first two bits say."""
        first = self.byte()
        if first < _OF_TWO:
            return first
        more = self.bytes_of(1 if first < _OF_FOUR else 3)
        return int.from_bytes(bytes((first % _OF_HEAD,)) + more)

    def text(self) -> str:
        """Return a text in Java's UTF-8, in which a character may be two halves of a pair."""
        size: int = _SHORT.unpack(self.bytes_of(_SHORT.size))[0]
        data = self.bytes_of(size)
        if data.isascii():
            return data.decode("ascii")
        try:
            halves = data.replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
            return halves.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeError:
            raise UnreadableValue("a text is no text") from None

    def contents(self) -> "Packed":
        """Return the oldest revision of an object, which later ones only add to.

        What follows are the later revisions, which are left out, and what is behind the object.
        """
        version, revisions = self.byte(), self.byte()
        if version != _VERSION or not 0 < revisions <= _REVISIONS_MAX:
            raise UnreadableValue(f"an object has version {version} with {revisions} revisions")
        first = b""
        for number in range(revisions):
            if self.byte() != number:
                raise UnreadableValue("an object's revisions are not in order")
            part = self.bytes_of(self.integer())
            first = first if number else part
        return Packed(first, self._work)

    def whole(self) -> "Packed":
        """Return the oldest revision of an object that is packed by itself, behind its size."""
        inner = Packed(self.bytes_of(self.count()), self._work)
        inner.begin()
        return inner.contents()

    def begin(self) -> None:
        """Read the number of the format, with which each object that stands alone begins."""
        if (number := self.byte()) != _FORMAT:
            raise UnreadableValue(f"an object has the format {number}")

    def map_of(self, value: Callable[["Packed"], T]) -> Steps[dict[str, T]]:
        """Read a map of texts, with a reader of its values."""
        found: dict[str, T] = {}
        for _ in range(self._entries()):
            name = self.text()
            found[name] = value(self)
            if self._work.is_step_over():
                yield
        return found

    def offsets(self) -> Steps[dict[str, int]]:
        """Read a map of offsets by segments."""
        return self.map_of(Packed.long)

    def nested(self, inner: Callable[["Packed"], Steps[T]]) -> Steps[dict[str, T]]:
        """Read a map of texts, with a reader of its values in steps."""
        found: dict[str, T] = {}
        for _ in range(self._entries()):
            name = self.text()
            found[name] = yield from inner(self)
            if self._work.is_step_over():
                yield
        return found

    def list_of(self, item: Callable[["Packed"], T]) -> Steps[list[T]]:
        """Read a list, with a reader of its items."""
        found: list[T] = []
        for _ in range(self._entries()):
            found.append(item(self))
            if self._work.is_step_over():
                yield
        return found

    def _entries(self) -> int:
        number = self.count()
        if number > ENTRIES_MAX:
            raise UnreadableValue(f"a map has {number} entries, above {ENTRIES_MAX}")
        return number
