"""Replay: rows from a time on, a stream read by several tasks, and how far behind a query is."""

# %% [markdown]
# # Replay
#
# A stream keeps what was read. So it can be read again: from an offset, from a time, or some rows
# before its end; by one task or by several.
#
# The server listens on `localhost:5552`, unless `STREAM_ENDPOINTS` names another one.

# %%
import os
import shutil
import tempfile
import time
from datetime import UTC, datetime
from uuid import uuid4

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pyspark_hutch import lag

spark = SparkSession.builder.appName("replay").getOrCreate()
endpoints = os.environ.get("STREAM_ENDPOINTS", "localhost:5552")
stream = f"measurements-{uuid4().hex[:8]}"

# %% [markdown]
# ## Two parts with a pause between them
#
# `maxInFlight` keeps the chunks small here, so that the parts can be cut in several places.

# %%


def publish(first: int, last: int) -> None:
    """Write numbers to the stream, in their order."""
    (
        spark.range(first, last, numPartitions=1)
        .selectExpr("cast(id AS string) AS body")
        .write.format("hutch")
        .options(endpoints=endpoints, stream=stream, createStream="true", maxInFlight="500")
        .option("retention.maxAge", "1h")
        .mode("append")
        .save()
    )


publish(0, 4_000)
time.sleep(1.1)
between = datetime.now(UTC)
publish(4_000, 10_000)

# %% [markdown]
# ## From a time on
#
# The server knows when it stored each chunk. A read by time begins with the first chunk that is not
# older.

# %%
reader = spark.read.format("hutch").options(endpoints=endpoints, stream=stream)
since = reader.option("startingTimestamp", between.isoformat()).load()
replayed = since.agg(F.count("*"), F.min("offset"), F.max("offset")).first()
print("rows, first and last offset since the pause:", replayed)

# %% [markdown]
# ## The end, or a part
#
# `-100` begins a hundred rows before the end. JSON names an offset for each stream; the end is not
# read.

# %%
tail = (
    spark.read.format("hutch")
    .options(endpoints=endpoints, stream=stream, startingOffsets="-100")
    .load()
    .count()
)
part = (
    spark.read.format("hutch")
    .options(endpoints=endpoints, stream=stream)
    .options(startingOffsets=f'{{"{stream}": 1000}}', endingOffsets=f'{{"{stream}": 1250}}')
    .load()
    .count()
)
print("rows of the tail and of the part:", tail, part)

# %% [markdown]
# ## Several tasks
#
# A stream is a partition by itself, so one task reads it. `minPartitions` asks for more. They begin
# at borders of chunks: nothing is read twice.

# %%
split = (
    spark.read.format("hutch")
    .options(endpoints=endpoints, stream=stream, minPartitions="4")
    .load()
    .groupBy(F.spark_partition_id().alias("task"))
    .agg(F.count("*").alias("rows"), F.min("offset").alias("first"), F.max("offset").alias("last"))
    .orderBy("task")
)
split.show()
rows_by_task = [row["rows"] for row in split.collect()]

# %% [markdown]
# ## How far behind
#
# `lag` reads a query's progress: rows that each stream holds and the query has not read.

# %%
folder = tempfile.mkdtemp(prefix="replay-")
query = (
    spark.readStream.format("hutch")
    .options(endpoints=endpoints, stream=stream, startingOffsets="earliest")
    .option("maxOffsetsPerTrigger", 4_000)
    .load()
    .writeStream.format("noop")
    .option("checkpointLocation", folder)
    .trigger(availableNow=True)
    .start()
)
query.awaitTermination()
lags = [lag(progress)[stream] for progress in query.recentProgress]
print("rows behind, batch by batch:", lags)

# %% [markdown]
# ## Clean up

# %%
shutil.rmtree(folder)
