"""Find where whole chunks go on behind damaged bytes. Runs on a thread of the store.

A candidate looks like a chunk's head and has its seal. It is certain if chunk follows chunk from it
to the end of the bytes: the content of a message hardly ever looks like that. An earlier candidate,
with more damage between, counts if its offsets fit. If none is certain, the first whose offsets fit
counts.
"""

from collections.abc import Iterator
from typing import Final

from gateway.log.kernel.chunks import MALFORMED, find_sealed, walk_chunks

_CANDIDATES_MAX: Final = 64


def next_chunk(view: memoryview, seed: int, first_offset: int, end_offset: int) -> int | None:
    """Find the first whole chunk in some bytes whose start is damaged.

    Args:
        view: Stored bytes.
        seed: Of the seals of its chunks.
        first_offset: No chunk begins before this offset.
        end_offset: No chunk ends behind this offset.

    Returns:
        The place of its event; None if there is none.
    """
    first: int | None = None
    first_ends = 0
    for place in _candidates(view, seed):
        reason, _, chunks = walk_chunks(view, place, len(view))
        _, _, chunk_id, records, _, _, _, _ = chunks[0]
        if not first_offset <= chunk_id <= end_offset - records:
            continue
        if reason != MALFORMED:
            return place if first is None or first_ends > chunk_id else first
        if first is None:
            first, first_ends = place, chunk_id + records
    return first


def _candidates(view: memoryview, seed: int) -> Iterator[int]:
    """Yield places where a chunk with its seal begins."""
    place = 0
    for _ in range(_CANDIDATES_MAX):
        place = find_sealed(view, place + 1, len(view), seed)
        if place < 0:
            return
        yield place
