"""Statistics of streams, gathered batch by batch in bounded memory."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import nlargest
from typing import Final, NamedTuple

BUCKETS_MAX: Final = 1_000
"""Points of a curve: more are not seen on a page. When there are more, two become one."""

BINS_PER_DOUBLING: Final = 4
"""Sizes are counted in bins that are a fifth wide, so a percentile is exact to that."""

KEYS_MAX: Final = 100_000
GAPS_MAX: Final = 20


class RowGroup(NamedTuple):
    """Rows of one stream that were stored at one time and are about as large.

    Attributes:
        stream: Its name.
        time_ms: Of their chunk, since 1970.
        bin: Of their sizes; see `bin_of`.
        rows: How many they are.
        size: Bytes of their bodies.
        smallest: Body.
        largest: Body.
    """

    stream: str
    time_ms: int
    bin: int
    rows: int
    size: int
    smallest: int
    largest: int


class Gap(NamedTuple):
    """A time in which a stream got no rows."""

    length_ms: int
    stream: str
    from_ms: int
    to_ms: int


@dataclass(slots=True)
class Sum:
    """Rows and the bytes of their bodies."""

    rows: int = 0
    size: int = 0

    def add(self, rows: int, size: int) -> None:
        self.rows += rows
        self.size += size


@dataclass(slots=True)
class Curve:
    """Rows and bytes over time, in buckets of one width.

    Attributes:
        width_ms: Of a bucket.
        buckets: By their beginning divided by the width.
    """

    width_ms: int = 1_000
    buckets: dict[int, Sum] = field(default_factory=dict)

    def add(self, time_ms: int, rows: int, size: int) -> None:
        """Count rows in the bucket of their time."""
        self.buckets.setdefault(time_ms // self.width_ms, Sum()).add(rows, size)
        while max(self.buckets) - min(self.buckets) >= BUCKETS_MAX:
            self._widen()

    def _widen(self) -> None:
        before, self.buckets = self.buckets, {}
        self.width_ms *= 2
        for index, found in before.items():
            self.buckets.setdefault(index // 2, Sum()).add(found.rows, found.size)

    def points(self) -> Iterable[tuple[int, Sum]]:
        """Yield the beginning of each bucket in milliseconds and its sums, empty ones too."""
        if not self.buckets:
            return
        for index in range(min(self.buckets), max(self.buckets) + 1):
            yield index * self.width_ms, self.buckets.get(index, Sum())


@dataclass(slots=True)
class Statistics:
    """Figures about streams so far.

    Attributes:
        total: Of all rows.
        streams: Sums by stream.
        smallest: Size of the smallest body; None before the first row.
        largest: Size of the largest.
        curve: Over time.
        sizes: Rows by the bin of their size.
        keys: Rows by key; the most frequent ones if there were too many to count.
        keys_dropped: Whether there were.
        gaps: The longest, longest first.
        first_ms: Time of the first row.
        last_ms: Time of the last row.
    """

    total: Sum = field(default_factory=Sum)
    streams: dict[str, Sum] = field(default_factory=dict)
    smallest: int | None = None
    largest: int = 0
    curve: Curve = field(default_factory=Curve)
    sizes: Counter[int] = field(default_factory=Counter)
    keys: Counter[str] = field(default_factory=Counter)
    keys_dropped: bool = False
    gaps: list[Gap] = field(default_factory=list)
    first_ms: int | None = None
    last_ms: int | None = None
    _ends: dict[str, int] = field(default_factory=dict)

    def add(self, groups: Iterable[RowGroup]) -> None:
        """Add the groups of a batch; batches come in the order of time within each stream."""
        found = []
        for group in sorted(groups, key=lambda group: (group.stream, group.time_ms)):
            self._count(group)
            before = self._ends.get(group.stream, group.time_ms)
            if group.time_ms > before:
                found.append(Gap(group.time_ms - before, group.stream, before, group.time_ms))
            self._ends[group.stream] = max(before, group.time_ms)
        self.gaps = nlargest(GAPS_MAX, self.gaps + found)

    def add_keys(self, keys: Iterable[tuple[str | None, int]]) -> None:
        """Add the counts of keys of a batch."""
        for key, rows in keys:
            self.keys["(none)" if key is None else key] += rows
        if len(self.keys) > KEYS_MAX:
            self.keys = Counter(dict(self.keys.most_common(KEYS_MAX)))
            self.keys_dropped = True

    def _count(self, group: RowGroup) -> None:
        self.total.add(group.rows, group.size)
        self.streams.setdefault(group.stream, Sum()).add(group.rows, group.size)
        self.curve.add(group.time_ms, group.rows, group.size)
        self.sizes[group.bin] += group.rows
        smallest = self.smallest
        self.smallest = group.smallest if smallest is None else min(smallest, group.smallest)
        self.largest = max(self.largest, group.largest)
        first, last = self.first_ms, self.last_ms
        self.first_ms = group.time_ms if first is None else min(first, group.time_ms)
        self.last_ms = group.time_ms if last is None else max(last, group.time_ms)

    @property
    def seconds(self) -> float:
        """Time from the first row to the last."""
        if self.first_ms is None or self.last_ms is None:
            return 0.0
        return (self.last_ms - self.first_ms) / 1000

    def percentile(self, share: float) -> int:
        """Return the size that this share of the bodies does not exceed, to the end of a bin."""
        wanted = share * self.total.rows
        seen = 0
        for each in sorted(self.sizes):
            seen += self.sizes[each]
            if seen >= wanted:
                return min(bin_end(each), self.largest)
        return self.largest


def bin_end(index: int) -> int:
    """Return the largest size in a bin. Bin -1 has the empty bodies, bin 0 begins at one byte."""
    if index < 0:
        return 0
    # Sizes are whole: the end is the last number before the next bin's beginning.
    end = 2 ** ((index + 1) / BINS_PER_DOUBLING)
    return int(end) - (int(end) == end)
