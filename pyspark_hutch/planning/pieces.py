"""Cuts ranges into pieces of about equal bytes, at borders of chunks by the server.

A border has an offset and the bytes before it, counted from the first chunk of a range.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from hutch.stream.pipeline import RangeBorder
from pyspark_hutch.planning.admission import WHOLE

FINE_BYTES: Final = 4 << 20
"""Pieces of fewer bytes need borders beside those of the index, which are 256 KiB apart or so."""


def merged(borders: Iterable[RangeBorder]) -> list[RangeBorder]:
    """Return borders of plans that begin with one chunk, in their order, each once."""
    bytes_at = {border.offset: border.size_bytes for border in borders}
    return [RangeBorder(offset, bytes_at[offset]) for offset in sorted(bytes_at)]


def cuts(
    borders: Sequence[RangeBorder], low: int, high: int, *, count: int, bytes_max: int | None
) -> list[int]:
    """Return where to cut a range, between its ends.

    Args:
        borders: Of chunks in their order; the first is where the range begins.
        low: The first offset of the range.
        high: The offset behind the last.
        count: The number of pieces, if there are borders for as many.
        bytes_max: The largest piece, or one that has no border inside; None: any size.
    """
    inside = [border for border in borders if low < border.offset < high]
    total = borders[-1].size_bytes if borders else 0
    sizes = [border.size_bytes for border in inside]
    found: list[int] = []
    begin, first = 0, 0
    while first < len(inside):
        rest = total - begin
        parts = max(count - len(found), 1)
        if bytes_max is not None:
            parts = max(parts, -(-rest // bytes_max))
        if parts == 1:
            break
        chosen = _nearest(sizes, begin + rest / parts, first)
        if bytes_max is not None and sizes[chosen] - begin > bytes_max:
            chosen = max(first, bisect_right(sizes, begin + bytes_max, lo=first) - 1)
        found.append(inside[chosen].offset)
        begin, first = sizes[chosen], chosen + 1
    return found


def _nearest(sizes: Sequence[int], wanted: float, first: int) -> int:
    """Return the index of the value nearest to the wanted one, from `first` on."""
    above = bisect_left(sizes, wanted, lo=first)
    if above == len(sizes):
        return above - 1
    if above > first and wanted - sizes[above - 1] <= sizes[above] - wanted:
        return above - 1
    return above


def rows_within(borders: Sequence[RangeBorder], low: int, high: int, bytes_max: float) -> int:
    """Return how many rows of a range fit into some bytes; between borders rows count as equal.

    Args:
        borders: Of chunks in their order; the first is where the range begins.
        low: The first offset of the range.
        high: The offset behind the last.
        bytes_max: Bytes, counted from the first border.
    """
    before, after = around(borders, bytes_max)
    if after is None:
        return high - low
    part = (bytes_max - before.size_bytes) / (after.size_bytes - before.size_bytes)
    offset = before.offset + int(part * (after.offset - before.offset))
    return max(0, min(offset, high) - low)


def rows_to_border(borders: Sequence[RangeBorder], low: int, high: int, bytes_max: float) -> int:
    """Return how many rows of a range fit into some bytes, to a border if one is near.

    They end at a border if that takes most of the bytes; else where `rows_within` says.

    Args:
        borders: As for `rows_within`, and so the next two.
        low: The first offset.
        high: The offset behind the last.
        bytes_max: Bytes, counted from `low`.
    """
    skipped = bytes_at(borders, low)
    before, _ = around(borders, skipped + bytes_max)
    if low < before.offset < high and before.size_bytes - skipped >= WHOLE * bytes_max:
        return before.offset - low
    return rows_within(borders, low, high, skipped + bytes_max)


def bytes_at(borders: Sequence[RangeBorder], offset: int) -> float:
    """Return the bytes from the first border to an offset; between borders rows count as equal."""
    behind = bisect_right([border.offset for border in borders], offset)
    if behind in {0, len(borders)}:
        return borders[max(behind - 1, 0)].size_bytes
    before, after = borders[behind - 1], borders[behind]
    part = (offset - before.offset) / (after.offset - before.offset)
    return before.size_bytes + part * (after.size_bytes - before.size_bytes)


def around(
    borders: Sequence[RangeBorder], size_bytes: float
) -> tuple[RangeBorder, RangeBorder | None]:
    """Return the last border with at most these bytes before it, and the next if there is one."""
    behind = bisect_right([border.size_bytes for border in borders], size_bytes)
    return borders[behind - 1], borders[behind] if behind < len(borders) else None


def in_proportion(sizes: Mapping[str, int], budget: int) -> dict[str, float]:
    """Return the part of a budget for each of some sizes, as large as they are beside each other.

    Args:
        sizes: At least 0.
        budget: For all, at least 1.
    """
    total = max(1, sum(sizes.values()))
    return {name: budget * size / total for name, size in sizes.items()}
