from array import array
from typing import Final

CRC_TABLE: Final[array[int]]

def copy_of(buffer: bytearray, begin: int, end: int) -> bytes: ...
def unfilled(size: int) -> bytearray: ...
def seal_chunk(
    buffer: bytearray,
    data_end: int,
    event_end: int,
    entries: int,
    records: int,
    timestamp_ms: int,
    epoch: int,
    chunk_id: int,
    crc: int,
    trailer_bytes: int,
    seed: int,
) -> int: ...
