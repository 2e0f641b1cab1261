"""Estimates the size of rows: no command of the protocol says how many bytes a stream holds."""

import logging
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Final

from hutch.client.errors import ClientError
from hutch.client.login import Endpoint
from hutch.formats.chunk import unpack_header
from pyspark_hutch.client.cluster import Cluster
from pyspark_hutch.client.range_reader import Range, RangeReader

LOG: Final = logging.getLogger(__name__)

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
