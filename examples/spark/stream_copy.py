"""Stream to stream: a copy that has every row once, also when it is begun anew."""

# %% [markdown]
# # From stream to stream
#
# A streaming query copies a super stream to a stream and changes the rows on their way. Its writer
# uses `delivery=dedup`: each row has a number, and the server drops a row whose number it has had
# before. So a batch that runs twice changes nothing, and neither does a lost checkpoint.
#
# The server listens on `localhost:5552`, unless `STREAM_ENDPOINTS` names another one.

# %%
import os
import shutil
import tempfile
from pathlib import Path
from uuid import uuid4

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.appName("stream copy").getOrCreate()
endpoints = os.environ.get("STREAM_ENDPOINTS", "localhost:5552")
name = uuid4().hex[:8]
source, target = f"clicks-{name}", f"pages-{name}"
folder = Path(tempfile.mkdtemp(prefix="stream-copy-"))

# %% [markdown]
# ## Something to copy

# %%


def click(first: int, last: int) -> None:
    """Publish clicks, spread over two partitions by their user."""
    (
        spark.range(first, last, numPartitions=2)
        .selectExpr(
            "to_json(struct(id AS click, concat('/page/', id % 7) AS page)) AS body",
            "concat('user-', id % 10) AS routing_key",
            "named_struct('message_id', cast(id AS string)) AS properties",
        )
        .write.format("hutch")
        .options(endpoints=endpoints, superStream=source, createStream="true", partitions="2")
        .option("retention.maxAge", "1h")
        .mode("append")
        .save()
    )


click(0, 500)

# %% [markdown]
# ## The copy
#
# A row's number is its `offset`, and it counts for the `stream` that the row comes from. Both are
# the same whenever the row is read, whatever the batches are. All rows of one stream must be in one
# task, in their order: so the query neither shuffles nor sorts, and `minPartitions` is not set.

# %%


def copy(checkpoint: str) -> None:
    """Copy what is new since the last run with this checkpoint."""
    clicks = (
        spark.readStream.format("hutch")
        .options(endpoints=endpoints, superStream=source, startingOffsets="earliest")
        .options(metadataFields="properties", maxOffsetsPerTrigger="400")
        .load()
    )
    pages = clicks.select(
        F.get_json_object(F.col("body").cast("string"), "$.page").alias("body"),
        "properties",
        "offset",
        "stream",
    )
    query = (
        pages.writeStream.format("hutch")
        .options(endpoints=endpoints, stream=target, createStream="true")
        .option("retention.maxAge", "1h")
        .options(delivery="dedup", producerName="pages")
        .options(publishingIdColumn="offset", producerKeyColumn="stream")
        .option("checkpointLocation", f"{folder}/{checkpoint}")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def count() -> int:
    """Count the rows of the target."""
    return spark.read.format("hutch").options(endpoints=endpoints, stream=target).load().count()


copy("checkpoint")
after_copy = count()
print("copied:", after_copy)

# %% [markdown]
# ## Go on
#
# The next run reads what has come since the last one.

# %%
click(500, 600)
copy("checkpoint")
after_next_run = count()
print("after the next run:", after_next_run)

# %% [markdown]
# ## Begin anew
#
# With an empty checkpoint everything is read again, and nothing is stored again.

# %%
copy("another-checkpoint")
after_new_checkpoint = count()
print("after a run with an empty checkpoint:", after_new_checkpoint)

# %% [markdown]
# ## Clean up

# %%
shutil.rmtree(folder)
