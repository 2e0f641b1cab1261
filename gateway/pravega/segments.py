"""Segments of clients: their core attributes, and how many of them there may be.

Of Pravega's core attributes the second, the count of events, is not kept.

Source: io.pravega.segmentstore.contracts.Attributes.
"""

from typing import Final
from uuid import UUID

from gateway.pending import Pending, asked
from store.api import Operations
from store.errors import InvalidArgument

_CORE: Final = 0x8000_0000_0000_0000 << 64
CREATED_AT: Final = UUID(int=_CORE)
"""Milliseconds since the epoch."""
SCALE_TYPE: Final = UUID(int=_CORE + 2)
SCALE_RATE: Final = UUID(int=_CORE + 3)
ROLLOVER_SIZE: Final = UUID(int=_CORE + 4)
"""Bytes."""

SEGMENTS_MAX: Final = 5_000
"""Segments and tables whose names begin with the same scope and stream."""
COMMITTED_MAX: Final = 5_000
"""Segments of a stream that hold data and were opened by commits to what was scaled meanwhile."""
PARTS_MAX: Final = 10_000
"""Parts of the transactions of a stream."""
USER_PARTS_MAX: Final = 5_000
"""Those of one user: none takes the room of all others."""
TRANSIENTS_MAX: Final = 10_000
"""Transient segments of all connections."""
USER_TRANSIENTS_MAX: Final = 1_000
"""Those of the connections of one user."""


async def check_room(store: Operations, name: str) -> None:
    """Check that a segment of a name may be made, as there are not too many of its stream.

    Parts are counted apart: it takes no right to make segments to make those. Raises
    InvalidArgument or another StoreError.
    """
    counted: Pending[int] = asked(lambda done: store.count_segments(name, done=done))
    count = await counted
    if count >= SEGMENTS_MAX:
        place = "/".join(name.split("/")[:-1][:2])
        text = f"there are {count} segments of {place!r}, the most that there may be"
        raise InvalidArgument(f"{text}; delete some, or truncate the stream")
