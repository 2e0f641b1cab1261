"""The merge of a table into another one. No Pravega has ever done it; its page names it."""

from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Final

from gateway.pending import Pending, asked
from gateway.pravega.handlers.table_pages import STEP
from hutch.pravega.wire_types import TABLE_ITEMS_MAX
from store.api import TABLE_BATCH_BYTES_MAX, Operations, SegmentInfo, TableEntry, TablePage
from store.errors import InvalidArgument, SegmentSealed

ENTRIES_MAX: Final = TABLE_ITEMS_MAX
"""Entries of one merge: other connections wait while they are written."""


async def merged(store: Operations, target: str, source: str) -> int:
    """Move a source's entries into a target as one update, and delete it; return its length.

    The source is read before it is sealed, so that one that the target cannot take stays as it was.
    A coroutine on `gateway.pending`. Raises StoreError.
    """
    if target == source:
        raise InvalidArgument(f"table {source!r} cannot be merged into itself")
    info = await _info(store, target)
    if info.sealed:
        raise SegmentSealed(f"table {target!r} is sealed")
    async for _ in _entries(store, source, info):
        pass
    with suppress(SegmentSealed):
        await _sealed(store, source)
    entries = [entry async for entry in _entries(store, source, info)]
    if entries:
        await _updated(store, target, entries)
    await _deleted(store, source)
    return (await _info(store, target)).length


async def _entries(
    store: Operations, source: str, target: SegmentInfo
) -> AsyncIterator[TableEntry]:
    """Yield the entries of a table, unless they are none for one update of a target."""
    count = size = 0
    continuation: bytes | None = None
    while True:
        page = await _page(store, source, continuation)
        for entry in page.entries:
            count += 1
            size += len(entry.key) + len(entry.value)
            if target.key_length not in {0, len(entry.key)}:
                text = f"keys of table {target.name!r} have {target.key_length} bytes; those of "
                raise InvalidArgument(f"{text}{source!r} have not")
            if size > TABLE_BATCH_BYTES_MAX or count > ENTRIES_MAX:
                most = f"{TABLE_BATCH_BYTES_MAX} bytes or {ENTRIES_MAX} entries"
                text = f"table {source!r} has more than {most}, the most that are moved at once"
                raise InvalidArgument(text)
            yield TableEntry(entry.key, entry.value)
        continuation = page.continuation
        if continuation is None:
            return


# The store


async def _info(store: Operations, table: str) -> SegmentInfo:
    found: Pending[tuple[SegmentInfo, int]] = asked(lambda done: store.table_info(table, done=done))
    return (await found)[0]


def _page(store: Operations, table: str, continuation: bytes | None) -> Pending[TablePage]:
    return asked(
        lambda done: store.iterate_table(table, continuation=continuation, count=STEP, done=done)
    )


def _sealed(store: Operations, table: str) -> Pending[int]:
    return asked(lambda done: store.seal_segment(table, done=done))


def _updated(
    store: Operations, table: str, entries: Sequence[TableEntry]
) -> Pending[Sequence[int]]:
    return asked(lambda done: store.update_table(table, entries, done=done))


def _deleted(store: Operations, table: str) -> Pending[None]:
    return asked(lambda done: store.delete_table(table, done=done))
