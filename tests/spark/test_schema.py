"""The columns of a read: which there are, which are chosen, and their types."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pytest

from pyspark_hutch.columns import APP_TYPES, COLUMNS, DEFAULT, arrow_schema, column
from tests.chunks import GZIP, SubBatch
from tests.spark.conftest import Place, Read
from tests.spark.publishing import bodies_of, publish
from tests.spark.queries import refusal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

SENT = dt.datetime(2026, 1, 31, 8, tzinfo=dt.UTC)


def message(number: int) -> bytes:
    """A message as a stock client writes it."""
    from rstream import AMQPMessage
    from rstream._pyamqp.message import Properties  # type: ignore[attr-defined]

    properties = Properties(message_id=f"id-{number}", subject="news", creation_time=SENT)
    made = AMQPMessage(
        body=b"row %d" % number,
        properties=properties,
        application_properties={"tenant": "a", "user_id": number, "good": True},
    )
    return bytes(made)


@pytest.fixture
def rich(place: Place, stream: str) -> str:
    """A stream of AMQP messages, and one of something else behind them."""
    with place.client() as client:
        publish(client, stream, [*map(message, range(3)), b"\1nothing of AMQP"])
    return stream


def schema_of(ddl: str) -> StructType:
    from pyspark.sql.types import StructType

    found = StructType.fromDDL(ddl)
    assert isinstance(found, StructType)
    return found


def test_arrow_types_are_those_that_spark_wants_of_the_columns(spark: SparkSession) -> None:
    from pyspark.sql.pandas.types import to_arrow_schema

    assert spark.version
    for variant in (False, True):
        names = [one.name for one in COLUMNS]
        ddl = ", ".join(f"`{name}` {column(name, variant=variant).spark}" for name in names)
        wanted = to_arrow_schema(schema_of(ddl), timezone="UTC")
        assert arrow_schema(names, variant=variant).equals(wanted, check_metadata=False)
    apps = schema_of(", ".join(f"`{kind}` {kind}" for kind in APP_TYPES))
    assert to_arrow_schema(apps, timezone="UTC").types == list(APP_TYPES.values())


def test_seven_columns_come_by_default_and_more_where_they_are_asked_for(
    place: Place, rich: str, read: Read
) -> None:
    assert tuple(read(place, stream=rich).columns) == DEFAULT
    more = read(place, stream=rich, metadataFields="footer,properties", includeChunkInfo="true")
    assert more.columns == [
        *DEFAULT,
        "properties",
        "footer",
        "chunk_id",
        "entry_index",
        "sub_index",
    ]

    row = more.where("offset = 1").first()
    assert row is not None
    found = (row.properties.message_id, row.properties.message_id_type, row.properties.subject)
    assert found == ("id-1", "string", "news")
    assert row.properties.creation_time == SENT.replace(tzinfo=None)
    assert (row.footer, row.chunk_id, row.entry_index, row.sub_index) == (None, 0, 1, None)


def test_what_is_not_amqp_is_a_raw_body_and_raw_can_be_asked_for(
    place: Place, rich: str, read: Read
) -> None:
    schema = "body_type string, body binary, application_properties map<string,string>"
    rows = read(place, schema, stream=rich).collect()

    given = {"tenant": "a", "user_id": "2", "good": "true"}
    assert rows[2] == ("data", b"row 2", given)
    assert rows[3] == ("raw", b"\1nothing of AMQP", None)
    raw = read(place, "body binary, body_type string", stream=rich, bodyFormat="raw").collect()
    assert [tuple(row) for row in raw[:3]] == [(message(n), "raw") for n in range(3)]


def test_a_schema_is_a_choice_of_columns_in_any_order(place: Place, rich: str, read: Read) -> None:
    found = read(place, "body_type string, offset bigint", stream=rich)

    assert found.columns == ["body_type", "offset"]
    assert found.collect() == [("data", 0), ("data", 1), ("data", 2), ("raw", 3)]
    assert refusal(read(place, "ofset bigint", stream=rich).collect) == (
        "schema: no column 'ofset' can be read; did you mean 'offset'"
    )
    assert refusal(read(place, "offset int", stream=rich).collect) == (
        "schema: column 'offset' has type int; it can be bigint"
    )


def test_application_properties_can_be_columns_of_their_own(
    place: Place, rich: str, read: Read
) -> None:
    options = {"stream": rich, "appColumns": "tenant string, user_id bigint, good boolean"}
    found = read(place, **options).select("tenant", "user_id", "good").collect()

    assert found == [*(("a", number, True) for number in range(3)), (None, None, None)]
    assert read(place, "user_id bigint", **options).first() == (0,)


def test_application_properties_can_be_variants(place: Place, rich: str, read: Read) -> None:
    options = {"stream": rich, "applicationProperties": "variant"}
    by_option = read(place, **options, metadataFields="application_properties")
    by_schema = read(place, "application_properties variant", stream=rich)

    for found in (by_option, by_schema):
        typed = found.selectExpr(
            "variant_get(application_properties, '$.user_id', 'bigint') AS user",
            "schema_of_variant(application_properties) AS type",
        )
        last = "OBJECT<good: BOOLEAN, tenant: STRING, user_id: BIGINT>"
        assert typed.collect() == [*((number, last) for number in range(3)), (None, None)]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_sub_batches_of_every_codec_give_their_rows(
    either: Place, stream: str, read: Read, codec: str
) -> None:
    entry = sub_batch(codec, bodies_of(100))
    with either.client() as client:
        client.create(stream)
        client.declare(1, stream)
        client.publish(1, [(1, b"alone"), (2, entry)])
        client.confirmed_ids(2)

    schema = "offset bigint, body binary"
    rows = read(either, schema, stream=stream, minPartitions=1).collect()

    assert rows == list(enumerate([b"alone", *bodies_of(100)]))


def sub_batch(codec: str, records: list[bytes]) -> SubBatch:
    import cramjam

    plain = SubBatch.of(records)
    if codec in ("none", "gzip"):
        return SubBatch.of(records, GZIP if codec == "gzip" else 0)
    number = {"snappy": 2, "lz4": 3, "zstd": 4}[codec]
    body = bytes(getattr(cramjam, codec).compress(plain.body))
    return SubBatch(number, len(records), plain.raw_size, body)
