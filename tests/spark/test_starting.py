"""Beginnings and ends of reads, exact to the row, on Hutch and on RabbitMQ."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.spark.conftest import Place, Read
from tests.spark.proxy import Proxy
from tests.spark.publishing import append, bodies_of, create_super_stream, next_millisecond, publish
from tests.spark.queries import Query, refusal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FAR_MS = 4_000_000_000_000
CASES: list[tuple[dict[str, str], range]] = [
    ({"startingOffsets": "earliest"}, range(100)),
    ({"startingOffsets": '{"%s": 37}'}, range(37, 100)),
    ({"startingOffsets": '{"%s": -2}', "endingOffsets": '{"%s": -1}'}, range(100)),
    ({"startingOffsets": '{"%s": 13}', "endingOffsets": '{"%s": 61}'}, range(13, 61)),
    ({"startingOffsets": '{"%s": {"o": 13}}', "endingOffsets": '{"%s": 13}'}, range(0)),
    ({"startingOffsets": "-7"}, range(93, 100)),
    ({"startingOffsets": "-1000"}, range(100)),
    ({"startingOffsets": "-10 minutes"}, range(100)),
    ({"startingOffsets": "-1 ms"}, range(0)),
    ({"startingTimestamp": "1"}, range(100)),
    ({"startingTimestamp": "1", "endingTimestamp": "2"}, range(0)),
]


def offsets(read: Read, place: Place, **options: object) -> list[int]:
    return sorted(row.offset for row in read(place, "offset bigint", **options).collect())


@pytest.mark.parametrize(("options", "expected"), CASES)
def test_a_batch_read_has_the_rows_between_its_start_and_its_end(
    place: Place, stream: str, read: Read, options: dict[str, str], expected: range
) -> None:
    fill(place, stream)

    assert found(read, place, stream, options) == list(expected)


def test_starts_and_ends_are_the_same_rows_on_each_server(
    either: Place, stream: str, read: Read
) -> None:
    fill(either, stream)

    for options, expected in (CASES[index] for index in (3, 5, 7)):
        assert found(read, either, stream, options) == list(expected), options


def fill(place: Place, stream: str) -> None:
    """Publish 100 rows, all older than the present millisecond."""
    with place.client() as client:
        publish(client, stream, bodies_of(100), at_once=20)
    next_millisecond()
    next_millisecond()


def found(read: Read, place: Place, stream: str, options: dict[str, str]) -> list[int]:
    named = {name: text.replace("%s", stream) for name, text in options.items()}
    return offsets(read, place, stream=stream, **named)


def test_a_start_and_an_end_by_time_are_exact_to_the_row(
    either: Place, stream: str, read: Read
) -> None:
    times = []
    with either.client() as client:
        client.create(stream)
        for first in range(0, 50, 10):
            times.append(next_millisecond())
            append(client, stream, bodies_of(10, first))

    for index in (0, 2, 4):
        rest = list(range(index * 10, 50))
        assert offsets(read, either, stream=stream, startingTimestamp=times[index]) == rest
    by_stream = json.dumps({stream: times[1]})
    middle = offsets(
        read,
        either,
        stream=stream,
        startingOffsetsByTimestamp=by_stream,
        endingTimestamp=times[3],
    )
    assert middle == list(range(10, 30))


def test_a_start_later_than_all_rows_is_refused_unless_the_strategy_is_latest(
    place: Place, stream: str, read: Read
) -> None:
    with place.client() as client:
        publish(client, stream, bodies_of(10))
    wanted = {"stream": stream, "startingTimestamp": FAR_MS}

    line = refusal(read(place, "offset bigint", **wanted).collect)

    assert line == (
        f"option startingTimestamp={FAR_MS}: stream {stream!r} has no row of this time or later "
        "(startingOffsetsByTimestampStrategy=latest begins at its end then)"
    )
    assert offsets(read, place, **wanted, startingOffsetsByTimestampStrategy="latest") == []


def test_the_strategy_latest_skips_nothing_published_after_the_query_began(
    spark: SparkSession, place: Place, stream: str, tmp_path: Path
) -> None:
    with place.client() as client, Proxy(place.host, place.port) as proxy:
        publish(client, stream, bodies_of(10))

        def publish_first(name: str) -> None:
            # Between the two questions by which the planner finds the start.
            if name == "resolve_offset_spec":
                proxy.on_request = lambda _name: None
                append(client, stream, bodies_of(5, 10))

        proxy.on_request = publish_first
        query = Query(
            spark,
            Place("hutch", proxy.host, proxy.port),
            tmp_path,
            stream=stream,
            startingTimestamp=FAR_MS,
            startingOffsetsByTimestampStrategy="latest",
        )

        assert query.run() == []
        assert proxy.requests["resolve_offset_spec"] == 1
        assert query.run() == list(range(10, 15))


def test_offsets_that_do_not_fit_the_streams_there_are_are_refused(
    place: Place, stream: str, read: Read
) -> None:
    with place.client() as client:
        first, second = create_super_stream(client, stream, 2)

    def line(**options: object) -> str:
        return refusal(lambda: read(place, "offset bigint", superStream=stream, **options).count())

    assert line(startingOffsets=json.dumps({first: 0})) == (
        f"option startingOffsets: must name each stream that is read: it misses {second!r}"
    )
    assert line(endingOffsets=json.dumps({first: 0, second: 0, "x": 0})) == (
        "option endingOffsets: must name each stream that is read: it names what is not read, 'x'"
    )
    assert line(startingOffsets=json.dumps({first: 0, second: 5})) == (
        f"option startingOffsets: offset 5 of stream {second!r} is beyond its end, 0"
    )


def test_a_key_that_stands_twice_in_json_is_refused_at_load(
    place: Place, stream: str, read: Read
) -> None:
    given = f'{{"{stream}": 1, "{stream}": 2}}'

    line = refusal(lambda: read(place, stream=stream, startingOffsets=given))

    assert line.startswith("option startingOffsets=")
    assert "twice" in line
