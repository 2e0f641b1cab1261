"""A log in memory, for tests: one process, no faults but those that are asked for."""

import threading
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from store.replica.log import NOTHING, Answer, Entry, LogGap, Outcome, Unstored

T = TypeVar("T")

BYTES_MAX: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Known(Generic[T]):
    """An answer that is there."""

    value: T

    def wait(self) -> T:
        """Return it."""
        return self.value


class MemoryLog:
    """A log in memory; `DurableLog`."""

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self.bytes_max = bytes_max
        self.trouble = ""
        self._entries: list[Entry] = []
        self._first = 1
        self._position = NOTHING
        self._beats: dict[str, tuple[int, bytes]] = {}
        self._lock = threading.Lock()

    def append(self, data: bytes, after: int | Answer[Outcome]) -> Answer[Outcome]:
        expected = after if isinstance(after, int) else after.wait()
        with self._lock:
            last = self._entries[-1].position if self._entries else self._first - 1
            if last != expected:
                return Known(Unstored.OVERTAKEN)
            self._position += 1
            self._entries.append(Entry(self._position, data))
            return Known(self._position)

    def last(self) -> Entry | None:
        with self._lock:
            return self._entries[-1] if self._entries else None

    def read(self, position: int, count_max: int) -> list[Entry]:
        with self._lock:
            if position < self._first:
                raise LogGap(f"messages before {self._first} were trimmed", self._first)
            found = [each for each in self._entries if each.position >= position]
            return found[:count_max]

    def trim(self, position: int) -> None:
        with self._lock:
            last = self._entries[-1].position if self._entries else NOTHING
            self._first = max(self._first, min(position, last))
            self._entries = [each for each in self._entries if each.position >= self._first]

    def beat(self, member: str, data: bytes) -> Known[bool]:
        with self._lock:
            self._position += 1
            count, _ = self._beats.get(member, (0, b""))
            self._beats[member] = (count + 1, data)
            return Known(value=True)

    def beats(self) -> dict[str, tuple[int, bytes]]:
        with self._lock:
            return dict(self._beats)

    def forget(self, member: str) -> None:
        with self._lock:
            self._beats.pop(member, None)

    def size(self) -> int:
        with self._lock:
            return sum(len(each.data) for each in self._entries)

    def close(self) -> None:
        pass
