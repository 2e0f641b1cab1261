"""The codec that a message class gets from its fields.

A message is a frozen dataclass; its fields, in order, are its bytes. Every field's annotation
names a wire type (`U8 = Annotated[int, ...]`: the type checker sees `int`, `Layout` sees the wire
type). A layout is compiled once for each class: into one function for each run of neighbouring
numbers, and one for each other field.
"""

import struct
from collections.abc import Callable
from dataclasses import fields
from itertools import starmap
from operator import attrgetter
from typing import Any, Final, Generic, TypeGuard, TypeVar, get_type_hints

from hutch.stream.errors import MalformedFrame
from hutch.stream.wire_types import Fixed, WireType

M = TypeVar("M")


class Layout(Generic[M]):
    """The layout of one message class; also a wire type, for messages that hold others.

    Raises:
        TypeError: A field has no wire type, or a field that reads to the end of the frame is not
            the last one.
    """

    is_last: Final = False

    def __init__(self, message_class: type[M]) -> None:
        self.fields: Final = wire_fields(message_class)
        self.name: Final = f"({', '.join(f'{name} {wire.name}' for name, wire in self.fields)})"
        for field, wire_type in self.fields[:-1]:
            if wire_type.is_last:
                raise TypeError(
                    f"{message_class.__name__}.{field} reads to the end, but is not last"
                )
        self.make: Final[Callable[..., M]] = message_class
        self._reads: Final = tuple(_reads(self.fields))
        self._writes: Final = tuple(_writes(self.fields))

    @property
    def zero(self) -> M:
        """The message with every field zero."""
        return self.make(*(wire_type.zero for _, wire_type in self.fields))

    def read(self, frame: bytes, position: int) -> tuple[M, int]:
        """Read one message; see `WireType.read`."""
        values: list[object] = []
        for read in self._reads:
            position = read(frame, position, values)
        return self.make(*values), position

    def read_rest(self, frame: bytes, position: int) -> list[M]:
        """Read messages up to the end of the frame."""
        numbers = _struct_of(self.fields)
        if numbers is not None and (len(frame) - position) % numbers.size == 0:
            return list(starmap(self.make, numbers.iter_unpack(frame[position:])))
        items: list[M] = []
        while position < len(frame):
            item, position = self.read(frame, position)
            items.append(item)
        return items

    def write(self, value: M, target: bytearray) -> None:
        """Append one message; see `WireType.write`."""
        for write in self._writes:
            write(value, target)

    def decode(self, frame: bytes, position: int) -> M:
        """Read the message that fills the frame from `position` to its last byte."""
        message, end = self.read(frame, position)
        if end != len(frame):
            raise MalformedFrame("bytes are left over", end)
        return message


_COMPILED: Final[dict[type[Any], Layout[Any]]] = {}


def layout_of(message_class: type[M]) -> Layout[M]:
    """Return the layout of a message class, compiled at the first call."""
    layout = _COMPILED.get(message_class)
    if layout is None:
        layout = _COMPILED[message_class] = Layout(message_class)
    return layout


Fields = tuple[tuple[str, WireType[Any]], ...]
Read = Callable[[bytes, int, list[object]], int]
Write = Callable[[object, bytearray], None]


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


def _runs(layout_fields: Fields) -> list[Fields]:
    """Split fields into runs that one struct can read; any other field stands alone."""
    runs: list[list[tuple[str, WireType[Any]]]] = []
    joins = False
    for name, wire_type in layout_fields:
        if joins and is_plain(wire_type):
            runs[-1].append((name, wire_type))
        else:
            runs.append([(name, wire_type)])
        joins = is_plain(wire_type)
    return [tuple(run) for run in runs]


def _struct_of(run: Fields) -> struct.Struct | None:
    """Join fields to one struct, if they are several and all plain numbers."""
    codes = [wire_type.code for _, wire_type in run if is_plain(wire_type)]
    return struct.Struct(">" + "".join(codes)) if len(codes) == len(run) > 1 else None


def is_plain(wire_type: WireType[Any]) -> TypeGuard[Fixed[Any]]:
    """Tell whether struct reads and writes a type's values without conversion."""
    return isinstance(wire_type, Fixed) and wire_type.convert is None


def _reads(layout_fields: Fields) -> list[Read]:
    """Compile one function for each run: it appends the values and returns the position after."""
    reads: list[Read] = []
    for run in _runs(layout_fields):
        numbers = _struct_of(run)
        reads.append(_read_field(run[0][1]) if numbers is None else _read_numbers(run, numbers))
    return reads


def _read_field(wire_type: WireType[Any]) -> Read:
    read_one = wire_type.read

    def read(frame: bytes, position: int, values: list[object]) -> int:
        value, position = read_one(frame, position)
        values.append(value)
        return position

    return read


def _read_numbers(run: Fields, numbers: struct.Struct) -> Read:
    size, unpack_from = numbers.size, numbers.unpack_from
    text = ", ".join(name for name, _ in run)

    def read(frame: bytes, position: int, values: list[object]) -> int:
        end = position + size
        if end > len(frame):
            raise MalformedFrame(f"{text} are cut short", position)
        values.extend(unpack_from(frame, position))
        return end

    return read


def _writes(layout_fields: Fields) -> list[Write]:
    """Compile one function for each run: it appends the bytes of the run's fields."""
    writes: list[Write] = []
    for run in _runs(layout_fields):
        numbers = _struct_of(run)
        if numbers is None:
            name, wire_type = run[0]
            writes.append(_write_field(attrgetter(name), wire_type))
        else:
            writes.append(_write_numbers(attrgetter(*(name for name, _ in run)), numbers))
    return writes


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
