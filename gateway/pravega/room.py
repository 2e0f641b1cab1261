"""Room for segments of a stream, of which there may be so many, from whatever client they come."""

from collections.abc import Callable
from typing import Final

from store.api import Operations
from store.errors import InvalidArgument, StoreError

SEGMENTS_MAX: Final = 5_000
"""Segments and tables whose names begin with the same scope and stream."""
WITH_PARTS_MAX: Final = 10_000
"""The same, with the parts of transactions and the segments that go with connections."""


def if_room(
    store: Operations,
    name: str,
    make: Callable[[], object],
    refuse: Callable[[StoreError], object],
    *,
    most: int = SEGMENTS_MAX,
) -> None:
    """Make a segment of a name, unless its stream has too many.

    Args:
        store: The store.
        name: The segment's.
        make: Makes it.
        refuse: Gets the error where it may not be made.
        most: As many as there may be.
    """

    def counted(count: int | StoreError) -> None:
        if isinstance(count, StoreError):
            refuse(count)
        elif count >= most:
            place = "/".join(name.split("/")[:-1][:2])
            text = f"there are {count} segments of {place!r}, the most that there may be"
            refuse(InvalidArgument(f"{text}; delete some, or truncate the stream"))
        else:
            make()

    store.count_segments(name, done=counted)
