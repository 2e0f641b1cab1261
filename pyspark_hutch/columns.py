"""Columns that can be read from a stream, their types for Spark and for Arrow; a choice of them.

Spark takes a batch only if its schema is the declared one to the letter (names, order, types, all
nullable), so both forms of a type stand beside each other here and nowhere else.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

import pyarrow as pa

from pyspark_hutch.options.read_settings import Fate

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
"""The fields of AMQP's properties; a `…_type` is an id's type: ulong, uuid, binary or string."""

BAD_SUB_BATCH_FIELDS: Final = (
    ("reason", "string", pa.string()),
    ("codec", "int", pa.int32()),
    ("records", "int", pa.int32()),
    ("uncompressed_bytes", "bigint", pa.int64()),
)
"""The fault of a sub-batch, and the numbers that its head says."""


@dataclass(frozen=True, slots=True)
class ReadColumn:
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
    ReadColumn("stream", "string", pa.string(), "name of the stream, or of the partition's stream"),
    ReadColumn(
        "super_stream", "string", pa.string(), "name of the super stream; null for a stream"
    ),
    ReadColumn("partition", "int", pa.int32(), "index in the super stream; 0 for a stream"),
    ReadColumn("offset", "bigint", pa.int64(), "number of the record in its stream"),
    ReadColumn("timestamp", "timestamp", TIMESTAMP, "when the server stored the record's chunk"),
    ReadColumn("body", "binary", pa.binary(), "the message's body; all of it where it is not AMQP"),
    ReadColumn(
        "body_type",
        "string",
        pa.string(),
        "data, amqp-value, amqp-sequence or raw; bad-sub-batch where `badSubBatches` is raw",
    ),
    ReadColumn("header", *_struct(HEADER_FIELDS), "AMQP's header"),
    ReadColumn("properties", *_struct(PROPERTY_FIELDS), "AMQP's properties"),
    ReadColumn("application_properties", *_TEXTS, "what the application said about the message"),
    ReadColumn("message_annotations", *_TEXTS, "what was said about the message on its way"),
    ReadColumn("delivery_annotations", *_TEXTS, "what was said about its delivery"),
    ReadColumn("footer", *_TEXTS, "what was said after the body"),
    ReadColumn("chunk_id", "bigint", pa.int64(), "offset of the first record of the chunk"),
    ReadColumn("entry_index", "int", pa.int32(), "index of the entry in its chunk as delivered"),
    ReadColumn("sub_index", "int", pa.int32(), "index in the sub-batch; null outside of one"),
    ReadColumn(
        "bad_sub_batch",
        *_struct(BAD_SUB_BATCH_FIELDS),
        "of a row with the `body_type` bad-sub-batch: what is wrong with what was sent",
    ),
)
"""All columns, in the order in which they are given."""

STREAM_COLUMNS: Final = (
    ReadColumn("stream", "string", pa.string(), "name of the stream"),
    ReadColumn(
        "super_stream", "string", pa.string(), "super stream that it is a partition of, or null"
    ),
    ReadColumn("partition", "int", pa.int32(), "index in the super stream; 0 for a stream"),
    ReadColumn("first_offset", "bigint", pa.int64(), "first row that is kept"),
    ReadColumn("next_offset", "bigint", pa.int64(), "behind the last row"),
    ReadColumn("bytes", "bigint", pa.int64(), "what is kept, as the server stores it"),
    ReadColumn(
        "generation", "bigint", pa.int64(), "another one after it was deleted and made again"
    ),
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


def column(name: str, *, variant: bool = False) -> ReadColumn:
    """Return the column of a name; with `variant` the maps are variants. Raises KeyError."""
    found = _BY_NAME[name]
    if variant and name in MAPS:
        return ReadColumn(name, "variant", VARIANT, found.meaning)
    return found


def arrow_schema(names: Iterable[str], *, variant: bool = False) -> pa.Schema:
    """Return the schema of batches with these columns, in this order. Raises KeyError."""
    return pa.schema([(name, column(name, variant=variant).arrow) for name in names])


def stream_schema() -> pa.Schema:
    """Return the schema of a batch that describes streams, with all of its columns."""
    return pa.schema([(known.name, known.arrow) for known in STREAM_COLUMNS])


def app_types(
    app_columns: Iterable[tuple[str, str]], columns: tuple[str, ...]
) -> tuple[tuple[str, pa.DataType], ...]:
    """Return those of the columns that are taken from application properties, with their types.

    Args:
        app_columns: Names of application properties, with types as the option has them.
        columns: Names of the columns of the read.
    """
    return tuple((name, APP_TYPES[kind]) for name, kind in app_columns if name in columns)


@dataclass(frozen=True, slots=True)
class WantedColumns:
    """The columns of a read, and the values that are constant in them.

    Attributes:
        columns: Names in the order of the batches: those of the table, and those of `app_columns`.
        stream: The stream that is read.
        super_stream: The super stream it is a partition of.
        partition: Its index there.
        body_format: `raw` takes each message as bytes, without looking for AMQP in them.
        variant: Whether the maps of AMQP are variants, which keep types, instead of texts.
        app_columns: Columns taken from the application properties of their name, and their types;
            one that `columns` does not name comes after those it names.
        bad_sub_batches: The fate of sub-batches that cannot be opened.
    """

    columns: tuple[str, ...] = DEFAULT
    stream: str = ""
    super_stream: str | None = None
    partition: int = 0
    body_format: Literal["amqp", "raw"] = "amqp"
    variant: bool = False
    app_columns: tuple[tuple[str, pa.DataType], ...] = ()
    bad_sub_batches: Fate = "fail"

    def schema(self) -> pa.Schema:
        """Return the schema of the batches. Raises KeyError for a column that there is not."""
        typed = dict(self.app_columns)
        names = [*self.columns, *(name for name in typed if name not in self.columns)]
        if not typed:
            return arrow_schema(names, variant=self.variant)
        return pa.schema(
            [
                (name, typed[name] if name in typed else column(name, variant=self.variant).arrow)
                for name in names
            ]
        )
