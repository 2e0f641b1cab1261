"""Room for streams in a virtual host: a limit that holds while streams are being created, too."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Room:
    """Counts what there is and what is on its way.

    Attributes:
        limit: How many streams there may be; below 0 is no limit.
    """

    def __init__(self, count: Callable[[], int]) -> None:
        """Begin without a limit; `count` tells how many streams there are."""
        self.limit: Callable[[], int] = lambda: -1
        self._count = count
        self._promised = 0

    def is_there(self, count: int) -> bool:
        """Tell whether the limit allows so many streams more."""
        limit = self.limit()
        return limit < 0 or self._count() + self._promised + count <= limit

    @contextmanager
    def kept(self, count: int) -> Iterator[None]:
        """Keep room for streams while they are created, which waits for the store."""
        self._promised += count
        try:
            yield
        finally:
            self._promised -= count
