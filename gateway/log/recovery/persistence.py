"""Store new index entries, then the snapshot: they make the next opening of a log fast.

The filter values of new chunks are stored too: they make filtered reading fast. All of this is
derived, so a failure is only logged: the next opening scans, and the next reader reads the chunks.
"""

import logging
from collections.abc import Sequence
from contextlib import suppress

from gateway.log.derived.index import ENTRY_BYTES, last_place_before
from gateway.log.derived.snapshot import Snapshot
from gateway.log.derived.tracking import Tracking
from gateway.log.log import StreamLog
from gateway.log.names import writer_of
from gateway.log.recovery.log_opening import LogNames
from gateway.pending import Pending, start
from hutch.formats.chunk import seal_seed
from store.api import (
    ABSENT,
    READ_BYTES_MAX,
    Appended,
    Operations,
    ReadResult,
    SegmentInfo,
    SegmentStore,
    Writer,
)
from store.errors import SegmentExists, StoreError

log = logging.getLogger(__name__)


def save_log(
    store: SegmentStore,
    tracking: Tracking,
    generation: int,
    names: LogNames,
    stream_log: StreamLog,
    snapshot: Snapshot,
) -> Pending[None]:
    """Append the index entries that are not stored yet, then store `snapshot`.

    A log has one save at a time. A snapshot that comes meanwhile waits; a later one replaces it.
    """
    saved = stream_log.saved
    saved.ask(snapshot)
    if saved.saving is None or saved.saving.is_settled:
        saved.saving = start(_save_latest(store, tracking, generation, names, stream_log))
    return saved.saving


async def _save_latest(
    store: SegmentStore,
    tracking: Tracking,
    generation: int,
    names: LogNames,
    stream_log: StreamLog,
) -> None:
    while (snapshot := stream_log.saved.take()) is not None:
        await _save(store, tracking, generation, names, stream_log, snapshot)
        await _save_filters(names, stream_log)


async def _save(
    store: SegmentStore,
    tracking: Tracking,
    generation: int,
    names: LogNames,
    stream_log: StreamLog,
    snapshot: Snapshot,
) -> None:
    try:
        await _save_index(store, names, stream_log, snapshot)
        saved: Pending[Sequence[int]] = Pending()
        tracking.snapshots.save(generation, snapshot, saved.settle)
        await saved
        stream_log.saved.snapshot_position = snapshot.position
    except StoreError as error:
        stream_log.saved.index_writer = None  # its session may be dead: the next save opens another
        log.warning("snapshot not stored stream=%s error=%s", names.stream, error)
    except Exception:  # the edge of a save: deletions and removals wait for it, and must go on
        log.exception("snapshot not stored stream=%s", names.stream)


async def _save_filters(names: LogNames, stream_log: StreamLog) -> None:
    saved = stream_log.saved
    if saved.filter_pages is None:
        return
    try:
        await saved.filter_pages.append(saved.filter_notes, stream_log.start)
    except StoreError as error:
        log.warning("filter values not stored stream=%s error=%s", names.stream, error)
    except Exception:  # as for the snapshot
        log.exception("filter values not stored stream=%s", names.stream)


async def _save_index(
    store: SegmentStore, names: LogNames, stream_log: StreamLog, snapshot: Snapshot
) -> None:
    saved = stream_log.saved
    writer = saved.index_writer
    if snapshot.gives_space:
        saved.index_writer = None  # the next save opens a session of its own
        writer = await _index_writer(store.for_removal, names)
    elif writer is None:
        writer = saved.index_writer = await _index_writer(store, names)
    entries, end = stream_log.index.pack_after(
        saved.index_end, snapshot.position, seal_seed(names.index_segment)
    )
    if not entries:
        return
    last_number = 0 if writer.event_number == ABSENT else writer.event_number
    appended: Pending[Appended] = Pending()
    writer.append(entries, last_number + 1, done=appended.settle)
    await appended
    saved.index_end = end


async def _index_writer(store: Operations, names: LogNames) -> Writer:
    """Open a session on the stored index, which is created if it is missing."""
    created: Pending[None] = Pending()
    store.create_segment(names.index_segment, done=created.settle)
    with suppress(SegmentExists):
        await created
    opened: Pending[Writer] = Pending()
    store.open_writer(names.index_segment, writer_of(names.index_segment), done=opened.settle)
    return await opened


async def trim_index(store: SegmentStore, segment: str, start: int) -> None:
    """Remove the stored entries that lie before the one whose span holds the segment's start.

    Raises:
        StoreError: The store refused; NoSuchSegment: nothing was stored yet.
    """
    described: Pending[SegmentInfo] = Pending()
    store.info(segment, done=described.settle)
    info = await described
    position = keep = info.start
    is_before = True
    while is_before and position < info.length:
        read: Pending[ReadResult] = Pending()
        store.read(segment, position, READ_BYTES_MAX, done=read.settle)
        data = (await read).data
        whole = len(data) // ENTRY_BYTES * ENTRY_BYTES
        if not whole:
            break
        last = last_place_before(data[:whole], start)
        is_before = last == whole // ENTRY_BYTES - 1
        keep = max(keep, position + last * ENTRY_BYTES)
        position += whole
    if keep > info.start:
        truncated: Pending[None] = Pending()
        store.truncate_segment(segment, keep, done=truncated.settle)
        await truncated
