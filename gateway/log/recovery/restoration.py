"""Read a log's stored index and snapshot, and compare them with its chunks.

The index is derived: if it is damaged, it is rebuilt from the chunks. A snapshot cannot always be
rebuilt: it alone knows the publishers whose chunks were removed.
"""

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final, TypeVar

from gateway.log.damage.flaws import Flaw, Part, Sink
from gateway.log.damage.verification import Chunk
from gateway.log.derived.index import ENTRY_BYTES, are_sound
from gateway.log.derived.sequences import NO_MARK_KNOWN, UNKNOWN, PublisherSequences
from gateway.log.derived.snapshot import Snapshot
from gateway.log.kernel.chunks import BAD_SEAL, check_seals, find_sealed, walk_chunks
from gateway.pending import Pending, asked, nothing
from hutch.formats.chunk import EVENT_HEAD_BYTES, seal_seed
from store.api import (
    APPEND_BYTES_MAX,
    READ_BYTES_MAX,
    Reader,
    ReadResult,
    SegmentInfo,
    SegmentStore,
)
from store.errors import NoSuchSegment, StoreError

log = logging.getLogger(__name__)

T = TypeVar("T")

_NO_IDS: Final = Snapshot(parts=[NO_MARK_KNOWN])
_LOST_IDS: Final = Snapshot(parts=[NO_MARK_KNOWN, UNKNOWN])


async def check_bytes(
    reader: Reader, position: int, size: int, look: Callable[[memoryview], T]
) -> T:
    """Call `look` with stored bytes on a thread of the store; zeros where a file is too short."""
    looked: Pending[T] = Pending()
    reader.check(position, size, look, done=looked.settle, fills=True)
    return await looked


async def read_index(
    store: SegmentStore, segment: str, found: Sink = nothing
) -> tuple[int, bytes | None]:
    """Read the whole stored index.

    Args:
        store: Holds it.
        segment: Its segment.
        found: Told what is wrong with it.

    Returns:
        The position where it begins, and its bytes; empty if there is none, None if it cannot be
        used.
    """
    try:
        start, stored = await _read_whole(store, segment)
    except NoSuchSegment:
        return 0, b""
    except StoreError as error:
        log.warning("stored index cannot be read segment=%s error=%s", segment, error)
        found(Flaw(Part.INDEX, f"it cannot be read: {error}", segment))
        return 0, None
    seed = seal_seed(segment)
    if are_sound(stored, seed):
        return start, stored
    log.error("stored index is damaged and is rebuilt segment=%s", segment)
    places = range(0, len(stored), ENTRY_BYTES)
    place = next(at for at in places if not are_sound(stored[at : at + ENTRY_BYTES], seed))
    found(Flaw(Part.INDEX, "the checksum of an entry does not match", segment, start + place))
    return start, None


async def _read_whole(store: SegmentStore, segment: str) -> tuple[int, bytes]:
    """Read a small segment: its start, and all its bytes. Raises StoreError."""
    info: SegmentInfo = await asked(lambda done: store.info(segment, done=done))
    parts: list[bytes] = []
    position = info.start
    while position < info.length:
        read: Pending[ReadResult] = Pending()
        store.read(segment, position, READ_BYTES_MAX, done=read.settle)
        result = await read
        if not result.data:
            break
        parts.append(result.data)
        position += len(result.data)
    return info.start, b"".join(parts)


