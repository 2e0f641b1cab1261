"""Compaction of tables: write the live entries again, then give up everything before them.

    before   | a1 | b1 | a2 | c1 | a3 |                      boundary
    copying  | a1 | b1 | a2 | c1 | a3 | b1' | d1 | c1' | a3' |
    after                             | b1' | d1 | c1' | a3' |

A copy has the version of its original. The copies begin in a data file of their own, so that the
old files go, and are synced before they do. What the opening found damaged is passed over and goes
too; an entry that was damaged since then stops the compaction.

Compaction works in small slices, each read on a thread and committed before the next one, so
nothing waits for it; a crash or an error in between leaves some entries doubled, and nothing else.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from store.api import Done, Durability
from store.errors import StoreError
from store.local.commit.changes import NoChange
from store.local.reads import Reading, places_of
from store.local.state.segment import Segment
from store.local.state.table import GARBAGE_BYTES_MIN, Table
from store.local.state.table_entries import STORED_ENTRY_BYTES_MAX, StoredEntry
from store.local.tables.table_reads import entries_in
from store.local.tables.table_writes import TableWriting
from store.local.writes import Staging, blocked_error

log = logging.getLogger(__name__)

# A slice of small entries holds the loop up for about a millisecond.
SLICE_BYTES: Final = 64 * 1024


@dataclass(slots=True)
class RowRun:
    """One compaction: entries before `boundary` are copied, those before `position` already."""

    segment: Segment
    table: Table
    position: int
    boundary: int
    aborts: int


class Compactor:
    """Compacts tables that hold more garbage than entries."""

    def __init__(
        self,
        staging: Staging,
        reading: Reading,
        writing: TableWriting,
        truncate: Callable[[Segment, int, Done[None]], None],
    ) -> None:
        """`truncate` gives up the bytes before a position of a segment."""
        self._staging = staging
        self._rounds = staging.rounds
        self._reading = reading
        self._writing = writing
        self._truncate_segment = truncate

    def consider(self, segment: Segment) -> None:
        """Begin a compaction if there is reason to. Called after every commit of entries."""
        table = segment.table
        if table is None or table.compacting:
            return
        state, pending = segment.committed, segment.pending
        garbage = table.garbage_bytes(state.length - state.start)
        if table.compact_at and garbage <= max(table.compact_at, table.live_bytes):
            return
        run = RowRun(segment, table, state.start, pending.length, segment.aborts)
        if not self._may_go_on(run):
            return
        table.compacting = True
        table.compact_at = GARBAGE_BYTES_MIN
        # The next append begins another file.
        pending.extents[-1][1].size_max = 0
        log.debug("compaction begins segment=%s garbage=%d", segment.name, garbage)
        self._slice(run, SLICE_BYTES)

    def _may_go_on(self, run: RowRun) -> bool:
        segment = run.segment
        return (
            self._rounds.closed is None
            and segment.aborts == run.aborts
            and blocked_error(segment) is None
        )

    def _slice(self, run: RowRun, size: int) -> None:
        """Read entries from the run's position on, up to its boundary."""
        if not self._may_go_on(run):
            self._end(run, None)
        elif run.position >= run.segment.committed.length:
            # What lies before the boundary is still on its way.
            self._rounds.after(run.segment, partial(self._slice, run, size))
        else:
            self._read(run, size)

    def _read(self, run: RowRun, size: int) -> None:
        committed = min(run.boundary, run.segment.committed.length)
        whole = run.table.whole_from(run.position, committed)
        position = run.position = whole.start
        if not whole:
            self._next(run, None)
            return
        self._reading.load(
            places_of(run.segment, position, min(size, len(whole))),
            lambda data: list(entries_in(whole, data, run.table.seed)),
            partial(self._copy, run),
            hot=False,
        )

    def _copy(self, run: RowRun, stored: list[StoredEntry] | StoreError) -> None:
        """Write those entries of a slice again that are still the latest of their key."""
        if isinstance(stored, StoreError):
            self._end(run, stored)
            return
        if not stored:
            # The next entry alone is larger than the slice.
            self._slice(run, STORED_ENTRY_BYTES_MAX)
            return
        if not self._may_go_on(run):
            self._end(run, None)
            return
        live = []
        for entry in stored:
            issued = run.table.issued(entry.key)
            if issued is not None and issued.position == entry.position:
                live.append((entry.key, entry.value, entry.version))
        run.position = stored[-1].position + stored[-1].size
        if live:
            self._writing.write(run.segment, live, partial(self._next, run))
        else:
            self._next(run, None)

    def _next(self, run: RowRun, error: StoreError | None) -> None:
        if error is not None or not self._may_go_on(run):
            self._end(run, error)
        elif run.position < run.boundary:
            self._slice(run, SLICE_BYTES)
        else:
            # In every durability: the originals may be on the disk for long, and they go.
            copied = NoChange(run.segment, partial(self._truncate, run))
            self._staging.repeat(copied, Durability.DISK)

    def _truncate(self, run: RowRun, error: StoreError | None) -> None:
        if error is not None or not self._may_go_on(run):
            self._end(run, error)
        else:
            self._truncate_segment(run.segment, run.boundary, partial(self._end, run))

    def _end(self, run: RowRun, error: StoreError | None) -> None:
        table, state = run.table, run.segment.committed
        table.compacting = False
        table.stopped = error
        if error is not None:
            # Not again at once: what stopped it may stop it again.
            garbage = table.garbage_bytes(state.length - state.start)
            table.compact_at = 2 * max(garbage, GARBAGE_BYTES_MIN)
            log.warning("compaction stopped segment=%s error=%s", run.segment.name, error)
        log.debug("compaction ends segment=%s start=%d", run.segment.name, state.start)
