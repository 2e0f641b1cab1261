"""The walk over a stream's stored chunks, by its opening and by its check.

The segment is read in slices, so memory does not grow with it. `gateway.log.damage.verification`
judges the chunks. Behind damage the walk goes on with the next whole chunk.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple, Protocol

from gateway.log.damage.resync import next_chunk
from gateway.log.damage.verification import NO_SIZE, Chunk, Verified, verify
from gateway.log.derived.index import NO_END
from gateway.log.kernel.chunks import (
    BAD_SEAL,
    NEEDS_BYTES,
    NOT_NEXT,
    verify_chunks,
    walk_chunks,
)
from gateway.log.recovery.restoration import check_bytes
from hutch.formats.chunk import DATA_POSITION, SEAL_BYTES
from store.api import APPEND_BYTES_MAX, Reader

SLICE_BYTES: Final = 1024 * 1024

Trailer = tuple[int, bytes]
"""The place of a chunk, and the publishing ids behind its data."""


class Damage(NamedTuple):
    """Bytes that are no sound chunk.

    Attributes:
        reason: What is wrong with them: a reason of the kernel.
        begin: Position of the first one.
        end: Position of the next chunk; the end of the segment if there is none.
        offset: Offset behind the chunk before them; None if it is not known.
        is_chunk: They are a damaged chunk, or several in the wrong place; else anything.
        trailer: The publishing ids of the chunk; None: ids may be lost.
    """

    reason: int
    begin: int
    end: int
    offset: int | None
    is_chunk: bool
    trailer: bytes | None


class Taker(Protocol):
    """Takes what a walk finds, in its order."""

    def take(self, position: int, chunks: Sequence[Chunk], trailers: Sequence[Trailer]) -> None:
        """Take sound chunks, and the trailers of those that have one.

        Args:
            position: Their places count from it.
            chunks: Perhaps none.
            trailers: Theirs.
        """
        ...

    def pass_over(self, damage: Damage) -> None:
        """Take damage. Whatever this raises ends the walk."""
        ...


async def walk(
    reader: Reader, seed: int, position: int, first: int | None, taker: Taker
) -> int | None:
    """Walk the chunks from a position on to the end of the segment.

    Args:
        reader: Reads the segment.
        seed: Of the seals.
        position: Where a chunk begins.
        first: Its offset; None if it is not known.
        taker: Told what is there.

    Returns:
        The offset behind the last chunk, by the chunks; None if they do not say it.

    Raises:
        StoreError: The bytes cannot be read.
    """
    size, lowest, following = SLICE_BYTES, first or 0, first
    while position < reader.length:
        begun = position
        look = partial(_look, seed=seed, first=following)
        verified, chunks, trailers, damaged = await check_bytes(reader, position, size, look)
        taker.take(position, chunks, trailers)
        if chunks:
            lowest = chunks[-1][2] + chunks[-1][3]
        position += verified.end
        following = verified.next
        is_stuck = not chunks and size >= APPEND_BYTES_MAX
        if damaged[0] or verified.reason in NO_SIZE or is_stuck:
            damage = await _damage_at(reader, seed, position, lowest, verified, damaged)
            taker.pass_over(damage)
            position = damage.end
            if damage.is_chunk:
                following = verified.following
            elif damage.end < reader.length:
                following = None
        size = SLICE_BYTES if position > begun else APPEND_BYTES_MAX
    return following


async def find_chunk(reader: Reader, seed: int, position: int, first_offset: int) -> int | None:
    """Find the first whole chunk behind a position at which there is none.

    Args:
        reader: Reader of the segment.
        seed: Of the seals of its chunks.
        position: Where the damage is.
        first_offset: No chunk behind it begins before this offset.

    Returns:
        The chunk's position; None if there is none.
    """
    while position < reader.length:
        look = partial(next_chunk, seed=seed, first_offset=first_offset, end_offset=NO_END)
        place = await check_bytes(reader, position, APPEND_BYTES_MAX, look)
        if place is not None:
            return position + place
        # No chunk is longer than half of APPEND_BYTES_MAX.
        position += APPEND_BYTES_MAX // 2
    return None


async def _damage_at(
    reader: Reader,
    seed: int,
    position: int,
    lowest: int,
    verified: Verified,
    damaged: tuple[int, bytes | None],
) -> Damage:
    """Describe the damage at a position; `damaged` is what the damaged chunk says of itself.

    If its seal is wrong, its `size` field may be so too.
    """
    size, trailer = damaged
    if size and verified.reason != BAD_SEAL:
        end = position + size
        return Damage(verified.reason, position, end, verified.next, is_chunk=True, trailer=trailer)
    found = await find_chunk(reader, seed, position, lowest)
    end = reader.length if found is None else found
    is_chunk = verified.reason == BAD_SEAL and (found is not None or end == position + size)
    if not is_chunk or end != position + size:
        trailer = None
    return Damage(verified.reason, position, end, verified.next, is_chunk, trailer)


def _look(
    view: memoryview, seed: int, first: int | None
) -> tuple[Verified, list[Chunk], list[Trailer], tuple[int, bytes | None]]:
    """On a thread of the store: check the chunks, list the sound ones, and copy their trailers.

    Last come the size and the trailer of a damaged chunk behind them, as of `Damage`.
    """
    verified = verify(view, seed, first)
    _, _, chunks = walk_chunks(view, 0, len(view))
    sound = [chunk for chunk in chunks if chunk[0] < verified.end]
    trailers = [(chunk[0], _trailer(view, chunk)) for chunk in sound if chunk[7]]
    damaged: tuple[int, bytes | None] = (verified.damaged_bytes, None)
    if verified.reason != NEEDS_BYTES and len(sound) < len(chunks):
        chunk = chunks[len(sound)]
        damaged = verified.damaged_bytes or chunk[1], _trailer_of_damaged(view, chunk, verified)
    return verified, sound, trailers, damaged


def _trailer_of_damaged(view: memoryview, chunk: Chunk, verified: Verified) -> bytes | None:
    if verified.reason == BAD_SEAL:
        return b"" if _has_no_trailer(view, chunk) else None
    if verified.reason == NOT_NEXT:  # another chunk lies where this one was
        return None
    return _trailer(view, chunk)


def _trailer(view: memoryview, chunk: Chunk) -> bytes:
    place, _, _, _, _, _, data_bytes, trailer_bytes = chunk
    trailer_at = place + DATA_POSITION + data_bytes
    return bytes(view[trailer_at : trailer_at + trailer_bytes])


def _has_no_trailer(view: memoryview, chunk: Chunk) -> bool:
    """Return whether a chunk with a wrong seal certainly had no named publishers.

    Then its sizes leave no room for them, and its data is as long as they say.
    """
    place, size, _, _, _, _, data_bytes, _ = chunk
    if size != DATA_POSITION + data_bytes + SEAL_BYTES:
        return False
    return verify_chunks(view, place, place + size)[0] == NEEDS_BYTES
