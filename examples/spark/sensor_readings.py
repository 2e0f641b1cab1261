"""Sensor readings: windows over times in the messages, with readings that come late."""

# %% [markdown]
# # Sensor readings
#
# Sensors send a temperature each minute. Some readings come out of order, some too late. The mean
# of each five minutes is wanted once, when it does not change any more: a window with a watermark.
#
# The query runs again and again with `availableNow`, as a job of every quarter of an hour would.
#
# The server listens on `localhost:5552`, unless `STREAM_ENDPOINTS` names another one.

# %%
import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from uuid import uuid4

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

# Few rows need few tasks: by default Spark makes 200 for each window, in each batch.
builder = SparkSession.builder.appName("sensor readings")
spark = builder.config("spark.sql.shuffle.partitions", 2).getOrCreate()
endpoints = os.environ.get("STREAM_ENDPOINTS", "localhost:5552")
stream = f"readings-{uuid4().hex[:8]}"
folder = Path(tempfile.mkdtemp(prefix="sensors-"))

# %% [markdown]
# ## Send readings
#
# A reading says when it was taken. The time at which the server stored it, the column `timestamp`,
# is another one.

# %%
Reading = tuple[str, str, float]  # sensor, time, degrees Celsius


def send(readings: Iterable[Reading]) -> None:
    """Publish readings in the order given."""
    (
        spark.createDataFrame(list(readings), "sensor string, at string, celsius double")
        .coalesce(1)
        .select(F.to_json(F.struct("*")).alias("body"))
        .write.format("hutch")
        .options(endpoints=endpoints, stream=stream, createStream="true")
        .option("retention.maxAge", "1h")
        .mode("append")
        .save()
    )


def at(minute: int) -> str:
    """Return a time of the morning of 2 March 2026."""
    return f"2026-03-02T08:{minute:02}:00Z"


# %% [markdown]
# ## The query
#
# `withWatermark` waits ten minutes: a window is written when a reading has come that is ten minutes
# younger than the window's end. What comes for a window after that is dropped.

# %%
fields = "sensor string, at timestamp, celsius double"


def run() -> dict[tuple[str, str], int]:
    """Read what is new; return how many readings each finished window has."""
    messages = (
        spark.readStream.format("hutch")
        .options(endpoints=endpoints, stream=stream, startingOffsets="earliest")
        .option("maxOffsetsPerTrigger", 50)
        .load()
    )
    means = (
        messages.select(F.from_json(F.col("body").cast("string"), fields).alias("r"))
        .select("r.*")
        .withWatermark("at", "10 minutes")
        .groupBy("sensor", F.window("at", "5 minutes"))
        .agg(F.count("*").alias("readings"), F.avg("celsius").alias("mean"))
        .select("sensor", F.col("window.start").alias("begin"), "readings", "mean")
    )
    query = (
        means.writeStream.format("parquet")
        .outputMode("append")
        .option("path", f"{folder}/means")
        .option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    finished = spark.read.schema(means.schema).parquet(f"{folder}/means")
    begin = F.date_format(F.to_utc_timestamp("begin", F.current_timezone()), "HH:mm")
    return {
        (row.sensor, row.minute): row.readings
        for row in finished.select("sensor", begin.alias("minute"), "readings").collect()
    }


# %% [markdown]
# ## Three runs
#
# The first readings come in a wrong order, which changes nothing: each has its own time.

# %%
send([("roof", at(minute), 4.0 + minute / 10) for minute in (1, 0, 3, 2, 4, 7, 6, 5, 9)])
first = run()
print("after the first run: ", first)

# %% [markdown]
# Nothing is finished yet. Now come the missing reading of 08:08, late but not too late, and one of
# 08:20: the windows from 08:00 and 08:05 end more than ten minutes before it, or just so.

# %%
send([("roof", at(8), 4.8), ("roof", at(20), 6.0)])
second = run()
print("after the second run:", second)

# %% [markdown]
# A reading of 08:04 is too late now and is dropped; one of 08:40 finishes the window of 08:20.

# %%
send([("roof", at(4), 99.0), ("roof", at(40), 7.0)])
third = run()
print("after the third run: ", third)

# %% [markdown]
# ## Clean up

# %%
shutil.rmtree(folder)
