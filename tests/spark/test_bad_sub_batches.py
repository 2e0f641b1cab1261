"""Sub-batches that a publisher filled with garbage: what Spark and the jobs make of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import pyspark_hutch
from hutch.stream import messages as m
from tests.chunks import GZIP, NONE, Entry, SubBatch
from tests.client import Client
from tests.spark.commands import Run, run
from tests.spark.conftest import Place, Read
from tests.spark.publishing import create_super_stream
from tests.spark.queries import Query, eventually, refusal, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["run"]

BAD = SubBatch(GZIP, 4, 28, b"garbage, and no gzip")
MISCOUNTED = SubBatch(NONE, 3, 12, SubBatch.of([b"a"]).body)
ENTRIES: list[Entry] = [b"0", b"1", SubBatch.of([b"2"], GZIP), BAD, b"7", MISCOUNTED, b"11"]
GOOD = [0, 1, 2, 7, 11]
SENT = "a publisher sent a sub-batch of 4 records that is not 28 bytes compressed by gzip"
OPTION = "Set badSubBatches to skip or raw to go on."


@pytest.fixture
def client(place: Place) -> Iterator[Client]:
    with place.client() as opened:
        yield opened


def publish(client: Client, stream: str, *frames: list[Entry]) -> None:
    """Publish to a stream; what is in one frame is in one chunk."""
    client.declare(1, stream)
    for entries in frames:
        client.publish(1, dict(enumerate(entries, 1)))
        client.confirmed_ids(len(entries))
    client.must("delete_publisher", m.DeletePublisher(1))


@pytest.fixture
def garbage(client: Client, stream: str) -> str:
    """A stream with good records, a bad sub-batch, good ones, another bad one, and a good one."""
    client.create(stream)
    publish(client, stream, ENTRIES)
    return stream


# Batch reads


def test_a_batch_read_fails_with_the_place_the_publisher_and_the_option(
    place: Place, garbage: str, read: Read
) -> None:
    line = refusal(read(place, stream=garbage).collect)

    assert line == f"stream {garbage!r}: at offset 3 {SENT}. {OPTION}"
    start = f'{{"{garbage}": 7}}'
    line = refusal(read(place, stream=garbage, startingOffsets=start, badSubBatches="fail").collect)
    assert line == (
        f"stream {garbage!r}: at offset 8 a publisher sent a sub-batch of 3 records that does not "
        f"hold 3 records in 5 bytes. {OPTION}"
    )


def test_a_batch_read_can_leave_them_out(place: Place, garbage: str, read: Read) -> None:
    rows = read(place, stream=garbage, badSubBatches="skip")

    found = [(row.offset, bytes(row.body)) for row in rows.collect()]
    assert sorted(found) == [(offset, b"%d" % offset) for offset in GOOD]
    assert rows.count() == len(GOOD)
    assert "bad_sub_batch" not in rows.columns


def test_a_batch_read_can_have_them_as_rows(place: Place, garbage: str, read: Read) -> None:
    rows = read(place, stream=garbage, badSubBatches="raw", metadataFields="bad_sub_batch")

    bad = rows.where("body_type = 'bad-sub-batch'").orderBy("offset").collect()
    assert [(row.offset, bytes(row.body)) for row in bad] == [(3, BAD.body), (8, MISCOUNTED.body)]
    assert bad[0].bad_sub_batch.asDict() == {
        "reason": SENT,
        "codec": GZIP,
        "records": 4,
        "uncompressed_bytes": 28,
    }
    good = rows.where("bad_sub_batch IS NULL AND offset > 0").orderBy("offset").collect()
    assert [row.offset for row in good] == GOOD[1:]
    assert rows.count() == len(GOOD) + 2


@pytest.mark.parametrize(
    "schema",
    ["offset bigint", "body_type string, body binary", "offset bigint, bad_sub_batch {bad}"],
    ids=["offset", "body", "what is wrong"],
)
def test_a_schema_of_few_columns_has_as_many_rows(
    place: Place, garbage: str, read: Read, schema: str
) -> None:
    from pyspark_hutch.columns import column

    columns = schema.format(bad=column("bad_sub_batch").spark)

    assert read(place, columns, stream=garbage, badSubBatches="raw").count() == len(GOOD) + 2
    assert len(read(place, columns, stream=garbage, badSubBatches="skip").collect()) == len(GOOD)


def test_a_read_that_begins_or_ends_within_one_takes_what_is_its_own(
    place: Place, garbage: str, read: Read
) -> None:
    def offsets(fate: str, low: int, high: int) -> list[int]:
        ends = {"startingOffsets": low, "endingOffsets": high}
        where = {name: f'{{"{garbage}": {offset}}}' for name, offset in ends.items()}
        rows = read(place, "offset bigint", stream=garbage, badSubBatches=fate, **where)
        return sorted(row.offset for row in rows.collect())

    assert offsets("raw", 0, 5) == [0, 1, 2, 3]
    assert offsets("raw", 5, 12) == [7, 8, 11]
    assert offsets("skip", 5, 12) == [7, 11]
    assert offsets("fail", 7, 8) == [7]


def test_tasks_of_one_stream_give_each_row_once(
    place: Place, client: Client, stream: str, read: Read
) -> None:
    client.create(stream)
    large: Entry = bytes(40_000)
    publish(client, stream, [large, BAD], [BAD, large], [BAD], [large, large])

    for fate, count in (("raw", 7), ("skip", 4)):
        rows = read(place, stream=stream, badSubBatches=fate, maxRecordsPerPartition=1)
        assert rows.rdd.getNumPartitions() > 2
        found = sorted(row.offset for row in rows.collect())
        bad = [1, 5, 10] if fate == "raw" else []
        assert found == sorted([0, 9, 14, 15, *bad])
        assert len(found) == count


# Streaming queries


@pytest.mark.parametrize("how", ["availableNow", "once"])
def test_a_query_fails_at_one_and_goes_on_with_another_option(
    spark: SparkSession, place: Place, garbage: str, tmp_path: Path, how: str
) -> None:
    query = Query(spark, place, tmp_path, stream=garbage, startingOffsets="earliest")

    assert refusal(lambda: query.run(how)) == f"stream {garbage!r}: at offset 3 {SENT}. {OPTION}"
    query.options["badSubBatches"] = "skip"
    assert query.run(how) == GOOD


@pytest.mark.parametrize("fate", ["skip", "raw"])
@pytest.mark.parametrize("budget", [1_000, 5, 1])
def test_the_progress_counts_what_is_left_out_wherever_batches_end(
    spark: SparkSession, place: Place, garbage: str, tmp_path: Path, fate: str, budget: int
) -> None:
    options = {"stream": garbage, "startingOffsets": "earliest", "badSubBatches": fate}
    query = Query(spark, place, tmp_path, **options, maxOffsetsPerTrigger=budget)

    running = query.start("availableNow")
    assert running.awaitTermination(120)

    progress = running.recentProgress
    assert len(progress) >= 12 / budget
    bad = [3, 8] if fate == "raw" else []
    assert query.offsets() == sorted([*GOOD, *bad])
    assert sum(pyspark_hutch.left_out(one) for one in progress) == 7 - len(bad)
    assert pyspark_hutch.lag(progress[-1]) == {garbage: 0}


def test_a_running_query_counts_them_batch_by_batch(
    spark: SparkSession, place: Place, client: Client, stream: str, tmp_path: Path
) -> None:
    client.create(stream)
    options = {"stream": stream, "startingOffsets": "earliest", "badSubBatches": "skip"}
    query = Query(spark, place, tmp_path, **options)
    with query.running() as running:
        for count in (2, 4):
            publish(client, stream, [b"a", BAD, b"z"])
            eventually(lambda: rows_of(running) == count)  # noqa: B023
        progress: list[Any] = running.recentProgress

    assert [n for n in map(pyspark_hutch.left_out, progress) if n] == [4, 4]
    assert sum(pyspark_hutch.left_out(one.json) for one in progress) == 8
    assert query.offsets() == [0, 5, 6, 11]


def test_partitions_of_a_super_stream_go_on_each_behind_its_own(
    spark: SparkSession, place: Place, client: Client, stream: str, tmp_path: Path
) -> None:
    for partition in create_super_stream(client, stream, 2):
        publish(client, partition, [b"a", BAD, b"z"])
    options = {"superStream": stream, "startingOffsets": "earliest"}
    query = Query(spark, place, tmp_path, **options)

    line = refusal(query.run)
    assert re.fullmatch(
        rf"stream '{re.escape(stream)}-[01]': at offset 1 {SENT}\. {re.escape(OPTION)}", line
    )
    query.options["badSubBatches"] = "skip"
    assert query.run() == [0, 0, 5, 5]


# Jobs


def test_a_lake_is_filled_as_the_option_says(
    run: Run,
    spark: SparkSession,
    garbage: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    lake = tmp_path / "lake"
    assert run("to-lake", garbage, lake) == 1
    said = capsys.readouterr().err
    assert f"hutch: stream {garbage!r}: at offset 3 {SENT}. {OPTION}\n" in said

    assert run("to-lake", garbage, lake, "--bad-sub-batches", "skip") == 0
    assert "\nhutch: 7 offsets have no row: bad sub-batches\n" in capsys.readouterr().err
    assert sorted(row.offset for row in spark.read.parquet(str(lake)).collect()) == GOOD

    raw = tmp_path / "raw"
    assert run("to-lake", garbage, raw, "--bad-sub-batches", "raw") == 0
    rows = spark.read.parquet(str(raw)).where("body_type = 'bad-sub-batch'").collect()
    assert sorted((row.offset, bytes(row.body)) for row in rows) == [
        (3, BAD.body),
        (8, MISCOUNTED.body),
    ]
    assert "offsets have no row" not in capsys.readouterr().err


def test_a_copy_puts_them_with_its_bad_rows(
    run: Run,
    place: Place,
    client: Client,
    garbage: str,
    read: Read,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    good, dead = f"{garbage}-to", f"{garbage}-dead"
    for name in (good, dead):
        client.create(name)
    job = ("copy", garbage, good, "--checkpoint", tmp_path / "notes", "--bad-sub-batches", "raw")

    assert run(*job) == 1
    said = f"hutch: row at offset 3 of stream {garbage!r}: {SENT} (--bad-rows drop"
    assert said in capsys.readouterr().err
    assert run(*job, "--bad-rows", dead) == 0

    copied = read(place, stream=good).collect()
    assert sorted(bytes(row.body) for row in copied) == sorted(b"%d" % offset for offset in GOOD)
    put_aside = read(place, stream=dead, includeProperties="true").orderBy("offset").collect()
    assert [bytes(row.body) for row in put_aside] == [BAD.body, MISCOUNTED.body]
    assert put_aside[0].application_properties == {
        "dead-letter-reason": SENT,
        "dead-letter-stream": garbage,
        "dead-letter-offset": "3",
    }


def test_a_report_is_about_the_other_rows(
    run: Run, garbage: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"

    assert run("report", garbage, page, "--bad-sub-batches", "skip", "--key", "body_type") == 0

    assert '<td>rows</td><td class="n">5</td>' in page.read_text()
    assert "hutch: 7 offsets have no row: bad sub-batches\n" in capsys.readouterr().err


def test_a_job_counts_each_batch_once_and_none_that_was_done_before() -> None:
    from pyspark_hutch.jobs.runs.batches import JobResult, _Handler

    def progress(number: int, rows: int) -> dict[str, Any]:
        start, end = '{"a": {"o": 10}}', '{"a": {"o": 20}}'
        source = {"startOffset": start, "endOffset": end, "numInputRows": rows}
        return {"batchId": number, "sources": [source]}

    handler = _Handler(lambda _batch, name: JobResult(is_unread=name.number == 2))
    handler.query.set_result("query")
    unused: Any = None
    said = {1: None, 2: progress(1, 6), 3: progress(2, 0), 4: progress(3, 9)}
    for number, latest in said.items():
        handler.latest = lambda latest=latest: latest  # type: ignore[misc]
        handler(unused, number)
    handler.note(progress(4, 8))
    handler.note(progress(4, 8))

    assert handler.left_out == 4 + 1 + 2
