"""Things with patterns: the first in rank whose pattern is found in a name counts for it.

A search may look for every pattern, and thousands may take 10 ms each. So a search goes on for as
many turns of the event loop as it takes, and what was found for a name is kept until a later search
has found something else. That search compares the name only with what came since, or with what
ranks behind the one that is gone: one more of many thousands costs each name one look.
"""

from bisect import bisect_left, insort
from collections.abc import Callable
from itertools import takewhile
from time import thread_time
from typing import Any, Final, Generic, Protocol, TypeVar

from gateway.broker.patterns import Pattern
from gateway.broker.yielding import TurnBudget
from gateway.pending import Pending, start

_FEW: Final = 1_000
"""Largest number of additions that are sorted, in 0.4 ms; more are picked out of all, in order."""


class Ranked(Protocol):
    """Something with a pattern, and a rank that nothing else in the ranking has."""

    @property
    def pattern(self) -> Pattern: ...

    @property
    def rank(self) -> Any: ...  # noqa: ANN401  # what can be compared


T = TypeVar("T", bound=Ranked)


class RankingMatch(Generic[T]):
    """The first one for a name, as it was last looked for.

    Attributes:
        name: The name.
        first: The first one whose pattern is found in it; None if there is none.
        seen: The number of the last addition that the name was compared with.
        looking: A search that is under way.
        is_over: True if what has the name is gone: searches end.
    """

    __slots__ = ("first", "is_over", "looking", "name", "seen")

    def __init__(self, name: str) -> None:
        self.name = name
        self.first: T | None = None
        self.seen = 0
        self.looking: Pending[None] | None = None
        self.is_over = False


class Took(Generic[T]):
    """The time of the processor that a search takes.

    Attributes:
        looks: The number of patterns that were looked for.
        seconds: The time of all.
        longest_s: The time of the one that took longest.
        longest: That one; None if none was looked for.
    """

    __slots__ = ("longest", "longest_s", "looks", "seconds")

    def __init__(self) -> None:
        self.looks = 0
        self.seconds = self.longest_s = 0.0
        self.longest: T | None = None

    def is_in(self, name: str, one: T) -> bool:
        """Return whether the pattern of one is found in a name, and count the time."""
        began_s = thread_time()
        is_found = one.pattern.matches(name)
        took_s = thread_time() - began_s
        self.looks += 1
        self.seconds += took_s
        if self.longest is None or took_s > self.longest_s:
            self.longest, self.longest_s = one, took_s
        return is_found


class Ranking(Generic[T]):
    """Things by rank, lowest first. Two are the same only if they are one object."""

    def __init__(self, turns: TurnBudget, ended: Callable[[str, Took[T]], object]) -> None:
        """Begin without any.

        Args:
            turns: The time that searches have together in one turn of the event loop.
            ended: Gets the name of each search that has ended, and the time that it took.
        """
        self._turns = turns
        self._ended = ended
        self._in_order: list[T] = []
        self._last_number = 0
        self._numbers: dict[T, int] = {}  # of their additions, which rise

    def add(self, one: T) -> None:
        """Add one."""
        insort(self._in_order, one, key=_rank)
        self._last_number += 1
        self._numbers[one] = self._last_number

    def discard(self, one: T) -> None:
        """Remove one if it is there."""
        if self._numbers.pop(one, None) is not None:
            del self._in_order[self._place(one)]

    async def look_for(self, found: RankingMatch[T]) -> None:
        """Find the first one for a name among all that are there now.

        What comes meanwhile may be missed, so that a search ends however fast others come. One for
        what is gone ends soon and finds nothing new.
        """
        wanted = self._last_number
        while not found.is_over and (found.seen < wanted or self._has_lost(found)):
            if found.looking is None:
                found.looking = start(self._look(found))
            looking = found.looking
            try:
                await looking
            finally:
                if found.looking is looking:
                    found.looking = None

    def _has_lost(self, found: RankingMatch[T]) -> bool:
        return found.first is not None and found.first not in self._numbers

    async def _look(self, found: RankingMatch[T]) -> None:
        took: Took[T] = Took()
        time_slice = await self._turns.slice()
        try:
            number = self._last_number
            tries = self._to_try(found)
            first = None if self._has_lost(found) else found.first
            for one in tries:
                if one in self._numbers and took.is_in(found.name, one):
                    first = one
                    break
                time_slice = await self._turns.go_on(time_slice)
                if found.is_over:
                    return
            found.first, found.seen = first, number
        finally:
            self._turns.end(time_slice)
        self._ended(found.name, took)

    def _to_try(self, found: RankingMatch[T]) -> list[T]:
        """Return those that may be the first one now, in order."""
        first = found.first
        place = len(self._in_order) if first is None else self._place(first)
        behind = self._in_order[place:] if self._has_lost(found) else []
        if self._last_number - found.seen > _FEW:
            before = self._in_order[:place]
            return [one for one in before if self._numbers[one] > found.seen] + behind
        came = takewhile(lambda each: each[1] > found.seen, reversed(self._numbers.items()))
        before = [one for one, _ in came if first is None or one.rank < first.rank]
        return sorted(before, key=_rank) + behind

    def _place(self, one: T) -> int:
        return bisect_left(self._in_order, one.rank, key=_rank)


def _rank(one: Ranked) -> Any:  # noqa: ANN401
    return one.rank
