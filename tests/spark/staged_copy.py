"""A streaming query that copies streams to a stream by staged writes; also a program to kill.

python staged_copy.py '{"source": {...}, "target": {...}, "checkpoint": "...", "parts": 2}'
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
    """Start a query that copies what is there, in as many tasks as `parts` says.

    With `shuffles` its rows are dealt out anew, so that no task has the same rows when it is run
    again. With `app` each batch is a save of that series, in foreachBatch.
    """
    options = wanted["source"] | {"minPartitions": str(wanted["parts"])}
    rows = spark.readStream.format("hutch").options(**options).load().select("body")
    if wanted.get("shuffles"):
        rows = rows.repartition(wanted["parts"] + 1)
    app = wanted.get("app")

    def save(batch: DataFrame, number: int) -> None:
        saving = batch.write.format("hutch").options(**wanted["target"])
        saving.options(txnAppId=app, txnVersion=str(number)).mode("append").save()

    if app is None:
        writing = rows.writeStream.format("hutch").options(**wanted["target"])
    else:
        writing = rows.writeStream.foreachBatch(save)
    return (
        writing.option("checkpointLocation", wanted["checkpoint"])
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
