"""Bytes of a table's files that are read while the store runs: values, and deltas. Pure."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from store.api import TableDelta, TableEntry
from store.errors import CorruptSegment
from store.local.segment import Segment
from store.local.table import KeyChange
from store.local.table_entries import STORED_ENTRY_BYTES_MAX, StoredEntry, entries_of


class DeltaRange(NamedTuple):
    """What a delta read asks for: up to `count_max` entries of those in `whole`."""

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
    """Make a delta of the entries at the beginning of what was asked for. Raises CorruptSegment."""
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
