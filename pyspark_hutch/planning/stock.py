"""The facts that the commands of the protocol tell, some of them one stream at a time."""

from collections.abc import Callable, Mapping, Sequence

from hutch.client.login import Endpoint
from hutch.stream.offsets import at_offset
from pyspark_hutch.client.cluster import Bounds, Cluster
from pyspark_hutch.offsets.streams import streams_of
from pyspark_hutch.options.read_settings import Source, Splitting
from pyspark_hutch.planning.admission import share
from pyspark_hutch.planning.facts import Found, Reach
from pyspark_hutch.planning.sizes import RowSizes
from pyspark_hutch.planning.splits import Split, StreamRange, plan


class StockFacts:
    """Asks with Metadata, Partitions, StreamStats and ResolveOffsetSpec."""

    def __init__(self, cluster: Cluster, clock: Callable[[], float]) -> None:
        """Prepare; nothing is asked yet."""
        self._cluster = cluster
        self._sizes = RowSizes(cluster, clock)

    def find(self, source: Source) -> Found:
        """Find the streams of a query."""
        places = {place.stream: place for place in streams_of(self._cluster, source)}
        leaders = self._cluster.leaders(list(places), skips_missing=True)
        missing = [stream for stream in places if stream not in leaders]
        return Found(places, leaders, self._cluster.bounds(leaders), missing)

    def look(self, leaders: Mapping[str, Endpoint]) -> dict[str, Bounds]:
        """Return what streams hold."""
        return self._cluster.bounds(leaders)

    def chunks_at(self, found: Found, offsets: Mapping[str, int]) -> dict[str, int]:
        """Return for an offset of each stream where its chunk begins."""
        asked = [(stream, at_offset(offset)) for stream, offset in offsets.items()]
        return dict(zip(offsets, self._cluster.resolve(found.leaders, asked), strict=True))

    def within(
        self,
        found: Found,
        reaches: Mapping[str, Reach],
        bytes_max: int,
        passed: Mapping[str, int],
    ) -> dict[str, int]:
        """Estimate how many rows have so many bytes, by the chunk where each stream goes on."""
        backlog = {stream: reach.high - reach.low for stream, reach in reaches.items()}
        lows = {stream: reach.low for stream, reach in reaches.items()}
        return share(backlog, bytes_max, self._sizes.look(found.leaders, lows), passed)

    def split(
        self, found: Found, ranges: Sequence[StreamRange], splitting: Splitting
    ) -> list[Split]:
        """Cut ranges by rows."""
        return plan(self._cluster, found.leaders, ranges, splitting)
