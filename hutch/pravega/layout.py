"""The codec that a message class gets from its fields.

A message is a frozen dataclass; its fields, in order, are its bytes. Every field's annotation names
a wire type. A field with a default is one that older versions did not have: it is always written,
and has its default where a payload ends before it.
"""

import struct
from dataclasses import MISSING, Field, dataclass, fields
from operator import attrgetter
from typing import Any, Final, Generic, TypeVar, get_type_hints

from .errors import ListTooLong, WireError
from .wire_types import WireType

M = TypeVar("M")


class Message:
    """Base of all messages."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class TooLong(Message):
    """A request with a list of too many items, which is refused; in no row of a table.

    Attributes:
        request_id: The request's.
        segment: The segment that it is about.
        reason: Says which list is too long.
    """

    request_id: int
    segment: str
    reason: str


class Layout(Generic[M]):
    """The layout of one message class; also a wire type, for messages that hold others.

    Raises:
        TypeError: A field has no wire type.
    """

    def __init__(self, message_class: type[M]) -> None:
        hints = get_type_hints(message_class, include_extras=True)
        own = fields(message_class)  # type: ignore[arg-type]  # a message is a dataclass
        self.make: Final = message_class
        self.fields: Final = tuple(_typed(message_class, field, hints[field.name]) for field in own)
        self.defaults: Final = {each.name: each.default for each in own if _is_newer(each)}
        self.name: Final = f"({', '.join(f'{name} {wire.name}' for name, wire in self.fields)})"
        self.bytes_min: Final = sum(
            wire.bytes_min for name, wire in self.fields if name not in self.defaults
        )
        self._reads: Final = tuple((wire.read, name in self.defaults) for name, wire in self.fields)
        self._writes: Final = tuple((attrgetter(name), wire.write) for name, wire in self.fields)

    def read(self, payload: memoryview, position: int) -> tuple[M, int]:
        """Read one message; see `WireType.read`."""
        values: list[object] = []
        try:
            for read, is_newer in self._reads:
                if is_newer and position == len(payload):
                    break
                value, position = read(payload, position)
                values.append(value)
        except ListTooLong as error:
            names = (name for name, _ in self.fields)
            error.fields = dict(zip(names, values, strict=False))
            raise
        return self.make(*values), position

    def write(self, value: M, target: bytearray) -> None:
        """Append one message; see `WireType.write`."""
        for value_of, write in self._writes:
            write(value_of(value), target)

    def decode(self, payload: memoryview) -> M:
        """Return the message that a payload begins with; bytes behind it are ignored.

        Raises:
            ListTooLong: A list has more items than its field takes.
            WireError: The bytes don't match the layout; the text names the message.
        """
        try:
            return self.read(payload, 0)[0]
        except ListTooLong as error:
            raise ListTooLong(f"{self.make.__name__}: {error}", error.fields) from error
        except WireError as error:
            raise WireError(f"{self.make.__name__}: {error}") from error

    def decode_until(self, last: str, payload: memoryview) -> dict[str, object] | None:
        """Return the fields up to one of them, of a payload that need not be whole.

        None: they are not all there, or there is no such field.
        """
        position, found = 0, dict[str, object]()
        try:
            for name, wire in self.fields:
                found[name], position = wire.read(payload, position)
                if name == last:
                    return found
        except WireError:
            pass
        return None

    def encode(self, message: M, target: bytearray) -> None:
        """Append a message.

        Raises:
            ValueError: A value does not fit its field.
        """
        try:
            self.write(message, target)
        except struct.error as error:
            raise ValueError(f"{self.make.__name__}: {error}") from error


_COMPILED: Final[dict[type[Any], Layout[Any]]] = {}


def layout_of(message_class: type[M]) -> Layout[M]:
    """Return the layout of a message class, made at the first call."""
    layout = _COMPILED.get(message_class)
    if layout is None:
        layout = _COMPILED[message_class] = Layout(message_class)
    return layout


def _typed(owner: type[Any], field: Field[Any], hint: object) -> tuple[str, WireType[Any]]:
    metadata: tuple[Any, ...] = getattr(hint, "__metadata__", ())
    if len(metadata) != 1:
        raise TypeError(f"{owner.__name__}.{field.name} has no wire type")
    return field.name, metadata[0]


def _is_newer(field: Field[Any]) -> bool:
    return field.default is not MISSING
