"""Settings of a write, with their options: frozen values that Spark pickles for its workers."""

from dataclasses import dataclass
from typing import Annotated, Final, Literal, get_args

from hutch.formats.entries import SUB_BATCH_RECORDS_MAX
from pyspark_hutch.options.columns import COLUMNS
from pyspark_hutch.options.connection_settings import BrokerSettings
from pyspark_hutch.options.kinds import (
    FLAG,
    NAME_BYTES_MAX,
    choice,
    duration,
    integer,
    size,
    text_of,
)
from pyspark_hutch.options.option import WRITE, Heading, Option, PartOption, Use
from pyspark_hutch.options.read_settings import AMQP, BodyFormat

AGE_MS_MIN: Final = 1_000  # a stream's age is in seconds
AGE_MS_MAX: Final = 36_500 * 86_400_000  # a hundred years
SEGMENT_BYTES_MIN: Final = 9  # the head of a segment file has 8
SEGMENT_BYTES_MAX: Final = 3_000_000_000  # RabbitMQ takes no more
SUPER_STREAM_PARTITIONS_MAX: Final = 1_000  # a job plans for so many streams
PRODUCER_NAME_BYTES_MAX: Final = 200  # leaves room in a reference for query and task
IN_FLIGHT_MAX: Final = 1_000_000
CONFIRM_MS_MAX: Final = 3_600_000

Compression = Literal["none", "gzip", "snappy", "lz4", "zstd"]
Delivery = Literal["auto", "staged", "none", "dedup"]
Routing = Literal["hash", "key", "column"]

_COLUMN: Final = text_of(NAME_BYTES_MAX, takes="the name of a column")


@dataclass(frozen=True, slots=True)
class SaveTransaction:
    """The name and number under which a save counts as done; a number at or below is dropped."""

    app_id: Annotated[
        str,
        Option("txnAppId", Use.BATCH_WRITE, text_of(NAME_BYTES_MAX)),
        "Name of the series that a `staged` save belongs to, with `txnVersion`; use it in "
        "`foreachBatch` too. A new checkpoint needs a new name, since its batches count from "
        "0 again.",
    ]
    version: Annotated[
        int,
        Option("txnVersion", Use.BATCH_WRITE, integer(0)),
        "Number of the save in its series. A save whose number is not above the last one "
        "publishes nothing, since that was done before.",
    ]


@dataclass(frozen=True, slots=True)
class Dedup:
    """Rules for publishing ids; None as id column: rows are numbered as they come to a task."""

    producer_name: Annotated[
        str | None,
        Option(
            "producerName",
            WRITE,
            text_of(PRODUCER_NAME_BYTES_MAX),
            without="`hutch-` and the query's id, for a streaming write",
        ),
        "First part of the names of producers, for `dedup`; a batch write needs it. The same "
        "name in two jobs makes one drop rows of the other.",
    ] = None
    id_column: Annotated[
        str | None,
        Option("publishingIdColumn", WRITE, _COLUMN),
        "Column with the number of each row, for `dedup`, as the offset that it was read at: "
        "from 0 on, ascending for each key.",
    ] = None
    key_column: Annotated[
        str | None,
        Option("producerKeyColumn", WRITE, _COLUMN),
        "Column that says which producer a row belongs to. All rows of a key must reach the "
        "same task; few keys, since RabbitMQ remembers 255 producers of a stream.",
    ] = None
    order_by: Annotated[
        tuple[str, ...],
        Option("dedupOrderBy", WRITE, COLUMNS),
        "Columns by which each task sorts its rows before it numbers them.",
    ] = ()
    unsafe_plan: Annotated[
        bool,
        Option("dedupUnsafePlan", WRITE, FLAG),
        "Whether to number rows as they come where no column has their numbers. Rows are lost "
        "and doubled if a task that is tried again gets other rows.",
    ] = False


