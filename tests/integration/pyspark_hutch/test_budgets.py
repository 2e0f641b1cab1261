"""Sizes of splits and of batches, in rows and in bytes, against a running server."""

from __future__ import annotations

import re

import pytest

from tests.chunks import SubBatch
from tests.client import Client
from tests.integration.pyspark_hutch.planned import Query, batch, ranges
from tests.integration.pyspark_hutch.test_planning import client, hutch
from tests.integration.server import HutchServer
from tests.spark.proxy import Proxy
from tests.spark.publishing import append, publish

__all__ = ["client", "hutch"]


def test_splits_are_equal_in_bytes(hutch: HutchServer, client: Client, stream: str) -> None:
    publish(client, stream, [bytes(100)] * 20_000 + [bytes(4_000)] * 500, at_once=100)

    halves = ranges(batch(hutch, stream=stream, minPartitions="2"))
    limited = ranges(batch(hutch, stream=stream, maxBytesPerPartition="300k"))

    assert [low for _, low, _ in halves] == [0, halves[1][1]]
    assert 19_000 < halves[1][1] <= 20_000, "the first 20,000 rows have half of the bytes"
    assert [n for _, low, high in limited for n in range(low, high)] == list(range(20_500))
    assert all(
        size(low, high) <= 300 * 1024 or high - low == 100  # a chunk that is larger itself
        for _, low, high in limited
    )
    assert 12 <= len(limited) <= 16


def size(low: int, high: int) -> int:
    """The bytes of bodies of a range of the stream above."""
    small = max(0, min(high, 20_000) - low)
    return 100 * small + 4_000 * (high - low - small)


def test_splits_have_a_largest_number_of_rows_too(
    hutch: HutchServer, client: Client, stream: str
) -> None:
    publish(client, stream, [b"row"] * 1_000, at_once=10)

    found = ranges(batch(hutch, stream=stream, maxRecordsPerPartition="100"))

    assert found == [(stream, low, low + 100) for low in range(0, 1_000, 100)]


def test_no_split_has_more_rows_than_it_may_though_chunks_and_sub_batches_have(
    hutch: HutchServer, client: Client, stream: str
) -> None:
    client.create(stream)
    append(client, stream, [b"row"] * 250)
    client.declare(1, stream)
    client.publish(1, {1: SubBatch.of([b"row"] * 120)})
    client.confirmed_ids(1)

    found = ranges(batch(hutch, stream=stream, maxRecordsPerPartition="50"))
    both = ranges(batch(hutch, stream=stream, maxRecordsPerPartition="50", minPartitions="2"))

    for splits in (found, both):
        assert [n for _, low, high in splits for n in range(low, high)] == list(range(370))
        assert all(high - low <= 50 for _, low, high in splits)
    assert len(found) == 8


def test_a_budget_of_bytes_is_kept_where_rows_grow(
    hutch: HutchServer, client: Client, stream: str
) -> None:
    publish(client, stream, [bytes(100)] * 10_000 + [bytes(4_000)] * 1_000, at_once=50)
    query = Query(
        hutch, stream=stream, startingOffsets="earliest", maxBytesPerTrigger="1m", minPartitions="2"
    )
    query.begin()
    rows: list[tuple[int, int]] = []
    while splits := query.batch():
        rows.append((splits[0].low, splits[-1].high))

    assert [n for low, high in rows for n in range(low, high)] == list(range(11_000))
    bytes_of = [
        100 * max(0, min(h, 10_000) - low) + 4_000 * max(0, h - max(low, 10_000)) for low, h in rows
    ]
    assert max(bytes_of) <= 1 << 20
    assert len(rows) <= 8


def test_a_budget_of_rows_ends_at_a_border_of_chunks_if_one_is_near(
    hutch: HutchServer, client: Client, stream: str
) -> None:
    publish(client, stream, [b"row"] * 1_000, at_once=100)
    with Proxy(*hutch.endpoint) as proxy:
        options = {"stream": stream, "startingOffsets": "earliest", "maxOffsetsPerTrigger": "330"}
        query = Query(proxy, **options)
        query.begin()
        proxy.requests.clear()
        assert ranges(query.batch()) == [(stream, 0, 300)]
        assert proxy.requests == {"describe_streams": 1, "plan_streams": 2}
        assert ranges(query.batch()) == [(stream, 300, 600)]
        query.restart(maxOffsetsPerTrigger="350")
        assert ranges(query.batch()) == [(stream, 600, 950)]


def test_a_budget_as_large_as_a_chunk_is_taken_by_each_batch_of_two_streams(
    hutch: HutchServer, client: Client, stream: str
) -> None:
    for name, rows in (("a", 300), ("b", 200)):
        publish(client, f"{stream}-{name}", [b"row"] * rows, at_once=100)
    options = {"streamPattern": re.escape(stream), "maxOffsetsPerTrigger": "100"}
    query = Query(hutch, startingOffsets="earliest", **options)
    query.begin()
    for _ in range(5):
        splits = query.batch()
        assert sum(split.high - split.low for split in splits) == 100
        assert len(splits) == 2, "neither stream waits"
    assert query.batch() == []


@pytest.mark.parametrize("at_once", [5, 400])
def test_a_budget_of_bytes_is_taken_to_a_tenth_whatever_the_size_of_chunks(
    hutch: HutchServer, client: Client, stream: str, at_once: int
) -> None:
    sizes = [100, 1_000, 300, 2_000]
    bodies = [bytes(sizes[number // 400 % 4]) for number in range(3_200)]
    publish(client, stream, bodies, at_once=at_once)
    options = {"stream": stream, "startingOffsets": "earliest", "maxBytesPerTrigger": "100k"}
    query = Query(hutch, **options)
    query.begin()
    taken = []
    while splits := query.batch():
        (split,) = splits
        taken.append(sum(len(body) + 4 for body in bodies[split.low : split.high]))

    assert len(taken) > 20
    # Between the borders of a chunk rows count as equal; there a few have one size here.
    assert all(0.88 * 102_400 <= size <= 1.1 * 102_400 for size in taken[:-1]), taken


def test_a_budget_of_bytes_for_less_than_a_row_of_each_stream_goes_round(
    hutch: HutchServer, client: Client, stream: str
) -> None:
    for name in "abcd":
        publish(client, f"{stream}-{name}", [bytes(10_000)] * 3, at_once=1)
    options = {"streamPattern": re.escape(stream), "maxBytesPerTrigger": "21000"}
    query = Query(hutch, startingOffsets="earliest", **options)
    query.begin()
    batches = [ranges(query.batch()) for _ in range(6)]

    assert [sum(high - low for _, low, high in batch) for batch in batches] == [2] * 6
    assert {name for batch in batches[:2] for name, _, _ in batch} == {
        f"{stream}-{name}" for name in "abcd"
    }
