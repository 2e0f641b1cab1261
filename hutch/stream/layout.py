"""The layouts of the stream protocol's messages."""

from itertools import starmap
from typing import Any, Final, TypeVar

from hutch import layout
from hutch.layout import struct_of
from hutch.stream.errors import MalformedFrame

M = TypeVar("M")


class FrameLayout(layout.Layout[M]):
    """The layout of one message class; also a wire type, for messages that hold others.

    Raises:
        TypeError: A field has no wire type, or a field that reads to the end of the frame is not
            the last one.
    """

    malformed = MalformedFrame
    is_last: Final = False

    def __init__(self, message_class: type[M]) -> None:
        super().__init__(message_class)
        for field, wire_type in self.fields[:-1]:
            if wire_type.is_last:
                raise TypeError(
                    f"{message_class.__name__}.{field} reads to the end, but is not last"
                )

    @property
    def zero(self) -> M:
        """The message with every field zero."""
        return self.make(*(wire_type.zero for _, wire_type in self.fields))

    def read_rest(self, frame: bytes, position: int) -> list[M]:
        """Read messages up to the end of the frame."""
        numbers = struct_of(self.fields)
        if numbers is not None and (len(frame) - position) % numbers.size == 0:
            return list(starmap(self.make, numbers.iter_unpack(frame[position:])))
        items: list[M] = []
        while position < len(frame):
            item, position = self.read(frame, position)
            items.append(item)
        return items

    def decode(self, frame: bytes, position: int) -> M:
        """Read the message that fills the frame from `position` to its last byte."""
        message, end = self.read(frame, position)
        if end != len(frame):
            raise MalformedFrame("bytes are left over", end)
        return message


def layout_of(message_class: type[M]) -> FrameLayout[M]:
    """Return the layout of a message class, made at the first call."""
    return FrameLayout[Any].of(message_class)
