"""The references that have stored offsets, for all streams of a table; no I/O.

A client that may read a stream may store offsets under any names. The number kept for each stream
is limited: beyond it the one that was stored longest ago is forgotten, with a line in the log.
"""

import logging
from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

from gateway.log.seldom import Seldom

log = logging.getLogger(__name__)

REFERENCES_MAX: Final = 10_000
"""Most references of a stream, unless a setting says another number."""


class OffsetReferences:
    """Generation of a stream → references (bytes, ≤ 255), the last stored last."""

    def __init__(self, references_max: int = REFERENCES_MAX) -> None:
        self._references_max = references_max
        self._of: dict[int, OrderedDict[bytes, None]] = {}
        self._forgotten = Seldom(
            log, "stored offset forgotten table=%s generation=%d reference=%r references_max=%d"
        )

    def of(self, generation: int) -> list[bytes]:
        """Return the references of a stream."""
        return list(self._of.get(generation, ()))

    def stored(self, table: str, generation: int, reference: bytes) -> bytes | None:
        """Note that an offset is stored; return the reference to forget in its place, if any."""
        known = self._of.setdefault(generation, OrderedDict())
        known[reference] = None
        known.move_to_end(reference)
        if len(known) <= self._references_max:
            return None
        oldest, _ = known.popitem(last=False)
        self._forgotten.warning(table, generation, oldest, self._references_max)
        return oldest

    def remove(self, generation: int, reference: bytes) -> None:
        """Forget a reference."""
        self._of.get(generation, OrderedDict[bytes, None]()).pop(reference, None)

    def forget(self, generations: Iterable[int]) -> None:
        """Forget all references of deleted streams."""
        for generation in generations:
            self._of.pop(generation, None)
