from typing import Final

from typing_extensions import Buffer

NEEDS_BYTES: Final = 0
BAD_CRC: Final = 1
MALFORMED: Final = 2
NOT_JOINABLE: Final = 3
BAD_HEADER: Final = 4
NOT_NEXT: Final = 5
BAD_SEAL: Final = 6

def walk_chunks(
    source: Buffer, position: int, limit: int
) -> tuple[int, int, list[tuple[int, int, int, int, int, int, int, int]]]: ...
def verify_chunks(source: Buffer, position: int, limit: int) -> tuple[int, int]: ...
def check_seals(source: Buffer, position: int, limit: int, seed: int) -> tuple[int, int]: ...
def find_sealed(source: Buffer, position: int, limit: int, seed: int) -> int: ...
def follow_chunks(source: Buffer, position: int, limit: int) -> tuple[int, int, int, int]: ...
def join_chunks(
    source: Buffer,
    limit: int,
    target: bytearray,
    capacity: int,
    seed: int,
) -> tuple[int, int, int, int, int]: ...
