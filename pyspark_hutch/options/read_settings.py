"""Settings of a read, with their options: frozen values that Spark pickles for its workers."""

from dataclasses import dataclass
from typing import Annotated, Final, Literal, get_args

from pyspark_hutch.options.columns import APP_COLUMNS, ASSIGN, FILTER_VALUES, METADATA_FIELDS
from pyspark_hutch.options.connection_settings import BrokerSettings
from pyspark_hutch.options.kinds import (
    FLAG,
    NAME_BYTES_MAX,
    choice,
    duration,
    integer,
    names,
    one_of,
    size,
    text_of,
)
from pyspark_hutch.options.option import ALL, READ, Heading, Option, PartOption, Use
from pyspark_hutch.options.places import ENDING_OFFSETS, INSTANT, INSTANTS, STARTING_OFFSETS, Where

WEEK_MS: Final = 604_800_000
PARTITIONS_MAX: Final = 100_000  # tasks of one batch; Spark itself labours with more
PATTERN_BYTES_MAX: Final = 1_024  # as the server takes them
AMQP: Final = "amqp"

BodyFormat = Annotated[
    Literal["amqp", "raw"],
    Option("bodyFormat", ALL, choice("amqp", "raw")),
    "Whether messages are AMQP 1.0 with a body in it, or the body is all there is.",
]
Fate = Literal["fail", "skip", "raw"]
Unmatched = Literal["error", "latest"]

_STREAMS: Final = names()
_LATER: Final = "rows are read over the protocol; reading segment files comes later"


@dataclass(frozen=True, slots=True)
class ReadSource:
    """The streams to read. Exactly one of the four is not empty."""

    streams: Annotated[
        tuple[str, ...],
        Option("stream", ALL, _STREAMS),
        "Streams to read; the stream to write. A read needs exactly one of `stream`, "
        "`superStream`, `assign` and `streamPattern`. A write takes one name, here or in "
        "`superStream`; without, the column `stream` of each row says where it goes.",
    ] = ()
    super_streams: Annotated[
        tuple[str, ...],
        Option("superStream", ALL, _STREAMS),
        "Super streams to read with all their partitions; the super stream to write.",
    ] = ()
    assigned: Annotated[
        tuple[tuple[str, tuple[int, ...]], ...],  # super stream, indexes of partitions
        Option("assign", READ, ASSIGN),
        'Partitions to read of super streams, by index, as `{"orders": [0, 2]}`.',
    ] = ()
    pattern: Annotated[
        str | None,
        Option(
            "streamPattern",
            READ,
            text_of(PATTERN_BYTES_MAX, takes="a regular expression of 1 to 1,024 bytes"),
        ),
        "Reads all streams with a name in which this is found, as in permissions, and that the "
        "user may read. It needs Hutch.",
    ] = None

    @property
    def option(self) -> str:
        """The name of the option that said it."""
        if self.pattern is not None:
            return "streamPattern"
        if self.streams:
            return "stream"
        return "superStream" if self.super_streams else "assign"


@dataclass(frozen=True, slots=True)
class Budgets:
    """Limits of one batch of a streaming query; None: no limit."""

    offsets_max: Annotated[
        int | None,
        Option("maxOffsetsPerTrigger", Use.STREAMING_READ, integer(1)),
        "Rows that a batch takes at most; at least nine tenths of them while more wait.",
    ] = None
    bytes_max: Annotated[
        int | None,
        Option("maxBytesPerTrigger", Use.STREAMING_READ, size(1)),
        "Bytes that a batch takes at most, as the server stores them; with RabbitMQ estimated "
        "by one chunk of each stream.",
    ] = None
    offsets_min: Annotated[
        int | None,
        Option("minOffsetsPerTrigger", Use.STREAMING_READ, integer(1)),
        "Rows that a batch waits for.",
    ] = None
    delay_ms_max: Annotated[
        int,
        Option("maxTriggerDelay", Use.STREAMING_READ, duration(1, WEEK_MS)),
        "How long it waits for `minOffsetsPerTrigger`.",
    ] = 900_000


@dataclass(frozen=True, slots=True)
class Splitting:
    """Rules for spreading the rows of a batch over tasks; None: a task for each stream."""

    partitions_min: Annotated[
        int | None,
        Option("minPartitions", READ, integer(1, PARTITIONS_MAX), without="a task for each stream"),
        "Tasks to make at least; streams are split for it, by bytes where the server is Hutch, "
        "else by rows.",
    ] = None
    records_max: Annotated[
        int | None,
        Option("maxRecordsPerPartition", READ, integer(1)),
        "Rows that a task reads at most. Chunks and sub-batches are cut for it, and each task "
        "that has rows of a sub-batch opens all of it, also if that is larger.",
    ] = None
    bytes_max: Annotated[
        int | None,
        Option("maxBytesPerPartition", READ, size(1)),
        "Bytes that a task reads at most, as the server stores them, or one chunk; less than "
        "512k is kept only where rows are alike in size. It needs Hutch.",
    ] = None


