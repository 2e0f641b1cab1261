"""The members of a cluster by their beats: which one is active, and how far each is."""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from store.replica.beats import Beat

_KEPT: Final = 1_024
"""Changes of the highest number that are kept: a lag behind all of them is told as the oldest."""


@dataclass(frozen=True, slots=True)
class MemberState:
    """One member, at the time of the last look.

    Attributes:
        name: Its name.
        beat: Its last beat.
        is_active: Whether it serves, as far as the log knows.
        lag_messages: Messages that another member has and this one has not applied.
        lag_s: Since when that is so, in seconds; 0 if it has all.
        beat_age_s: Seconds since its last beat was seen first.
    """

    name: str
    beat: Beat
    is_active: bool
    lag_messages: int
    lag_s: float
    beat_age_s: float


class Members:
    """The last beats, with what they say together. One thread notes, any thread looks.

    Attributes:
        beats: The last beat of each member, with a number that grows with each.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        """Begin with no member; `clock` gives seconds that only grow."""
        self.beats: Mapping[str, tuple[int, Beat]] = {}
        self._clock = clock
        self._seen: dict[str, tuple[int, float]] = {}
        self._number = 0
        self._numbers: deque[tuple[float, int]] = deque(maxlen=_KEPT)

    def note(self, beats: Mapping[str, tuple[int, bytes]]) -> None:
        """Note the beats that the log has, as `DurableLog.beats` returns them."""
        now = self._clock()
        read = {name: (count, Beat.unpack(data)) for name, (count, data) in beats.items()}
        seen = self._seen
        self._seen = {
            name: (count, now if seen.get(name, (0, 0.0))[0] != count else seen[name][1])
            for name, (count, _) in read.items()
        }
        number = max((beat.number for _, beat in read.values()), default=0)
        if number > self._number:
            self._number = number
            self._numbers.append((now, number))
        self.beats = read

    def states(self) -> list[MemberState]:
        """Return each member, by name."""
        now, beats, seen = self._clock(), self.beats, self._seen
        numbers = list(self._numbers)
        term = max((beat.term for _, beat in beats.values()), default=0)
        number = max((beat.number for _, beat in beats.values()), default=0)
        states = []
        for name, (_, beat) in sorted(beats.items()):
            behind = number - beat.number
            since = next((at for at, reached in numbers if reached > beat.number), now)
            _, seen_at = seen.get(name, (0, now))
            is_active = beat.is_active and beat.term == term
            lag_s = now - since if behind else 0.0
            states.append(MemberState(name, beat, is_active, behind, lag_s, now - seen_at))
        return states
