"""How large rows are, estimated: no command of the protocol says how many bytes a stream holds."""

from collections.abc import Mapping
from contextlib import closing

from pyspark_hutch.client.cluster import Cluster
from pyspark_hutch.client.range_reader import Range, RangeReader
from pyspark_hutch.options.settings import Endpoint
from pyspark_hutch.shared.chunk import unpack_header

_ANY_BYTES = 100.0
"""Of a row where nothing could be looked at."""


def row_bytes(
    cluster: Cluster, leaders: Mapping[str, Endpoint], lows: Mapping[str, int]
) -> dict[str, float]:
    """Estimate the size of a row of each stream by the chunk at an offset.

    Args:
        cluster: The servers.
        leaders: Where each stream lives.
        lows: Where to look, by stream; a committed row is there.
    """
    return {
        stream: _look(cluster, Range(stream, leaders[stream], low, low + 1, fails_on_loss=False))
        for stream, low in lows.items()
    }


def _look(cluster: Cluster, wanted: Range) -> float:
    timeout_ms = cluster.settings.request_timeout_ms
    with closing(RangeReader(cluster, wanted, timeout_ms, 0).pieces()) as pieces:
        for piece in pieces:
            header = unpack_header(piece.chunk, 0)
            return max(1.0, header.data_bytes / max(1, header.records))
    return _ANY_BYTES
