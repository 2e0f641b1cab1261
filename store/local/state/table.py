# cython: language_level=3, annotation_typing=False, nonecheck=True
"""The keys of a table in memory: as committed, with changes issued upon them, and in order."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from store.api import ANY_VERSION, NOT_EXISTS, TableEntry
from store.errors import KeyVersionMismatch, StoreError
from store.local.state.key_order import KeyOrder, Ordering
from store.local.state.table_entries import StoredEntry, seed_of

# Longer values are read from the file when they are asked for.
KEPT_VALUE_BYTES_MAX: Final = 256

# Compaction waits for so much garbage, and for more of it than of live entries.
GARBAGE_BYTES_MIN: Final = 1024 * 1024


class KeyEntry:
    """Place of a key's latest entry. `value` is None if it is not kept in memory.

    There may be millions. Compiled, they are of no interest to the garbage collector, which would
    hold the loop up for long.
    """

    __slots__ = ("position", "removed", "size", "value", "version")

    def __init__(
        self, version: int, position: int, size: int, value: bytes | None, *, removed: bool
    ) -> None:
        self.version = version
        self.position = position
        self.size = size
        self.value = value
        self.removed = removed


KeyChange = tuple[bytes, KeyEntry]


def key_entry(version: int, position: int, size: int, value: bytes | None) -> KeyEntry:
    """Make the index entry of an entry that was stored."""
    kept = value if value is not None and len(value) <= KEPT_VALUE_BYTES_MAX else None
    return KeyEntry(version, position, size, kept, removed=value is None)


class Table:
    """The key index of one table segment."""

    __slots__ = (
        "_order",
        "_ordering",
        "compact_at",
        "compacting",
        "count_issued",
        "damaged",
        "index",
        "key_length",
        "live_bytes",
        "overlay",
        "seed",
        "stopped",
        "when_ordered",
    )

    def __init__(self, key_length: int, name: str) -> None:
        """`name` is that of the segment."""
        self.key_length = key_length
        self.seed = seed_of(name)
        self.index: dict[bytes, KeyEntry] = {}
        # The latest issued entry of each key that has one on its way.
        self.overlay: dict[bytes, KeyEntry] = {}
        self.count_issued = 0
        # Size of the entries in the index.
        self.live_bytes = 0
        self.compacting = False
        # Garbage that leads to a compaction; 0: any.
        self.compact_at: float = GARBAGE_BYTES_MIN
        # What stopped the last compaction, if it has not come to its end.
        self.stopped: StoreError | None = None
        # Positions whose entries were lost, as the opening found them, in order.
        self.damaged: list[range] = []
        # Keys in order, made when they are first asked for; and those that wait for it.
        self._order: KeyOrder | None = None
        self._ordering: Ordering | None = None
        self.when_ordered: list[Callable[[], object]] = []

    # Issued

    def issued(self, key: bytes) -> KeyEntry | None:
        """Return a key's entry with everything issued, None if it is absent."""
        entry = self.overlay.get(key)
        if entry is None:
            return self.index.get(key)
        return None if entry.removed else entry

    def check(self, entries: Iterable[TableEntry]) -> KeyVersionMismatch | None:
        """Check the conditions of entries against everything issued; gives the first that fails."""
        for entry in entries:
            if entry.version == ANY_VERSION:
                continue
            issued = self.issued(entry.key)
            version = NOT_EXISTS if issued is None else issued.version
            if version != entry.version:
                found = "absent" if issued is None else f"at version {version}"
                message = f"key is {found}, expected version {entry.version}"
                return KeyVersionMismatch(message, entry.key, version)
        return None

    def issue(self, changes: Iterable[KeyChange]) -> None:
        """Note changes that are on their way."""
        for key, entry in changes:
            self.count_issued += (not entry.removed) - (self.issued(key) is not None)
            self.overlay[key] = entry

    def abort(self) -> None:
        """Forget the changes on their way."""
        self.overlay.clear()
        self.count_issued = len(self.index)

    # Committed

    def commit(self, changes: Iterable[KeyChange]) -> None:
        """Take changes into the committed index."""
        index = self.index
        for key, entry in changes:
            if self.overlay.get(key) is entry:
                del self.overlay[key]
            before = index.get(key)
            if before is not None:
                self.live_bytes -= before.size
            if entry.removed:
                index.pop(key, None)
            else:
                index[key] = entry
                self.live_bytes += entry.size
                if before is None:
                    if self._order is not None:
                        self._order.add(key)
                    elif self._ordering is not None:
                        self._ordering.add(key)

    def load(self, stored: Iterable[StoredEntry]) -> None:
        """Take in entries at the opening, in the order of their positions."""
        self.commit(
            (each.key, key_entry(each.version, each.position, each.size, each.value))
            for each in stored
        )
        self.count_issued = len(self.index)

    def keys_from(
        self, after: bytes | None, first: bytes | None, last: bytes | None
    ) -> Iterator[bytes]:
        """Yield the committed keys in order: after `after`, from `first` to `last` inclusive.

        `is_in_order` has told that they are.
        """
        assert self._order is not None
        is_after = after is not None and (first is None or after >= first)
        start = (after if is_after else first) or b""
        for key in self._order.keys_from(start, is_after=is_after):
            if last is not None and key > last:
                return
            if key in self.index:
                yield key

    def is_in_order(self) -> bool:
        """Put keys in order, if they are not; tells whether that is done, or is to go on."""
        if self._order is not None and len(self._order) > 2 * len(self.index) + 1000:
            self._order = None
        if self._order is None:
            if self._ordering is None:
                self._ordering = Ordering(list(self.index))
            self._order = self._ordering.go_on()
        if self._order is not None:
            self._ordering = None
        return self._order is not None

    def is_damaged(self, start: int) -> bool:
        """Return whether entries were lost from the segment's start on."""
        return any(gap.stop > start for gap in self.damaged)

    def whole_from(self, position: int, end: int) -> range:
        """Return the first positions from one on, up to `end`, that are not known to be damaged."""
        for gap in self.damaged:
            if position < gap.start:
                return range(position, min(gap.start, end))
            position = max(position, gap.stop)
        return range(position, end)

    def garbage_bytes(self, stored_bytes: int) -> int:
        """Return how much of `stored_bytes` no key refers to."""
        return stored_bytes - self.live_bytes
