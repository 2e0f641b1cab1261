"""Rows of the table: what is read, from where to where, and what the rows look like."""

from typing import Final

from pyspark_hutch.options.columns import APP_COLUMNS, ASSIGN, FILTER_VALUES, METADATA_FIELDS
from pyspark_hutch.options.kinds import (
    FLAG,
    NAME_BYTES_MAX,
    STREAMS_ONLY,
    choice,
    duration,
    integer,
    names,
    size,
    text_of,
)
from pyspark_hutch.options.option import ALL, READ, Group, Option, Use
from pyspark_hutch.options.places import ENDING_OFFSETS, INSTANT, INSTANTS, STARTING_OFFSETS

WEEK_MS: Final = 604_800_000
PARTITIONS_MAX: Final = 100_000  # tasks of one batch; Spark itself labours with more
PATTERN_BYTES_MAX: Final = 1_024  # as the server takes them
_STREAMS: Final = names(what="names")

SOURCE: Final = Group(
    "Streams",
    (
        Option(
            "stream",
            ALL,
            _STREAMS,
            None,
            "Streams to read; the stream to write. A read needs exactly one of `stream`, "
            "`superStream`, `assign` and `streamPattern`. A write takes one name, here or in "
            "`superStream`; without, the column `stream` of each row says where it goes.",
        ),
        Option(
            "superStream",
            ALL,
            _STREAMS,
            None,
            "Super streams to read with all their partitions; the super stream to write.",
        ),
        Option(
            "assign",
            READ,
            ASSIGN,
            None,
            'Partitions to read of super streams, by index, as `{"orders": [0, 2]}`.',
        ),
        Option(
            "streamPattern",
            READ,
            text_of(PATTERN_BYTES_MAX, takes="a regular expression of 1 to 1,024 bytes"),
            None,
            "Reads all streams with a name in which this is found, as in permissions, and that the "
            "user may read. It needs Hutch.",
        ),
        Option(
            "metadata",
            Use.BATCH_READ,
            STREAMS_ONLY,
            None,
            "Gives a row for each stream with its offsets, bytes and place in a super stream, and "
            "reads no records. It needs Hutch.",
        ),
        Option(
            "readMode",
            READ,
            None,
            None,
            "rows are read over the protocol; reading segment files comes later",
        ),
        Option(
            "segmentRoot",
            READ,
            None,
            None,
            "rows are read over the protocol; reading segment files comes later",
        ),
    ),
)

START: Final = Group(
    "Where a read starts",
    (
        Option(
            "startingOffsets",
            READ,
            STARTING_OFFSETS,
            None,
            "First rows to read. A number in JSON is an offset, -2 the earliest, -1 the latest; "
            "it names each stream that is read, and partitions by their own names. `-1000` begins "
            "so many rows before the end, `-10 minutes` so long before the query.",
            without="`earliest` for a batch read, which cannot start at `latest`; else `latest`",
        ),
        Option(
            "startingTimestamp",
            READ,
            INSTANT,
            None,
            "Time of the first rows to read, exact to the row; it goes before "
            "`startingOffsetsByTimestamp`, and that before `startingOffsets`.",
        ),
        Option(
            "startingOffsetsByTimestamp",
            READ,
            INSTANTS,
            None,
            'The same by stream, as `{"orders": 1767225600000}`.',
        ),
        Option(
            "startingOffsetsByTimestampStrategy",
            READ,
            choice("error", "latest"),
            "error",
            "What to do where a stream has no row as late: fail, or start behind its last row.",
        ),
    ),
)

END: Final = Group(
    "Where a batch read ends",
    (
        Option(
            "endingOffsets",
            Use.BATCH_READ,
            ENDING_OFFSETS,
            "latest",
            "First rows not to read; in JSON as in `startingOffsets`, without `earliest`.",
        ),
        Option(
            "endingTimestamp",
            Use.BATCH_READ,
            INSTANT,
            None,
            "Time of the first rows not to read; it goes before `endingOffsetsByTimestamp`, and "
            "that before `endingOffsets`.",
        ),
        Option("endingOffsetsByTimestamp", Use.BATCH_READ, INSTANTS, None, "The same by stream."),
    ),
)

