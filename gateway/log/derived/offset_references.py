"""The references that have stored offsets, for all streams of a table; no I/O.

A client that may read a stream may store offsets under any names. The number kept for each stream
is limited: beyond it the one that was stored longest ago is forgotten, with a line in the log. One
that a reader has in use is never that one; where all others are in use, it is the new one.
"""

import logging
from collections import Counter, OrderedDict
from collections.abc import Iterable
from typing import Final

from gateway.logs import RateLimitedLog

log = logging.getLogger(__name__)

REFERENCES_MAX: Final = 10_000
"""Most references of a stream, unless a setting says another number."""


class OffsetReferences:
    """Generation of a stream → references (bytes, ≤ 255), the last stored last."""

    def __init__(self, references_max: int = REFERENCES_MAX) -> None:
        self._references_max = references_max
        self._of: dict[int, OrderedDict[bytes, None]] = {}
        self._used: dict[int, Counter[bytes]] = {}
        """Those in use, which are not in `_of`, each with how often it is."""
        self._forgotten = RateLimitedLog(
            log, "stored offset forgotten table=%s generation=%d reference=%r references_max=%d"
        )

    def of(self, generation: int) -> list[bytes]:
        """Return the references of a stream."""
        return [*self._of.get(generation, ()), *self._used.get(generation, ())]

    def stored(self, table: str, generation: int, reference: bytes) -> bytes | None:
        """Note that an offset is stored; return the reference to forget in its place, if any."""
        used = self._used.get(generation, ())
        if reference in used:
            return None
        known = self._of.setdefault(generation, OrderedDict())
        known[reference] = None
        known.move_to_end(reference)
        if len(known) + len(used) <= self._references_max:
            return None
        oldest, _ = known.popitem(last=False)
        self._forgotten.warning(table, generation, oldest, self._references_max)
        return oldest

    def use(self, generation: int, reference: bytes) -> None:
        """Note that a reader has a reference in use, until as many calls of `leave`."""
        self._of.get(generation, OrderedDict[bytes, None]()).pop(reference, None)
        self._used.setdefault(generation, Counter())[reference] += 1

    def leave(self, generation: int, reference: bytes) -> None:
        """Note that a reader does not use a reference any more; the stream may be deleted."""
        used = self._used.get(generation)
        if used is None or reference not in used:
            return
        used[reference] -= 1
        if not used[reference]:
            del used[reference]
            self._of.setdefault(generation, OrderedDict())[reference] = None

    def remove(self, generation: int, reference: bytes) -> None:
        """Forget a reference."""
        for known in (self._of.get(generation), self._used.get(generation)):
            if known is not None:
                known.pop(reference, None)

    def forget(self, generations: Iterable[int]) -> None:
        """Forget all references of deleted streams."""
        for generation in generations:
            self._of.pop(generation, None)
            self._used.pop(generation, None)
