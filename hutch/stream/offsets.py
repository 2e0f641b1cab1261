"""Places where a subscription starts: five kinds, two of them with a number."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final


class OffsetType(IntEnum):
    """Kind of an offset specification, as a u16 on the wire."""

    NONE = 0
    FIRST = 1
    LAST = 2
    NEXT = 3
    OFFSET = 4
    TIMESTAMP = 5


@dataclass(frozen=True, slots=True)
class OffsetSpec:
    """A place in a stream to read from.

    Attributes:
        type: The kind of place. NONE is legal in the answer to a ConsumerUpdate only, and means
            the place that the subscription asked for.
        value: The offset (0 to 2^64 - 1) of an OFFSET, the milliseconds since the epoch (signed,
            64 bits) of a TIMESTAMP, 0 for all others.
    """

    type: OffsetType
    value: int = 0


NONE: Final = OffsetSpec(OffsetType.NONE)
FIRST: Final = OffsetSpec(OffsetType.FIRST)
LAST: Final = OffsetSpec(OffsetType.LAST)
NEXT: Final = OffsetSpec(OffsetType.NEXT)


def at_offset(offset: int) -> OffsetSpec:
    """Return the place of one record by its offset (0 to 2^64 - 1)."""
    return OffsetSpec(OffsetType.OFFSET, offset)


def at_timestamp(timestamp_ms: int) -> OffsetSpec:
    """Return the place of the first chunk at or after a time, in ms since the epoch (signed)."""
    return OffsetSpec(OffsetType.TIMESTAMP, timestamp_ms)
