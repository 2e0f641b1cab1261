"""Streams for jobs to read, published by hand, and what jobs have written."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from hutch.stream import messages as m
from hutch.stream.offsets import FIRST
from tests.client import Client
from tests.integration.server import HutchServer

AT_ONCE = 500


def fill(client: Client, number: int, stream: str, bodies: Sequence[bytes]) -> None:
    """Publish bodies to a stream that is there, as its publisher with this number."""
    client.declare(number, stream)
    for first in range(0, len(bodies), AT_ONCE):
        part = bodies[first : first + AT_ONCE]
        client.publish(number, dict(enumerate(part, start=first)))
        client.confirmed_ids(len(part))


def fill_stream(server: HutchServer, stream: str, bodies: Sequence[bytes]) -> None:
    """Make a stream that holds these."""
    with Client.opened(server.host, server.port) as client:
        client.create(stream)
        fill(client, 0, stream, bodies)


def fill_super_stream(
    server: HutchServer, super_stream: str, bodies: Sequence[Sequence[bytes]]
) -> None:
    """Make a super stream whose partitions hold these."""
    keys = tuple(map(str, range(len(bodies))))
    streams = tuple(f"{super_stream}-{key}" for key in keys)
    with Client.opened(server.host, server.port) as client:
        client.must("create_super_stream", m.CreateSuperStream(super_stream, streams, keys, {}))
        for number, (stream, own) in enumerate(zip(streams, bodies, strict=True)):
            fill(client, number, stream, own)


def contents(server: HutchServer, super_stream: str) -> list[list[bytes]]:
    """Return the messages of each partition, sorted."""
    found = []
    with Client.opened(server.host, server.port) as client:
        streams = client.ask(m.StreamsReply, "partitions", m.Partitions(super_stream)).streams
        for number, stream in enumerate(streams):
            stats = client.ask(m.StreamStatsReply, "stream_stats", m.StreamStats(stream))
            count = stats.statistics["committed_offset"] + 1
            client.subscribe(number, stream, FIRST)
            records = client.records(count, subscription_id=number)
            found.append(sorted(body for _, body in records))
    return found


def found_by(said: str) -> dict[str, int]:
    """Return what `round_trip.py` printed."""
    line = re.search(r"^found (.*)$", said, re.MULTILINE)
    assert line is not None, said
    found: dict[str, int] = json.loads(line[1])
    return found
