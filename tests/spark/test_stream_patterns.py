"""What Spark reads with the commands for pipelines: patterns, splits by bytes, descriptions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hutch.stream import messages as m
from tests.client import Client
from tests.spark.conftest import Place, Read
from tests.spark.publishing import append, bodies_of, create_super_stream, publish
from tests.spark.queries import Query, eventually, refusal, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from compat.broker.running import RunningBroker


@pytest.fixture
def client(place: Place) -> Iterator[Client]:
    with place.client() as opened:
        yield opened


def test_a_pattern_reads_all_streams_that_it_matches(
    place: Place, client: Client, stream: str, read: Read
) -> None:
    name = stream[-8:]
    publish(client, f"{name}-plain", bodies_of(3))
    (partition,) = create_super_stream(client, f"{name}-super", 1)
    append(client, partition, bodies_of(2))
    publish(client, f"other-{name}", bodies_of(5))

    rows = read(place, streamPattern=f"^{name}-").collect()

    assert sorted((row.stream, row.super_stream, row.partition, row.offset) for row in rows) == [
        *((f"{name}-plain", None, 0, offset) for offset in range(3)),
        *((partition, f"{name}-super", 0, offset) for offset in range(2)),
    ]
    line = refusal(read(place, streamPattern="[").collect)
    assert line.startswith("option streamPattern='[': the pattern '[' cannot be used: ")


def test_a_running_query_finds_new_streams_that_match_and_tells_of_those_that_go(
    spark: SparkSession, place: Place, client: Client, stream: str, tmp_path: Path
) -> None:
    name = stream[-8:]
    publish(client, f"{name}-a", bodies_of(3))
    query = Query(spark, place, tmp_path, streamPattern=f"^{name}-")
    with query.running() as running:
        eventually(query.checkpoint.joinpath("commits", "0").exists)
        publish(client, f"{name}-b", bodies_of(4))
        eventually(lambda: rows_of(running) == 4)
    assert query.position_of(query.last_batch()) == {f"{name}-a": 3, f"{name}-b": 4}
    client.must("delete_stream", m.DeleteStream(f"{name}-a"))

    line = refusal(query.run)
    assert line.startswith(f"stream '{name}-a': nothing from 3 on: the stream does not exist")
    query.options["failOnDataLoss"] = "false"
    assert query.run() == [0, 1, 2, 3]


def test_tasks_are_equal_in_bytes(place: Place, client: Client, stream: str, read: Read) -> None:
    publish(client, stream, [bytes(10)] * 5_000 + [bytes(10_000)] * 200, at_once=10)

    halves = read(place, "offset bigint", stream=stream, minPartitions=2)
    small = read(place, "offset bigint", stream=stream, maxBytesPerPartition="600k")

    first, second = halves.rdd.glom().collect()
    assert sorted(row.offset for row in first + second) == list(range(5_200))
    assert 5_070 <= len(first) <= 5_130
    parts = [[row.offset for row in part] for part in small.rdd.glom().collect()]
    assert sorted(offset for part in parts for offset in part) == list(range(5_200))
    assert max(sum(offset >= 5_000 for offset in part) for part in parts) <= 60


def test_streams_are_described_without_their_records(
    place: Place, client: Client, stream: str, read: Read
) -> None:
    name = stream[-8:]
    publish(client, f"{name}-plain", bodies_of(3))
    (partition,) = create_super_stream(client, f"{name}-super", 1)

    frame = read(place, streamPattern=name, metadata="streams")

    assert frame.columns == [
        *("stream", "super_stream", "partition", "first_offset", "next_offset"),
        *("bytes", "generation"),
    ]
    plain, empty = frame.orderBy("stream").collect()
    assert plain[:5] == (f"{name}-plain", None, 0, 0, 3)
    assert empty[:6] == (partition, f"{name}-super", 0, 0, 0, 0)
    assert plain.bytes > sum(map(len, bodies_of(3)))
    assert plain.generation != empty.generation
    chosen = read(place, "bytes bigint, stream string", stream=partition, metadata="streams")
    assert chosen.collect() == [(0, partition)]
    wrong = refusal(read(place, "body binary", stream=partition, metadata="streams").collect)
    assert wrong.startswith("schema: no column 'body' can be read")


def test_rabbitmq_is_told_what_needs_hutch(rabbitmq: RunningBroker, read: Read) -> None:
    broker = Place("rabbitmq", rabbitmq.host, rabbitmq.ports.stream)
    for options in (
        {"streamPattern": "^a"},
        {"stream": "a", "maxBytesPerPartition": "1m"},
        {"stream": "a", "metadata": "streams"},
    ):
        (option,) = options.keys() - {"stream"}
        line = refusal(read(broker, **options).collect)
        assert line.startswith(
            f"option {option}: {rabbitmq.host}:{rabbitmq.ports.stream} (RabbitMQ"
        )
        assert "which needs Hutch" in line
