"""Batch reads: the rows of streams, the same from Hutch and from RabbitMQ."""

from __future__ import annotations

import asyncio
import time

import pytest

from hutch.stream import messages as m
from tests.spark.conftest import Place, Read
from tests.spark.proxy import Change, Proxy, as_it_is, without_pipeline
from tests.spark.publishing import append, bodies_of, create_super_stream, publish

COUNT = 2_000
STOCK = {
    *("peer_properties", "sasl_handshake", "sasl_authenticate", "tune", "open", "close"),
    *("metadata", "partitions", "stream_stats", "resolve_offset_spec"),
    *("subscribe", "credit", "unsubscribe", "heartbeat"),
}
"""The commands that a read may need; every broker of streams has them."""


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


def test_what_a_stock_client_published_is_read(either: Place, stream: str, read: Read) -> None:
    from rstream import AMQPMessage, Producer

    async def produce() -> None:
        async with Producer(either.host, either.port, username="guest", password="guest") as made:
            await made.create_stream(stream)
            batch = [AMQPMessage(body=body) for body in bodies_of(100)]
            await made.send_batch(stream, batch)

    asyncio.run(produce())

    rows = read(either, stream=stream).collect()

    assert [(bytes(row.body), row.body_type) for row in rows] == [
        (body, "data") for body in bodies_of(100)
    ]


def test_a_read_needs_stock_commands_only(either: Place, stream: str, read: Read) -> None:
    with either.client() as client, Proxy(either.host, either.port) as proxy:
        for partition in create_super_stream(client, stream, 2):
            append(client, partition, bodies_of(50), at_once=10)
        proxy.on_answer = without_pipeline
        through = Place(either.product, proxy.host, proxy.port)
        found = read(through, superStream=stream, minPartitions=4, startingTimestamp=1)

        assert found.count() == 100
        assert set(proxy.requests) <= STOCK


@pytest.mark.parametrize(("change", "questions"), [(as_it_is, 0), (without_pipeline, 1)])
def test_streams_are_read_where_the_server_says_unless_that_is_ignored(
    place: Place, stream: str, read: Read, change: Change, questions: int
) -> None:
    with place.client() as client:
        publish(client, stream, bodies_of(10))
    for advertised, subscriptions in (("ignore", 1), ("use", 0)):
        with Proxy(place.host, place.port) as proxy:
            proxy.on_answer = change
            through = Place("hutch", proxy.host, proxy.port)
            assert read(through, stream=stream, advertised=advertised).count() == 10
            assert proxy.requests["subscribe"] == subscriptions
            assert proxy.requests["metadata"] == questions


def test_filter_values_leave_out_chunks_but_no_row_of_those_that_match(
    either: Place, stream: str, read: Read
) -> None:
    with either.client() as client:
        client.create(stream)
        client.declare(1, stream)
        ids = iter(range(1, 1_000))
        for values in (["eu"], ["us"], ["eu", "us"], [None], ["us"], ["eu"]):
            client.publish_filtered(1, [(next(ids), value, b"row") for value in values * 10])
            client.confirmed_ids(10 * len(values))

    options = {"stream": stream, "filterValues": "eu"}
    found = read(either, "offset bigint", **options, minPartitions=2).collect()
    assert sorted(row.offset for row in found) == [*range(10), *range(20, 40), *range(60, 70)]
    also = read(either, "offset bigint", **options, filterMatchUnfiltered="true").collect()
    assert sorted(row.offset for row in also) == [*range(10), *range(20, 50), *range(60, 70)]
