# cython: language_level=3, annotation_typing=False, nonecheck=True
"""The attributes of a segment: those that clients name, and the positions of its writers."""

from collections.abc import Iterable
from itertools import islice
from typing import Final

import cython

from store.api import ABSENT, ATTRIBUTES_MAX, WRITERS_MAX

_FORGOTTEN_AT_ONCE: Final = 1_000


@cython.no_gc
@cython.cclass
class Attributes:
    """Numbers by ids of 16 bytes. What an append gives a number is a writer from then on.

    Attributes:
        named: Those that an update has made.
        writers: The event number of each writer's last append, in the order of these appends.
    """

    __slots__ = ("_last", "named", "writers")

    def __init__(self) -> None:
        self.named: dict[bytes, int] = {}
        self.writers: dict[bytes, int] = {}
        # The last one in `writers`, if it is known.
        self._last: bytes | None = None

    def copy(self) -> "Attributes":
        """Return attributes that change on their own."""
        other = Attributes()
        other.named = dict(self.named)
        other.writers = dict(self.writers)
        return other

    def get(self, attribute: bytes) -> int:
        """Return a number; ABSENT if there is none."""
        number = self.writers.get(attribute)
        if number is None:
            number = self.named.get(attribute)
        return ABSENT if number is None else number

    def all(self) -> dict[bytes, int]:
        """Return all of them."""
        return self.named | self.writers

    def update(self, values: Iterable[tuple[bytes, int]]) -> None:
        """Set attributes; ABSENT removes one."""
        for attribute, value in values:
            group = self.writers if attribute in self.writers else self.named
            if value != ABSENT:
                group[attribute] = value
            elif group.pop(attribute, None) is not None:
                self._last = None

    def has_room(self, values: Iterable[tuple[bytes, int]]) -> bool:
        """Return whether there is room for the attributes after an update."""
        count = len(self.named)
        for attribute, value in values:
            if value != ABSENT and attribute not in self.named and attribute not in self.writers:
                count += 1
        return count <= ATTRIBUTES_MAX

    def append(self, writer: bytes, number: int) -> int:
        """Note a writer's append. Gives how many writers are forgotten for it, oldest first."""
        forgotten = 0
        if writer is not self._last:
            if self.writers.pop(writer, None) is None:
                self.named.pop(writer, None)
                forgotten = self._forget() if len(self.writers) >= WRITERS_MAX else 0
            self._last = writer
        self.writers[writer] = number
        return forgotten

    def _forget(self) -> int:
        for writer in list(islice(self.writers, _FORGOTTEN_AT_ONCE)):
            del self.writers[writer]
        return _FORGOTTEN_AT_ONCE
