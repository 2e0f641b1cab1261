"""The codec that a message class gets from its fields, in every protocol of ours.

A message is a frozen dataclass; its fields, in order, are its bytes, and numbers are big-endian.
Every field's annotation names a wire type (`U8 = Annotated[int, ...]`: the type checker sees `int`,
`Layout` sees the wire type). A field with a default is one that older versions did not have:
it is always written, and has its default where a frame ends before it. A layout is compiled once
for each class: into one function for each run of neighbouring numbers, and one for each other
field.

A protocol has wire types and a layout of its own, with its class of errors.
"""

import struct
from collections.abc import Callable
from dataclasses import MISSING, fields
from operator import attrgetter
from typing import Any, ClassVar, Final, Generic, Protocol, Self, TypeGuard, TypeVar, get_type_hints

T = TypeVar("T")
M = TypeVar("M")


class WireType(Protocol[T]):
    """The form of one field.

    Attributes:
        name: Its name in documents.
        read: Returns the value at a position of a frame, and the position after it.
    """

    @property
    def name(self) -> str: ...
    @property
    def read(self) -> Callable[[Any, int], tuple[T, int]]: ...

    def write(self, value: T, target: bytearray) -> None:
        """Append the bytes of `value`; ValueError or struct.error if it does not fit the type."""


class Fixed(Generic[T]):
    """A number of fixed size: one format character of the struct module.

    Attributes:
        convert: Makes the value of a number; None if it is the number.
        bytes_min: Its size.
    """

    malformed: ClassVar[type[Exception]]
    """Error of bytes that don't match; it takes the fault in words, and the byte where that is."""

    def __init__(self, name: str, code: str, convert: Callable[[int], T] | None = None) -> None:
        self.name: Final = name
        self.code: Final = code
        self.convert: Final = convert
        self._struct: Final = struct.Struct(">" + code)
        self.bytes_min: Final = self._struct.size

    def read(self, frame: bytes | memoryview, position: int) -> tuple[T, int]:
        end = position + self.bytes_min
        if end > len(frame):
            raise self.malformed(f"{self.name} is cut short", position)
        value = self._struct.unpack_from(frame, position)[0]
        return (self.convert(value) if self.convert else value), end

    def write(self, value: T, target: bytearray) -> None:
        target += self._struct.pack(value)


Fields = tuple[tuple[str, Any], ...]
"""Names and wire types of the protocol."""
Read = Callable[[Any, int, list[object]], int]
"""Appends the values of a run to a list; returns the position after them."""
Write = Callable[[object, bytearray], None]


