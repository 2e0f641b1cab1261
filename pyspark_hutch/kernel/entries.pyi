from typing import Final

from typing_extensions import Buffer

DONE: Final = 0
SUB_BATCH: Final = 1
BEYOND: Final = 2
FULL: Final = 3
ODD: Final = 4
DATA: Final = 0
VALUE: Final = 1
SEQUENCE: Final = 2
RAW: Final = 3
NOTHING: Final = 4

def skip_records(source: Buffer, position: int, limit: int, count: int) -> tuple[int, int, int]: ...
def take_records(
    source: Buffer,
    position: int,
    limit: int,
    count: int,
    budget: int,
    is_amqp: bool,
    bodies: Buffer,
    used: int,
    has_bodies: bool,
    ends: Buffer,
    kinds: Buffer,
    row: int,
    extents: Buffer,
    step: int,
) -> tuple[int, int, int, int]: ...
