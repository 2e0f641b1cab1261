"""The keys of a table in order, in blocks: many are put in order in slices."""

import random
from bisect import bisect_left, bisect_right
from collections.abc import Generator, Iterator, Sequence
from typing import Final

_BLOCK_MAX: Final = 2_000
"""Keys of a block; a new key moves so many at most."""
_AT_ONCE: Final = 5_000
"""Keys that are put in order in one turn, which takes some 2 ms."""
_DRAWN: Final = 8
_DRAWN_MAX: Final = 10_000
"""Keys that are drawn for each block, and in all, so that blocks are of about one size."""


class KeyOrder:
    """Keys in order. Those that a table has no more are left in."""

    def __init__(self, blocks: list[list[bytes]]) -> None:
        """`blocks` are in order, and none is empty."""
        self._blocks = blocks or [[]]
        self._lows = [block[0] if block else b"" for block in self._blocks]
        self._count = sum(map(len, blocks))

    def __len__(self) -> int:
        return self._count

    def add(self, key: bytes) -> None:
        """Add a key, unless it is there."""
        index = max(0, bisect_right(self._lows, key) - 1)
        block = self._blocks[index]
        at = bisect_left(block, key)
        if at < len(block) and block[at] == key:
            return
        block.insert(at, key)
        self._count += 1
        if at == 0:
            self._lows[index] = key
        if len(block) > _BLOCK_MAX:
            half = block[len(block) // 2 :]
            del block[len(block) // 2 :]
            self._blocks.insert(index + 1, half)
            self._lows.insert(index + 1, half[0])

    def keys_from(self, start: bytes, *, is_after: bool) -> Iterator[bytes]:
        """Yield the keys from `start` on, or after it. No key may be added meanwhile."""
        index = max(0, bisect_right(self._lows, start) - 1)
        at = (bisect_right if is_after else bisect_left)(self._blocks[index], start)
        while index < len(self._blocks):
            block = self._blocks[index]
            for place in range(at, len(block)):
                yield block[place]
            index, at = index + 1, 0


class Ordering:
    """The making of an order."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        """`keys` are those that there are now; `add` tells of those that come meanwhile."""
        self._work = _blocks_of(keys)
        self._added: list[bytes] = []

    def add(self, key: bytes) -> None:
        """Note a key that is new."""
        self._added.append(key)

    def go_on(self) -> KeyOrder | None:
        """Do some of it; gives the order once it is made."""
        try:
            next(self._work)
        except StopIteration as stop:
            order = KeyOrder(stop.value)
            for key in self._added:
                order.add(key)
            return order
        return None


def _blocks_of(keys: Sequence[bytes]) -> Generator[None, None, list[list[bytes]]]:
    """Put keys in order, in blocks. It stops where others should have their turn."""
    if len(keys) <= _AT_ONCE:
        return _cut(sorted(keys))
    count = 2 * len(keys) // _BLOCK_MAX
    # By chance, which no client can foresee.
    drawn = sorted(random.Random().choices(keys, k=min(_DRAWN * count, _DRAWN_MAX)))  # noqa: S311
    borders = drawn[:: max(1, len(drawn) // count)]
    yield
    parts: list[list[bytes]] = [[] for _ in range(len(borders) + 1)]
    for first in range(0, len(keys), _AT_ONCE):
        for key in keys[first : first + _AT_ONCE]:
            parts[bisect_right(borders, key)].append(key)
        yield
    blocks: list[list[bytes]] = []
    sorted_count = 0
    for part in parts:
        blocks += _cut(sorted(part))
        sorted_count += len(part)
        if sorted_count > _AT_ONCE:
            sorted_count = 0
            yield
    return blocks


def _cut(keys: list[bytes]) -> list[list[bytes]]:
    half = _BLOCK_MAX // 2
    return [keys[first : first + half] for first in range(0, len(keys), half)]
