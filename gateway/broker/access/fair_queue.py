"""A bounded queue that many share: each source in its turn, and within a source each user.

The one with the most waiting gives way.
"""

from collections import Counter, OrderedDict
from collections.abc import Hashable
from typing import Final, Generic, TypeVar

T = TypeVar("T", bound=Hashable)

SOURCES_MAX: Final = 16
"""Sources of one item that are told apart: finding the one with the most takes time for each."""


class FairQueue(Generic[T]):
    """Items, each waiting for a user of one or more sources."""

    def __init__(self, most: int) -> None:
        """Begin empty, with room for `most` items."""
        self._most = most
        # Items by source, then by user, in the order of their turns.
        self._waiting: OrderedDict[str, OrderedDict[str, dict[T, None]]] = OrderedDict()
        self._counts: Counter[str] = Counter()
        self._places: dict[T, dict[str, str]] = {}

    def __len__(self) -> int:
        return len(self._places)

    def add(self, item: T, source: str, user: str = "") -> T | None:
        """Add a new item behind the others of its source and user.

        Returns:
            The item there is no room for: of the source that has most waiting, and of its user that
            has most, the newest. So a source that floods the queue pushes out its own items.
        """
        self._places[item] = {}
        self.join(item, source, user)
        if len(self._places) <= self._most:
            return None
        while True:
            # Of several that have as many, the one that comes now.
            most = max(self._counts, key=lambda each: (self._counts[each], each == source))
            users = self._waiting[most]
            busiest = max(users, key=lambda each: (len(users[each]), each == user))
            newest = next(reversed(users[busiest]))
            self._leave(newest, most)
            if newest not in self._places:
                return newest

    def join(self, item: T, source: str, user: str = "") -> None:
        """Let an item that waits already wait for another source as well."""
        places = self._places.get(item)
        if places is not None and source not in places and len(places) < SOURCES_MAX:
            places[source] = user
            users = self._waiting.setdefault(source, OrderedDict())
            users.setdefault(user, {})[item] = None
            self._counts[source] += 1

    def take(self) -> T | None:
        """Take out the oldest item of the source and user whose turn it is; None if none waits."""
        if not self._waiting:
            return None
        source, users = next(iter(self._waiting.items()))
        user, items = next(iter(users.items()))
        item = next(iter(items))
        self._waiting.move_to_end(source)
        users.move_to_end(user)
        for each in list(self._places[item]):
            self._leave(item, each)
        return item

    def _leave(self, item: T, source: str) -> None:
        """Let an item wait no more for a source; without any it is out."""
        places = self._places[item]
        user = places.pop(source)
        if not places:
            del self._places[item]
        users = self._waiting[source]
        del users[user][item]
        if not users[user]:
            del users[user]
        self._counts[source] -= 1
        if not users:
            del self._waiting[source], self._counts[source]
