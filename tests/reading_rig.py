"""Settings and clusters for tests of the data source's client, with short time limits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Final

from hutch.client.login import Endpoint
from pyspark_hutch.client.cluster import Cluster
from pyspark_hutch.client.pool import Name
from pyspark_hutch.client.range_reader import Range, RangeReader
from pyspark_hutch.options.connection_settings import BrokerSettings
from tests.chunks import entry_at
from tests.fake_server import FakeServer
from tests.integration.server import HutchServer

NAME: Final = Name("test", "task 0")
HEADER_BYTES: Final = 48


def settings_of(server: FakeServer | HutchServer, **changes: object) -> BrokerSettings:
    """Return settings that lead to a server, with short time limits."""
    short = {
        "connect_timeout_ms": 5_000,
        "request_timeout_ms": 5_000,
        "poll_timeout_ms": 5_000,
        "planner_retry_interval_ms": 50,
    }
    wanted = short | changes
    return BrokerSettings(
        (Endpoint(server.host, server.port),),
        **wanted,  # type: ignore[arg-type]  # as a test says
    )


def cluster_of(server: FakeServer | HutchServer, **changes: object) -> Cluster:
    """Build a cluster as tasks have it."""
    return Cluster(settings_of(server, **changes), NAME, retries_first=True)


def range_of(
    server: FakeServer | HutchServer, stream: str, low: int, high: int, **more: object
) -> Range:
    """Build a range of a stream of a server."""
    return Range(
        stream,
        Endpoint(server.host, server.port),
        low,
        high,
        **more,  # type: ignore[arg-type]  # as a test says
    )


def reader_of(server: FakeServer | HutchServer, wanted: Range, **changes: object) -> RangeReader:
    """Build a reader of a range."""
    cluster = cluster_of(server, **changes)
    return RangeReader(cluster, wanted, cluster.settings.poll_timeout_ms)


def records_of(reader: RangeReader, high: int) -> Iterator[tuple[int, bytes]]:
    """Yield offset and body of what a reader gives, cut as a decoder does; simple entries only."""
    with closing(reader.pieces()) as pieces:
        for piece in pieces:
            data = bytes(piece.chunk)
            offset = int.from_bytes(data[24:32])
            position, end = HEADER_BYTES, HEADER_BYTES + int.from_bytes(data[36:40])
            while position < end:
                entry, position = entry_at(data, position)
                assert isinstance(entry, bytes)
                if piece.low <= offset < high:
                    yield offset, entry
                offset += 1
