"""A job as a user submits it: reads a stream, writes it to another one, counts what is there then.

    round_trip.py ENDPOINT SOURCE TARGET [REMOTE]

With REMOTE, the address of a Spark Connect server, the job is that of its client.
"""

import json
import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from pyspark_hutch import DefaultSource


def main(endpoint: str, source: str, target: str, remote: str = "") -> None:
    """Run the job; print in JSON where its tasks ran, and the rows and bytes that are written."""
    builder = SparkSession.builder.appName("round trip")
    spark = (builder.remote(remote) if remote else builder).getOrCreate()
    if not remote:
        # Spark finds what is installed, not what is in a zip, and ships only what is registered.
        spark.dataSource.register(DefaultSource)
    options = {"endpoints": endpoint, "advertised": "ignore"}
    reader = spark.read.format("hutch").options(**options)
    rows = reader.option("stream", source).option("minPartitions", 2).load()
    writer = rows.select("body").write.format("hutch").options(**options)
    writer.options(stream=target, createStream="true").mode("append").save()
    written = reader.option("stream", target).load()
    length = f.sum(f.length("body"))
    (found,) = written.agg(f.count("*").alias("rows"), length.alias("bytes")).collect()
    print("found", json.dumps(found.asDict()), flush=True)  # noqa: T201  # what the test reads
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
