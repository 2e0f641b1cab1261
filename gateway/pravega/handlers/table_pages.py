"""Parts of a table for one reply: as many entries as were asked for, and as a frame can hold."""

from collections.abc import Iterable
from typing import Final

from store.api import TableEntry

_COUNT_MAX: Final = 1_000
STEP: Final = 15
"""Entries that the store is asked for at a time: of 1 MiB each they still fit into a frame."""
_FULL_BYTES: Final = 512 * 1024
"""With so many bytes nothing is added: what one more step brings still fits."""
_ENTRY_BYTES: Final = 24
"""Bytes on the wire beside key and value."""


class EntryPage:
    """Entries of one reply to an iteration."""

    def __init__(self, count: int, prefix: bytes = b"") -> None:
        """Begin with none; `count` are asked for, at least one is given.

        Only keys with `prefix` count.
        """
        self._prefix = prefix
        self.entries: list[TableEntry] = []
        self._left = min(max(count, 1), _COUNT_MAX)
        self._size = 0

    @property
    def step(self) -> int:
        """Number of entries to ask the store for next."""
        return min(self._left, STEP)

    @property
    def is_full(self) -> bool:
        """True if nothing is to be added."""
        return self._left <= 0 or self._size >= _FULL_BYTES

    def add(self, entries: Iterable[TableEntry]) -> None:
        """Add a page of the store."""
        for entry in entries:
            if not entry.key.startswith(self._prefix):
                continue
            self._left -= 1
            self._size += len(entry.key) + len(entry.value) + _ENTRY_BYTES
            self.entries.append(entry)


class DeltaPage:
    """Entries of one reply about changes: the last of each key, in the order of writing.

    Attributes:
        should_clear: Whether the client has to forget what it had.
    """

    def __init__(self, count: int) -> None:
        self.should_clear = False
        self._page = EntryPage(count)
        self._last: dict[bytes, TableEntry] = {}

    @property
    def entries(self) -> Iterable[TableEntry]:
        """The entries."""
        return self._last.values()

    @property
    def step(self) -> int:
        """Number of entries to ask the store for next."""
        return self._page.step

    @property
    def is_full(self) -> bool:
        """True if nothing is to be added."""
        return self._page.is_full

    def add(self, entries: Iterable[TableEntry], *, should_clear: bool) -> None:
        """Add a delta of the store; with `should_clear` entries before it do not count."""
        if should_clear:
            self.should_clear = True
            self._last.clear()
        self._page.add(entries)
        for entry in entries:
            self._last.pop(entry.key, None)
            self._last[entry.key] = entry
