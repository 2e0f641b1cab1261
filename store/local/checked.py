"""Bytes that were checked last, for a reader that comes when the system has dropped them."""

import threading
from collections import deque
from collections.abc import Sequence

from store.api import CHECKED_BYTES_KEPT, CHECKS_KEPT
from store.local.segment import Place


class Checked:
    """Keeps what was read last. Threads that read put it in, the loop's thread takes it out."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: deque[tuple[Sequence[Place], bytes]] = deque()
        self._bytes = 0

    def keep(self, places: Sequence[Place], data: bytes) -> None:
        """Keep the bytes of places that were read in one go; those of the oldest are let go."""
        with self._lock:
            self._kept.append((places, data))
            self._bytes += len(data)
            # Those behind the oldest are enough without it.
            while (
                len(self._kept) > CHECKS_KEPT
                or self._bytes - len(self._kept[0][1]) >= CHECKED_BYTES_KEPT
            ):
                self._bytes -= len(self._kept.popleft()[1])

    def find(self, wanted: Place) -> bytes | None:
        """Give bytes from the start of a place on, perhaps not all; None if they are not kept."""
        with self._lock:
            for places, data in reversed(self._kept):
                begin = 0
                for place in places:
                    skipped = wanted.position - place.position
                    if place.file is wanted.file and 0 <= skipped < place.size:
                        size = min(wanted.size, place.size - skipped)
                        return data[begin + skipped : begin + skipped + size]
                    begin += place.size
        return None
