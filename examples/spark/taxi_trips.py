"""Taxi trips: wide rows to a super stream, by zone, and from there to Parquet."""

# %% [markdown]
# # Taxi trips
#
# Trips with the columns of New York's yellow cabs. A super stream spreads them over three
# partitions by the zone where they began. They are read again with all partitions at once, summed
# by zone, and written to Parquet.
#
# The server listens on `localhost:5552`, unless `STREAM_ENDPOINTS` names another one.

# %%
import os
import shutil
import tempfile
from uuid import uuid4

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.appName("taxi trips").getOrCreate()
endpoints = os.environ.get("STREAM_ENDPOINTS", "localhost:5552")
super_stream = f"trips-{uuid4().hex[:8]}"

# %% [markdown]
# ## Make some trips

# %%
COUNT = 3_000
trips = spark.range(COUNT, numPartitions=2).selectExpr(
    "CAST(1 + id % 2 AS int) AS VendorID",
    "TIMESTAMP '2026-01-05 06:00:00' + make_interval(0, 0, 0, 0, 0, 0, id * 20) AS pickup",
    "TIMESTAMP '2026-01-05 06:08:00' + make_interval(0, 0, 0, 0, 0, 0, id * 21) AS dropoff",
    "CAST(1 + id % 4 AS int) AS passenger_count",
    "0.5 + id % 40 / 4 AS trip_distance",
    "CAST(1 AS int) AS RatecodeID",
    "'N' AS store_and_fwd_flag",
    "CAST(100 + id * 7 % 12 AS int) AS PULocationID",
    "CAST(100 + id * 5 % 12 AS int) AS DOLocationID",
    "CAST(1 + id % 2 AS int) AS payment_type",
    "3.0 + id % 40 AS fare_amount",
    "0.5D AS extra",
    "0.5D AS mta_tax",
    "id % 5 / 2 AS tip_amount",
    "0.0D AS tolls_amount",
    "1.0D AS improvement_surcharge",
    "5.0 + id % 40 + id % 5 / 2 AS total_amount",
    "2.5D AS congestion_surcharge",
)

# %% [markdown]
# ## Write them to a super stream
#
# `routing_key` says which partition a row goes to: by a hash, as the clients of other languages do
# it. All trips of a zone are in one partition. Each message tells its vendor as an application
# property; sub-batches of a hundred messages are compressed.

# %%
(
    trips.select(
        F.to_json(F.struct("*")).alias("body"),
        F.col("PULocationID").cast("string").alias("routing_key"),
        F.create_map(F.lit("vendor"), F.col("VendorID").cast("string")).alias(
            "application_properties"
        ),
    )
    .write.format("hutch")
    .options(endpoints=endpoints, superStream=super_stream, createStream="true", partitions="3")
    .options(compression="zstd", subBatchSize="100")
    .option("retention.maxAge", "1h")
    .mode("append")
    .save()
)

# %% [markdown]
# ## Read all partitions
#
# `appColumns` gives an application property as a column with a type. Each partition is a task of
# its own; `minPartitions` would split them further.

# %%
messages = (
    spark.read.format("hutch")
    .options(endpoints=endpoints, superStream=super_stream, appColumns="vendor int")
    .load()
)
read = messages.select(
    "partition",
    "vendor",
    F.from_json(F.col("body").cast("string"), trips.schema).alias("trip"),
).select("partition", "vendor", "trip.*")

rows_by_partition = {
    row["partition"]: row["count"] for row in read.groupBy("partition").count().collect()
}
print("rows by partition:", rows_by_partition)
partitions_of_a_zone = read.groupBy("PULocationID").agg(F.countDistinct("partition").alias("n"))
most_partitions_of_a_zone = partitions_of_a_zone.agg(F.max("n")).first()

# %% [markdown]
# ## Sum by zone, write to Parquet

# %%
folder = tempfile.mkdtemp(prefix="taxi-")
by_zone = read.groupBy(F.col("PULocationID").alias("zone")).agg(
    F.count("*").alias("trips"),
    F.round(F.avg("trip_distance"), 2).alias("miles"),
    F.round(F.sum("total_amount"), 2).alias("dollars"),
)
by_zone.coalesce(1).write.mode("overwrite").parquet(f"{folder}/by_zone")

zones = spark.read.parquet(f"{folder}/by_zone")
zones.orderBy(F.desc("dollars")).show(5)
trips_in_zones = {row.zone: row.trips for row in zones.collect()}

# %% [markdown]
# ## Clean up

# %%
shutil.rmtree(folder)