@dataclass(frozen=True, slots=True)
class Decoding:
    """Columns beside the default ones, and the way in which columns are made."""

    body_format: BodyFormat = AMQP
    extra_columns: Annotated[
        tuple[str, ...],  # in the order of the table of columns
        PartOption("metadataFields", READ, METADATA_FIELDS),
        "Columns to add to the default ones; a schema of your own says the same.",
        PartOption("includeProperties", READ, FLAG, default="false"),
        "Short for `metadataFields=properties,application_properties`.",
        PartOption("includeChunkInfo", READ, FLAG, default="false"),
        "Whether to add where in its chunk a row was: `chunk_id`, `entry_index`, `sub_index`.",
    ] = ()
    variant: Annotated[
        bool,  # application properties, annotations and footer as variants, not maps
        Option("applicationProperties", READ, one_of({"map": False, "variant": True})),
        "Type of application properties, annotations and footer: texts, or typed values.",
    ] = False
    app_columns: Annotated[
        tuple[tuple[str, str], ...],  # name, Spark DDL type
        Option("appColumns", READ, APP_COLUMNS),
        "Application properties to add as columns of their own, as "
        "`tenant string, user_id bigint`.",
    ] = ()
    bad_sub_batches: Annotated[
        Fate,
        Option("badSubBatches", READ, choice(*get_args(Fate))),
        "What becomes of a sub-batch that a publisher filled with something else than it says: "
        "fail; leave out its rows; or give one row at its first offset, with the bytes that "
        "were sent as `body` and `bad-sub-batch` as `body_type`.",
    ] = "fail"


@dataclass(frozen=True, slots=True)
class Filter:
    """Filter values: the server leaves out chunks that have none of them; without any, no chunk."""

    values: Annotated[
        tuple[str, ...],
        Option("filterValues", READ, FILTER_VALUES),
        "Filter values to read: chunks that hold none of them are left out. All rows of the "
        "other chunks come, so keep the filter in the query too.",
    ] = ()
    match_unfiltered: Annotated[
        bool,
        Option("filterMatchUnfiltered", READ, FLAG),
        "Whether chunks with messages that have no filter value come as well.",
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSettings:
    """A batch or streaming read."""

    connection: BrokerSettings
    source: Annotated[ReadSource, Heading("Streams")]
    describes_streams: Annotated[
        bool,  # a row for each stream, and no records
        PartOption("metadata", Use.BATCH_READ, one_of({"streams": True})),
        "Gives a row for each stream with its offsets, bytes and place in a super stream, and "
        "reads no records. It needs Hutch.",
        PartOption("readMode", READ, None),
        _LATER,
        PartOption("segmentRoot", READ, None),
        _LATER,
    ] = False
    starting: Annotated[
        Where,
        Heading("Where a read starts"),
        PartOption(
            "startingOffsets",
            READ,
            STARTING_OFFSETS,
            without="`earliest` for a batch read, which cannot start at `latest`; else `latest`",
        ),
        "First rows to read. A number in JSON is an offset, -2 the earliest, -1 the latest; it "
        "names each stream that is read, and partitions by their own names. `-1000` begins so many "
        "rows before the end, `-10 minutes` so long before the query.",
        PartOption("startingTimestamp", READ, INSTANT),
        "Time of the first rows to read, exact to the row; it goes before "
        "`startingOffsetsByTimestamp`, and that before `startingOffsets`.",
        PartOption("startingOffsetsByTimestamp", READ, INSTANTS),
        'The same by stream, as `{"orders": 1767225600000}`.',
    ]
    unmatched_time: Annotated[
        Unmatched,
        Option("startingOffsetsByTimestampStrategy", READ, choice(*get_args(Unmatched))),
        "What to do where a stream has no row as late: fail, or start behind its last row.",
    ] = "error"
    ending: Annotated[
        Where | None,  # None: a streaming read
        Heading("Where a batch read ends"),
        PartOption("endingOffsets", Use.BATCH_READ, ENDING_OFFSETS, default="latest"),
        "First rows not to read; in JSON as in `startingOffsets`, without `earliest`.",
        PartOption("endingTimestamp", Use.BATCH_READ, INSTANT),
        "Time of the first rows not to read; it goes before `endingOffsetsByTimestamp`, and that "
        "before `endingOffsets`.",
        PartOption("endingOffsetsByTimestamp", Use.BATCH_READ, INSTANTS),
        "The same by stream.",
    ]
    fail_on_data_loss: Annotated[
        bool,
        Heading("Batches and tasks"),
        Option("failOnDataLoss", READ, FLAG),
        "Whether to fail when rows that were to be read are gone, rather than go on.",
    ] = True
    budgets: Budgets = Budgets()
    splitting: Splitting = Splitting()
    decoding: Annotated[Decoding, Heading("Rows")] = Decoding()
    filter: Filter = Filter()
    consumer_name: Annotated[
        str | None,
        Option("consumerName", Use.STREAMING_READ, text_of(NAME_BYTES_MAX)),
        "Name under which the position is stored on the server for its tools to show; a query "
        "never starts from it.",
    ] = None
