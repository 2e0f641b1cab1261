"""Letting others have their turn while one frame names a great many things."""

import time
from typing import Final

THINGS_A_TURN: Final = 1_000
"""Some 3 ms where each is looked up and nothing more."""
_TURN_S: Final = 0.005
_BETWEEN_CLOCKS: Final = 8
"""A look for a pattern in a name takes 1 ms at worst, and there may be two for each name."""


class Slice:
    """Counts things and time since the others had a turn."""

    __slots__ = ("_began_s", "_count", "_every")

    def __init__(self, every: int = _BETWEEN_CLOCKS) -> None:
        """Begin; the clock is looked at after so many things, since each may take long."""
        self._every = every
        self.begin()

    def begin(self) -> None:
        """Say that the others had one."""
        self._count = 0
        self._began_s = time.perf_counter()

    def is_over(self) -> bool:
        """Count one more thing; return whether it is the others' turn now."""
        self._count += 1
        if self._count % self._every:
            return False
        return self._count >= THINGS_A_TURN or time.perf_counter() - self._began_s > _TURN_S
