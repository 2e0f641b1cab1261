"""Facts by the commands that Hutch has for pipelines: many streams in one request.

A plan keeps its ranges from retention for a while. What a connection planned before is given up
when it plans from the end of that. So whatever is only looked at must not be held: rows that are
measured are given up at once, and a look for a chunk is at one offset of the batch to come.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from hutch.client.errors import Refused
from hutch.client.login import Endpoint
from hutch.stream import pipeline as p
from hutch.stream.codes import ResponseCode
from pyspark_hutch.client.cluster import Bounds, Cluster
from pyspark_hutch.client.descriptions import (
    Planned,
    bounds_of,
    described,
    described_by,
    place_of,
    planned,
)
from pyspark_hutch.offsets.streams import PartitionStream, streams_of
from pyspark_hutch.options.errors import WrongOption, shown
from pyspark_hutch.options.read_settings import ReadSource, Splitting
from pyspark_hutch.planning.admission import WHOLE, share
from pyspark_hutch.planning.facts import Reach, StreamsFound
from pyspark_hutch.planning.pieces import (
    FINE_BYTES,
    around,
    bytes_at,
    cuts,
    in_proportion,
    merged,
    rows_to_border,
)
from pyspark_hutch.planning.splits import (
    Split,
    StreamRange,
    counts_of,
    cut,
    even_cuts,
    plan,
    refuse_too_many,
    refuse_too_small,
)

_SPAN_BYTES_MAX: Final = (1 << 32) - 1
_BORDERS_MAX: Final = p.BORDERS_MAX // 2
_RANGES_MAX: Final = p.STREAMS_MAX
_BORDERS_A_PIECE: Final = 16
"""Borders to choose from for each piece: pieces differ in size by an eighth at most."""
_FINE_A_PIECE: Final = 8
_AHEAD: Final = 64
"""Budgets of bytes that are measured ahead, since rows may be much smaller here than elsewhere."""


class PipelineFacts:
    """Asks with describe_streams and plan_streams."""

    def __init__(self, cluster: Cluster) -> None:
        """Prepare; nothing is asked yet."""
        self._cluster = cluster

    # ---- streams -------------------------------------------------------------------------------

    def find(self, source: ReadSource) -> StreamsFound:
        """Find the streams of a query and their ranges, in one request."""
        pattern = source.pattern
        named = () if pattern is not None else streams_of(self._cluster, source)

        def ask() -> tuple[Sequence[p.StreamDescription], Endpoint]:
            with self._cluster.connection() as connection:
                is_followed = self._cluster.settings.advertised
                leader = place_of(connection, is_followed=is_followed)
                if pattern is not None:
                    return described_by(connection, pattern), leader
                return described(connection, [place.stream for place in named]), leader

        try:
            found, leader = self._cluster.retried("what streams hold", ask)
        except Refused as error:
            raise _unfit(source, error) from None
        in_super_streams = named if source.super_streams or source.assigned else ()
        places = {place.stream: place for place in in_super_streams or map(_place_of, found)}
        there = [one for one in found if one.code != ResponseCode.STREAM_DOES_NOT_EXIST]
        bounds = {one.name: bounds_of(one) for one in there}
        missing = [stream for stream in places if stream not in bounds]
        return StreamsFound(places, dict.fromkeys(bounds, leader), bounds, missing)

    def look(self, leaders: Mapping[str, Endpoint]) -> dict[str, Bounds]:
        """Return the ranges of streams."""

        def ask() -> Sequence[p.StreamDescription]:
            with self._cluster.connection() as connection:
                return described(connection, list(leaders))

        return {one.name: bounds_of(one) for one in self._cluster.retried("what streams hold", ask)}

    # ---- budgets -------------------------------------------------------------------------------

    def chunks_at(self, found: StreamsFound, offsets: Mapping[str, int]) -> dict[str, int]:
        """Return for an offset of each stream where its chunk begins."""
        ranges = [
            _range(found, stream, offset, offset + 1, _SPAN_BYTES_MAX)
            for stream, offset in offsets.items()
        ]
        told: dict[str, int] = {}
        if (answer := planned(self._cluster, ranges)) is not None:
            told = {one.name: one.borders[0].offset for one in answer.streams if one.borders}
        return {stream: told.get(stream, offset) for stream, offset in offsets.items()}

    def within(
        self,
        found: StreamsFound,
        reaches: Mapping[str, Reach],
        bytes_max: int,
        passed: Mapping[str, int],
    ) -> dict[str, int]:
        """Measure how many rows fit into some bytes, by borders of chunks and their places.

        The rows that are measured have 64 times the bytes that are wanted, if they are as large as
        those of the whole stream.
        """
        backlog = {stream: reach.high - reach.low for stream, reach in reaches.items()}
        sizes = {
            stream: _bytes_of(found.bounds[stream], reach.high - reach.low)
            for stream, reach in reaches.items()
        }
        if sum(found.bounds[stream].size_bytes or 0 for stream in reaches) <= bytes_max:
            return backlog
        parts = in_proportion(sizes, bytes_max)
        ahead = {
            stream: Reach(
                low,
                min(high, low + max(1, int(_AHEAD * parts[stream] * (high - low) / sizes[stream]))),
            )
            for stream, (low, high) in reaches.items()
        }
        ranges = [
            _range(found, stream, low, end, max(1, int(parts[stream] / _BORDERS_A_PIECE)))
            for stream, (low, end) in ahead.items()
        ]
        answer = planned(self._cluster, ranges)
        if answer is None:
            row_bytes = {stream: sizes[stream] / backlog[stream] for stream in reaches}
            return share(backlog, bytes_max, row_bytes, passed)
        borders: dict[str, Sequence[p.RangeBorder]] = {
            one.name: one.borders for one in answer.streams if len(one.borders) > 1
        }
        row_bytes = {name: _row_bytes(told) for name, told in borders.items()}
        measured = {name: ahead[name].high - ahead[name].low for name in borders}
        shares = share(measured, bytes_max, row_bytes, passed)
        parts = {name: shares[name] * row_bytes[name] for name in borders}
        borders |= self._finer(found, ahead, borders, parts)
        # What was only looked at is not held.
        behind = [_range(found, name, reach.high, reach.high, 1) for name, reach in ahead.items()]
        planned(self._cluster, behind)
        # A stream that cannot be planned now has a row in the batch: its task finds out why.
        return dict.fromkeys(reaches, 1) | {
            name: shares[name] and max(1, rows_to_border(told, *ahead[name], parts[name]))
            for name, told in borders.items()
        }

    def _finer(
        self,
        found: StreamsFound,
        ahead: Mapping[str, Reach],
        borders: Mapping[str, Sequence[p.RangeBorder]],
        parts: Mapping[str, float],
    ) -> dict[str, Sequence[p.RangeBorder]]:
        """Return closer borders for streams whose part of a budget ends far from those there are.

        Args:
            found: The streams.
            ahead: The rows of each that were measured.
            borders: Of each stream.
            parts: Bytes of each that the batch is to take.
        """
        ranges = []
        for name, told in borders.items():
            low, high = ahead[name]
            before, after = around(told, bytes_at(told, low) + parts[name])
            if after is None or after.size_bytes - before.size_bytes <= parts[name] * (1 - WHOLE):
                continue
            ranges += [
                _range(found, name, low, offset, _SPAN_BYTES_MAX)
                for offset in even_cuts(before.offset, after.offset, _BORDERS_A_PIECE)
                if low < offset <= high
            ]
        answer = planned(self._cluster, ranges) if ranges else None
        closer: dict[str, list[p.RangeBorder]] = {}
        for one in answer.streams if answer is not None else ():
            # After retention the sizes would be counted from another chunk.
            if one.borders and one.borders[0] == borders[one.name][0]:
                closer.setdefault(one.name, []).append(one.borders[-1])
        return {name: merged([*borders[name], *more]) for name, more in closer.items()}

    # ---- splits --------------------------------------------------------------------------------

    def split(
        self, found: StreamsFound, ranges: Sequence[StreamRange], splitting: Splitting
    ) -> list[Split]:
        """Cut ranges by bytes or by rows; the server keeps them for a while."""
        filled = [wanted for wanted in ranges if wanted.low < wanted.high]
        if not filled:
            return []
        request = _Request(found, filled, splitting)
        answer = planned(self._cluster, request.ranges)
        if answer is None:
            return plan(self._cluster, found.leaders, filled, request.by_rows())
        return request.splits(answer)


def _place_of(description: p.StreamDescription) -> PartitionStream:
    return PartitionStream(description.name, description.super_stream, description.partition)


def _unfit(source: ReadSource, error: Refused) -> Exception:
    if source.pattern is None or error.code != ResponseCode.PRECONDITION_FAILED:
        return error
    reason = str(error).partition(": ")[2] or str(error)
    return WrongOption(f"option streamPattern={shown(source.pattern)}: {reason}")


def _bytes_of(held: Bounds, rows: int) -> int:
    """Estimate the bytes of some rows of a stream by those of all; at least 1."""
    return max(1, (held.size_bytes or 0) * rows // max(1, held.next - held.first))


def _row_bytes(borders: Sequence[p.RangeBorder]) -> float:
    """Return the bytes of a row between the first and the last of at least two borders."""
    first, last = borders[0], borders[-1]
    return max(1, last.size_bytes) / max(1, last.offset - first.offset)


def _range(found: StreamsFound, stream: str, low: int, high: int, span_bytes: int) -> p.RangeToPlan:
    generation = found.bounds[stream].generation or 0
    return p.RangeToPlan(stream, generation, low, high, min(span_bytes, _SPAN_BYTES_MAX))


class _Request:
    """The ranges that are to be planned for the splits of a batch, and the splits of an answer.

    Beside each range of the batch there may be some that begin with it and end at rows inside, for
    borders that are close together.

    Attributes:
        ranges: For one request.
    """

    def __init__(
        self, found: StreamsFound, filled: Sequence[StreamRange], splitting: Splitting
    ) -> None:
        """Choose them; raises WrongOption if there would be far too many splits."""
        self._found = found
        self._filled = filled
        self._splitting = splitting
        self._bytes = [_bytes_of(found.bounds[one.place.stream], _rows(one)) for one in filled]
        counts = self._counts(self._bytes)
        refuse_too_many("maxBytesPerPartition", splitting.bytes_max, counts)
        refuse_too_small([_rows(one) for one in filled], splitting.records_max)
        self.ranges: list[p.RangeToPlan] = []
        self._owners: list[int] = []
        room = _RANGES_MAX - len(filled)
        for index, (wanted, count) in enumerate(zip(filled, counts, strict=True)):
            low, high = wanted.low, wanted.high
            self._add(index, low, high, self._span(index, count))
            if (count > 1 or splitting.bytes_max) and self._bytes[index] < FINE_BYTES * count:
                pieces = min(_FINE_A_PIECE * count, 1 + room * count // sum(counts))
                for end in even_cuts(low, high, pieces):
                    self._add(index, low, end, _SPAN_BYTES_MAX)

    def _add(self, index: int, low: int, high: int, span_bytes: int) -> None:
        stream = self._filled[index].place.stream
        self.ranges.append(_range(self._found, stream, low, high, span_bytes))
        self._owners.append(index)

    def _span(self, index: int, count: int) -> int:
        """Return how far apart the borders of a range may be; all together are not too many."""
        piece_bytes = self._bytes[index] // count
        if self._splitting.bytes_max is not None:
            piece_bytes = min(piece_bytes, self._splitting.bytes_max)
        elif count == 1:
            return _SPAN_BYTES_MAX
        return max(1, piece_bytes // _BORDERS_A_PIECE, sum(self._bytes) // _BORDERS_MAX)

    def _counts(self, sizes: Sequence[int]) -> list[int]:
        """Return the count of splits of each range, by their bytes."""
        splitting = self._splitting
        # Bytes are shared like rows.
        return counts_of(sizes, Splitting(splitting.partitions_min, splitting.bytes_max))

    def by_rows(self) -> Splitting:
        """Return rules that do with rows alone, which are taken for equal."""
        rows_max, bytes_max = self._splitting.records_max, self._splitting.bytes_max
        if bytes_max is not None:
            fitting = max(1, bytes_max * sum(map(_rows, self._filled)) // sum(self._bytes))
            rows_max = fitting if rows_max is None else min(rows_max, fitting)
        return Splitting(self._splitting.partitions_min, rows_max)

    def splits(self, answer: Planned) -> list[Split]:
        """Return the splits that an answer leads to.

        A stream that cannot be planned now is one split: its task finds out why.
        """
        borders: list[list[p.RangeBorder]] = [[] for _ in self._filled]
        is_kept = [True] * len(self._filled)
        for index, told in zip(self._owners, answer.streams, strict=True):
            is_kept[index] &= told.code == ResponseCode.OK
            borders[index] += told.borders
        in_order = [merged(found) for found in borders]
        for index, (wanted, found) in enumerate(zip(self._filled, in_order, strict=True)):
            # Rows that had gone before the plan are not kept by it.
            is_kept[index] &= bool(found) and found[0].offset <= wanted.low
        counts = self._counts([max(1, found[-1].size_bytes if found else 0) for found in in_order])
        return [
            Split(
                wanted.place,
                self._found.leaders[wanted.place.stream],
                low,
                high,
                self._found.bounds[wanted.place.stream].generation,
                answer.run if is_kept[index] else None,
            )
            for index, wanted in enumerate(self._filled)
            for low, high in cut(
                wanted.low,
                wanted.high,
                cuts(
                    in_order[index],
                    wanted.low,
                    wanted.high,
                    count=counts[index],
                    bytes_max=self._splitting.bytes_max,
                ),
                self._splitting.records_max,
            )
        ]


def _rows(wanted: StreamRange) -> int:
    return wanted.high - wanted.low
