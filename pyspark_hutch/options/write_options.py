"""Rows of the table: how rows are published."""

from typing import Final

from hutch.formats.entries import SUB_BATCH_RECORDS_MAX
from pyspark_hutch.options.columns import COLUMNS
from pyspark_hutch.options.kinds import (
    FLAG,
    NAME_BYTES_MAX,
    choice,
    duration,
    integer,
    size,
    text_of,
)
from pyspark_hutch.options.option import WRITE, Group, Option, Use

AGE_MS_MIN: Final = 1_000  # a stream's age is in seconds
AGE_MS_MAX: Final = 36_500 * 86_400_000  # a hundred years
SEGMENT_BYTES_MIN: Final = 9  # the head of a segment file has 8
SEGMENT_BYTES_MAX: Final = 3_000_000_000  # RabbitMQ takes no more
SUPER_STREAM_PARTITIONS_MAX: Final = 1_000  # a job plans for so many streams
PRODUCER_NAME_BYTES_MAX: Final = 200  # leaves room in a reference for query and task
IN_FLIGHT_MAX: Final = 1_000_000
CONFIRM_MS_MAX: Final = 3_600_000
_COLUMN: Final = text_of(NAME_BYTES_MAX, takes="the name of a column")

DELIVERY: Final = Group(
    "Delivery",
    (
        Option(
            "delivery",
            WRITE,
            choice("auto", "staged", "none", "dedup"),
            "auto",
            "`staged`: tasks store rows that no reader sees, and the driver's commit publishes all "
            "of them at once: each row exactly once. It needs Hutch. `none`: each row at least "
            "once, and again when a task is tried again. `dedup`: the server drops what a named "
            "producer has published before. `auto`: `staged` where the server has it, and the rows "
            "no filter values; else `none`.",
        ),
        Option(
            "txnAppId",
            Use.BATCH_WRITE,
            text_of(NAME_BYTES_MAX),
            None,
            "Name of the series that a `staged` save belongs to, with `txnVersion`; use it in "
            "`foreachBatch` too. A new checkpoint needs a new name, since its batches count from "
            "0 again.",
        ),
        Option(
            "txnVersion",
            Use.BATCH_WRITE,
            integer(0),
            None,
            "Number of the save in its series. A save whose number is not above the last one "
            "publishes nothing, since that was done before.",
        ),
        Option(
            "producerName",
            WRITE,
            text_of(PRODUCER_NAME_BYTES_MAX),
            None,
            "First part of the names of producers, for `dedup`; a batch write needs it. The same "
            "name in two jobs makes one drop rows of the other.",
            without="`hutch-` and the query's id, for a streaming write",
        ),
        Option(
            "publishingIdColumn",
            WRITE,
            _COLUMN,
            None,
            "Column with the number of each row, for `dedup`, as the offset that it was read at: "
            "from 0 on, ascending for each key.",
        ),
        Option(
            "producerKeyColumn",
            WRITE,
            _COLUMN,
            None,
            "Column that says which producer a row belongs to. All rows of a key must reach the "
            "same task; few keys, since RabbitMQ remembers 255 producers of a stream.",
        ),
        Option(
            "dedupOrderBy",
            WRITE,
            COLUMNS,
            None,
            "Columns by which each task sorts its rows before it numbers them.",
        ),
        Option(
            "dedupUnsafePlan",
            WRITE,
            FLAG,
            "false",
            "Whether to number rows as they come where no column has their numbers. Rows are lost "
            "and doubled if a task that is tried again gets other rows.",
        ),
        Option(
            "maxInFlight",
            WRITE,
            integer(1, IN_FLIGHT_MAX),
            "10000",
            "Messages that a task publishes ahead of their confirmation, or stages as one chunk.",
        ),
        Option(
            "confirmTimeoutMs",
            WRITE,
            integer(1, CONFIRM_MS_MAX),
            "30000",
            "How long a confirmation may take.",
        ),
    ),
)

MESSAGES: Final = Group(
    "Messages",
    (
        Option(
            "routing",
            WRITE,
            choice("hash", "key", "column"),
            "hash",
            "How rows are spread over a super stream: by a hash of their key as clients do "
            "(murmur3), by the partition that is bound to their key, or by the partition that "
            "their column `stream` names.",
        ),
        Option(
            "routingKeyColumn", WRITE, _COLUMN, "routing_key", "Column with the key of each row."
        ),
        Option(
            "compression",
            WRITE,
            choice("none", "gzip", "snappy", "lz4", "zstd"),
            "none",
            "Codec of the sub-batches in which rows are published.",
        ),
        Option(
            "subBatchSize",
            WRITE,
            integer(1, SUB_BATCH_RECORDS_MAX),
            None,
            "Rows in a sub-batch.",
            without="100 with `compression`; else there are no sub-batches",
        ),
        Option(
            "ignoreUnknownColumns",
            WRITE,
            FLAG,
            "false",
            "Whether to leave out columns that no message has a place for, rather than fail.",
        ),
    ),
)

CREATION: Final = Group(
    "Creating streams",
    (
        Option(
            "createStream",
            WRITE,
            FLAG,
            "false",
            "Whether to create the stream or super stream if there is none.",
        ),
        Option(
            "partitions",
            WRITE,
            integer(1, SUPER_STREAM_PARTITIONS_MAX),
            None,
            "Partitions of a super stream that is created, which needs it.",
        ),
        Option(
            "retention.maxBytes",
            WRITE,
            size(1),
            None,
            "Bytes that a created stream keeps (`max-length-bytes`).",
            without="all",
        ),
        Option(
            "retention.maxAge",
            WRITE,
            duration(AGE_MS_MIN, AGE_MS_MAX),
            None,
            "How long it keeps them (`max-age`).",
            without="for ever",
        ),
        Option(
            "retention.segmentBytes",
            WRITE,
            size(SEGMENT_BYTES_MIN, SEGMENT_BYTES_MAX),
            None,
            "Bytes that it drops at once (`stream-max-segment-size-bytes`).",
            without="as the server has it",
        ),
    ),
)
