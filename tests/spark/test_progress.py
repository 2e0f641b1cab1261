"""The lag of a streaming query in its progress, and its position as the server stores it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyspark_hutch
from hutch.stream import messages as m
from tests.client import Client
from tests.spark.conftest import Place
from tests.spark.publishing import append, bodies_of, create_super_stream, publish
from tests.spark.queries import Query, eventually, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def stored(client: Client, name: str, stream: str) -> int | None:
    """Return the offset that a consumer has stored; None if there is none."""
    reply = client.ask(m.StoredOffset, "query_offset", m.QueryOffset(name, stream))
    return reply.offset if reply.code == 1 else None


def test_progress_tells_the_lag_of_each_stream(
    spark: SparkSession, place: Place, stream: str, tmp_path: Path
) -> None:
    with place.client() as client:
        first, second = create_super_stream(client, stream, 2)
        append(client, first, bodies_of(300), at_once=100)
        append(client, second, bodies_of(100))
    options = {"superStream": stream, "startingOffsets": "earliest", "maxOffsetsPerTrigger": 200}
    query = Query(spark, place, tmp_path, **options)

    running = query.start("availableNow")
    assert running.awaitTermination(60)

    lags = [pyspark_hutch.lag(progress) for progress in running.recentProgress]
    assert lags[0] == {first: 300, second: 100}
    assert lags[-1] == {first: 0, second: 0}
    assert all(sum(lag.values()) > 0 for lag in lags[:-1])
    last = running.recentProgress[0]
    assert pyspark_hutch.lag(last.json) == pyspark_hutch.lag(dict(last)) == lags[0]


def test_the_rows_that_wait_after_a_kill_are_not_said_to_be_none(
    spark: SparkSession, either: Place, stream: str, tmp_path: Path
) -> None:
    with either.client() as client:
        publish(client, stream, bodies_of(30), at_once=10)
        options = {"stream": stream, "startingOffsets": "earliest", "maxOffsetsPerTrigger": 10}
        query = Query(spark, either, tmp_path, **options)
        query.run()
        append(client, stream, bodies_of(40, 30))
    query.uncommit(query.last_batch())
    listener = pyspark_hutch.OffsetListener(query.options | {"consumerName": "listener"})

    running = query.start("availableNow")
    assert running.awaitTermination(60)

    first = running.recentProgress[0]
    assert first["sources"][0]["latestOffset"] == "null", "Spark has looked"
    assert pyspark_hutch.lag(first) == {stream: None}
    assert listener.lag(first) == {stream: 40}
    assert listener.lag(running.lastProgress) == {stream: 0}


def test_a_consumer_name_shows_the_position_at_the_server_a_batch_late_at_most(
    spark: SparkSession, either: Place, stream: str, tmp_path: Path
) -> None:
    with either.client() as client:
        publish(client, stream, bodies_of(30), at_once=10)
        options = {"stream": stream, "startingOffsets": "earliest", "maxOffsetsPerTrigger": 10}
        query = Query(spark, either, tmp_path, **options, consumerName="dashboard")

        query.run()
        eventually(lambda: stored(client, "dashboard", stream) == 19)

        # It is never read for recovery, even if it says something else.
        client.send_request("store_offset", m.StoreOffset("dashboard", stream, 3))
        append(client, stream, bodies_of(10, 30))
        query.run()
        # On RabbitMQ a stored offset takes up an offset of the stream itself.
        bodies = sorted(bytes(row.body) for row in query.rows())
        assert bodies == sorted(bodies_of(40))


def test_a_listener_stores_the_position_of_the_last_batch_too(
    spark: SparkSession, place: Place, stream: str, tmp_path: Path
) -> None:
    with place.client() as client:
        (partition,) = create_super_stream(client, stream, 1)
        append(client, partition, bodies_of(30))
        options = {"superStream": stream, "startingOffsets": "earliest"}
        query = Query(spark, place, tmp_path, **options, consumerName="listener")
        listener = pyspark_hutch.OffsetListener(query.options)
        spark.streams.addListener(listener)
        try:
            query.run()
            eventually(lambda: stored(client, "listener", partition) == 29)
        finally:
            spark.streams.removeListener(listener)


def test_a_position_that_cannot_be_stored_does_not_end_a_query(
    spark: SparkSession, place: Place, stream: str, tmp_path: Path
) -> None:
    with place.client() as client:
        publish(client, stream, bodies_of(10))
        options = {"stream": stream, "startingOffsets": "earliest"}
        query = Query(spark, place, tmp_path, **options)
        gone = place.options | {"stream": stream, "consumerName": "nobody", "planner.retries": "0"}
        listener = pyspark_hutch.OffsetListener(gone | {"endpoints": "127.0.0.1:1"})
        spark.streams.addListener(listener)
        try:
            with query.running() as running:
                eventually(lambda: rows_of(running) == 10)
                append(client, stream, bodies_of(10, 10))
                eventually(lambda: rows_of(running) == 20)
        finally:
            spark.streams.removeListener(listener)
