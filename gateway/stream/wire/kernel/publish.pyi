from array import array
from typing import Final

from typing_extensions import Buffer

NEEDS_BYTES: Final = 0
OTHER_FRAME: Final = 1
CHUNK_FULL: Final = 2
BAD_SUB_BATCH: Final = 3
MALFORMED: Final = 4

POSITION: Final = 0
FRAME_END: Final = 1
LIMIT: Final = 2
FRAME_BYTES_MAX: Final = 3
PUBLISHER: Final = 4
UNCOMPRESSED_MAX: Final = 5
WRITTEN: Final = 6
CAPACITY: Final = 7
ENTRIES_MAX: Final = 8
IS_NAMED: Final = 9
HAS_LAST: Final = 10
LAST: Final = 11
ENTRIES: Final = 12
RECORDS: Final = 13
DUPLICATES: Final = 14
STATE_SIZE: Final = 15

def take_publishes(
    source: Buffer, target: bytearray, ids: bytearray, duplicates: bytearray, state: array[int]
) -> int: ...
def take_filtered(
    source: Buffer,
    target: bytearray,
    ids: bytearray,
    duplicates: bytearray,
    state: array[int],
    filters: set[bytes],
) -> int: ...
def publishing_ids_of(
    source: Buffer, position: int, frame_end: int, version: int
) -> tuple[list[int], int]: ...