async def restore(
    sequences: PublisherSequences,
    reader: Reader,
    seed: int,
    snapshot: Snapshot | None,
    last: int | None,
    found: Callable[[str], object] = nothing,
) -> Snapshot | None:
    """Take over the publishers of a stored snapshot, if it fits the segment.

    No chunk is removed before a snapshot covers it. So if chunks were removed and there is no
    snapshot, it was lost.

    Args:
        sequences: Get the publishers.
        reader: Reader of the segment.
        seed: Of the seals of its chunks.
        snapshot: The stored one, None if there is none.
        last: The offset behind the last chunk by the writer's number.
        found: Told what is wrong with the snapshot itself. If it does not fit, its chunks may have
            been damaged, or lost in a power cut.

    Returns:
        The snapshot, or a replacement for it, which is to be stored; None if it needs none.
    """
    if snapshot is None:
        if reader.start:
            found("it is lost, and chunks that it knew of were removed")
            sequences.lose()
        return None
    sequences.restore(snapshot.parts)
    if sequences.damaged:
        found("publishing ids in it are damaged or were lost")
    elif snapshot.position < reader.start:
        found("it is older than the removal of chunks that it knows nothing of")
    fitting = await _fitting(reader, seed, snapshot, last)
    if fitting is not snapshot:
        sequences.clear()
        sequences.restore([] if fitting is None else fitting.parts)
    if sequences.damaged and not reader.start:  # all chunks are there, and know the publishers
        sequences.clear()
        return None
    return fitting


async def _fitting(
    reader: Reader, seed: int, snapshot: Snapshot, last: int | None
) -> Snapshot | None:
    """Return a snapshot if it fits the segment, else a replacement, or None if it needs none.

    It needs none while all chunks are there. Later the replacement says that publishers may be
    unknown, except where the segment was shortened: records that were lost with its end may be sent
    again. A snapshot that is older than the removed chunks does not count: the one that was stored
    before their removal was lost.
    """
    if snapshot.position < reader.start:
        return replace(snapshot, parts=[*snapshot.parts, NO_MARK_KNOWN, UNKNOWN])
    if await _fits(reader, seed, snapshot, last):
        return snapshot
    if not reader.start:
        return None
    return _NO_IDS if snapshot.position > reader.length else _LOST_IDS


async def _fits(reader: Reader, seed: int, snapshot: Snapshot, last: int | None) -> bool:
    """Return whether the segment has (or had) the snapshot's last chunk where the snapshot says.

    A damaged chunk there is enough if the snapshot's next offset follows behind it.
    """
    if snapshot.position == reader.start:
        return True
    place, end = snapshot.last_chunk_position, snapshot.position
    if not reader.start <= place < end <= min(reader.length, place + APPEND_BYTES_MAX):
        return False
    look = partial(_compare, seed=seed, snapshot=snapshot)
    is_there, may_be_damaged = await check_bytes(reader, place, end - place, look)
    if is_there or not may_be_damaged:
        return is_there
    if end == reader.length:
        return snapshot.next_offset == last
    chunk = await chunk_at(reader, seed, end)
    return chunk is not None and chunk[2] == snapshot.next_offset


def _compare(view: memoryview, seed: int, snapshot: Snapshot) -> tuple[bool, bool]:
    """Return whether bytes are the snapshot's last chunk, and whether they may be it, damaged.

    They cannot be if a whole chunk is in them.
    """
    _, consumed, chunks = walk_chunks(view, 0, len(view))
    is_there = False
    if len(chunks) == 1 and consumed == len(view):
        _, _, chunk_id, records, timestamp_ms, _, _, _ = chunks[0]
        described = snapshot.last_chunk_id, snapshot.next_offset, snapshot.timestamp_ms
        is_there = (chunk_id, chunk_id + records, timestamp_ms) == described
    return is_there, find_sealed(view, 0, len(view), seed) < 0


async def chunk_at(reader: Reader, seed: int, position: int) -> Chunk | None:
    """Return the chunk at a position; None if none with a right seal is there."""
    head = await check_bytes(reader, position, EVENT_HEAD_BYTES, bytes)
    size = EVENT_HEAD_BYTES + int.from_bytes(head[4:], "big")

    def look(view: memoryview) -> Chunk | None:
        _, _, chunks = walk_chunks(view, 0, len(view))
        reason, _ = check_seals(view, 0, len(view), seed)
        return chunks[0] if chunks and reason != BAD_SEAL else None

    return await check_bytes(reader, position, min(size, APPEND_BYTES_MAX), look)
