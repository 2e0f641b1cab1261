"""The layouts of the messages of Pravega's protocol, and their common part."""

import struct
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from hutch import layout
from hutch.pravega.errors import ListTooLong, WireError

M = TypeVar("M")


class WireMessage:
    """Base of all messages."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class TooLong(WireMessage):
    """A request with a list of too many items, which is refused; in no row of a table.

    Attributes:
        request_id: The request's.
        segment: The segment that it is about.
        reason: Says which list is too long.
    """

    request_id: int
    segment: str
    reason: str


class PayloadLayout(layout.Layout[M]):
    """The layout of one message class; also a wire type, for messages that hold others.

    Raises:
        TypeError: A field has no wire type.
    """

    malformed = WireError

    def __init__(self, message_class: type[M]) -> None:
        super().__init__(message_class)
        self.bytes_min: Final = sum(
            wire.bytes_min for name, wire in self.fields if name not in self.defaults
        )

    def take(self, frame: memoryview, position: int, values: list[object]) -> int:
        """Append the values of the fields to a list; return the position after them.

        A list that is too long is told with the fields before it.
        """
        try:
            return super().take(frame, position, values)
        except ListTooLong as error:
            names = (name for name, _ in self.fields)
            error.fields = dict(zip(names, values, strict=False))
            raise

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


def layout_of(message_class: type[M]) -> PayloadLayout[M]:
    """Return the layout of a message class, made at the first call."""
    return PayloadLayout[Any].of(message_class)
