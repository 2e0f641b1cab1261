"""Reading a frame's fields one after the other."""

from __future__ import annotations

import struct


class CutShort(Exception):
    """The frame ends inside a field, or goes on behind its last one."""


class Fields:
    """A cursor over one frame."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0

    def take(self, size: int) -> bytes:
        """Return the next `size` bytes."""
        part = self.data[self.position : self.position + size]
        if len(part) < size:
            raise CutShort(f"{size} bytes wanted, {len(part)} left")
        self.position += size
        return part

    def number(self, size: int, *, signed: bool = False) -> int:
        """Return the next integer of `size` bytes."""
        return int.from_bytes(self.take(size), signed=signed)

    def text(self) -> str:
        """Return the next string; bytes that are no UTF-8 come out escaped."""
        return self.take(self.number(2)).decode(errors="backslashreplace")

    def pairs(self) -> list[tuple[str, str]]:
        """Return the next map."""
        return [(self.text(), self.text()) for _ in range(self.number(4))]

    def texts(self) -> list[str]:
        """Return the next array of strings."""
        return [self.text() for _ in range(self.number(4))]

    def rest(self) -> bytes:
        """Return everything that is left."""
        return self.take(len(self.data) - self.position)

    @property
    def is_done(self) -> bool:
        """Return whether everything was read."""
        return self.position == len(self.data)

    def require_done(self) -> None:
        """Raise `CutShort` unless everything was read."""
        if not self.is_done:
            raise CutShort(f"{len(self.data) - self.position} bytes too many")


def head(frame: bytes) -> tuple[int, int, Fields]:
    """Return key and version of a frame, and a cursor behind them."""
    key, version = struct.unpack_from(">HH", frame)
    fields = Fields(frame)
    fields.take(4)
    return key, version, fields
