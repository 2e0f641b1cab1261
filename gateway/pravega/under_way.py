"""Appends on their way to the store: how many, and how large."""

from collections.abc import Callable
from typing import Final

_FEW_BYTES: Final = 8 * 1024 * 1024


class UnderWay:
    """The appends that the store has not answered yet; a `Backlog` of the server.

    Attributes:
        in_flight_bytes: Bytes of them.
    """

    def __init__(self, whole: "UnderWay | None" = None) -> None:
        """Begin with none; `whole` counts those of several connections, with these among them."""
        self.in_flight_bytes = 0
        self._whole = whole
        self._count = 0
        self._when_drained: list[Callable[[], object]] = []
        self._when_none: list[Callable[[], object]] = []

    def begin(self, size: int) -> None:
        """Count an append of so many bytes."""
        self._count += 1
        self.in_flight_bytes += size
        if self._whole is not None:
            self._whole.begin(size)

    def end(self, size: int) -> None:
        """Count it as answered."""
        self._count -= 1
        self.in_flight_bytes -= size
        if self._whole is not None:
            self._whole.end(size)
        if self._when_drained and self.in_flight_bytes <= _FEW_BYTES:
            callbacks, self._when_drained = self._when_drained, []
            _call(callbacks)
        if self._when_none and not self._count:
            callbacks, self._when_none = self._when_none, []
            _call(callbacks)

    def when_drained(self, callback: Callable[[], object]) -> None:
        """Call `callback` once few bytes are under way."""
        self._when_drained.append(callback)

    def when_none(self, callback: Callable[[], object]) -> None:
        """Call `callback` once no append is under way; at once if none is."""
        if self._count:
            self._when_none.append(callback)
        else:
            callback()


def _call(callbacks: list[Callable[[], object]]) -> None:
    for callback in callbacks:
        callback()
