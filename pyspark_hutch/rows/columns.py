"""The table of columns that can be read from a stream, with their types for Spark and for Arrow.

Spark takes a batch only if its schema is the declared one to the letter (names, order, types, all
nullable), so both forms of a type stand beside each other here and nowhere else.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
TEXTS: Final = pa.map_(pa.string(), pa.string())
VARIANT: Final = pa.struct(
    [
        pa.field("value", pa.binary(), nullable=False),
        pa.field("metadata", pa.binary(), nullable=False),
    ]
)

HEADER_FIELDS: Final = (
    ("durable", "boolean", pa.bool_()),
    ("priority", "int", pa.int32()),
    ("ttl", "bigint", pa.int64()),
    ("first_acquirer", "boolean", pa.bool_()),
    ("delivery_count", "bigint", pa.int64()),
)
"""The fields of AMQP's header: name, type for Spark, type for Arrow."""

PROPERTY_FIELDS: Final = (
    ("message_id", "string", pa.string()),
    ("message_id_type", "string", pa.string()),
    ("user_id", "binary", pa.binary()),
    ("to", "string", pa.string()),
    ("subject", "string", pa.string()),
    ("reply_to", "string", pa.string()),
    ("correlation_id", "string", pa.string()),
    ("correlation_id_type", "string", pa.string()),
    ("content_type", "string", pa.string()),
    ("content_encoding", "string", pa.string()),
    ("absolute_expiry_time", "timestamp", TIMESTAMP),
    ("creation_time", "timestamp", TIMESTAMP),
    ("group_id", "string", pa.string()),
    ("group_sequence", "bigint", pa.int64()),
    ("reply_to_group_id", "string", pa.string()),
)
"""The fields of AMQP's properties; a `…_type` says what an id was: ulong, uuid, binary, string."""

BAD_SUB_BATCH_FIELDS: Final = (
    ("reason", "string", pa.string()),
    ("codec", "int", pa.int32()),
    ("records", "int", pa.int32()),
    ("uncompressed_bytes", "bigint", pa.int64()),
)
"""The fault of a sub-batch, and the numbers that its head says."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column that can be read.

    Attributes:
        spark: The type as Spark's DDL writes it.
        arrow: The type in a batch.
        meaning: One line for the documents.
    """

    name: str
    spark: str
    arrow: pa.DataType
    meaning: str


def _struct(fields: tuple[tuple[str, str, pa.DataType], ...]) -> tuple[str, pa.DataType]:
    spark = ",".join(f"{name}:{kind}" for name, kind, _ in fields)
    return f"struct<{spark}>", pa.struct([(name, arrow) for name, _, arrow in fields])


_TEXTS: Final = ("map<string,string>", TEXTS)

COLUMNS: Final = (
    Column("stream", "string", pa.string(), "name of the stream, or of the partition's stream"),
    Column("super_stream", "string", pa.string(), "name of the super stream; null for a stream"),
    Column("partition", "int", pa.int32(), "index in the super stream; 0 for a stream"),
    Column("offset", "bigint", pa.int64(), "number of the record in its stream"),
    Column("timestamp", "timestamp", TIMESTAMP, "when the server stored the record's chunk"),
    Column("body", "binary", pa.binary(), "the message's body; all of it where it is not AMQP"),
    Column(
        "body_type",
        "string",
        pa.string(),
        "data, amqp-value, amqp-sequence or raw; bad-sub-batch where `badSubBatches` is raw",
    ),
    Column("header", *_struct(HEADER_FIELDS), "AMQP's header"),
    Column("properties", *_struct(PROPERTY_FIELDS), "AMQP's properties"),
    Column("application_properties", *_TEXTS, "what the application said about the message"),
    Column("message_annotations", *_TEXTS, "what was said about the message on its way"),
    Column("delivery_annotations", *_TEXTS, "what was said about its delivery"),
    Column("footer", *_TEXTS, "what was said after the body"),
    Column("chunk_id", "bigint", pa.int64(), "offset of the first record of the chunk"),
    Column("entry_index", "int", pa.int32(), "index of the entry in its chunk as delivered"),
    Column("sub_index", "int", pa.int32(), "index in the sub-batch; null outside of one"),
    Column(
        "bad_sub_batch",
        *_struct(BAD_SUB_BATCH_FIELDS),
        "of a row with the `body_type` bad-sub-batch: what is wrong with what was sent",
    ),
)
"""All columns, in the order in which they are given."""

STREAM_COLUMNS: Final = (
    Column("stream", "string", pa.string(), "name of the stream"),
    Column(
        "super_stream", "string", pa.string(), "super stream that it is a partition of, or null"
    ),
    Column("partition", "int", pa.int32(), "index in the super stream; 0 for a stream"),
    Column("first_offset", "bigint", pa.int64(), "first row that is kept"),
    Column("next_offset", "bigint", pa.int64(), "behind the last row"),
    Column("bytes", "bigint", pa.int64(), "what is kept, as the server stores it"),
    Column("generation", "bigint", pa.int64(), "another one after it was deleted and made again"),
)
"""The columns of a read that describes streams: a row for each, with the bytes of its rows."""

DEFAULT: Final = tuple(column.name for column in COLUMNS[:7])
"""The columns of a read that asks for none."""

MAPS: Final = (
    "application_properties",
    "message_annotations",
    "delivery_annotations",
    "footer",
)
"""The columns that may be variants instead of texts."""

APP_TYPES: Final[dict[str, pa.DataType]] = {
    "string": pa.string(),
    "bigint": pa.int64(),
    "int": pa.int32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "timestamp": TIMESTAMP,
}
"""The types of columns that are taken from application properties."""

_BY_NAME: Final = {column.name: column for column in COLUMNS}


def column(name: str, *, variant: bool = False) -> Column:
    """Return the column of a name; with `variant` the maps are variants. Raises KeyError."""
    found = _BY_NAME[name]
    if variant and name in MAPS:
        return Column(name, "variant", VARIANT, found.meaning)
    return found


def arrow_schema(names: Iterable[str], *, variant: bool = False) -> pa.Schema:
    """Return the schema of batches with these columns, in this order. Raises KeyError."""
    return pa.schema([(name, column(name, variant=variant).arrow) for name in names])


def stream_schema() -> pa.Schema:
    """Return the schema of a batch that describes streams, with all of its columns."""
    return pa.schema([(known.name, known.arrow) for known in STREAM_COLUMNS])
