"""The forms of single fields in a payload. All integers are big-endian and signed.

byte int long        1, 4, 8 bytes
boolean              1 byte; any but 0 is true
string               u16 size | modified UTF-8
uuid                 16 bytes, as in RFC 4122
data                 int size | bytes
rest                 bytes to the end of the payload
event                int 0 | int size | bytes
list                 int count | items
key                  int 4+n+8 | int n | n bytes | long version      n = 0: only the two ints
value                int 4+n | int n | n bytes
"""

import struct
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Annotated, Final, Generic, NamedTuple, Protocol, TypeAlias, TypeVar
from uuid import UUID

from hutch import layout
from hutch.pravega.errors import ListTooLong, WireError
from hutch.pravega.modified_utf8 import decode_text, encode_text

T = TypeVar("T")

table_items: ModuleType | None
"""Quick reading of lists; without it, where it is neither compiled nor has Cython, items are read
one by one."""
try:
    table_items = import_module("hutch.pravega.kernel.table_items")
except ImportError:
    table_items = None

INT_BYTES: Final = 4
LONG_BYTES: Final = 8
UUID_BYTES: Final = 16
STRING_SIZE_BYTES: Final = 2
STRING_BYTES_MAX: Final = 0xFFFF
EVENT_CODE: Final = 0
_TWO_INTS: Final = struct.Struct(">ii")
LIST_ITEMS_MAX: Final = 65_536
"""Items of a list where its command says no other number. A frame holds two million empty keys,
which take seconds to read."""
TABLE_ITEMS_MAX: Final = 10_000
"""Items of a list in a request about a table: to read and to write so many takes 20 ms each."""

ANY_VERSION: Final = -(2**63)
"""A key's version that every version matches; also that of an empty key."""
NO_KEY: Final = -1
"""A key's version that says that the table does not have it."""


class PayloadType(layout.WireType[T], Protocol[T]):
    """The form of one field in a payload.

    Attributes:
        bytes_min: Size of its smallest value.
    """

    @property
    def bytes_min(self) -> int: ...


class Number(layout.Fixed[T]):
    """A number of fixed size: one format character of the struct module."""

    malformed = WireError


INT_TYPE: Final[Number[int]] = Number("int", "i")
LONG_TYPE: Final[Number[int]] = Number("long", "q")


def taken(payload: memoryview, position: int, size: int, name: str) -> tuple[bytes, int]:
    """Return `size` bytes at `position` and the position after them.

    Raises:
        WireError: The size is negative, or the payload has fewer bytes.
    """
    end = position + size
    if size < 0 or end > len(payload):
        raise WireError(f"a {name} of {size} bytes where {len(payload) - position} are left")
    return payload[position:end].tobytes(), end


class JavaString:
    """Text of at most 65,535 bytes of modified UTF-8."""

    name: Final = "string"
    bytes_min: Final = STRING_SIZE_BYTES

    def read(self, payload: memoryview, position: int) -> tuple[str, int]:
        head, first = taken(payload, position, STRING_SIZE_BYTES, "string's size")
        data, end = taken(payload, first, int.from_bytes(head), self.name)
        return decode_text(data), end

    def write(self, value: str, target: bytearray) -> None:
        data = encode_text(value)
        if len(data) > STRING_BYTES_MAX:
            raise ValueError(f"a string of {len(data)} bytes has no size on the wire")
        target += len(data).to_bytes(STRING_SIZE_BYTES)
        target += data


class Uuid:
    """A UUID."""

    name: Final = "uuid"
    bytes_min: Final = UUID_BYTES

    def read(self, payload: memoryview, position: int) -> tuple[UUID, int]:
        data, end = taken(payload, position, UUID_BYTES, self.name)
        return UUID(bytes=data), end

    def write(self, value: UUID, target: bytearray) -> None:
        target += value.bytes


class SizedBytes:
    """Bytes behind their size."""

    name: Final = "data"
    bytes_min: Final = INT_BYTES

    def read(self, payload: memoryview, position: int) -> tuple[bytes, int]:
        size, first = INT_TYPE.read(payload, position)
        return taken(payload, first, size, self.name)

    def write(self, value: bytes, target: bytearray) -> None:
        INT_TYPE.write(len(value), target)
        target += value


class PayloadRest:
    """The bytes that are left of the payload."""

    name: Final = "rest"
    bytes_min: Final = 0

    def read(self, payload: memoryview, position: int) -> tuple[bytes, int]:
        return bytes(payload[position:]), len(payload)

    def write(self, value: bytes, target: bytearray) -> None:
        target += value


class StoredEvent:
    """The bytes of one event, in the form in which it is stored."""

    name: Final = "event"
    bytes_min: Final = 2 * INT_BYTES

    def read(self, payload: memoryview, position: int) -> tuple[bytes, int]:
        code, position = INT_TYPE.read(payload, position)
        if code != EVENT_CODE:
            raise WireError(f"an event begins with {code}, not {EVENT_CODE}")
        return DATA_TYPE.read(payload, position)

    def write(self, value: bytes, target: bytearray) -> None:
        INT_TYPE.write(EVENT_CODE, target)
        DATA_TYPE.write(value, target)


AtOnce: TypeAlias = Callable[[memoryview, int, int], tuple[list[T], int] | None]


