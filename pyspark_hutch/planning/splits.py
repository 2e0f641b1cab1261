"""Ranges of offsets cut into splits, one for each task.

Splits of a range follow one another without a gap, so every row is in one split. They are cut where
chunks begin, so that no chunk is read twice. Only a largest number of rows cuts inside of chunks.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from hutch.client.login import Endpoint
from hutch.stream.offsets import OffsetSpec, at_offset
from pyspark_hutch.client.cluster import Cluster
from pyspark_hutch.offsets.streams import PartitionStream
from pyspark_hutch.options.errors import WrongOption
from pyspark_hutch.options.read_settings import PARTITIONS_MAX, Splitting


@dataclass(frozen=True, slots=True)
class Split:
    """The range that one task reads.

    Attributes:
        place: The stream.
        leader: Where it is read.
        low: The first offset.
        high: Behind the last.
        generation: Of the stream; None where the server does not say.
        kept_by: The run of the server that keeps the range from retention until it is read; None:
            none does.
    """

    place: PartitionStream
    leader: Endpoint
    low: int
    high: int
    generation: int | None = None
    kept_by: str | None = None


@dataclass(frozen=True, slots=True)
class StreamRange:
    """The range of one stream in a batch: offsets from `low` to before `high`."""

    place: PartitionStream
    low: int
    high: int


def plan(
    cluster: Cluster,
    leaders: Mapping[str, Endpoint],
    ranges: Iterable[StreamRange],
    splitting: Splitting,
) -> list[Split]:
    """Cut ranges into splits; empty ranges have none.

    Args:
        cluster: Is asked where chunks begin, about all streams at once.
        leaders: Where each stream lives.
        ranges: The rows to read.
        splitting: How many splits, or how many rows in each.

    Raises:
        WrongOption: There would be far too many splits.
        ClientError: No server answers.
    """
    filled = [wanted for wanted in ranges if wanted.low < wanted.high]
    rows = [wanted.high - wanted.low for wanted in filled]
    refuse_too_small(rows, splitting.records_max)
    counts = counts_of(rows, Splitting(splitting.partitions_min))
    asked: list[tuple[str, OffsetSpec]] = []
    owners: list[int] = []
    for index, (wanted, count) in enumerate(zip(filled, counts, strict=True)):
        for offset in even_cuts(wanted.low, wanted.high, count):
            asked.append((wanted.place.stream, at_offset(offset)))
            owners.append(index)
    borders: dict[int, list[int]] = {}
    for owner, border in zip(owners, cluster.resolve(leaders, asked), strict=True):
        borders.setdefault(owner, []).append(border)
    return [
        Split(wanted.place, leaders[wanted.place.stream], low, high)
        for index, wanted in enumerate(filled)
        for low, high in cut(wanted.low, wanted.high, borders.get(index, ()), splitting.records_max)
    ]


def refuse_too_small(rows: Sequence[int], records_max: int | None) -> None:
    """Refuse a largest number of rows that cuts these ranges into too many splits."""
    counts = counts_of(rows, Splitting(records_max=records_max))
    refuse_too_many("maxRecordsPerPartition", records_max, counts)


def refuse_too_many(option: str, value: int | None, counts: Sequence[int]) -> None:
    """Refuse more tasks of one batch than Spark can take; raises WrongOption."""
    if sum(counts) > len(counts) + PARTITIONS_MAX:
        raise WrongOption(
            f"option {option}={value}: makes {sum(counts):,} tasks of one batch, which may have "
            f"{PARTITIONS_MAX:,}"
        )


def counts_of(rows: Sequence[int], splitting: Splitting) -> list[int]:
    """Return into how many splits each range goes.

    Args:
        rows: Offsets in each range, at least 1.
        splitting: `records_max` says how many rows a split has at most; `partitions_min` asks for
            that many splits in all, spread by rows.
    """
    total = sum(rows)
    counts = []
    for count in rows:
        parts = 1
        if splitting.records_max is not None:
            parts = -(-count // splitting.records_max)
        if splitting.partitions_min is not None and splitting.partitions_min > len(rows):
            parts = max(parts, -(-count * splitting.partitions_min // total))
        counts.append(min(parts, count))
    return counts


def even_cuts(low: int, high: int, count: int) -> list[int]:
    """Return where a range would be cut into `count` parts of equal size, between its ends."""
    rows = high - low
    return [low + rows * part // count for part in range(1, count)]


def cut(
    low: int, high: int, borders: Iterable[int], rows_max: int | None = None
) -> list[tuple[int, int]]:
    """Cut a range at the borders inside it, and evenly the pieces that are still too long.

    Args:
        low: Its first offset.
        high: Behind its last.
        borders: Where chunks begin.
        rows_max: The most rows of a piece; None: any number.
    """
    cuts = sorted({border for border in borders if low < border < high})
    pieces = pairwise([low, *cuts, high])
    if rows_max is None:
        return list(pieces)
    return [
        part
        for first, end in pieces
        for part in pairwise([first, *even_cuts(first, end, -(-(end - first) // rows_max)), end])
    ]
