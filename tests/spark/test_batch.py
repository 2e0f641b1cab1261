"""Batch reads: the rows of streams, the same from Hutch and from RabbitMQ."""

from __future__ import annotations

import time

import pytest

from gateway.stream.wire import messages as m
from tests.client import Client
from tests.spark.conftest import Place, Read

COUNT = 2_000


def publish(client: Client, stream: str, bodies: list[bytes], *, at_once: int = 250) -> None:
    """Create a stream and publish to it by hand, a frame at a time."""
    client.create(stream)
    client.declare(1, stream, "by hand")
    for first in range(0, len(bodies), at_once):
        part = bodies[first : first + at_once]
        client.publish(1, dict(enumerate(part, start=first + 1)))
        client.confirmed_ids(len(part))


def bodies_of(count: int) -> list[bytes]:
    return [b"row %d" % number for number in range(count)]


def test_a_batch_read_gives_every_row_in_its_order(either: Place, stream: str, read: Read) -> None:
    with either.client() as client:
        publish(client, stream, bodies_of(COUNT))

    rows = read(either, stream=stream).collect()

    assert [bytes(row.body) for row in rows] == bodies_of(COUNT)
    assert [row.offset for row in rows] == list(range(COUNT))
    assert {row.stream for row in rows} == {stream}
    assert {row.super_stream for row in rows} == {None}
    assert {row.partition for row in rows} == {0}
    assert {row.body_type for row in rows} == {"raw"}
    assert all(abs(row.timestamp.timestamp() - time.time()) < 600 for row in rows)


def test_offsets_without_messages_delay_nothing_and_are_no_rows(
    either: Place, stream: str, read: Read
) -> None:
    with either.client() as client:
        publish(client, stream, bodies_of(COUNT))
        # RabbitMQ keeps a stored offset in the stream, where it takes up an offset itself.
        client.send_request("store_offset", m.StoreOffset("reader", stream, 5))
        client.ask(m.StoredOffset, "query_offset", m.QueryOffset("reader", stream))

    rows = read(either, stream=stream, minPartitions=3, pollTimeoutMs=5_000).collect()

    assert sorted(bytes(row.body) for row in rows) == sorted(bodies_of(COUNT))


@pytest.mark.parametrize("partitions", [1, 2, 7])
def test_splits_within_a_stream_lose_and_double_nothing(
    either: Place, stream: str, read: Read, partitions: int
) -> None:
    with either.client() as client:
        publish(client, stream, bodies_of(COUNT), at_once=40)

    found = read(either, stream=stream, minPartitions=partitions)

    assert found.rdd.getNumPartitions() == partitions
    assert sorted(row.offset for row in found.collect()) == list(range(COUNT))


def test_an_empty_stream_gives_no_rows(either: Place, stream: str, read: Read) -> None:
    with either.client() as client:
        client.create(stream)

    assert read(either, stream=stream).count() == 0
