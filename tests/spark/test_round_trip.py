"""Rows out of Spark and back, by a batch and by a stream: what every version of Spark must do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.spark.conftest import Place, Read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COUNT = 5_000


def test_rows_come_back_from_a_super_stream_by_a_batch_and_by_a_stream(
    spark: SparkSession, place: Place, stream: str, read: Read, tmp_path: Path
) -> None:
    rows = spark.range(COUNT, numPartitions=2).selectExpr(
        "concat('row ', id) AS body",
        "cast(id AS string) AS routing_key",
        "map('number', cast(id AS string)) AS application_properties",
    )
    options = place.options | {"superStream": stream, "createStream": "true", "partitions": "3"}
    rows.write.format("hutch").options(**options).mode("append").save()

    found = read(place, superStream=stream, metadataFields="application_properties")
    numbers = found.selectExpr("cast(body AS string)", "application_properties.number").collect()
    assert sorted(numbers) == sorted((f"row {n}", str(n)) for n in range(COUNT))

    reading = spark.readStream.format("hutch").options(**place.options)
    reading = reading.option("superStream", stream).option("startingOffsets", "earliest")
    copied = (
        reading.option("maxOffsetsPerTrigger", COUNT // 2)
        .load()
        .selectExpr("body", "stream AS source", "offset AS number")
        .writeStream.format("hutch")
        .options(**place.options, stream=f"{stream}-copy", createStream="true")
        .options(delivery="dedup", producerName="copy", ignoreUnknownColumns="true")
        .options(publishingIdColumn="number", producerKeyColumn="source")
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    copied.awaitTermination(60)

    assert copied.exception() is None
    bodies = [bytes(row.body) for row in read(place, stream=f"{stream}-copy").collect()]
    assert sorted(bodies) == sorted(b"row %d" % number for number in range(COUNT))
