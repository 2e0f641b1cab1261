from typing import Final

from typing_extensions import Buffer

NEEDS_BYTES: Final = 0
OTHER_FRAME: Final = 1
CHUNK_FULL: Final = 2
BAD_SUB_BATCH: Final = 3
MALFORMED: Final = 4

def take_publishes(
    source: Buffer,
    position: int,
    limit: int,
    frame_end: int,
    frame_bytes_max: int,
    publisher_id: int,
    is_named: bool,
    has_last: bool,
    last_id: int,
    target: bytearray,
    written: int,
    capacity: int,
    entries_max: int,
    ids: bytearray,
    duplicates: bytearray,
    uncompressed_max: int,
) -> tuple[int, int, int, int, int, int, int, bool, int]: ...
def take_filtered(
    source: Buffer,
    position: int,
    frame_end: int,
    is_named: bool,
    has_last: bool,
    last_id: int,
    target: bytearray,
    written: int,
    capacity: int,
    entries_max: int,
    ids: bytearray,
    duplicates: bytearray,
    filters: set[bytes],
) -> tuple[int, int, int, int, int, int, int, bool, int]: ...
def publishing_ids_of(
    source: Buffer, position: int, frame_end: int, version: int
) -> tuple[list[int], int]: ...
