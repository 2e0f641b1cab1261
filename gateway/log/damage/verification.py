"""Check stored chunks that this process did not write. Runs on threads of the store; no I/O.

A chunk has a checksum of its data in its header, and a checksum of all the rest in its seal. The
counts in the header are compared with the data. A chunk with its seal is sound in itself, so only
its place is checked. It is in its place if the sparse index does not contradict it, and if offsets
grow from chunk to chunk. If they do not grow, as few chunks as possible are taken for damaged.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Final, NamedTuple

from gateway.log.kernel.chunks import (
    BAD_CRC,
    BAD_SEAL,
    MALFORMED,
    NEEDS_BYTES,
    NOT_NEXT,
    check_seals,
    follow_chunks,
    verify_chunks,
    walk_chunks,
)
from gateway.log.kernel.soundness import are_sound
from hutch.formats.chunk import (
    CRC_POSITION,
    DATA_POSITION,
    EVENT_HEAD_BYTES,
    crc32,
    unpack_header,
)

_SMALL_BYTES: Final = 4096
"""Below this average size a kernel checks the chunks: no cost to start, but more per byte."""

NO_SIZE: Final = frozenset((MALFORMED, BAD_SEAL))
"""Reasons that leave the size of a chunk unknown."""

Chunk = tuple[int, int, int, int, int, int, int, int]
"""As `walk_chunks` gives it: place, size, chunk id, records, timestamp, epoch, data, trailer."""


Mark = tuple[int, int]
"""A place where a chunk begins, and its offset; or the end of the bytes, and the next offset."""


class Verified(NamedTuple):
    """Chunks that are sound, up to one that is not or to the end of the bytes.

    Attributes:
        reason: Why they end there: NEEDS_BYTES, or what is wrong with the next chunk.
        end: Place behind the last sound chunk.
        first: Offset with which the bytes begin; None if no chunk says it.
        next: Offset behind the last sound chunk; None like `first`.
        following: Offset behind the damaged chunk, if its counts can be believed. If it is in the
            wrong place: `next`, or a later offset.
        damaged_bytes: Size of several chunks in the wrong place, which are skipped together; 0: one
            chunk is damaged.
    """

    reason: int
    end: int
    first: int | None
    next: int | None
    following: int | None = None
    damaged_bytes: int = 0


def verify(
    view: memoryview,
    seed: int,
    first: int | None = None,
    marks: Sequence[Mark] = (),
) -> Verified:
    """Check all whole chunks of stored bytes.

    Args:
        view: They begin with a chunk.
        seed: Of the seals.
        first: The offset that the first chunk should have; None if that is not known. What the
            marks say of it overrides it.
        marks: The index's places in and around these bytes, in order.
    """
    first = dict(marks).get(0, first)
    is_sound, end, found, following = are_sound(view, len(view), seed)
    if is_sound and end and found == (found if first is None and not marks else first):
        return Verified(NEEDS_BYTES, end, found, following)
    reason, _, chunks = walk_chunks(view, 0, len(view))
    if not is_sound:  # find out what is wrong, and where
        chunks, reason = _run(view, seed, chunks, reason)
    return _with_following(view, _judge(chunks, reason, first, marks))


def _with_following(view: memoryview, judged: Verified) -> Verified:
    """Add the offset behind the damaged chunk."""
    if judged.reason == NOT_NEXT:
        return judged._replace(following=judged.next)
    if judged.reason == BAD_CRC and judged.next is not None:
        damaged = unpack_header(view, judged.end + EVENT_HEAD_BYTES)
        # If only the data is damaged, the offset is the expected one.
        if damaged.chunk_id == judged.next:
            return judged._replace(following=judged.next + damaged.records)
    return judged


def _judge(chunks: list[Chunk], reason: int, first: int | None, marks: Sequence[Mark]) -> Verified:
    """Decide which chunks of a run have the right offsets; the others are damaged.

    `reason`: why the run ends.
    """
    if not chunks:
        return Verified(reason, 0, first, first)
    place = _first_in_order(chunks, first or 0, marks)
    if place:
        return Verified(NOT_NEXT, 0, first, first, first, place)
    begin = expected = chunks[0][2]
    for chunk in chunks:
        if chunk[2] != expected:
            return Verified(NOT_NEXT, chunk[0], begin, expected)
        expected += chunk[3]
    return Verified(reason, _end_of(chunks), begin, expected)


def _first_in_order(chunks: list[Chunk], first: int, marks: Sequence[Mark]) -> int:
    """Return the place of the first chunk in its right place; behind all chunks if none is.

    It is the first chunk of the longest growing sequence of those whose place is possible.
    """
    known = [chunk for chunk in chunks if chunk[2] >= first and _is_in_place(chunk, marks)]
    # For each length of sequence: the lowest offset at its end, and where that one begins.
    ends: list[int] = []
    places: list[int] = []
    for chunk in known:
        length = bisect_left(ends, chunk[2])
        ends[length : length + 1] = [chunk[2]]
        places[length : length + 1] = [places[length - 1] if length else chunk[0]]
    return places[-1] if places else _end_of(chunks)


def _is_in_place(chunk: Chunk, marks: Sequence[Mark]) -> bool:
    """Return whether the marks before and behind a chunk allow its place."""
    place, _, chunk_id, records, *_ = chunk
    behind = bisect_right(marks, place, key=lambda mark: mark[0])
    if behind:
        at, offset = marks[behind - 1]
        if chunk_id < offset or (chunk_id == offset) != (place == at):
            return False
    return behind == len(marks) or chunk_id + records <= marks[behind][1]


def _run(view: memoryview, seed: int, chunks: list[Chunk], reason: int) -> tuple[list[Chunk], int]:
    """Return the chunks before the first that is damaged in itself, and why they end there."""
    for number, (place, size, *_) in enumerate(chunks):
        own = view[place : place + size]
        own_reason = (
            check_seals(own, 0, size, seed)[0]
            or follow_chunks(own, 0, size)[0]
            or verify_data(own)[0]
        )
        if own_reason != NEEDS_BYTES:
            return chunks[:number], own_reason
    return chunks, reason


def _end_of(chunks: list[Chunk]) -> int:
    place, size, *_ = chunks[-1]
    return place + size


def verify_data(view: memoryview) -> tuple[int, int]:
    """Check the CRC of all whole chunks: as `verify_chunks`, faster where they are large."""
    reason, end, chunks = walk_chunks(view, 0, len(view))
    if len(chunks) * _SMALL_BYTES > len(view):
        return verify_chunks(view, 0, len(view))
    for place, _, _, _, _, _, data_bytes, _ in chunks:
        data = place + DATA_POSITION
        crc = int.from_bytes(view[place + CRC_POSITION : place + CRC_POSITION + 4], "big")
        if crc32(view[data : data + data_bytes]) != crc:
            return BAD_CRC, place
    return reason, end
