"""Rows that are gone before they were read: what a query says, and how it goes on without them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hutch.stream import messages as m
from tests.client import Client
from tests.integration.administrator import ctl
from tests.integration.server import HutchServer
from tests.spark.conftest import Place, Read
from tests.spark.publishing import append, bodies_of, create_super_stream, publish
from tests.spark.queries import Query, eventually, refusal, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ADVICE = "Set failOnDataLoss to false to go on without them."


@pytest.fixture
def client(place: Place) -> Iterator[Client]:
    with place.client() as opened:
        yield opened


def make_again(client: Client, stream: str, count: int) -> None:
    client.must("delete_stream", m.DeleteStream(stream))
    publish(client, stream, bodies_of(count))


@pytest.mark.parametrize("count", [4, 25])
def test_a_stream_deleted_and_made_again_is_told_however_long_it_is(
    spark: SparkSession, place: Place, client: Client, stream: str, tmp_path: Path, count: int
) -> None:
    publish(client, stream, bodies_of(10))
    query = Query(spark, place, tmp_path, stream=stream, startingOffsets="earliest")
    query.run()
    make_again(client, stream, count)

    assert refusal(query.run) == (
        f"stream {stream!r}: nothing from 10 on: "
        f"the stream was deleted and made again, and begins anew at offset 0. {ADVICE}"
    )
    query.options["failOnDataLoss"] = "false"
    assert query.run() == sorted([*range(10), *range(count)])


def test_a_running_query_goes_on_in_an_empty_stream_that_took_the_place_of_another(
    spark: SparkSession, place: Place, client: Client, stream: str, tmp_path: Path
) -> None:
    publish(client, stream, bodies_of(10))
    options = {"stream": stream, "startingOffsets": "earliest", "failOnDataLoss": "false"}
    query = Query(spark, place, tmp_path, **options)
    with query.running() as running:
        eventually(lambda: rows_of(running) == 10)
        make_again(client, stream, 0)
        eventually(lambda: query.position_of(query.last_batch()) == {stream: 0})
        append(client, stream, bodies_of(3))
        eventually(lambda: rows_of(running) == 13)

    assert query.offsets() == sorted([*range(10), *range(3)])


def test_a_partition_that_is_deleted_is_told(
    spark: SparkSession, place: Place, client: Client, stream: str, tmp_path: Path
) -> None:
    first, second = create_super_stream(client, stream, 2)
    append(client, second, bodies_of(5))
    query = Query(spark, place, tmp_path, superStream=stream, startingOffsets="earliest")
    query.run()
    client.must("delete_stream", m.DeleteStream(second))
    append(client, first, bodies_of(2))

    assert refusal(query.run) == (
        f"stream {second!r}: nothing from 5 on: the stream does not exist any more. {ADVICE}"
    )
    query.options["failOnDataLoss"] = "false"
    assert query.run() == sorted([*range(5), *range(2)])
    assert query.position_of(query.last_batch()) == {first: 2}


@pytest.mark.parametrize("how", ["availableNow", "once"])
def test_a_stream_that_is_missing_at_a_restart_is_told_and_read_again_once_it_is_there(
    spark: SparkSession, place: Place, client: Client, stream: str, tmp_path: Path, how: str
) -> None:
    publish(client, stream, bodies_of(5))
    query = Query(spark, place, tmp_path, stream=stream, startingOffsets="earliest")
    query.run()
    client.must("delete_stream", m.DeleteStream(stream))

    assert refusal(lambda: query.run(how)) == (
        f"stream {stream!r}: nothing from 5 on: the stream does not exist any more. {ADVICE}"
    )
    query.options["failOnDataLoss"] = "false"
    assert query.run(how) == [*range(5)]
    assert query.run(how) == [*range(5)]
    publish(client, stream, bodies_of(3))
    assert query.run(how) == sorted([*range(5), *range(3)])


def test_rows_that_retention_removed_are_told_by_a_streaming_query(
    spark: SparkSession,
    hutch: HutchServer,
    place: Place,
    client: Client,
    stream: str,
    tmp_path: Path,
) -> None:
    publish(client, stream, bodies_of(50), at_once=10)
    options = {"stream": stream, "startingOffsets": "earliest", "maxOffsetsPerTrigger": 10}
    query = Query(spark, place, tmp_path, **options)
    with query.running() as running:
        eventually(lambda: rows_of(running) == 50)
    append(client, stream, bodies_of(50, 50), at_once=10)
    assert ctl(hutch, "truncate_stream", stream, "--before-offset", "70")["first_offset"] == 70

    assert refusal(query.run) == (
        f"stream {stream!r}: offsets 50 to 59 are lost: retention removed them. {ADVICE}"
    )
    query.options["failOnDataLoss"] = "false"
    assert query.run() == [*range(50), *range(70, 100)]


def test_rows_that_retention_removed_are_told_by_a_batch_read(
    hutch: HutchServer, place: Place, client: Client, stream: str, read: Read
) -> None:
    publish(client, stream, bodies_of(30), at_once=10)
    ctl(hutch, "truncate_stream", stream, "--before-offset", "20")
    start = f'{{"{stream}": 5}}'

    frame = read(place, "offset bigint", stream=stream, startingOffsets=start)
    assert refusal(frame.collect) == (
        f"stream {stream!r}: offsets 5 to 19 are lost: "
        f"the stream begins at offset 20: retention. {ADVICE}"
    )
    rest = read(
        place, "offset bigint", stream=stream, startingOffsets=start, failOnDataLoss="false"
    )
    assert sorted(row.offset for row in rest.collect()) == list(range(20, 30))
