"""Streaming reads: where they begin, how far a batch goes, and how they end."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.client import Client
from tests.integration.administrator import ctl
from tests.integration.server import HutchServer
from tests.spark.conftest import Place
from tests.spark.proxy import Proxy
from tests.spark.publishing import append, bodies_of, create_super_stream, publish
from tests.spark.queries import WAIT_S, Query, batches_of, eventually, rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

IDLE_ASKS_PER_S_MAX = 10


@pytest.fixture
def client(place: Place) -> Iterator[Client]:
    with place.client() as opened:
        yield opened


def test_a_new_query_pins_where_it_begins_with_an_empty_first_batch(
    spark: SparkSession, place: Place, client: Client, stream: str, tmp_path: Path
) -> None:
    publish(client, stream, bodies_of(10))
    query = Query(spark, place, tmp_path, stream=stream)  # from its end, by default

    assert query.run() == []
    assert query.position_of(0) == {stream: 10}
    query.uncommit(0)
    append(client, stream, bodies_of(5, 10))

    assert query.run() == list(range(10, 15))


def test_positions_have_one_form_and_an_idle_query_runs_no_batch_and_asks_rarely(
    spark: SparkSession, place: Place, client: Client, stream: str, tmp_path: Path
) -> None:
    streams = create_super_stream(client, stream, 3)
    for name in streams:
        append(client, name, bodies_of(10))
    with Proxy(place.host, place.port) as proxy:
        through = Place("hutch", proxy.host, proxy.port)
        query = Query(spark, through, tmp_path, superStream=stream, startingOffsets="earliest")
        with query.running() as running:
            eventually(lambda: rows_of(running) == 30)
            settled = proxy.turns + 5
            eventually(lambda: proxy.turns >= settled)
            batch, asked, began = query.last_batch(), proxy.turns, time.monotonic()
            eventually(lambda: proxy.turns >= asked + 15)
            took_s = time.monotonic() - began

    assert query.last_batch() == batch
    assert 15 / took_s <= IDLE_ASKS_PER_S_MAX
    listed = ", ".join(f'"{name}": {{"i": "N", "o": 10}}' for name in sorted(streams))
    assert re.sub('"[0-9]+"', '"N"', query.position(batch)) == f"{{{listed}}}"


def test_a_batch_takes_no_more_rows_than_its_budget(
    spark: SparkSession, place: Place, client: Client, stream: str, tmp_path: Path
) -> None:
    publish(client, stream, bodies_of(1_000), at_once=100)
    options = {"stream": stream, "startingOffsets": "earliest", "maxOffsetsPerTrigger": 350}
    query = Query(spark, place, tmp_path, **options)

    assert query.run() == list(range(1_000))
    # No chunk of 100 ends within a tenth of the budget, so batches end inside of chunks.
    assert query.batches == [(0, 0), (1, 350), (2, 350), (3, 300)]


def test_a_batch_takes_no_more_bytes_than_its_budget(
    spark: SparkSession, place: Place, client: Client, stream: str, tmp_path: Path
) -> None:
    publish(client, stream, [bytes(1_000)] * 400, at_once=50)
    options = {"stream": stream, "startingOffsets": "earliest", "maxBytesPerTrigger": "110k"}
    query = Query(spark, place, tmp_path, **options)

    assert query.run() == list(range(400))
    first, *full, last = [rows for _, rows in query.batches]
    assert (first, len(full)) == (0, 3)
    assert all(0.9 * 112_640 <= 1_000 * rows <= 112_640 for rows in full)
    assert last == 400 - sum(full)


def test_a_batch_waits_for_enough_rows_but_not_for_ever(
    spark: SparkSession, place: Place, client: Client, stream: str, tmp_path: Path
) -> None:
    client.create(stream)
    options = {"stream": stream, "startingOffsets": "earliest", "minOffsetsPerTrigger": 100}
    with Proxy(place.host, place.port) as proxy:
        through = Place("hutch", proxy.host, proxy.port)
        patient = Query(spark, through, tmp_path / "patient", **options)
        with patient.running() as running:
            append(client, stream, bodies_of(60))
            looks = proxy.requests["describe_streams"]
            eventually(lambda: proxy.requests["describe_streams"] >= looks + 3)
            append(client, stream, bodies_of(60, 60))
            eventually(lambda: rows_of(running) == 120)
    hasty = Query(spark, place, tmp_path / "hasty", **options, maxTriggerDelay="1s")
    with hasty.running() as running:
        eventually(lambda: rows_of(running) == 120)
        append(client, stream, bodies_of(5, 120))
        eventually(lambda: rows_of(running) == 125)

    assert patient.batches == [(0, 0), (1, 120)]
    assert hasty.batches == [(0, 0), (1, 120), (2, 5)]


def test_available_now_ends_with_what_was_there_when_it_began(
    spark: SparkSession, place: Place, client: Client, stream: str, tmp_path: Path
) -> None:
    publish(client, stream, bodies_of(300), at_once=100)
    options = {"stream": stream, "startingOffsets": "earliest", "maxOffsetsPerTrigger": 100}
    read: list[int] = []

    def note(batch: DataFrame, number: int) -> None:
        read.extend(row.offset for row in batch.select("offset").collect())
        append(client, stream, bodies_of(50, 300 + 50 * number))

    source = spark.readStream.format("hutch").options(**place.options, **stringly(options))
    query = source.load().writeStream.foreachBatch(note).trigger(availableNow=True)
    running = query.option("checkpointLocation", str(tmp_path)).start()

    assert running.awaitTermination(WAIT_S)
    assert sorted(read) == list(range(300))


def test_a_query_of_one_batch_takes_all_that_is_there_whatever_the_budget(
    spark: SparkSession, place: Place, client: Client, stream: str, tmp_path: Path
) -> None:
    publish(client, stream, bodies_of(300), at_once=100)
    options = {"stream": stream, "startingOffsets": "earliest", "maxOffsetsPerTrigger": 100}
    query = Query(spark, place, tmp_path, **options)

    assert query.run("once") == list(range(300))
    assert query.batches == [(0, 300)]


def test_partitions_added_to_a_super_stream_begin_at_their_first_row(
    spark: SparkSession,
    hutch: HutchServer,
    place: Place,
    client: Client,
    stream: str,
    tmp_path: Path,
) -> None:
    (first,) = create_super_stream(client, stream, 1)
    append(client, first, bodies_of(10))
    query = Query(spark, place, tmp_path, superStream=stream)
    assert query.run() == []

    ctl(hutch, "add_partitions", stream, "--partitions", "1")
    (second,) = set(partitions_of(hutch, stream)) - {first}
    append(client, second, bodies_of(3))
    append(client, first, bodies_of(2, 10))

    assert query.run() == [0, 1, 2, 10, 11]
    assert query.position_of(query.last_batch()) == {first: 12, second: 3}


def test_a_running_query_finds_partitions_that_are_added(
    spark: SparkSession,
    hutch: HutchServer,
    place: Place,
    client: Client,
    stream: str,
    tmp_path: Path,
) -> None:
    (first,) = create_super_stream(client, stream, 1)
    query = Query(spark, place, tmp_path, superStream=stream)
    with query.running() as running:
        eventually(lambda: batches_of(running))
        ctl(hutch, "add_partitions", stream, "--partitions", "1")
        (second,) = set(partitions_of(hutch, stream)) - {first}
        append(client, second, bodies_of(3))
        eventually(lambda: rows_of(running) == 3)

    assert query.offsets() == [0, 1, 2]


def partitions_of(server: HutchServer, super_stream: str) -> list[str]:
    for one in ctl(server, "list_super_streams"):
        if one["name"] == super_stream:
            return [str(partition) for partition in one["partitions"]]
    raise AssertionError(super_stream)


def stringly(options: dict[str, object]) -> dict[str, str]:
    return {name: str(value) for name, value in options.items()}