BATCHES: Final = Group(
    "Batches and tasks",
    (
        Option(
            "failOnDataLoss",
            READ,
            FLAG,
            "true",
            "Whether to fail when rows that were to be read are gone, rather than go on.",
        ),
        Option(
            "maxOffsetsPerTrigger",
            Use.STREAMING_READ,
            integer(1),
            None,
            "Rows that a batch takes at most; at least nine tenths of them while more wait.",
        ),
        Option(
            "maxBytesPerTrigger",
            Use.STREAMING_READ,
            size(1),
            None,
            "Bytes that a batch takes at most, as the server stores them; with RabbitMQ estimated "
            "by one chunk of each stream.",
        ),
        Option(
            "minOffsetsPerTrigger",
            Use.STREAMING_READ,
            integer(1),
            None,
            "Rows that a batch waits for.",
        ),
        Option(
            "maxTriggerDelay",
            Use.STREAMING_READ,
            duration(1, WEEK_MS),
            "15m",
            "How long it waits for `minOffsetsPerTrigger`.",
        ),
        Option(
            "minPartitions",
            READ,
            integer(1, PARTITIONS_MAX),
            None,
            "Tasks to make at least; streams are split for it, by bytes where the server is Hutch, "
            "else by rows.",
            without="a task for each stream",
        ),
        Option(
            "maxRecordsPerPartition",
            READ,
            integer(1),
            None,
            "Rows that a task reads at most. Chunks and sub-batches are cut for it, and each task "
            "that has rows of a sub-batch opens all of it, also if that is larger.",
        ),
        Option(
            "maxBytesPerPartition",
            READ,
            size(1),
            None,
            "Bytes that a task reads at most, as the server stores them, or one chunk; less than "
            "512k is kept only where rows are alike in size. It needs Hutch.",
        ),
    ),
)

ROWS: Final = Group(
    "Rows",
    (
        Option(
            "bodyFormat",
            ALL,
            choice("amqp", "raw"),
            "amqp",
            "Whether messages are AMQP 1.0 with a body in it, or the body is all there is.",
        ),
        Option(
            "metadataFields",
            READ,
            METADATA_FIELDS,
            None,
            "Columns to add to the default ones; a schema of your own says the same.",
        ),
        Option(
            "includeProperties",
            READ,
            FLAG,
            "false",
            "Short for `metadataFields=properties,application_properties`.",
        ),
        Option(
            "includeChunkInfo",
            READ,
            FLAG,
            "false",
            "Whether to add where in its chunk a row was: `chunk_id`, `entry_index`, `sub_index`.",
        ),
        Option(
            "applicationProperties",
            READ,
            choice("map", "variant"),
            "map",
            "Type of application properties, annotations and footer: texts, or typed values.",
        ),
        Option(
            "appColumns",
            READ,
            APP_COLUMNS,
            None,
            "Application properties to add as columns of their own, as "
            "`tenant string, user_id bigint`.",
        ),
        Option(
            "badSubBatches",
            READ,
            choice("fail", "skip", "raw"),
            "fail",
            "What becomes of a sub-batch that a publisher filled with something else than it says: "
            "fail; leave out its rows; or give one row at its first offset, with the bytes that "
            "were sent as `body` and `bad-sub-batch` as `body_type`.",
        ),
        Option(
            "filterValues",
            READ,
            FILTER_VALUES,
            None,
            "Filter values to read: chunks that hold none of them are left out. All rows of the "
            "other chunks come, so keep the filter in the query too.",
        ),
        Option(
            "filterMatchUnfiltered",
            READ,
            FLAG,
            "false",
            "Whether chunks with messages that have no filter value come as well.",
        ),
        Option(
            "consumerName",
            Use.STREAMING_READ,
            text_of(NAME_BYTES_MAX),
            None,
            "Name under which the position is stored on the server for its tools to show; a query "
            "never starts from it.",
        ),
    ),
)
