"""A streaming query that copies a super stream to a stream; also a program that a test kills.

python copying.py '{"options": {...}, "target": {...}, "checkpoint": "...", "parts": 2}'
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


def start_copy(spark: SparkSession, wanted: dict[str, Any]) -> StreamingQuery:
    """Start a query that writes each row under the number that it was read at.

    However the streams are split, all rows of one of them reach the same task, in their order.
    """

    def write(batch: DataFrame, _number: int) -> None:
        rows = batch.repartition(2, "name").sortWithinPartitions("offset")
        rows.write.format("hutch").options(**wanted["target"]).mode("append").save()

    options = wanted["options"] | {"minPartitions": str(wanted["parts"])}
    rows = spark.readStream.format("hutch").options(**options).load()
    return (
        rows.selectExpr("body", "stream name", "offset")
        .writeStream.foreachBatch(write)
        .option("checkpointLocation", wanted["checkpoint"])
        .trigger(availableNow=True)
        .start()
    )


def main() -> None:
    """Run a query in a session of its own, until the end or the kill."""
    from pyspark.sql import SparkSession

    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    wanted = json.loads(sys.argv[1])
    builder = SparkSession.builder.master("local[2,3]")
    for name, value in wanted["settings"].items():
        builder = builder.config(name, value)
    start_copy(builder.getOrCreate(), wanted).awaitTermination()


if __name__ == "__main__":
    main()
