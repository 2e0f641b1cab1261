"""Places where events begin, of what was written through the wire since the start."""

from array import array
from bisect import bisect_right
from typing import Final, NamedTuple

SPACING_BYTES: Final = 256 * 1024


class _Noted(NamedTuple):
    created_at: int
    positions: "array[int]"


class Boundaries:
    """Positions of appends in each segment, so sparse that they take 8 bytes for each 256 KiB.

    A segment is its name and the time of its creation: a name may be used again.
    """

    def __init__(self) -> None:
        self._noted: dict[str, _Noted] = {}

    def note(self, segment: str, created_at: int, position: int) -> None:
        """Note that an append begins at a position, unless one near below is noted."""
        noted = self._noted.get(segment)
        if noted is not None and noted.created_at == created_at:
            if position - noted.positions[-1] >= SPACING_BYTES:
                noted.positions.append(position)
        elif position >= SPACING_BYTES:
            self._noted[segment] = _Noted(created_at, array("q", (position,)))

    def below(self, segment: str, created_at: int, position: int) -> int:
        """Return the last that is noted at or below a position; 0 if none is."""
        noted = self._noted.get(segment)
        if noted is None or noted.created_at != created_at:
            return 0
        index = bisect_right(noted.positions, position)
        return noted.positions[index - 1] if index else 0

    def forget(self, segment: str) -> None:
        """Forget a segment that was deleted."""
        self._noted.pop(segment, None)
