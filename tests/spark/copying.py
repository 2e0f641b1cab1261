"""Streaming queries that copy streams; also a program that runs them, so that they can be killed.

python copying.py PORT

The program connects to the port, takes the settings of its Spark from there, and then one query
after the other. It answers each with None, or with what went wrong.
"""

from __future__ import annotations

import os
import sys
from multiprocessing.connection import Client, Connection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


def start_copy(spark: SparkSession, wanted: dict[str, Any]) -> StreamingQuery:
    """Start a query that copies what is there.

    Args:
        spark: The session.
        wanted: `source` and `target` are options, `checkpoint` is a folder, `parts` is the least
            number of tasks. `plan` says how rows reach their tasks: `plain`, as they are read;
            `shuffled`, dealt out anew, so that no task has the same rows when it is run again;
            `saved`, in foreachBatch, where each batch is a save of the series `app`; `numbered`,
            in foreachBatch too, each row under the number that it was read at.
    """
    options = wanted["source"] | {"minPartitions": str(wanted["parts"])}
    read = spark.readStream.format("hutch").options(**options).load()
    rows, plan = read.selectExpr("body", "cast(body AS string) routing_key"), wanted["plan"]

    def save(batch: DataFrame, number: int) -> None:
        saving = batch.write.format("hutch").options(**wanted["target"])
        saving.options(txnAppId=wanted["app"], txnVersion=str(number)).mode("append").save()

    def number(batch: DataFrame, _number: int) -> None:
        # However the streams are split, all rows of one of them reach one task, in their order.
        own = batch.repartition(2, "name").sortWithinPartitions("offset")
        own.write.format("hutch").options(**wanted["target"]).mode("append").save()

    if plan == "plain":
        writing = rows.writeStream.format("hutch").options(**wanted["target"])
    elif plan == "shuffled":
        dealt = rows.repartition(wanted["parts"] + 1)
        writing = dealt.writeStream.format("hutch").options(**wanted["target"])
    elif plan == "saved":
        writing = rows.writeStream.foreachBatch(save)
    else:
        assert plan == "numbered", plan
        numbered = read.selectExpr("body", "stream name", "offset")
        writing = numbered.writeStream.foreachBatch(number)
    return (
        writing.option("checkpointLocation", wanted["checkpoint"])
        .trigger(availableNow=True)
        .start()
    )


def main(port: int) -> None:
    """Run queries in a session of their own, until the connection ends or the kill comes."""
    with Client(("127.0.0.1", port)) as connection:
        settings = connection.recv()
        try:
            _serve(connection, settings)
        except EOFError:
            return


def _serve(connection: Connection, settings: dict[str, str]) -> None:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    while True:
        wanted = connection.recv()
        try:
            start_copy(spark, wanted).awaitTermination()
        except PySparkException as error:
            connection.send(str(error))
        else:
            connection.send(None)


if __name__ == "__main__":
    main(int(sys.argv[1]))
