"""Texts of `hutch pipeline --help` for each job."""

from typing import Final, NamedTuple


class JobHelp(NamedTuple):
    """Texts of a job: its line in the list of jobs, and the beginning and end of its `--help`."""

    summary: str
    description: str
    examples: str


DESCRIPTION: Final = """\
Jobs around streams, on Spark: into a lakehouse, from files, from stream to stream, a report. They
read and write by stock commands of the protocol, so they work with RabbitMQ too. They need Java 17
or later, and packages that the server does without; in the folder of the sources:

  pip install ".[spark]"
  pip install ".[spark,lakehouse]"     for Delta, Iceberg and the report's plots

Each says how far it is: a bar on a terminal, else a line every ten seconds with rows, MB, rows/s,
lag (what is before it) and the time left.
"""
EXIT_CODES: Final = """\
`hutch pipeline JOB --help` describes a job.

exit codes: 0 done, 1 failed, 2 wrong arguments, 130 ended by Ctrl-C, after a batch
"""

TO_LAKE: Final = JobHelp(
    "land a stream as Parquet, Delta or Iceberg, each row once",
    """\
Land the rows of a stream or super stream as Parquet files, a Delta table or an Iceberg table.

Each row is there once. The job notes in its checkpoint how far it has come, and in the lake which
batches are there; killed, it goes on where it was when it is run again. So run it from time to
time, or with --continuous. To begin anew, remove the folder.

  parquet   a folder for each batch in DIR; a reader of Parquet sees its name as a column `batch`
  delta     a Delta table in DIR, by delta-rs
  iceberg   a table in the warehouse DIR, whose catalog is DIR/catalog.db, by pyiceberg
""",
    """\
examples:
  hutch pipeline to-lake orders ./lake/orders
      all rows of the stream `orders` as Parquet; run again, those that came since
  hutch pipeline to-lake orders ./lake/orders-delta --format delta --continuous
      a Delta table that follows the stream
  hutch pipeline to-lake events ./warehouse --super-stream --format iceberg --table raw.events
      all partitions of a super stream into one Iceberg table
""",
)

FROM_FILES: Final = JobHelp(
    "publish Parquet, JSON lines, CSV or lines of text to a stream",
    """\
Publish the rows of files to a stream or super stream.

A column `body` is the body; `routing_key`, `properties`, `application_properties`,
`message_annotations` and `filter_value` go along where they are columns of the right type. Files
without a body become JSON: each row one object of all its columns.

With --checkpoint the job notes which files are done, and run again it takes new ones only. On Hutch
each row is then published once, also after a kill; with RabbitMQ, or a column `filter_value`, at
least once.
""",
    """\
examples:
  hutch pipeline from-files trips.csv trips --to-option createStream=true
      each line of the CSV as a JSON object to the stream `trips`, which is created
  hutch pipeline from-files ./events events --format json --key user --to-super-stream
      by the field `user` to the partitions of a super stream
  hutch pipeline from-files './lake/orders' orders2 --format parquet
      what `hutch pipeline to-lake` has landed back to a stream
""",
)

COPY: Final = JobHelp(
    "copy a stream to another through a function of yours",
    """\
Copy a stream to another, through a function of yours if you name one. On Hutch each row is
published once, also after a kill; with RabbitMQ at least once.

The function gets a row as a dictionary: stream, partition, offset, timestamp, body, body_type,
properties, application_properties, message_annotations. It gives a row to publish, a list of them,
or None to leave it out; it may add routing_key and, with --to-option delivery=none, filter_value.
The first four and body_type are for it to know. A body is bytes; with --json it is what the JSON
means. With --batches the function gets and gives a pyarrow.RecordBatch of these columns.

What makes the function fail is a bad row; --bad-rows says what becomes of it. In a stream of bad
rows each has its own body, and the application properties dead-letter-reason, dead-letter-stream
and dead-letter-offset.
""",
    """\
examples:
  hutch pipeline copy orders orders-copy --checkpoint ./copy --to-option createStream=true
      as it is
  hutch pipeline copy orders priced --with prices.py:add_price --json --bad-rows orders-bad \\
              --checkpoint ./priced --continuous
      where prices.py has:
          def add_price(order):
              order["body"]["price"] = order["body"]["amount"] * 3
              return order
""",
)

REPORT: Final = JobHelp(
    "write statistics of a stream as a page of HTML",
    """\
Write a page of HTML about a stream or super stream: rates over time, sizes of bodies, rows by
stream and by key, the longest gaps in time. Its plots are in it; it needs nothing beside it.
""",
    """\
examples:
  hutch pipeline report orders orders.html
  hutch pipeline report orders orders.html --key "get_json_object(string(body), '$.user')"
      also the most frequent users
  hutch pipeline report events today.html --super-stream --option "startingOffsets=-24 hours"
      what came in the last 24 hours
""",
)

ZIP: Final = JobHelp(
    "write the archive for workers that have only pyarrow and numpy",
    """\
Write the data source as an archive of Python sources, for clusters whose workers have pyarrow and
numpy but not this package. They decode without compiled kernels then, which is slower. The same
version gives the same bytes.
""",
    """\
example:
  hutch pipeline zip hutch.zip
  spark-submit --master spark://host:7077 --py-files hutch.zip job.py
      job.py says spark.dataSource.register(pyspark_hutch.DefaultSource): Spark does not look for
      formats in an archive
""",
)

# ------------------------------------------------------------------------------------- arguments

MASTER: Final = (
    "where it runs: local[N] on N cores of this machine, spark://host:7077 on a cluster "
    "(default: local[*], all cores)"
)
PY_FILES: Final = "ship to the workers, as the archive that `hutch pipeline zip` writes"
OPTION: Final = "an option of the data source, as startingOffsets=latest or passwordFile=FILE"
BAD_SUB_BATCHES: Final = (
    "what becomes of sub-batches that a publisher filled with something else than they say: end "
    "the job (default), leave their rows out, or give one row with the bytes as they were sent"
)
TO_OPTION: Final = "an option of the write, as createStream=true or compression=gzip"
READ_OPTION: Final = "an option of Spark's for reading the files, as sep=; for CSV"
CONTINUOUS: Final = "go on until Ctrl-C (default: end when all rows that there were are done)"

TABLE: Final = "of Iceberg: the table in the warehouse DIR (default: streams.STREAM)"
COLUMNS: Final = (
    'columns to write, as "offset bigint, timestamp timestamp, body binary" (default: seven, and '
    "those that --option includeProperties=true and the like add)"
)

FORMAT: Final = (
    "what the files are (default: by the end of PATH); json has an object on each line, text is "
    "lines, each of them a body as it stands"
)
BODY: Final = "column with the body (default: `body`, or if there is none, all columns as JSON)"

WITH: Final = "what each row goes through: module:function or file.py:function"
BATCHES: Final = "the function takes and gives a pyarrow.RecordBatch, not a row"
JSON: Final = (
    "bodies are JSON, and the function gets and gives them as values; what is not JSON is a bad row"
)
BAD_ROWS: Final = (
    "what becomes of rows that are not JSON or whose function fails: end the job (default), leave "
    "them out, or publish them to a stream, with the reason"
)

KEY: Final = (
    "count rows by this, as \"get_json_object(string(body), '$.user')\" or "
    "\"application_properties['tenant']\""
)
