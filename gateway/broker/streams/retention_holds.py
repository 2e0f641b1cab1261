"""Holds: ranges of streams that were planned, and stay for a while though retention would go on.

A plan keeps its ranges for HOLD_S from its last use: that is reading in a range, or planning again.
Nothing of it is stored. A connection that goes on behind the end of what it planned gives that up.
What it planned on a connection that is gone, a user takes over by planning from the same offset.
"""

import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol, TypeVar

from gateway.broker.errors import PreconditionFailed

K = TypeVar("K")
V = TypeVar("V")

HOLD_S: Final = 600.0
HOLDS_MAX: Final = 100
"""Most connections of a user whose plans hold something."""
RANGES_MAX: Final = 100_000
"""Most ranges of a user that are held, some 300 bytes each: 100 plans of 1,000 streams."""


class Planner(Protocol):
    """A connection, as its plans see it."""

    is_closed: bool


class _Held:
    """A held range of the stream with a generation."""

    __slots__ = ("end", "expires_s", "first", "generation", "hold")

    def __init__(self, hold: "_Hold", generation: int, first: int, end: int) -> None:
        self.hold = hold
        self.generation = generation
        self.first = first
        self.end = end
        self.expires_s = 0.0


class _Hold:
    """Ranges that one connection planned, by the generations of their streams."""

    __slots__ = ("planner", "ranges", "user")

    def __init__(self, user: str, planner: Planner) -> None:
        self.user = user
        self.planner = weakref.ref(planner)
        self.ranges: dict[int, _Held] = {}

    @property
    def is_orphan(self) -> bool:
        """True if the connection is gone."""
        planner = self.planner()
        return planner is None or planner.is_closed


class RetentionHolds:
    """The holds of a virtual host."""

    def __init__(self, clock_s: Callable[[], float] = time.monotonic) -> None:
        self.clock_s = clock_s
        self._by_user: dict[str, list[_Hold]] = {}
        self._by_generation: dict[int, list[_Held]] = {}
        # In the order in which they expire, since all last equally long.
        self._all: dict[_Held, None] = {}

    def __len__(self) -> int:
        """Count the ranges that are held."""
        self._expire()
        return len(self._all)

    def first_held(self, generation: int) -> int | None:
        """Return the lowest offset of a stream that is held; None if none is."""
        if generation not in self._by_generation:
            return None
        self._expire()
        held = self._by_generation.get(generation, ())
        return min((each.first for each in held), default=None)

    def take(self, user: str, planner: Planner, ranges: Mapping[int, tuple[int, int]]) -> None:
        """Hold ranges that were planned.

        Args:
            user: The user.
            planner: Its connection.
            ranges: For the generation of each stream the first offset, and the one behind the end.
                An empty range holds nothing, but says how far the connection is.

        Raises:
            PreconditionFailed: The user holds too much; nothing has changed.
        """
        self._expire()
        holds = self._by_user.get(user, [])
        own = next((hold for hold in holds if hold.planner() is planner), None)
        if own is None:
            own = _Hold(user, planner)
        others = [hold for hold in holds if hold is not own]
        orphans = [hold for hold in others if hold.is_orphan]
        _require_room(own, [hold for hold in others if not _is_taken_over(hold, ranges)], ranges)
        for generation, (first, end) in ranges.items():
            for orphan in orphans:
                left = orphan.ranges.get(generation)
                if left is not None and left.first == first:
                    end = max(end, left.end)  # noqa: PLW2901  # both users of the range are served
                    self._drop(left)
            self._hold(own, generation, first, end)

    def renew(self, user: str, generation: int, offset: int) -> None:
        """Note that a user reads at an offset of a stream."""
        if generation in self._by_generation:
            self._expire()
        for each in self._by_generation.get(generation, ()):
            if each.hold.user == user and each.first <= offset < each.end:
                self._restart(each)

    def _hold(self, hold: _Hold, generation: int, first: int, end: int) -> None:
        """Hold a range, with all that the connection holds of the stream and still needs."""
        old = hold.ranges.get(generation)
        if old is not None and first < old.end:
            if first < end:
                old.first, old.end = min(old.first, first), max(old.end, end)
            self._restart(old)
            return
        if old is not None:
            self._drop(old)
        if first < end:
            if not hold.ranges:
                self._by_user.setdefault(hold.user, []).append(hold)
            held = _Held(hold, generation, first, end)
            hold.ranges[generation] = held
            self._by_generation.setdefault(generation, []).append(held)
            self._restart(held)

    def _restart(self, held: _Held) -> None:
        """Begin its time anew."""
        self._all.pop(held, None)
        held.expires_s = self.clock_s() + HOLD_S
        self._all[held] = None

    def _expire(self) -> None:
        """Drop holds that have not been used for too long."""
        now_s = self.clock_s()
        while self._all:
            oldest = next(iter(self._all))
            if oldest.expires_s > now_s:
                break
            self._drop(oldest)

    def _drop(self, held: _Held) -> None:
        del self._all[held]
        _take_from(self._by_generation, held.generation, held)
        hold = held.hold
        del hold.ranges[held.generation]
        if not hold.ranges:
            _take_from(self._by_user, hold.user, hold)


def _is_taken_over(hold: _Hold, ranges: Mapping[int, tuple[int, int]]) -> bool:
    """Return whether a plan takes over all that a connection left which is gone."""
    return hold.is_orphan and all(
        held.generation in ranges and ranges[held.generation][0] == held.first
        for held in hold.ranges.values()
    )


def _require_room(
    own: _Hold, others: Sequence[_Hold], ranges: Mapping[int, tuple[int, int]]
) -> None:
    if len(others) >= HOLDS_MAX:
        raise PreconditionFailed(
            f"user {own.user!r} has {HOLDS_MAX} plans that keep records already;"
            f" each ends {HOLD_S:.0f} s after its last use"
        )
    held = sum(len(hold.ranges) for hold in others) + len({*own.ranges, *ranges})
    if held > RANGES_MAX:
        raise PreconditionFailed(
            f"user {own.user!r} would keep {held} ranges of streams, more than {RANGES_MAX}"
        )


def _take_from(lists: dict[K, list[V]], key: K, value: V) -> None:
    """Remove a value from the list under a key, and the list when it is empty."""
    lists[key].remove(value)
    if not lists[key]:
        del lists[key]