class Layout(Generic[M]):
    """The layout of one message class; also a wire type, for messages that hold others.

    Attributes:
        make: The class.
        fields: Names and wire types, in the order of the bytes.
        defaults: Of the fields that older versions did not have.
        name: Its name in documents.

    Raises:
        TypeError: A field has no wire type.
    """

    malformed: ClassVar[type[Exception]]
    """As that of `Fixed`."""
    _compiled: ClassVar[dict[type[Any], "Layout[Any]"]] = {}

    def __init__(self, message_class: type[M]) -> None:
        own = fields(message_class)  # type: ignore[arg-type]  # a message is a dataclass
        self.make: Final[Callable[..., M]] = message_class
        self.fields: Final = wire_fields(message_class)
        self.defaults: Final = {
            each.name: each.default for each in own if each.default is not MISSING
        }
        self.name: Final = f"({', '.join(f'{name} {wire.name}' for name, wire in self.fields)})"
        first = tuple(each for each in self.fields if each[0] not in self.defaults)
        newer = self.fields[len(first) :]
        self._first: Final = tuple(map(self._read_of, runs(first)))
        self._newer: Final = tuple(self._read_of((each,)) for each in newer)  # none or some
        self._writes: Final = tuple(map(_write_of, runs(self.fields)))

    @classmethod
    def of(cls, message_class: type[M]) -> Self:
        """Return the layout of a message class, made at the first call."""
        layout = cls._compiled.get(message_class)
        if layout is None:
            layout = cls._compiled[message_class] = cls(message_class)
        return layout  # type: ignore[return-value]  # a class is of one protocol

    def read(self, frame: Any, position: int) -> tuple[M, int]:  # noqa: ANN401  # bytes or a view
        """Read one message; see `WireType.read`."""
        values: list[object] = []
        position = self.take(frame, position, values)
        return self.make(*values), position

    def take(self, frame: Any, position: int, values: list[object]) -> int:  # noqa: ANN401
        """Append the values of the fields to a list; return the position after them."""
        for read in self._first:
            position = read(frame, position, values)
        for read in self._newer:
            if position == len(frame):
                break
            position = read(frame, position, values)
        return position

    def write(self, value: M, target: bytearray) -> None:
        """Append one message; see `WireType.write`."""
        for write in self._writes:
            write(value, target)

    def _read_of(self, run: Fields) -> Read:
        numbers = struct_of(run)
        if numbers is None:
            return _read_field(run[0][1].read)
        text = ", ".join(name for name, _ in run)
        size, unpack_from = numbers.size, numbers.unpack_from

        def read(frame: bytes | memoryview, position: int, values: list[object]) -> int:
            end = position + size
            if end > len(frame):
                raise self.malformed(f"{text} are cut short", position)
            values.extend(unpack_from(frame, position))
            return end

        return read


def wire_fields(message_class: type[Any]) -> Fields:
    """Return the names and wire types of a message class's fields, in the order of the bytes."""
    hints = get_type_hints(message_class, include_extras=True)
    found: list[tuple[str, WireType[Any]]] = []
    for field in fields(message_class):
        metadata: tuple[Any, ...] = getattr(hints[field.name], "__metadata__", ())
        if len(metadata) != 1:
            raise TypeError(f"{message_class.__name__}.{field.name} has no wire type")
        found.append((field.name, metadata[0]))
    return tuple(found)


def runs(layout_fields: Fields) -> list[Fields]:
    """Split fields into runs that one struct can read; any other field stands alone."""
    found: list[list[tuple[str, WireType[Any]]]] = []
    joins = False
    for name, wire_type in layout_fields:
        if joins and is_plain(wire_type):
            found[-1].append((name, wire_type))
        else:
            found.append([(name, wire_type)])
        joins = is_plain(wire_type)
    return [tuple(run) for run in found]


def struct_of(run: Fields) -> struct.Struct | None:
    """Join fields to one struct, if they are several and all plain numbers."""
    codes = [wire_type.code for _, wire_type in run if is_plain(wire_type)]
    return struct.Struct(">" + "".join(codes)) if len(codes) == len(run) > 1 else None


def is_plain(wire_type: WireType[Any]) -> TypeGuard[Fixed[Any]]:
    """Return whether struct reads and writes a type's values without conversion."""
    return isinstance(wire_type, Fixed) and wire_type.convert is None


def _read_field(read_one: Callable[[Any, int], tuple[object, int]]) -> Read:
    def read(frame: Any, position: int, values: list[object]) -> int:  # noqa: ANN401
        value, position = read_one(frame, position)
        values.append(value)
        return position

    return read


def _write_of(run: Fields) -> Write:
    numbers = struct_of(run)
    if numbers is None:
        name, wire_type = run[0]
        return _write_field(attrgetter(name), wire_type)
    return _write_numbers(attrgetter(*(name for name, _ in run)), numbers)


def _write_field(value_of: Callable[[object], Any], wire_type: WireType[Any]) -> Write:
    write_one = wire_type.write

    def write(message: object, target: bytearray) -> None:
        write_one(value_of(message), target)

    return write


def _write_numbers(values_of: Callable[[object], tuple[Any, ...]], numbers: struct.Struct) -> Write:
    pack = numbers.pack

    def write(message: object, target: bytearray) -> None:
        target += pack(*values_of(message))

    return write
