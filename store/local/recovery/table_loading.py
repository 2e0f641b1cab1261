"""Loading of tables at the opening: the key indexes, built again from the entries.

Entries that do not check out are passed over, up to the next one that does, and the files that they
are in are copied. The table is written on as any other: a compaction leaves the damage behind.
"""

import logging
import math
from collections.abc import Iterator
from typing import Final, NamedTuple

from store.errors import CorruptSegment, StoreError
from store.files import PASSING, File, Files
from store.local.damage import Damage, Findings
from store.local.reads import places_of
from store.local.recovery.journal_damage import Evidence
from store.local.state.catalogue import Catalogue
from store.local.state.data_file import path_of
from store.local.state.segment import Segment
from store.local.state.table import Table
from store.local.state.table_entries import (
    STORED_ENTRY_BYTES_MAX,
    StoredEntry,
    entries_of,
    find_entry,
)

log = logging.getLogger(__name__)

# What a disk cannot read is lost in pieces of this size.
_BLOCK_BYTES: Final = 4096


class Stretch(NamedTuple):
    """Positions of a table that are in one file, the first of them at `offset`."""

    whole: range
    path: str
    offset: int


def load_tables(files: Files, catalogue: Catalogue, findings: Findings) -> None:
    """Rebuild the key indexes of all tables from their entries.

    Raises:
        OutOfDescriptors: So many files cannot be open at once.
    """
    for segment in catalogue.segments.values():
        table = segment.table
        if table is not None:
            table.load(_stored_entries(files, segment, table))
            # Each entry that is there has checked out, so there is no need to refuse more.
            segment.corrupt = False
            segment.block()
            if table.damaged:
                _note_damage(files, segment, table, findings)


def _stored_entries(files: Files, segment: Segment, table: Table) -> Iterator[StoredEntry]:
    """Yield the entries that check out; adds the positions of the others to `table.damaged`."""
    for stretch in _stretches_of(segment):
        try:
            file = files.open(stretch.path)
        except PASSING:
            raise
        except StoreError as error:
            log.warning("data file cannot be opened file=%s error=%s", stretch.path, error)
            table.damaged.append(stretch.whole)
            continue
        try:
            yield from _entries_in(file, stretch, table)
        finally:
            file.close()


def _stretches_of(segment: Segment) -> Iterator[Stretch]:
    state = segment.committed
    position = state.start
    for place in places_of(segment, position, state.length - position):
        end = position + place.size
        yield Stretch(range(position, end), path_of(place.file.number), place.position)
        position = end


def _entries_in(file: File, stretch: Stretch, table: Table) -> Iterator[StoredEntry]:
    position, end = stretch.whole.start, stretch.whole.stop
    while position < end:
        begin = position
        try:
            data = _read(file, stretch, begin, STORED_ENTRY_BYTES_MAX)
            for entry in entries_of(data, begin, table.seed):
                yield entry
                position += entry.size
        except CorruptSegment:
            pass  # the next turn begins with it
        if position == begin:
            position = _next_entry(file, stretch, begin + 1, table.seed)
            table.damaged.append(range(begin, position))


def _next_entry(file: File, stretch: Stretch, position: int, seed: int) -> int:
    """Find the first entry from a position on that checks out; gives the end if there is none."""
    for begin in range(position, stretch.whole.stop, STORED_ENTRY_BYTES_MAX):
        data = _read(file, stretch, begin, 2 * STORED_ENTRY_BYTES_MAX)
        at = find_entry(data, begin, seed, STORED_ENTRY_BYTES_MAX)
        if at is not None:
            return begin + at
    return stretch.whole.stop


def _read(file: File, stretch: Stretch, position: int, size: int) -> bytes:
    """Read at a position; zeros stand for bytes that the disk cannot read."""
    begin = position - stretch.whole.start + stretch.offset
    end = begin + min(size, stretch.whole.stop - position)
    try:
        return file.read_at(end - begin, begin)
    except StoreError as error:
        log.warning("data file cannot be read file=%s error=%s", stretch.path, error)
    blocks = [_read_block(file, at, end) for at in range(begin, end, _BLOCK_BYTES)]
    return b"".join(blocks)


def _read_block(file: File, begin: int, end: int) -> bytes:
    size = min(_BLOCK_BYTES, end - begin)
    try:
        return file.read_at(size, begin)
    except StoreError:
        return bytes(size)


def _note_damage(files: Files, segment: Segment, table: Table, findings: Findings) -> None:
    damaged = set()
    for stretch in _stretches_of(segment):
        for gap in table.damaged:
            if gap.start in stretch.whole:
                what = (
                    f"{len(gap)} bytes of a table are lost, older values of their keys may be back"
                )
                place = gap.start - stretch.whole.start + stretch.offset
                findings.add(Damage(what, stretch.path, segment.name, place))
                damaged.add(stretch.path)
    # What is behind the end of the last file is kept as it is.
    segment.committed.extents[-1][1].size_max = 0
    # A copy has the same place at each opening until a compaction has left the damage behind.
    try:
        evidence = Evidence(files, table.seed)
        for path in sorted(damaged):
            if _is_there(files, path):
                evidence.copy(path)
    except StoreError as error:
        findings.note(
            "damaged table is not copied, so it is not compacted"
            f" segment={segment.name} error={error}"
        )
        table.compact_at = math.inf
    else:
        table.compact_at = 0


def _is_there(files: Files, path: str) -> bool:
    directory, _, name = path.rpartition("/")
    return name in files.names(directory)
