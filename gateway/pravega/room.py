"""Room for segments of a stream, of which there may be so many, from whatever client they come."""

from typing import Final

from gateway.pending import Pending, asked
from store.api import Operations
from store.errors import InvalidArgument

SEGMENTS_MAX: Final = 5_000
"""Segments and tables whose names begin with the same scope and stream."""
WITH_PARTS_MAX: Final = 10_000
"""The same, with the parts of transactions and the segments that go with connections."""


async def check_room(store: Operations, name: str, *, most: int = SEGMENTS_MAX) -> None:
    """Check that a segment of a name may be made, as there are not too many of its stream.

    Raises InvalidArgument or another StoreError.
    """
    counted: Pending[int] = asked(lambda done: store.count_segments(name, done=done))
    count = await counted
    if count >= most:
        place = "/".join(name.split("/")[:-1][:2])
        text = f"there are {count} segments of {place!r}, the most that there may be"
        raise InvalidArgument(f"{text}; delete some, or truncate the stream")
