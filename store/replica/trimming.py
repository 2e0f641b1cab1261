"""Trimming: how much of the log may go, since the members have it on their disks."""

from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

from store.replica.log import NOTHING

KEPT_S: Final = 600.0
KEPT_BYTES: Final = 1024 * 1024 * 1024
"""Younger messages, and the last ones of so many bytes, stay for members that come late."""
_SAMPLE_S: Final = 10.0
_SAMPLE_BYTES: Final = KEPT_BYTES // 256
"""Bytes between two samples, so that they are some hundred at most."""
_FULL: Final = 0.8
"""Part of the largest log from which on it does not wait for members that are away."""


@dataclass(frozen=True, slots=True)
class _Sample:
    at_s: float
    position: int
    sent_bytes: int


class Trimming:
    """Decides up to where the log is trimmed.

    Attributes:
        is_full: The log has reached its largest size because members are away: what this member
            alone has is trimmed.
    """

    def __init__(self, bytes_max: int, clock: Callable[[], float]) -> None:
        """Begin; `bytes_max` is the largest size of the log."""
        self._bytes_max = bytes_max
        self._clock = clock
        self._samples: deque[_Sample] = deque()
        self._old_position = NOTHING
        self.is_full = False

    def note(self, position: int, sent_bytes: int) -> None:
        """Note a position of the log, and the bytes that this member has sent up to it."""
        now, last = self._clock(), self._samples[-1] if self._samples else None
        if last is None or (
            now - last.at_s >= _SAMPLE_S and sent_bytes - last.sent_bytes >= _SAMPLE_BYTES
        ):
            self._samples.append(_Sample(now, position, sent_bytes))

    def position(self, own: int, others: Collection[int], log_bytes: int) -> int:
        """Return the position below which messages may go; NOTHING if none may.

        Args:
            own: A position up to which this member has all on its disk.
            others: The same of all other members.
            log_bytes: Size of the log.
        """
        self.is_full = log_bytes >= _FULL * self._bytes_max
        if self.is_full:
            return own
        return min(own, *others, self._old()) if others else NOTHING

    def _old(self) -> int:
        """Return a position that is old enough, and far enough from the end."""
        now, last = self._clock(), self._samples[-1].sent_bytes if self._samples else 0
        while self._samples:
            first = self._samples[0]
            if now - first.at_s < KEPT_S or last - first.sent_bytes < KEPT_BYTES:
                break
            self._old_position = first.position
            self._samples.popleft()
        return self._old_position
