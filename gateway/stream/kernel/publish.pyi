from typing import Final

NEEDS_BYTES: Final = 0
OTHER_FRAME: Final = 1
CHUNK_FULL: Final = 2
BAD_SUB_BATCH: Final = 3
MALFORMED: Final = 4

class State:
    position: int
    frame_end: int
    limit: int
    frame_bytes_max: int
    publisher: int
    uncompressed_max: int
    written: int
    capacity: int
    entries_max: int
    is_named: bool
    has_last: bool
    last: int
    entries: int
    records: int
    duplicates: int

def take_publishes(
    source: bytearray, target: bytearray, ids: bytearray, duplicates: bytearray, state: State
) -> int: ...
def take_filtered(
    source: bytearray,
    target: bytearray,
    ids: bytearray,
    duplicates: bytearray,
    state: State,
    filters: set[bytes],
) -> int: ...
def confirm_of(publisher_id: int, ids: bytes) -> bytes: ...
def deliver_of(
    version: int, subscription_id: int, committed_chunk_id: int, chunk_bytes: int, head: bytes
) -> bytes: ...
def u32_at(source: bytearray, position: int) -> int: ...
def publishing_ids_of(
    source: bytearray, position: int, frame_end: int, version: int
) -> tuple[list[int], int]: ...
