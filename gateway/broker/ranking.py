"""Things with patterns: the first in rank whose pattern is found in a name counts for it.

A search may look for every pattern. So what was found for a name is remembered, and compared only
with what came since, or with what ranks behind it once it is gone: one more of many thousands costs
each name one look.
"""

from bisect import bisect_left, insort
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from gateway.broker.patterns import Pattern

_NAMES_MAX: Final = 100_000
"""Most names whose first is remembered, in some 20 MB: those of streams that are gone as well."""
_CAME_MAX: Final = 1_000
"""Additions that are remembered beside twice the members; with more, a new search is cheaper."""


class Ranked(Protocol):
    """Something with a pattern, and a rank that nothing else in the ranking has."""

    @property
    def pattern(self) -> Pattern: ...

    @property
    def rank(self) -> Any: ...  # noqa: ANN401  # what can be compared


T = TypeVar("T", bound=Ranked)


class _Known(NamedTuple, Generic[T]):
    """The first of a name, by when so many had come."""

    first: T | None
    came: int


class Ranking(Generic[T]):
    """Things by rank, lowest first. Two are the same only if they are one object."""

    def __init__(self) -> None:
        self._in_order: list[T] = []
        self._members: set[T] = set()
        self._came: list[T] = []
        self._known: dict[str, _Known[T]] = {}

    def add(self, one: T) -> None:
        """Add one."""
        insort(self._in_order, one, key=_rank)
        self._members.add(one)
        self._came.append(one)
        if len(self._came) > 2 * len(self._in_order) + _CAME_MAX:
            self._came.clear()
            self._known.clear()

    def discard(self, one: T) -> None:
        """Remove one if it is there."""
        if one in self._members:
            self._members.remove(one)
            del self._in_order[self._place(one)]

    def first(self, name: str) -> T | None:
        """Return the first one whose pattern is found in a name, None if there is none."""
        if not self._in_order:
            return None
        known = self._known.get(name)
        found = self._from(0, name) if known is None else self._again(name, *known)
        if known is None and len(self._known) >= _NAMES_MAX:
            self._known.clear()
        self._known[name] = _Known(found, len(self._came))
        return found

    def _again(self, name: str, first: T | None, came: int) -> T | None:
        """Return the first one of a name that had another when fewer had come."""
        if first is not None and first not in self._members:
            first = self._from(self._place(first), name)
        for one in self._came[came:]:
            is_before = first is None or one.rank < first.rank
            if is_before and one in self._members and one.pattern.matches(name):
                first = one
        return first

    def _from(self, place: int, name: str) -> T | None:
        places = range(place, len(self._in_order))
        ranked = (self._in_order[place] for place in places)
        return next((one for one in ranked if one.pattern.matches(name)), None)

    def _place(self, one: T) -> int:
        return bisect_left(self._in_order, one.rank, key=_rank)


def _rank(one: Ranked) -> Any:  # noqa: ANN401
    return one.rank