class Items(Generic[T]):
    """A list whose count promises no more than the payload can hold."""

    bytes_min: Final = INT_BYTES

    def __init__(
        self, item: PayloadType[T], most: int = LIST_ITEMS_MAX, at_once: AtOnce[T] | None = None
    ) -> None:
        """Describe a list.

        Args:
            item: The form of an item.
            most: Items that are read; more are refused.
            at_once: Reads ordinary items at a place, as many as it is told, and returns None where
                one is not ordinary.
        """
        limit = "" if most == LIST_ITEMS_MAX else f", at most {most:,}"
        self.name: Final = f"list of {item.name}{limit}"
        self.item: Final = item
        self.most: Final = most
        self._at_once: Final = at_once

    def read(self, payload: memoryview, position: int) -> tuple[tuple[T, ...], int]:
        count, position = INT_TYPE.read(payload, position)
        if count < 0 or count * self.item.bytes_min > len(payload) - position:
            raise WireError(f"a list of {count} items in {len(payload) - position} bytes")
        if count > self.most:
            raise ListTooLong(f"a list of {count} items is above {self.most}")
        found = None if self._at_once is None else self._at_once(payload, position, count)
        if found is not None:
            return tuple(found[0]), found[1]
        read = self.item.read
        items: list[T] = []
        for _ in range(count):
            item, position = read(payload, position)
            items.append(item)
        return tuple(items), position

    def write(self, value: tuple[T, ...], target: bytearray) -> None:
        if len(value) > LIST_ITEMS_MAX:
            raise ValueError(f"a list of {len(value)} items is above {LIST_ITEMS_MAX}")
        INT_TYPE.write(len(value), target)
        for item in value:
            self.item.write(item, target)


def _sized(payload: memoryview, position: int, name: str) -> tuple[int, bytes, int]:
    """Return the first of two ints, the bytes whose size the second one is, and where they end."""
    first = position + 2 * INT_BYTES
    if first > len(payload):
        raise WireError(f"a {name} is cut short")
    size, count = _TWO_INTS.unpack_from(payload, position)
    data, end = taken(payload, first, count, name)
    return size, data, end


class TableKey(NamedTuple):
    """A key of a table and its version; an empty key's version is not sent."""

    key: bytes
    version: int = ANY_VERSION


class Key:
    """A table's key with its version."""

    name: Final = "key"
    bytes_min: Final = 2 * INT_BYTES

    def read(self, payload: memoryview, position: int) -> tuple[TableKey, int]:
        size, key, end = _sized(payload, position, self.name)
        if not key:
            return TableKey(key), end
        if size != INT_BYTES + len(key) + LONG_BYTES:
            raise WireError(f"a key of {len(key)} bytes is said to take {size}")
        version, end = LONG_TYPE.read(payload, end)
        return TableKey(key, version), end

    def write(self, value: TableKey, target: bytearray) -> None:
        INT_TYPE.write(INT_BYTES + len(value.key) + LONG_BYTES, target)
        DATA_TYPE.write(value.key, target)
        if value.key:
            LONG_TYPE.write(value.version, target)


class Value:
    """A table's value."""

    name: Final = "value"
    bytes_min: Final = 2 * INT_BYTES

    def read(self, payload: memoryview, position: int) -> tuple[bytes, int]:
        size, value, end = _sized(payload, position, self.name)
        if value and size != INT_BYTES + len(value):
            raise WireError(f"a value of {len(value)} bytes is said to take {size}")
        return value, end

    def write(self, value: bytes, target: bytearray) -> None:
        INT_TYPE.write(INT_BYTES + len(value), target)
        DATA_TYPE.write(value, target)


class KeyAndValue(NamedTuple):
    """A key with its version, and its value."""

    key: TableKey
    value: bytes


class EntryType:
    """A table's entry."""

    name: Final = "(key key, value value)"
    bytes_min: Final = Key.bytes_min + Value.bytes_min

    def read(self, payload: memoryview, position: int) -> tuple[KeyAndValue, int]:
        key, position = KEY_TYPE.read(payload, position)
        value, position = VALUE_TYPE.read(payload, position)
        return KeyAndValue(key, value), position

    def write(self, value: KeyAndValue, target: bytearray) -> None:
        KEY_TYPE.write(value.key, target)
        VALUE_TYPE.write(value.value, target)


def _keys(payload: memoryview, position: int, count: int) -> tuple[list[TableKey], int] | None:
    if table_items is None:
        return None
    found: tuple[list[TableKey], int] | None
    found = table_items.keys(payload, position, count, TableKey)
    return found


def _entries(
    payload: memoryview, position: int, count: int
) -> tuple[list[KeyAndValue], int] | None:
    if table_items is None:
        return None
    found: tuple[list[KeyAndValue], int] | None
    found = table_items.entries(payload, position, count, TableKey, KeyAndValue)
    return found


STRING_TYPE: Final = JavaString()
DATA_TYPE: Final = SizedBytes()
KEY_TYPE: Final = Key()
VALUE_TYPE: Final = Value()

Byte = Annotated[int, Number[int]("byte", "b")]
Int = Annotated[int, INT_TYPE]
Long = Annotated[int, LONG_TYPE]
Boolean = Annotated[bool, Number[bool]("boolean", "?")]
Text = Annotated[str, STRING_TYPE]
Id = Annotated[UUID, Uuid()]
Data = Annotated[bytes, DATA_TYPE]
Rest = Annotated[bytes, PayloadRest()]
EventData = Annotated[bytes, StoredEvent()]
Keys = Annotated[tuple[TableKey, ...], Items(KEY_TYPE, TABLE_ITEMS_MAX, _keys)]
Entries = Annotated[tuple[KeyAndValue, ...], Items(EntryType(), TABLE_ITEMS_MAX, _entries)]
Longs = Annotated[tuple[int, ...], Items(LONG_TYPE)]
