"""Reading of a table's files while the store runs: values, pages and deltas."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

from store.api import Done, TableDelta, TableEntry
from store.errors import CorruptSegment, StoreError
from store.local.reads import Reading, places_of
from store.local.state.segment import Place, Segment
from store.local.state.table import KeyChange, KeyEntry, Table
from store.local.state.table_entries import STORED_ENTRY_BYTES_MAX, StoredEntry, entries_of

PAGE_BYTES_MAX: Final = 4 * 1024 * 1024
"""A page of an iteration ends early above this, so that large values do not take a gigabyte."""

CACHED_BYTES: Final = 1024 * 1024
"""Bytes of values that are copied and checked on the loop at once: some 2 ms."""

DELTA_BYTES: Final = 64 * 1024
"""Bytes that a delta read decodes on the loop: small entries of so many take about 1 ms."""


class DeltaRange(NamedTuple):
    """Range of a delta read: up to `count_max` entries of those in `whole`."""

    whole: range
    length: int
    seed: int
    count_max: int
    should_clear: bool


def entries_in(whole: range, data: memoryview, seed: int) -> Iterator[StoredEntry]:
    """Decode the whole entries at the beginning of `data`.

    Args:
        whole: Positions that begin with those of `data` and end with an entry.
        data: Perhaps too short for an entry.
        seed: Of the table.

    Raises:
        CorruptSegment: What stands there is not what was written.
    """
    position = whole.start
    for entry in entries_of(data, position, seed):
        yield entry
        position += entry.size
    if position == whole.start and len(data) >= min(len(whole), STORED_ENTRY_BYTES_MAX) > 0:
        raise CorruptSegment(f"no table entry at position {position}")


def values_of(segment: Segment, asked: Sequence[KeyChange], data: memoryview) -> list[bytes]:
    """Take the values out of entries that were read one after another. Raises CorruptSegment."""
    values = []
    at = 0
    for key, entry in asked:
        values.append(value_of(segment, (key, entry), data[at : at + entry.size]))
        at += entry.size
    return values


def value_of(segment: Segment, asked: KeyChange, data: memoryview) -> bytes:
    """Take the value out of the bytes of a key's entry. Raises CorruptSegment."""
    key, entry = asked
    table = segment.table
    assert table is not None
    try:
        stored = next(entries_of(data, entry.position, table.seed), None)
    except CorruptSegment:
        stored = None
    if stored is None or stored.key != key or stored.value is None:
        raise CorruptSegment(
            f"the entry of the key {key!r:.99} at position {entry.position} "
            f"of table {segment.name!r} is damaged"
        )
    return stored.value


def delta_of(wanted: DeltaRange, data: memoryview) -> TableDelta:
    """Make a delta of the entries at the beginning of a range. Raises CorruptSegment."""
    entries: dict[bytes, TableEntry] = {}
    position = wanted.whole.start
    for number, stored in enumerate(entries_in(wanted.whole, data, wanted.seed), 1):
        # In the order of the last writing, so a key moves to the end.
        entries.pop(stored.key, None)
        if stored.value is not None:
            entries[stored.key] = TableEntry(stored.key, stored.value, stored.version)
        position = stored.position + stored.size
        if number == wanted.count_max:
            break
    return TableDelta(
        list(entries.values()),
        wanted.should_clear,
        reached_end=position == wanted.length,
        position=position,
    )


class TableReading:
    """Reads entries of tables, from memory where they are there, otherwise on a thread."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading

    def values(
        self,
        segment: Segment,
        found: Sequence[KeyChange],
        done: Callable[[list[TableEntry] | StoreError], object],
    ) -> None:
        """Get the values that are not kept in memory, from the page cache or on a thread.

        What is above `CACHED_BYTES` comes on a thread, wherever it is.
        """
        try:
            values = list(self._values_or_places(segment, found))
        except StoreError as error:
            done(error)
            return

        def answer(loaded: list[bytes] | StoreError) -> None:
            if isinstance(loaded, StoreError):
                done(loaded)
                return
            rest = iter(loaded)
            entries = [
                TableEntry(key, value if isinstance(value, bytes) else next(rest), entry.version)
                for (key, entry), value in zip(found, values, strict=True)
            ]
            done(entries)

        cold = [place for place in values if isinstance(place, Place)]
        if cold:
            pairs = zip(found, values, strict=True)
            asked = [each for each, value in pairs if isinstance(value, Place)]
            self._reading.load(cold, partial(values_of, segment, asked), answer, hot=False)
        else:
            answer([])

    def _values_or_places(
        self, segment: Segment, found: Sequence[KeyChange]
    ) -> Iterator[bytes | Place]:
        size = 0
        for key, entry in found:
            if entry.value is not None:
                yield entry.value
                continue
            place = segment.committed.place_of(entry.position, entry.size)
            size += place.size
            yield place if size > CACHED_BYTES else self._cached(segment, key, entry, place)

    def _cached(self, segment: Segment, key: bytes, entry: KeyEntry, place: Place) -> bytes | Place:
        data = self._reading.cached(place)
        if data is None or len(data) != place.size:
            return place
        return value_of(segment, (key, entry), memoryview(data))

    def delta(self, segment: Segment, wanted: DeltaRange, done: Done[TableDelta]) -> None:
        """Read the first entries of those that are wanted."""
        whole = wanted.whole
        if not whole:
            done(delta_of(wanted, memoryview(b"")))
        elif not self._delta_from_memory(segment, wanted, done):
            places = places_of(segment, whole.start, min(STORED_ENTRY_BYTES_MAX, len(whole)))
            self._reading.load(places, partial(delta_of, wanted), done, hot=False)

    def _delta_from_memory(
        self, segment: Segment, wanted: DeltaRange, done: Done[TableDelta]
    ) -> bool:
        """Answer at once if the first entries are in memory; tells whether that was so."""
        begin, size = wanted.whole.start, min(DELTA_BYTES, len(wanted.whole))
        try:
            data = self._reading.cached(segment.committed.place_of(begin, size))
            delta = delta_of(wanted, memoryview(data or b""))
        except StoreError as error:
            done(error)
            return True
        if delta.position == begin:
            return False
        done(delta)
        return True


def page_of(
    table: Table, keys: Iterator[bytes], count: int
) -> tuple[list[tuple[bytes, KeyEntry]], bool]:
    """Take a page; tells whether more follows."""
    page: list[tuple[bytes, KeyEntry]] = []
    size = 0
    for key in keys:
        entry = table.index[key]
        if len(page) == count or (page and size + entry.size > PAGE_BYTES_MAX):
            return page, True
        page.append((key, entry))
        size += entry.size
    return page, False
