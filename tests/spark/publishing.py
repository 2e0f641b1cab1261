"""Streams with known rows, published by hand."""

from __future__ import annotations

import time
from collections.abc import Sequence

from hutch.stream import messages as m
from tests.client import Client


def bodies_of(count: int, first: int = 0) -> list[bytes]:
    """The bodies of rows by their numbers."""
    return [b"row %d" % number for number in range(first, first + count)]


def append(client: Client, stream: str, bodies: Sequence[bytes], *, at_once: int = 250) -> None:
    """Publish to a stream that is there, a frame at a time, each confirmed before the next."""
    client.declare(1, stream)
    for first in range(0, len(bodies), at_once):
        part = bodies[first : first + at_once]
        client.publish(1, dict(enumerate(part, start=1)))
        client.confirmed_ids(len(part))
    client.must("delete_publisher", m.DeletePublisher(1))


def publish(client: Client, stream: str, bodies: Sequence[bytes], *, at_once: int = 250) -> None:
    """Create a stream and publish to it."""
    client.create(stream)
    append(client, stream, bodies, at_once=at_once)


def create_super_stream(client: Client, name: str, partitions: int) -> list[str]:
    """Create a super stream; give the names of its partitions."""
    streams = [f"{name}-{index}" for index in range(partitions)]
    keys = tuple(str(index) for index in range(partitions))
    client.must("create_super_stream", m.CreateSuperStream(name, tuple(streams), keys, {}))
    return streams


def next_millisecond() -> int:
    """Wait until the clock shows another millisecond; give it."""
    now = time.time_ns() // 1_000_000
    while time.time_ns() // 1_000_000 == now:
        time.sleep(0.0002)
    return now + 1
