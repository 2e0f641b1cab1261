"""A bounded queue that many share: each source in its turn, and who has the most gives way."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final, Generic, TypeVar

T = TypeVar("T", bound=Hashable)

SOURCES_MAX: Final = 16
"""So many sources of one item are told apart: looking for who has most takes time for each."""


class FairQueue(Generic[T]):
    """Items, each waiting for one or more sources."""

    def __init__(self, most: int) -> None:
        """Begin empty, with room for `most` items."""
        self._most = most
        self._waiting: OrderedDict[str, dict[T, None]] = OrderedDict()
        self._sources: dict[T, set[str]] = {}

    def __len__(self) -> int:
        return len(self._sources)

    def add(self, item: T, source: str) -> T | None:
        """Add a new item behind the others of its source; return the one there is no room for.

        That is the newest of the source that has most waiting, so that who floods the queue pushes
        out what is its own.
        """
        self._sources[item] = set()
        self.join(item, source)
        if len(self._sources) <= self._most:
            return None
        while True:
            # Of several that have as many, the one that comes now.
            most = max(self._waiting, key=lambda each: (len(self._waiting[each]), each == source))
            newest, _ = self._waiting[most].popitem()
            self._left(newest, most)
            if newest not in self._sources:
                return newest

    def join(self, item: T, source: str) -> None:
        """Let an item that waits already wait for another source as well."""
        sources = self._sources.get(item)
        if sources is not None and source not in sources and len(sources) < SOURCES_MAX:
            sources.add(source)
            self._waiting.setdefault(source, {})[item] = None

    def take(self) -> T | None:
        """Take out the oldest item of the source whose turn it is; None if nothing waits."""
        if not self._waiting:
            return None
        source, items = next(iter(self._waiting.items()))
        item = next(iter(items))
        self._waiting.move_to_end(source)
        for each in list(self._sources[item]):
            del self._waiting[each][item]
            self._left(item, each)
        return item

    def _left(self, item: T, source: str) -> None:
        if not self._waiting[source]:
            del self._waiting[source]
        sources = self._sources[item]
        sources.discard(source)
        if not sources:
            del self._sources[item]
