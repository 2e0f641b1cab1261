"""First steps: write rows to a stream, read them again, and read on where the last run stopped."""

# %% [markdown]
# # First steps
#
# A data frame is written to a stream, and read again: once as a whole, then in runs, each of
# which begins where the last one ended.
#
# Install with `pip install ".[spark]"` in the folder of the sources; Spark needs Java 17. The
# server listens on `localhost:5552`, unless the environment variable `STREAM_ENDPOINTS` names
# another one.

# %%
import os
import shutil
import tempfile
from pathlib import Path
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession

spark = SparkSession.builder.appName("first steps").getOrCreate()
endpoints = os.environ.get("STREAM_ENDPOINTS", "localhost:5552")

# %% [markdown]
# ## Write
#
# A row becomes a message. It needs a column `body`, of bytes or text. The stream is new with each
# run of this script, and its messages are kept for at least an hour.

# %%
stream = f"orders-{uuid4().hex[:8]}"


def write(orders: DataFrame) -> None:
    """Append orders to the stream, which the first call creates."""
    writer = orders.selectExpr("to_json(struct(*)) AS body").write.format("hutch")
    writer = writer.option("endpoints", endpoints).option("stream", stream)
    writer = writer.option("createStream", "true").option("retention.maxAge", "1h")
    writer.mode("append").save()


columns = "number int, customer string, cents int"
write(spark.createDataFrame([(1, "Ada", 1200), (2, "Ben", 350), (3, "Ada", 99)], columns))

# %% [markdown]
# ## Read
#
# Without a schema there are seven columns. `offset` is the number of the message in its stream.

# %%
messages = spark.read.format("hutch").options(endpoints=endpoints, stream=stream).load()
messages.printSchema()
orders = messages.selectExpr("offset", f"from_json(cast(body AS string), '{columns}') AS o")
orders.select("offset", "o.*").orderBy("offset").show()

# %%
by_customer = orders.groupBy("o.customer").agg({"o.cents": "sum"}).orderBy("customer")
totals = {row[0]: row[1] for row in by_customer.collect()}
print(totals)

# %% [markdown]
# ## Read what is new
#
# A streaming query keeps its position in a checkpoint. With `availableNow` it reads what is there
# and ends; the next run reads what has come since. So a job can run each hour and see every message
# once.

# %%
folder = Path(tempfile.mkdtemp(prefix="first-steps-"))


def copy_new_orders() -> int:
    """Copy what is new to Parquet files; return how many rows they have then."""
    reader = spark.readStream.format("hutch").option("endpoints", endpoints)
    new = reader.option("stream", stream).option("startingOffsets", "earliest").load()
    query = (
        new.writeStream.format("parquet")
        .option("path", f"{folder}/orders")
        .option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return spark.read.parquet(f"{folder}/orders").count()


after_first_run = copy_new_orders()
write(spark.createDataFrame([(4, "Cem", 780)], columns))
after_second_run = copy_new_orders()
print(after_first_run, "then", after_second_run)

# %% [markdown]
# ## Clean up

# %%
shutil.rmtree(folder)
