"""Facts by the commands of the protocol, some of them one stream at a time.

No command says how many bytes a stream holds: the size of rows is estimated by a chunk of each.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import Final

from hutch.client.errors import ClientError
from hutch.client.login import Endpoint
from hutch.formats.chunk import unpack_header
from hutch.stream.offsets import at_offset
from pyspark_hutch.client.cluster import Bounds, Cluster
from pyspark_hutch.client.range_reader import Range, RangeReader
from pyspark_hutch.offsets.streams import streams_of
from pyspark_hutch.options.read_settings import ReadSource, Splitting
from pyspark_hutch.planning.admission import share
from pyspark_hutch.planning.facts import Reach, StreamsFound
from pyspark_hutch.planning.splits import Split, StreamRange, plan

LOG: Final = logging.getLogger(__name__)


class StockFacts:
    """Asks with Metadata, Partitions, StreamStats and ResolveOffsetSpec."""

    def __init__(self, cluster: Cluster, clock: Callable[[], float]) -> None:
        """Prepare; nothing is asked yet."""
        self._cluster = cluster
        self._sizes = RowSizes(cluster, clock)

    def find(self, source: ReadSource) -> StreamsFound:
        """Find the streams of a query."""
        places = {place.stream: place for place in streams_of(self._cluster, source)}
        leaders = self._cluster.leaders(list(places), skips_missing=True)
        missing = [stream for stream in places if stream not in leaders]
        return StreamsFound(places, leaders, self._cluster.bounds(leaders), missing)

    def look(self, leaders: Mapping[str, Endpoint]) -> dict[str, Bounds]:
        """Return the ranges of streams."""
        return self._cluster.bounds(leaders)

    def chunks_at(self, found: StreamsFound, offsets: Mapping[str, int]) -> dict[str, int]:
        """Return for an offset of each stream where its chunk begins."""
        asked = [(stream, at_offset(offset)) for stream, offset in offsets.items()]
        return dict(zip(offsets, self._cluster.resolve(found.leaders, asked), strict=True))

    def within(
        self,
        found: StreamsFound,
        reaches: Mapping[str, Reach],
        bytes_max: int,
        passed: Mapping[str, int],
    ) -> dict[str, int]:
        """Estimate how many rows fit into some bytes, by the chunk where each stream goes on."""
        backlog = {stream: reach.high - reach.low for stream, reach in reaches.items()}
        lows = {stream: reach.low for stream, reach in reaches.items()}
        return share(backlog, bytes_max, self._sizes.look(found.leaders, lows), passed)

    def split(
        self, found: StreamsFound, ranges: Sequence[StreamRange], splitting: Splitting
    ) -> list[Split]:
        """Cut ranges by rows."""
        return plan(self._cluster, found.leaders, ranges, splitting)


KEPT_S: Final = 60.0
"""Lifetime of an estimate: a new one takes some round trips for each stream."""

_ANY_BYTES: Final = 100.0
"""Bytes of a row where nothing could be looked at."""


class RowSizes:
    """Estimates the size of a stream's rows by the chunk where the next batch begins."""

    def __init__(self, cluster: Cluster, clock: Callable[[], float]) -> None:
        """Prepare; nothing is asked yet."""
        self._cluster = cluster
        self._clock = clock
        self._known: dict[str, tuple[float, float]] = {}

    def look(self, leaders: Mapping[str, Endpoint], lows: Mapping[str, int]) -> dict[str, float]:
        """Return the size of a row of each stream.

        Args:
            leaders: Where each stream lives.
            lows: Where to look, by stream; a committed row is there.
        """
        return {stream: self._size(stream, leaders[stream], low) for stream, low in lows.items()}

    def _size(self, stream: str, leader: Endpoint, low: int) -> float:
        known, until = self._known.get(stream, (_ANY_BYTES, 0.0))
        if self._clock() < until:
            return known
        wanted = Range(stream, leader, low, low + 1, fails_on_loss=False)
        try:
            size = self._look(wanted)
        except ClientError as error:  # an estimate is not worth a query's end
            LOG.warning("the size of rows is not known: %s", error)
            return known
        if size is None:
            return known
        self._known[stream] = size, self._clock() + KEPT_S
        return size

    def _look(self, wanted: Range) -> float | None:
        timeout_ms = self._cluster.settings.request_timeout_ms
        with closing(RangeReader(self._cluster, wanted, timeout_ms).pieces()) as pieces:
            for piece in pieces:
                header = unpack_header(piece.chunk, 0)
                return max(1.0, header.data_bytes / max(1, header.records))
        return None
