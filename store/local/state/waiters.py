"""Reads of one segment that wait for bytes, by the positions that they wait for."""

from heapq import heapify, heappop, heappush
from typing import Protocol


class Waiter(Protocol):
    """A read that waits for bytes of a segment."""

    @property
    def is_finished(self) -> bool:
        """It has its answer, or has given up."""
        ...

    def attempt(self) -> bool:
        """Try again; tells whether it is finished."""
        ...


class Waiters:
    """The reads; those that have given up are passed over, and dropped when they are the most."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Waiter]] = []
        self._number = 0
        self._given_up = 0

    def __len__(self) -> int:
        return len(self._heap) - self._given_up

    def add(self, position: int, waiter: Waiter) -> None:
        """Take in a read that waits for a byte at a position."""
        self._number += 1
        heappush(self._heap, (position, self._number, waiter))

    def give_up(self) -> None:
        """Note that one of them has given up."""
        self._given_up += 1
        if self._given_up > len(self):
            self._heap = [each for each in self._heap if not each[2].is_finished]
            heapify(self._heap)
            self._given_up = 0

    def is_due(self, length: int) -> bool:
        """Return whether one of them waits for a byte before a length."""
        while self._heap and self._heap[0][2].is_finished:
            heappop(self._heap)
            self._given_up -= 1
        return bool(self._heap) and self._heap[0][0] < length

    def take(self) -> tuple[int, Waiter]:
        """Take out the one that `is_due` has found, with its position."""
        position, _, waiter = heappop(self._heap)
        return position, waiter

    def take_all(self) -> list[tuple[int, Waiter]]:
        """Take out all of them."""
        taken = [(position, waiter) for position, _, waiter in sorted(self._heap)]
        self._heap = []
        self._given_up = 0
        return taken
