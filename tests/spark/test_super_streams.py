"""Reads of several streams: super streams, their partitions, and lists."""

from __future__ import annotations

import json

from tests.spark.conftest import Place, Read
from tests.spark.publishing import append, bodies_of, create_super_stream, publish
from tests.spark.queries import refusal


def test_a_super_stream_gives_the_rows_of_all_partitions_with_their_index(
    either: Place, stream: str, read: Read
) -> None:
    with either.client() as client:
        streams = create_super_stream(client, stream, 3)
        for index, partition in enumerate(streams):
            append(client, partition, bodies_of(index * 10))

    rows = read(either, superStream=stream, minPartitions=5).collect()

    found = {(row.stream, row.super_stream, row.partition) for row in rows}
    assert found == {(streams[1], stream, 1), (streams[2], stream, 2)}
    assert sorted((row.partition, row.offset) for row in rows) == sorted(
        (index, offset) for index in range(3) for offset in range(index * 10)
    )


def test_partitions_can_be_assigned_by_index(place: Place, stream: str, read: Read) -> None:
    with place.client() as client:
        streams = create_super_stream(client, stream, 3)
        for partition in streams:
            append(client, partition, bodies_of(2))

    rows = read(place, assign=json.dumps({stream: [0, 2]})).collect()

    assert sorted(row.stream for row in rows) == sorted([streams[0], streams[2]] * 2)
    line = refusal(read(place, assign=json.dumps({stream: [3]})).collect)
    assert line == f"option assign: super stream {stream!r} has 3 partitions, no partition 3"


def test_lists_of_streams_and_of_super_streams_are_read_together(
    place: Place, stream: str, read: Read
) -> None:
    with place.client() as client:
        for name in ("a", "b"):
            publish(client, f"{stream}-{name}", bodies_of(3))
            (partition,) = create_super_stream(client, f"{stream}-super-{name}", 1)
            append(client, partition, bodies_of(4))

    assert read(place, stream=f"{stream}-a, {stream}-b").count() == 6
    assert read(place, superStream=f"{stream}-super-a,{stream}-super-b").count() == 8
