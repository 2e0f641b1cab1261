"""GitHub events: nested JSON in bodies, with a schema and without, and a filter by type."""

# %% [markdown]
# # GitHub events
#
# Events in the shape of GitHub's API: JSON with nested objects, of which each type has another
# payload. They are published with their type as the filter value, and read in three ways.
#
# The server listens on `localhost:5552`, unless `STREAM_ENDPOINTS` names another one.

# %%
import json
import os
from uuid import uuid4

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.appName("GitHub events").getOrCreate()
endpoints = os.environ.get("STREAM_ENDPOINTS", "localhost:5552")
stream = f"github-events-{uuid4().hex[:8]}"

# %% [markdown]
# ## Make some events

# %%
REPOSITORIES = ("apache/spark", "apache/arrow", "python/cpython", "rabbitmq/rabbitmq-server")
USERS = ("ada", "ben", "cem", "dia", "eli")


def event(number: int) -> dict[str, object]:
    """Return an event as GitHub's API gives it, with some of its fields."""
    repository = REPOSITORIES[number * number % len(REPOSITORIES)]
    kind, payload = (
        ("PushEvent", {"ref": "refs/heads/main", "size": 1 + number % 4, "commits": []}),
        ("WatchEvent", {"action": "started"}),
        ("IssuesEvent", {"action": "opened", "issue": {"number": number, "labels": ["bug"]}}),
    )[number % 3]
    return {
        "id": str(40_000_000_000 + number),
        "type": kind,
        "actor": {"id": number % 5, "login": USERS[number % 5]},
        "repo": {"id": 1, "name": repository, "url": f"https://api.github.com/{repository}"},
        "payload": payload,
        "created_at": f"2026-03-01T{number // 60 % 24:02}:{number % 60:02}:00Z",
    }


events = [event(number) for number in range(600)]
rows = [(json.dumps(one), one["type"]) for one in events]

# %% [markdown]
# `filter_value` is what the server can leave chunks out by. The events are sorted by type, so that
# a chunk has few different values.

# %%
(
    spark.createDataFrame(rows, "body string, filter_value string")
    .sortWithinPartitions("filter_value")
    .write.format("hutch")
    .options(endpoints=endpoints, stream=stream, createStream="true")
    .option("retention.maxAge", "1h")
    .mode("append")
    .save()
)

# %% [markdown]
# ## With a schema
#
# `from_json` takes the fields that are named and passes over the rest. The schema of the read names
# the one column that is wanted, which is quicker than all seven.

# %%
reader = spark.read.format("hutch").options(endpoints=endpoints, stream=stream)
text = reader.schema("body binary").load().select(F.col("body").cast("string").alias("json"))

fields = "type string, actor struct<login: string>, repo struct<name: string>"
parsed = text.select(F.from_json("json", fields).alias("event")).select("event.*")
top = (
    parsed.groupBy(F.col("repo.name").alias("repository"))
    .agg(F.count("*").alias("events"), F.countDistinct("actor.login").alias("people"))
    .orderBy(F.desc("events"), "repository")
)
top.show(truncate=False)
top_repositories = [(row.repository, row.events) for row in top.collect()]

# %% [markdown]
# ## Without a schema
#
# A variant holds any JSON. Fields are taken out by their path, whatever the type of the event.

# %%
variants = text.select(F.parse_json("json").alias("event"))
commits = (
    variants.where("event:type::string = 'PushEvent'")
    .groupBy(F.expr("event:repo.name::string").alias("repository"))
    .agg(F.sum(F.expr("event:payload.size::int")).alias("commits"))
    .orderBy("repository")
)
commits.show(truncate=False)
pushed_commits = {row.repository: row.commits for row in commits.collect()}

# %% [markdown]
# ## One type only
#
# With `filterValues` the server sends only chunks that hold such an event. They hold others too,
# so the query keeps its own condition. The read ends when nothing has come for two seconds.

# %%
watched = (
    spark.read.format("hutch")
    .options(endpoints=endpoints, stream=stream, filterValues="WatchEvent")
    .load()
    .select(F.from_json(F.col("body").cast("string"), fields).alias("event"))
    .where("event.type = 'WatchEvent'")
)
stars = watched.count()
print(f"{stars} stars")
