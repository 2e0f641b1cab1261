"""The forms of single fields in a frame. All integers are big-endian.

    u8 i16 u16 u32 u64 i64   as they say; a bool is a u8, 0 or 1
    string                   u16 size | bytes            size 0xFFFF: null
    bytes                    i32 size | bytes            size -1: null, where that may be
    list                     u32 count | items
    map                      u32 count | (string | string or i64) ...
    offset                   u16 type | u64 offset (type 4) or i64 ms (type 5) or nothing

A list or map that ends the frame is read to the end of the frame, and its count is ignored, as
RabbitMQ does with the frames of clients (`Rest`, `StringMap`). `Counted` and `NumberMap` trust
their count.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, Generic, Protocol, TypeVar

from hutch import layout
from hutch.stream.errors import MalformedFrame
from hutch.stream.offsets import OffsetSpec, OffsetType

T = TypeVar("T")

NULL_STRING_SIZE: Final = 0xFFFF
NULL_STRING: Final = NULL_STRING_SIZE.to_bytes(2)
NULL_BYTES_SIZE: Final = -1
_BYTES_SIZE_BYTES: Final = 4
COUNT_BYTES: Final = 4


class FieldType(layout.WireType[T], Protocol[T]):
    """The form of one field in a frame.

    Attributes:
        zero: The value that a refusal carries in this field.
        is_last: True if it reads to the end of the frame, and so must be the last field.
    """

    @property
    def zero(self) -> T: ...
    @property
    def is_last(self) -> bool: ...


class FixedNumber(layout.Fixed[T]):
    """A number of fixed size: one format character of the struct module."""

    malformed = MalformedFrame
    is_last: Final = False

    def __init__(
        self, name: str, code: str, zero: T, convert: Callable[[int], T] | None = None
    ) -> None:
        super().__init__(name, code, convert)
        self.zero: Final = zero


class String:
    """Text with a u16 size.

    Clients may send bytes that are not UTF-8. They become lone surrogates, and are written back
    as they came.
    """

    name: Final = "string"
    zero: Final = ""
    is_last: Final = False

    def read(self, frame: bytes, position: int) -> tuple[str, int]:
        first = position + 2
        if first > len(frame):
            raise MalformedFrame("string size is cut short", position)
        size = (frame[position] << 8) | frame[position + 1]
        if size == NULL_STRING_SIZE:
            raise MalformedFrame("null where a string is needed", position)
        end = first + size
        if end > len(frame):
            raise MalformedFrame("string ends past the frame", position)
        return frame[first:end].decode("utf-8", "surrogateescape"), end

    def read_rest(self, frame: bytes, position: int, most: int = 1 << 32) -> list[str]:
        """Read strings up to the end of the frame; more than `most` are malformed.

        As `read` does, but in one loop: a frame of 1 MiB may hold half a million of them.
        """
        items: list[str] = []
        frame_end = len(frame)
        while position + 2 <= frame_end:
            size = (frame[position] << 8) | frame[position + 1]
            first = position + 2
            end = first + size
            if end > frame_end or size == NULL_STRING_SIZE:
                break
            items.append(frame[first:end].decode("utf-8", "surrogateescape"))
            position = end
            if len(items) > most:
                raise MalformedFrame("list is too long", position)
        if position < frame_end:
            self.read(frame, position)  # raises the error
        return items

    def write(self, value: str, target: bytearray) -> None:
        put_short(value.encode("utf-8", "surrogateescape"), target)


class NullableString:
    """Text with a u16 size, or None for a size of 0xFFFF."""

    name: Final = "string or null"
    zero: Final = None
    is_last: Final = False

    def read(self, frame: bytes, position: int) -> tuple[str | None, int]:
        if frame[position : position + 2] == NULL_STRING:
            return None, position + 2
        return STRING_TYPE.read(frame, position)

    def write(self, value: str | None, target: bytearray) -> None:
        if value is None:
            target += NULL_STRING
        else:
            STRING_TYPE.write(value, target)


class ShortBytes:
    """Bytes with a u16 size, as RabbitMQ writes a SASL challenge."""

    name: Final = "short bytes"
    zero: Final = b""
    is_last: Final = False

    def read(self, frame: bytes, position: int) -> tuple[bytes, int]:
        first = position + 2
        end = first + int.from_bytes(frame[position:first])
        if first > len(frame) or end > len(frame):
            raise MalformedFrame("short bytes end past the frame", position)
        return frame[first:end], end

    def write(self, value: bytes, target: bytearray) -> None:
        put_short(value, target)


def put_short(value: bytes, target: bytearray) -> None:
    """Append a u16 size and the bytes.

    Raises:
        ValueError: More than 65,534 bytes; a size of 65,535 means null.
    """
    if len(value) >= NULL_STRING_SIZE:
        raise ValueError(f"a string of {len(value)} bytes has no size on the wire")
    target += len(value).to_bytes(2)
    target += value


def _place_of_bytes(frame: bytes, position: int) -> tuple[int, int] | None:
    """Return where bytes with an i32 size begin and end; None for null."""
    first = position + _BYTES_SIZE_BYTES
    if first > len(frame):
        raise MalformedFrame("bytes size is cut short", position)
    size = int.from_bytes(frame[position:first], signed=True)
    if size == NULL_BYTES_SIZE:
        return None
    end = first + size
    if size < 0 or end > len(frame):
        raise MalformedFrame("bytes end past the frame", position)
    return first, end


class NullableBytes:
    """Bytes with an i32 size, or None for a size of -1."""

    name: Final = "bytes or null"
    zero: Final = None
    is_last: Final = False

    def read(self, frame: bytes, position: int) -> tuple[bytes | None, int]:
        place = _place_of_bytes(frame, position)
        if place is None:
            return None, position + _BYTES_SIZE_BYTES
        first, end = place
        return frame[first:end], end

    def write(self, value: bytes | None, target: bytearray) -> None:
        if value is None:
            target += NULL_BYTES_SIZE.to_bytes(4, signed=True)
        else:
            target += len(value).to_bytes(4)
            target += value


class Bytes:
    """Bytes with an i32 size, which are there. They are read as a view: a copy of many costs."""

    name: Final = "bytes"
    zero: Final = b""
    is_last: Final = False

    def read(self, frame: bytes, position: int) -> tuple[memoryview, int]:
        place = _place_of_bytes(frame, position)
        if place is None:
            raise MalformedFrame("null where bytes are needed", position)
        first, end = place
        return memoryview(frame)[first:end], end

    def write(self, value: bytes | memoryview, target: bytearray) -> None:
        target += len(value).to_bytes(_BYTES_SIZE_BYTES)
        target += value


class Remainder:
    """The rest of the frame: a body that is read elsewhere."""

    name: Final = "rest of the frame"
    zero: Final = b""
    is_last: Final = True

    def read(self, frame: bytes, position: int) -> tuple[bytes, int]:
        return frame[position:], len(frame)

    def write(self, value: bytes, target: bytearray) -> None:
        target += value


class Counted(Generic[T]):
    """A list whose count is trusted, once the frame is seen to have room for its items.

    Args:
        item: Type of the items; each takes at least a byte.
        count_max: Most items; None leaves it to the frame.
    """

    is_last: Final = False

    def __init__(self, item: FieldType[T], count_max: int | None = None) -> None:
        self.name: Final = f"list of {item.name}"
        self.zero: Final[tuple[T, ...]] = ()
        self.item: Final = item
        self._count_max: Final = count_max

    def read(self, frame: bytes, position: int) -> tuple[tuple[T, ...], int]:
        count, first = U32_TYPE.read(frame, position)
        if count > len(frame) - first:
            raise MalformedFrame("list says more items than the frame can hold", position)
        if self._count_max is not None and count > self._count_max:
            raise MalformedFrame("list is too long", position)
        position = first
        read = self.item.read
        items: list[T] = []
        for _ in range(count):
            item, position = read(frame, position)
            items.append(item)
        return tuple(items), position

    def write(self, value: tuple[T, ...], target: bytearray) -> None:
        target += len(value).to_bytes(COUNT_BYTES)
        if isinstance(value, WrittenItems):
            target += value.content
            return
        for item in value:
            self.item.write(item, target)


class WrittenItems(Generic[T]):
    """A list whose items are written as they are added, so that a long one never blocks."""

    def __init__(self, item: FieldType[T]) -> None:
        self._item = item
        self._count = 0
        self.content = bytearray()

    def __len__(self) -> int:
        return self._count

    def append(self, item: T) -> None:
        """Write one more item."""
        self._item.write(item, self.content)
        self._count += 1


class RestItem(FieldType[T], Protocol[T]):
    """Type of the items of a list that ends the frame: it can read many at once."""

    def read_rest(self, frame: bytes, position: int) -> list[T]:
        """Return the values from `position` to the end of the frame, or raise MalformedFrame."""


class Late(Generic[T]):
    """A list that ends a frame, read item by item; raises MalformedFrame at the first bad item."""

    def __init__(self, item: RestItem[T], frame: bytes, position: int) -> None:
        self._item = item
        self._frame = frame
        self._position = position

    def __iter__(self) -> Iterator[T]:
        read, frame, position = self._item.read, self._frame, self._position
        while position < len(frame):
            item, position = read(frame, position)
            yield item

    def __repr__(self) -> str:
        return f"<list of {len(self._frame) - self._position} bytes>"


class Rest(Generic[T]):
    """A list that ends the frame: written with its count, read to the end whatever the count.

    Args:
        item: Type of the items.
        bytes_max: Largest size of all items together; None leaves it to the frame.
        late_bytes: A list above this size is read while it is iterated; None for never.
    """

    is_last: Final = True

    def __init__(
        self, item: RestItem[T], bytes_max: int | None = None, late_bytes: int | None = None
    ) -> None:
        self.name: Final = f"list of {item.name}"
        self.zero: Final[tuple[T, ...]] = ()
        self.item: Final = item
        self._bytes_max: Final = bytes_max
        self._late_bytes: Final = late_bytes

    def read(self, frame: bytes, position: int) -> tuple[Iterable[T], int]:
        _count, position = U32_TYPE.read(frame, position)
        size = len(frame) - position
        if self._bytes_max is not None and size > self._bytes_max:
            raise MalformedFrame("list is too long", position)
        if self._late_bytes is not None and size > self._late_bytes:
            return Late(self.item, frame, position), len(frame)
        return tuple(self.item.read_rest(frame, position)), len(frame)

    def write(self, value: tuple[T, ...], target: bytearray) -> None:
        target += len(value).to_bytes(COUNT_BYTES)
        for item in value:
            self.item.write(item, target)


class StringMap:
    """A map of strings that ends the frame: its count is ignored; the last of equal keys wins."""

    name: Final = "map of string to string"
    is_last: Final = True
    PAIRS_MAX: Final = 30_000  # it is read in one piece

    @property
    def zero(self) -> Mapping[str, str]:
        return {}

    def read(self, frame: bytes, position: int) -> tuple[Mapping[str, str], int]:
        _count, position = U32_TYPE.read(frame, position)
        strings = STRING_TYPE.read_rest(frame, position, 2 * self.PAIRS_MAX)
        if len(strings) % 2:
            raise MalformedFrame("a key without a value ends the map", len(frame))
        return dict(zip(strings[::2], strings[1::2], strict=True)), len(frame)

    def write(self, value: Mapping[str, str], target: bytearray) -> None:
        target += len(value).to_bytes(COUNT_BYTES)
        for key, item in value.items():
            STRING_TYPE.write(key, target)
            STRING_TYPE.write(item, target)


class NumberMap:
    """A map of string to i64 that ends the frame; servers send it, so its count is trusted."""

    name: Final = "map of string to i64"
    is_last: Final = True

    @property
    def zero(self) -> Mapping[str, int]:
        return {}

    def read(self, frame: bytes, position: int) -> tuple[Mapping[str, int], int]:
        count, position = U32_TYPE.read(frame, position)
        items: dict[str, int] = {}
        for _ in range(count):
            key, position = STRING_TYPE.read(frame, position)
            items[key], position = I64_TYPE.read(frame, position)
        return items, position

    def write(self, value: Mapping[str, int], target: bytearray) -> None:
        target += len(value).to_bytes(COUNT_BYTES)
        for key, number in value.items():
            STRING_TYPE.write(key, target)
            I64_TYPE.write(number, target)


class Offset:
    """An offset specification.

    Args:
        legal: The types it may have; all others are malformed.
        zero: The value that a refusal carries.
        is_last: True if it ends the frame; bytes after a type without number are then ignored.
    """

    def __init__(
        self, legal: frozenset[OffsetType], zero: OffsetSpec, *, is_last: bool = False
    ) -> None:
        self.name: Final = f"offset of type {min(legal)} to {max(legal)}"
        self.is_last: Final = is_last
        self.zero: Final = zero
        self.legal: Final = {int(offset_type): offset_type for offset_type in legal}

    def read(self, frame: bytes, position: int) -> tuple[OffsetSpec, int]:
        number, after = U16_TYPE.read(frame, position)
        offset_type = self.legal.get(number)
        if offset_type is None:
            raise MalformedFrame(f"offset type {number} is not allowed here", position)
        number_type = OFFSET_NUMBERS.get(offset_type)
        if number_type is None:
            return OffsetSpec(offset_type), len(frame) if self.is_last else after
        value, after = number_type.read(frame, after)
        return OffsetSpec(offset_type, value), after

    def write(self, value: OffsetSpec, target: bytearray) -> None:
        if value.type not in self.legal:
            raise ValueError(f"offset type {value.type.name} is not allowed here")
        U16_TYPE.write(value.type, target)
        number_type = OFFSET_NUMBERS.get(value.type)
        if number_type is not None:
            number_type.write(value.value, target)


class PlainOffset:
    """An offset that is always sent as an offset specification of type 4."""

    name: Final = "offset of type 4"
    zero: Final = 0
    is_last: Final = False

    def read(self, frame: bytes, position: int) -> tuple[int, int]:
        number, after = U16_TYPE.read(frame, position)
        if number != OffsetType.OFFSET:
            raise MalformedFrame(f"offset type {number} is not allowed here", position)
        return U64_TYPE.read(frame, after)

    def write(self, value: int, target: bytearray) -> None:
        U16_TYPE.write(OffsetType.OFFSET, target)
        U64_TYPE.write(value, target)


class Trailing(Generic[T]):
    """A last field that is left out when it is empty.

    Args:
        inner: The field's type when it is there.
        slack_bytes: Up to so many leftover bytes count as a missing field too.
    """

    is_last: Final = True

    def __init__(self, inner: FieldType[T], slack_bytes: int = 0) -> None:
        self.name: Final = f"optional {inner.name}"
        self.inner: Final = inner
        self._slack_bytes: Final = slack_bytes

    @property
    def zero(self) -> T:
        return self.inner.zero

    def read(self, frame: bytes, position: int) -> tuple[T, int]:
        if len(frame) - position <= self._slack_bytes:
            return self.zero, len(frame)
        return self.inner.read(frame, position)

    def write(self, value: T, target: bytearray) -> None:
        if value:
            self.inner.write(value, target)


U16_TYPE: Final = FixedNumber("u16", "H", 0)
U32_TYPE: Final = FixedNumber("u32", "I", 0)
U64_TYPE: Final = FixedNumber("u64", "Q", 0)
I64_TYPE: Final = FixedNumber("i64", "q", 0)
STRING_TYPE: Final = String()
OFFSET_NUMBERS: Final = {OffsetType.OFFSET: U64_TYPE, OffsetType.TIMESTAMP: I64_TYPE}
