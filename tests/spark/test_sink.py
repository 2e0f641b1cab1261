"""Batch and streaming writes: what reaches streams, and what is refused."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from tests.sink_rig import bodies_in
from tests.spark import copying
from tests.spark.conftest import SPARK_SETTINGS, Place, Read
from tests.spark.driver import Driver, Killed
from tests.spark.proxy import Proxy
from tests.spark.publishing import append, bodies_of, create_super_stream, publish
from tests.spark.queries import WAIT_S, refusal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

pytestmark = pytest.mark.timeout(180)

COUNT = 300
RAW = {"bodyFormat": "raw"}
BY_COLUMN = {
    "delivery": "dedup",
    "publishingIdColumn": "offset",
    "producerKeyColumn": "name",
}


@pytest.fixture
def rows(spark: SparkSession) -> DataFrame:
    """Rows with every column that a message has a place for, in two tasks."""
    return spark.range(COUNT, numPartitions=2).selectExpr(
        "concat('row ', id) body",
        "named_struct('subject', concat('s', id), 'message_id', 'm') properties",
        "map('a', string(id)) application_properties",
        "map('x-n', string(id)) message_annotations",
    )


def save(frame: DataFrame, place: Place, **options: object) -> None:
    texts = {name: str(value) for name, value in options.items()}
    frame.write.format("hutch").options(**place.options, **texts).mode("append").save()


def test_a_batch_write_gives_rows_that_read_back_equal(
    either: Place, stream: str, rows: DataFrame, read: Read
) -> None:
    save(rows, either, stream=stream, createStream=True)

    fields = "properties,application_properties,message_annotations"
    found = read(either, stream=stream, metadataFields=fields)
    assert sorted(found.selectExpr("string(body)").collect()) == sorted(
        rows.select("body").collect()
    )
    one = found.where("string(body) = 'row 7'").collect()[0]
    assert one.properties.subject == "s7"
    assert one.application_properties == {"a": "7"}
    assert one.message_annotations == {"x-n": "7"}


def test_a_batch_write_that_is_run_again_doubles_nothing(
    either: Place, stream: str, rows: DataFrame
) -> None:
    options = {"delivery": "dedup", "producerName": "job", "dedupUnsafePlan": True} | RAW
    for columns in (["body"], ["body"]):
        save(rows.select(*columns), either, stream=stream, createStream=True, **options)

    assert sorted(bodies_in(either, stream)) == sorted(bodies_of(COUNT))


@pytest.mark.parametrize("routing", ["hash", "key", "column"])
def test_rows_reach_the_partitions_of_a_super_stream(
    either: Place, stream: str, rows: DataFrame, routing: str
) -> None:
    where = f"concat('{stream}-', key) stream" if routing == "column" else "key routing_key"
    keyed = rows.selectExpr("body", "string(int(substring(body, 5)) % 3) key")
    options = {"createStream": True, "partitions": 3, "routing": routing} | RAW

    save(keyed.selectExpr("body", where), either, superStream=stream, **options)

    found = [bodies_in(either, f"{stream}-{partition}") for partition in range(3)]
    assert sorted(body for bodies in found for body in bodies) == sorted(bodies_of(COUNT))
    keys = [{int(body[4:]) % 3 for body in bodies} for bodies in found]
    assert sum(map(len, keys)) == 3, "all rows of a key are in one partition"
    if routing != "hash":
        assert keys == [{0}, {1}, {2}]


def test_rows_of_every_codec_read_back(
    place: Place, stream: str, rows: DataFrame, read: Read
) -> None:
    with place.client() as client:
        client.create(stream)
    codecs = ["gzip", "snappy", "lz4", "zstd"]
    for codec in codecs:
        save(
            rows.selectExpr(f"concat(body, ' {codec}') body"),
            place,
            stream=stream,
            compression=codec,
        )

    found = read(place, stream=stream).selectExpr("string(body) body").collect()

    meant = [f"row {number} {codec}" for codec in codecs for number in range(COUNT)]
    assert sorted(row.body for row in found) == sorted(meant)


def test_a_stream_is_made_with_the_retention_that_is_asked_for(
    either: Place, stream: str, rows: DataFrame
) -> None:
    retention = {"retention.maxBytes": 50_000_000, "retention.maxAge": "2h"}
    save(rows.select("body"), either, stream=stream, createStream=True, **retention)

    same = {"max-length-bytes": "50000000", "max-age": "7200s"}
    with either.client() as client:
        codes = [
            client.code_of("create_stream", m.CreateStream(stream, arguments))
            for arguments in (same, same | {"max-age": "3h"})
        ]
    assert codes == [ResponseCode.STREAM_ALREADY_EXISTS, ResponseCode.PRECONDITION_FAILED]


@pytest.mark.parametrize(
    ("expression", "options", "said"),
    [
        ("body value", {}, "column 'body': missing (binary or string); the rows have value; is it"),
        ("1 body", {}, "column 'body': is int, must be binary or string"),
        ("body, 1 extra", {}, "column 'extra': (int) no such column can be written"),
        ("body", {"strem": "x"}, "option strem"),
        ("body", {"compression": "brotli"}, "option compression='brotli'"),
        ("body", {"delivery": "dedup"}, "option delivery='dedup'"),
        ("body", {"stream": "gone"}, "stream 'gone' does not exist"),
    ],
    ids=["missing", "type", "unknown", "name", "value", "plan", "stream"],
)
def test_what_cannot_be_written_is_told_in_one_line(
    place: Place, stream: str, rows: DataFrame, expression: str, options: dict[str, str], said: str
) -> None:
    with place.client() as client:
        client.create(stream)
    frame = rows.selectExpr(*expression.split(", "))

    assert refusal(lambda: save(frame, place, **({"stream": stream} | options))).startswith(said)


def test_other_modes_than_append_are_refused(place: Place, stream: str, rows: DataFrame) -> None:
    from pyspark.errors import AnalysisException

    writing = rows.select("body").write.format("hutch").options(**place.options, stream=stream)

    said = refusal(writing.mode("overwrite").save)
    assert said == "mode overwrite: a stream only grows; use mode append"
    with pytest.raises(AnalysisException, match="ErrorIfExists"):
        writing.mode("error").save()


@pytest.fixture
def speculation(spark: SparkSession) -> Iterator[None]:
    """Say that the session speculates, which Spark lets nobody change while it runs."""
    changes = {"spark.sql.legacy.setCommandRejectsSparkCoreConfs": "false"}
    for name, value in (changes | {"spark.speculation": "true"}).items():
        spark.conf.set(name, value)
    yield
    for name in ("spark.speculation", *changes):
        spark.conf.unset(name)


@pytest.mark.usefixtures("speculation")
def test_dedup_refuses_a_session_that_speculates(
    place: Place, stream: str, rows: DataFrame
) -> None:
    options = {"createStream": True, "producerName": "job", "dedupUnsafePlan": True} | RAW
    one = rows.select("body").coalesce(1)

    said = refusal(lambda: save(one, place, stream=stream, delivery="dedup", **options))

    assert said.startswith("option delivery='dedup': spark.speculation runs a task twice at once")
    assert bodies_in(place, stream) == []
    save(one, place, stream=stream, **RAW)


def test_a_save_says_that_rows_may_be_doubled(
    place: Place, stream: str, caplog: pytest.LogCaptureFixture
) -> None:
    from pyspark.sql.types import StringType, StructType

    from pyspark_hutch.sink.task import RowsWritten
    from pyspark_hutch.writes import BatchWriter, StreamingWriter, TaskDone

    schema = StructType().add("body", StringType())
    options = place.options | {"stream": stream, "createStream": "true", "delivery": "none"}
    dedup = {"delivery": "dedup", "producerName": "job", "dedupUnsafePlan": "true"}
    with caplog.at_level(logging.INFO):
        BatchWriter(options, schema, overwrites=False)
        BatchWriter(options | dedup, schema, overwrites=False)
        streaming = StreamingWriter(options, schema, overwrites=False)
        for number in range(2):
            streaming.commit(
                [TaskDone(RowsWritten(7, 0)), TaskDone(RowsWritten(1, 2 * number))], number
            )
        streaming.abort([None, TaskDone(RowsWritten(5, 0))], 2)

    said = {
        record.message: record.levelno
        for record in caplog.records
        if record.name == "pyspark_hutch.writes"
    }
    again = "hutch: delivery=none: rows are written at least once, and again where Spark tries a "
    assert said == {
        f"{again}task again": logging.WARNING,
        f"{again}batch again": logging.WARNING,
        "hutch: batch 0: 8 rows": logging.INFO,
        "hutch: batch 1: 8 rows, 2 rows were there from an earlier try": logging.WARNING,
        "hutch: batch 2 failed; of tasks that ended stay 5 rows": logging.WARNING,
    }


def test_a_temporary_view_takes_rows(spark: SparkSession, place: Place, stream: str) -> None:
    with place.client() as client:
        client.create(stream)
    options = place.options | RAW | {"stream": stream}
    texts = ", ".join(f"'{name}' '{value}'" for name, value in options.items())
    # As a view has the columns that a read gives, those that say where a row goes are among them.
    columns = "stream string, body binary"
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW sink ({columns}) USING hutch OPTIONS ({texts})")

    spark.sql(f"INSERT INTO sink SELECT '{stream}', binary(concat('row ', id)) FROM range(0, 9)")

    assert sorted(bodies_in(place, stream)) == bodies_of(9)


# ---- streaming ---------------------------------------------------------------------------------

Start = Callable[..., "StreamingQuery"]


@pytest.fixture
def start(spark: SparkSession, tmp_path: Path) -> Start:
    """Start a query from streams to a stream: `start(place, "a,b", "c", delivery="dedup")`."""

    def begin(place: Place, source: str, target: str, **options: object) -> StreamingQuery:
        texts = {name: str(value) for name, value in options.items()}
        checkpoint = tmp_path / f"checkpoint-{texts.pop('checkpoint', target)}"
        loaded = spark.readStream.format("hutch").options(**place.options).option("stream", source)
        rows = loaded.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", 100)
        is_by_column = "publishingIdColumn" in texts
        more = ["offset", "stream name"] if is_by_column else []
        writing = rows.load().selectExpr("body", *more).writeStream.format("hutch")
        return (
            writing.options(**place.options, **RAW, **texts)
            .option("stream", target)
            .option("checkpointLocation", str(checkpoint))
            .trigger(availableNow=True)
            .start()
        )

    return begin


def end(query: StreamingQuery) -> None:
    try:
        assert query.awaitTermination(WAIT_S), "the query does not end"
    finally:
        query.stop()


@pytest.mark.parametrize(
    "options",
    [{}, BY_COLUMN, {"delivery": "dedup", "dedupUnsafePlan": True}],
    ids=["none", "by column", "by place"],
)
def test_a_streaming_write_gives_every_row_once(
    either: Place, stream: str, start: Start, options: dict[str, Any]
) -> None:
    target = f"{stream}-copy"
    with either.client() as client:
        publish(client, stream, bodies_of(COUNT))
        client.create(target)

    query = start(either, stream, target, **options)
    end(query)

    assert sorted(bodies_in(either, target)) == sorted(bodies_of(COUNT))
    if options.get("dedupUnsafePlan"):
        # Query and batch are known to tasks only by properties that Spark does not document.
        last = max(int(one["batchId"]) for one in query.recentProgress if one["numInputRows"])
        reference = f"hutch-{str(query.id)[:8]}-p0"
        with either.client() as client:
            request = m.QueryPublisherSequence(reference, target)
            found = client.ask(m.PublisherSequence, "query_publisher_sequence", request)
        assert found.sequence >> 32 == last > 0


def test_two_queries_write_to_one_stream(place: Place, stream: str, start: Start) -> None:
    target = f"{stream}-copy"
    with place.client() as client:
        client.create(target)
        for number in range(2):
            publish(client, f"{stream}-{number}", bodies_of(COUNT, number * COUNT))

    queries = [
        start(place, f"{stream}-{number}", target, checkpoint=number, **BY_COLUMN)
        for number in range(2)
    ]
    for query in queries:
        end(query)

    assert sorted(bodies_in(place, target)) == sorted(bodies_of(2 * COUNT))


def test_rows_numbered_by_a_column_survive_a_kill_and_another_split(
    spark: SparkSession, place: Place, stream: str, tmp_path: Path
) -> None:
    target = f"{stream}-copy"
    with place.client() as client:
        client.create(target)
        for index, name in enumerate(create_super_stream(client, stream, 3)):
            append(client, name, bodies_of(600, index * 600), at_once=20)
    source = {"superStream": stream, "startingOffsets": "earliest", "maxOffsetsPerTrigger": "900"}
    wanted = {
        "source": place.options | source,
        "target": place.options | RAW | BY_COLUMN | {"stream": target, "producerName": "job"},
        "checkpoint": str(tmp_path / "checkpoint"),
        "plan": "numbered",
        "parts": 3,
    }
    kill_in_the_middle(wanted, place, tmp_path)
    assert 0 < len(bodies_in(place, target)) < 1_800

    query = copying.start_copy(spark, wanted | {"parts": 7})
    end(query)

    assert sorted(bodies_in(place, target)) == sorted(bodies_of(1_800))


def kill_in_the_middle(wanted: dict[str, Any], place: Place, folder: Path) -> None:
    """Run the copy by a driver of its own; kill it on the way."""
    with (
        Proxy(place.host, place.port) as proxy,
        Driver(folder, SPARK_SETTINGS | {"spark.master": "local[2,3]"}) as driver,
    ):

        def kill(name: str) -> None:
            # Of at most 10 rows each; there are 1,800.
            if name == "publish" and proxy.requests["publish"] > 100:
                driver.kill()

        proxy.on_request = kill
        small = {"endpoints": f"{proxy.host}:{proxy.port}", "maxInFlight": "10"}
        with pytest.raises(Killed):
            driver.run(wanted | {"target": wanted["target"] | small}, 2 * WAIT_S)
