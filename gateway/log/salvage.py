"""Find where whole chunks go on behind damaged bytes. Runs on a thread of the store.

A candidate looks like a chunk's head and its data has its checksum. One from where chunk follows
chunk up to the end of the bytes is certain: what a client put into a message is hardly so. One
before it (there is more damage between them) counts if its offsets fit; and so does the first one
where none is certain.
"""

from typing import Final

from gateway.log.chunk import CRC_POSITION, DATA_POSITION, EVENT_HEAD_BYTES, crc32
from gateway.log.kernel.chunks import MALFORMED, walk_chunks

_HEAD_BEGINS: Final = b"\x50\x00"
"""Magic and version of a chunk, and the type of those with records."""
_ZEROS: Final = bytes(4)
_CANDIDATES_MAX: Final = 4096


def next_chunk(view: memoryview, first_offset: int, end_offset: int) -> int | None:
    """Find the first whole chunk behind the start of some bytes, which is damaged.

    Args:
        view: Stored bytes.
        first_offset: No chunk begins before this offset.
        end_offset: None ends behind this one.

    Returns:
        The place of its event; None if there is none.
    """
    data = bytes(view)
    at = EVENT_HEAD_BYTES
    first: int | None = None
    first_ends = 0
    for _ in range(_CANDIDATES_MAX):
        at = data.find(_HEAD_BEGINS, at + 1)
        if at < 0:
            break
        place = at - EVENT_HEAD_BYTES
        if data[place : place + len(_ZEROS)] != _ZEROS:
            continue
        reason, _, chunks = walk_chunks(view, place, len(view))
        if not chunks or not first_offset <= chunks[0][2] <= end_offset - chunks[0][3]:
            continue
        if not _is_whole(view, place, chunks[0][6]):
            continue
        _, _, chunk_id, records, _, _, _, _ = chunks[0]
        if reason != MALFORMED:
            return place if first is None or first_ends > chunk_id else first
        if first is None:
            first, first_ends = place, chunk_id + records
    return first


def _is_whole(view: memoryview, place: int, data_bytes: int) -> bool:
    crc = int.from_bytes(view[place + CRC_POSITION : place + CRC_POSITION + 4], "big")
    return crc32(view[place + DATA_POSITION : place + DATA_POSITION + data_bytes]) == crc
