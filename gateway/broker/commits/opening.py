"""Opening of the commits of a virtual host: reads their table, and finishes those under way."""

from dataclasses import dataclass, field
from typing import Final

from gateway.broker.commits.commit_order import CommitPart
from gateway.broker.commits.commits import Commits
from gateway.broker.commits.ports import CommitsPorts
from gateway.broker.commits.rows import (
    HeadRow,
    PartRow,
    SinkRow,
    StageRow,
    numbers_of,
    part_key,
    sink_of,
    unpack,
)
from gateway.broker.commits.sources import RowSource, StagesSource
from gateway.broker.commits.stage import Stage, restored
from gateway.broker.kept_table import check_intact
from gateway.log.derived.tracking import create_table_if_missing
from gateway.pending import Pending
from store.api import TableEntry, TablePage
from store.errors import CorruptSegment

_PAGE_ROWS: Final = 100
"""Rows read at once; a stage's has up to 256 KiB."""


@dataclass(slots=True)
class _Found:
    """Commits under way, by number: their heads, and their parts by generation."""

    heads: dict[int, HeadRow] = field(default_factory=dict)
    parts: dict[int, dict[int, PartRow]] = field(default_factory=dict)


async def open_commits(ports: CommitsPorts) -> Commits:
    """Open the commits of a virtual host, whose streams are open.

    Commits under way are finished, but for parts of streams that cannot be written now.

    Raises:
        CorruptSegment: The table is damaged.
        StoreError: It cannot be read.
    """
    await create_table_if_missing(ports.store, ports.table)
    await check_intact(ports.store, ports.table)
    commits = Commits(ports)
    found = _Found()
    continuation: bytes | None = None
    while True:
        page: Pending[TablePage] = Pending()
        ports.store.iterate_table(
            ports.table, continuation=continuation, count=_PAGE_ROWS, done=page.settle
        )
        result = await page
        for entry in result.entries:
            _take(commits, found, ports.table, entry)
        continuation = result.continuation
        if continuation is None:
            break
    await commits.stages.find_open()
    for number, head in sorted(found.heads.items()):
        await _resume(commits, number, head, found.parts.get(number, {}))
    await commits.stages.collect()
    return commits


def _take(commits: Commits, found: _Found, table: str, entry: TableEntry) -> None:
    """Sort a row in. Raises CorruptSegment."""
    key = entry.key
    try:
        row = unpack(key, entry.value)
    except Exception as error:  # a value that was never written may fail in any way
        what = "unknown" if isinstance(error, KeyError) else "damaged"
        raise CorruptSegment(f"the entry {key!r} of the table {table!r} is {what}") from error
    match row:
        case int():
            commits.restore(row, entry.version)
        case SinkRow():
            commits.sinks.put(sink_of(key), row, entry.version)
        case StageRow() as stage, _:
            (number,) = numbers_of(key)
            commits.stages.restore(number, stage)
        case HeadRow():
            (number,) = numbers_of(key)
            found.heads[number] = row
        case PartRow() as part, _:
            number, generation = numbers_of(key)
            found.parts.setdefault(number, {})[generation] = part


async def _resume(commits: Commits, number: int, head: HeadRow, rows: dict[int, PartRow]) -> None:
    """Finish a commit, as far as its streams can be written."""
    stages: list[Stage] = []
    parts: list[CommitPart] = []
    for generation, row in rows.items():
        if row.chunk_bytes:
            key = part_key(number, generation)
            source = RowSource(commits.ports, key, row.chunk_bytes)
            parts.append(CommitPart(number, row.stream, generation, source))
        else:
            some = [commits.stages.find(each) or _missing(each, row, head) for each in row.stages]
            stages += some
            staged = StagesSource(commits.ports, commits.stages.data_of, some)
            parts.append(CommitPart(number, row.stream, generation, staged))
    await commits.resume(number, head, stages, parts)


def _missing(number: int, part: PartRow, head: HeadRow) -> Stage:
    """Stand in for a stage of a commit that has lost its row; it cannot be read."""
    row = StageRow(
        user=head.user,
        sink=head.sink,
        batch=head.batch,
        stream=part.stream,
        generation=0,
        size_bytes=1,
        is_closed=True,
    )
    return restored(number, row)
