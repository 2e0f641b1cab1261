"""The progress of a long check, on standard error."""

import time
from collections.abc import Callable
from typing import Final, TextIO

MB: Final = 1_000_000
_SAY_EVERY_S: Final = 5.0
_SHOW_EVERY_S: Final = 0.2


class Progress:
    """Shows the progress of a long check on standard error."""

    def __init__(
        self, stream: TextIO, total: int, now: Callable[[], float] = time.monotonic
    ) -> None:
        """Begin; `total` is the size of all chunks in bytes, `now` gives seconds."""
        self._stream = stream
        self._now = now
        self._total = total
        self.done = 0
        self._is_terminal = stream.isatty()
        self._every_s = _SHOW_EVERY_S if self._is_terminal else _SAY_EVERY_S
        self._next_at = self._now() + self._every_s

    def expect(self, size: int) -> None:
        """Add bytes that are checked too."""
        self._total += size

    def walked(self, size: int) -> None:
        """Count bytes that were checked."""
        self.done += size
        if self._now() >= self._next_at:
            self._next_at = self._now() + self._every_s
            line = f"checked {self.done / MB:,.1f} of {self._total / MB:,.1f} MB"
            self._stream.write(f"\r{line}" if self._is_terminal else f"{line}\n")
            self._stream.flush()

    def leave(self) -> None:
        """Clear the line for other output."""
        if self._is_terminal:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
