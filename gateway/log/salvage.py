"""Find where whole chunks go on behind damaged bytes. Runs on a thread of the store.

A candidate looks like a chunk's head and has its seal; an older one without a seal has the checksum
of its data. A candidate is certain if chunk follows chunk from it to the end of the bytes: the
content of a message hardly ever looks like that. An earlier candidate, with more damage between,
counts if its offsets fit. If none is certain, the first whose offsets fit counts.
"""

from collections.abc import Iterator
from typing import Final

from gateway.log.chunk import (
    CRC_POSITION,
    DATA_POSITION,
    EVENT_HEAD_BYTES,
    Seals,
    crc32,
)
from gateway.log.kernel.chunks import MALFORMED, find_sealed, walk_chunks

_HEAD_BEGINS: Final = b"\x50\x00"
"""Magic and version of a chunk, and the type of those with records."""
_ZEROS: Final = bytes(4)
_CANDIDATES_MAX: Final = 4096
_SEALED_MAX: Final = 64


def next_chunk(view: memoryview, seals: Seals, first_offset: int, end_offset: int) -> int | None:
    """Find the first whole chunk in some bytes whose start is damaged.

    Args:
        view: Stored bytes.
        seals: The chunks among them that have seals.
        first_offset: No chunk begins before this offset.
        end_offset: No chunk ends behind this offset.

    Returns:
        The place of its event; None if there is none.
    """
    place = None
    if seals.begin:
        old = view[: seals.begin]
        place = _first(old, _unsealed(old), first_offset, end_offset)
    if place is None and seals.begin < len(view):
        place = _first(view, _sealed(view, seals), first_offset, end_offset)
    return place


def _unsealed(view: memoryview) -> Iterator[int]:
    """Yield places where a whole chunk without a seal seems to begin."""
    data = bytes(view)
    at = EVENT_HEAD_BYTES
    for _ in range(_CANDIDATES_MAX):
        at = data.find(_HEAD_BEGINS, at + 1)
        if at < 0:
            return
        place = at - EVENT_HEAD_BYTES
        if data[place : place + len(_ZEROS)] == _ZEROS:
            _, _, chunks = walk_chunks(view, place, len(view))
            if chunks and _is_whole(view, place, chunks[0][6]):
                yield place


def _sealed(view: memoryview, seals: Seals) -> Iterator[int]:
    """Yield places where a chunk with its seal begins."""
    place = seals.begin or 1
    for _ in range(_SEALED_MAX):
        place = find_sealed(view, place, len(view), seals.seed)
        if place < 0:
            return
        yield place
        place += 1


def _first(
    view: memoryview, places: Iterator[int], first_offset: int, end_offset: int
) -> int | None:
    """Return the first fitting place where a chunk may begin; None if no offsets fit."""
    first: int | None = None
    first_ends = 0
    for place in places:
        reason, _, chunks = walk_chunks(view, place, len(view))
        _, _, chunk_id, records, _, _, _, _ = chunks[0]
        if not first_offset <= chunk_id <= end_offset - records:
            continue
        if reason != MALFORMED:
            return place if first is None or first_ends > chunk_id else first
        if first is None:
            first, first_ends = place, chunk_id + records
    return first


def _is_whole(view: memoryview, place: int, data_bytes: int) -> bool:
    crc = int.from_bytes(view[place + CRC_POSITION : place + CRC_POSITION + 4], "big")
    return crc32(view[place + DATA_POSITION : place + DATA_POSITION + data_bytes]) == crc
