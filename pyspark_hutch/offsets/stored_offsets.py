"""The position of a query as stored offsets, which the tools of servers show.

They are only for display: Spark's checkpoint says where a query goes on. So a failure to store one
is a line in the log and nothing more.
"""

import logging
from collections.abc import Mapping
from typing import Final

from hutch.client.errors import ClientError
from hutch.client.login import Endpoint
from hutch.stream import messages as m
from pyspark_hutch.client.cluster import Cluster
from pyspark_hutch.offsets.position import Position

LOG: Final = logging.getLogger(__name__)


class StoredOffsets:
    """Stores the offsets of one query under one name."""

    def __init__(self, cluster: Cluster, reference: str) -> None:
        """Prepare; nothing is asked yet.

        Args:
            cluster: The servers.
            reference: The name of the consumer.
        """
        self._cluster = cluster
        self._reference = reference
        self._stored: dict[str, int] = {}

    def store(self, position: Position, leaders: Mapping[str, Endpoint] | None = None) -> None:
        """Store the offsets that have changed since the last call.

        The offset that is stored is that of the last row that was read, as clients do it.

        Args:
            position: The next offset of each stream.
            leaders: Where streams live; where it misses some, the server is asked.
        """
        changed = {
            stream: place.offset - 1
            for stream, place in position.items()
            if place.offset > 0 and self._stored.get(stream) != place.offset - 1
        }
        try:
            self._send(changed, leaders or {})
        except (ClientError, OSError, ValueError) as error:
            LOG.warning("the position of %r was not stored: %s", self._reference, error)

    def _send(self, offsets: Mapping[str, int], leaders: Mapping[str, Endpoint]) -> None:
        unknown = [stream for stream in offsets if stream not in leaders]
        if unknown:
            leaders = {**leaders, **self._cluster.leaders(unknown, skips_missing=True)}
        by_leader: dict[Endpoint, list[str]] = {}
        for stream in offsets:
            if stream in leaders:
                by_leader.setdefault(leaders[stream], []).append(stream)
        for leader, streams in by_leader.items():
            with self._cluster.connection(leader) as connection:
                for stream in streams:
                    offset = offsets[stream]
                    stored = m.StoreOffset(self._reference, stream, offset)
                    connection.send_request("store_offset", stored)
                    self._stored[stream] = offset