@dataclass(frozen=True, slots=True)
class Creation:
    """Settings for a stream that has to be created; with partitions, for a super stream."""

    partitions: Annotated[
        int | None,
        Option("partitions", WRITE, integer(1, SUPER_STREAM_PARTITIONS_MAX)),
        "Partitions of a super stream that is created, which needs it.",
    ] = None
    bytes_max: Annotated[
        int | None,
        Option("retention.maxBytes", WRITE, size(1), without="all"),
        "Bytes that a created stream keeps (`max-length-bytes`).",
    ] = None
    age_ms_max: Annotated[
        int | None,
        Option("retention.maxAge", WRITE, duration(AGE_MS_MIN, AGE_MS_MAX), without="for ever"),
        "How long it keeps them (`max-age`).",
    ] = None
    segment_bytes: Annotated[
        int | None,
        Option(
            "retention.segmentBytes",
            WRITE,
            size(SEGMENT_BYTES_MIN, SEGMENT_BYTES_MAX),
            without="as the server has it",
        ),
        "Bytes that it drops at once (`stream-max-segment-size-bytes`).",
    ] = None

    @property
    def arguments(self) -> dict[str, str]:
        """Arguments of the command that makes a stream, all text; an age is in whole seconds."""
        age_s = None if self.age_ms_max is None else -(-self.age_ms_max // 1_000)
        numbers = (
            ("max-length-bytes", self.bytes_max, ""),
            ("max-age", age_s, "s"),
            ("stream-max-segment-size-bytes", self.segment_bytes, ""),
        )
        return {name: f"{number}{unit}" for name, number, unit in numbers if number is not None}


@dataclass(frozen=True, slots=True)
class StreamWriteSettings:
    """A batch or streaming write. Without a target each row names its stream."""

    connection: BrokerSettings
    stream: str | None = None
    super_stream: str | None = None
    delivery: Annotated[
        Delivery,
        Heading("Delivery"),
        Option("delivery", WRITE, choice(*get_args(Delivery))),
        "`staged`: tasks store rows that no reader sees, and the driver's commit publishes all "
        "of them at once: each row exactly once. It needs Hutch. `none`: each row at least "
        "once, and again when a task is tried again. `dedup`: the server drops what a named "
        "producer has published before. `auto`: `staged` where the server has it, and the rows "
        "no filter values; else `none`.",
    ] = "auto"
    transaction: SaveTransaction | None = (
        None  # None: a streaming write, or a save that counts alone
    )
    dedup: Dedup | None = None  # None: `delivery` is another one
    in_flight_max: Annotated[
        int,
        Option("maxInFlight", WRITE, integer(1, IN_FLIGHT_MAX)),
        "Messages that a task publishes ahead of their confirmation, or stages as one chunk.",
    ] = 10_000
    confirm_timeout_ms: Annotated[
        int,
        Option("confirmTimeoutMs", WRITE, integer(1, CONFIRM_MS_MAX)),
        "How long a confirmation may take.",
    ] = 30_000
    routing: Annotated[
        Routing,
        Heading("Messages"),
        Option("routing", WRITE, choice(*get_args(Routing))),
        "How rows are spread over a super stream: by a hash of their key as clients do "
        "(murmur3), by the partition that is bound to their key, or by the partition that "
        "their column `stream` names.",
    ] = "hash"
    routing_key_column: Annotated[
        str, Option("routingKeyColumn", WRITE, _COLUMN), "Column with the key of each row."
    ] = "routing_key"
    compression: Annotated[
        Compression,
        Option("compression", WRITE, choice(*get_args(Compression))),
        "Codec of the sub-batches in which rows are published.",
    ] = "none"
    sub_batch_size: Annotated[
        int,
        PartOption(
            "subBatchSize",
            WRITE,
            integer(1, SUB_BATCH_RECORDS_MAX),
            without="100 with `compression`; else there are no sub-batches",
        ),
        "Rows in a sub-batch.",
    ] = 1  # without compression: no sub-batches
    body_format: BodyFormat = AMQP
    ignore_unknown_columns: Annotated[
        bool,
        Option("ignoreUnknownColumns", WRITE, FLAG),
        "Whether to leave out columns that no message has a place for, rather than fail.",
    ] = False
    creation: Annotated[
        Creation | None,
        Heading("Creating streams"),
        PartOption("createStream", WRITE, FLAG, default="false"),
        "Whether to create the stream or super stream if there is none.",
    ] = None
