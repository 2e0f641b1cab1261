import pyarrow as pa
import pytest

from pyspark_hutch.columns import (
    COLUMNS,
    DEFAULT,
    MAPS,
    VARIANT,
    WantedColumns,
    arrow_schema,
    column,
)


def test_a_read_that_asks_for_nothing_gets_the_first_seven_columns() -> None:
    assert DEFAULT == (
        "stream",
        "super_stream",
        "partition",
        "offset",
        "timestamp",
        "body",
        "body_type",
    )


def test_every_column_is_there_once_with_a_meaning() -> None:
    names = [each.name for each in COLUMNS]

    assert len(names) == len(set(names)) == 17
    assert all(each.meaning for each in COLUMNS)


def test_a_schema_has_the_columns_in_the_order_asked_for_and_all_may_be_null() -> None:
    schema = arrow_schema(["body", "offset"])

    assert schema.names == ["body", "offset"]
    assert all(field.nullable for field in schema)


@pytest.mark.parametrize(
    ("name", "spark", "arrow"),
    [
        ("stream", "string", pa.string()),
        ("partition", "int", pa.int32()),
        ("offset", "bigint", pa.int64()),
        ("timestamp", "timestamp", pa.timestamp("us", tz="UTC")),
        ("body", "binary", pa.binary()),
        ("footer", "map<string,string>", pa.map_(pa.string(), pa.string())),
    ],
)
def test_a_column_has_its_type_for_spark_and_for_arrow(
    name: str, spark: str, arrow: pa.DataType
) -> None:
    assert (column(name).spark, column(name).arrow) == (spark, arrow)


def test_the_header_and_the_properties_are_structs_of_amqps_fields() -> None:
    header, properties = column("header"), column("properties")

    assert header.spark == (
        "struct<durable:boolean,priority:int,ttl:bigint,first_acquirer:boolean,"
        "delivery_count:bigint>"
    )
    assert properties.spark.startswith("struct<message_id:string,message_id_type:string,user_id")
    for each in (header, properties):
        fields = each.spark.removeprefix("struct<").removesuffix(">").split(",")
        names = [field.partition(":")[0] for field in fields]
        assert names == [field.name for field in each.arrow]


def test_maps_alone_become_variants() -> None:
    changed = [each.name for each in COLUMNS if column(each.name, variant=True).arrow != each.arrow]

    assert set(changed) == set(MAPS)
    assert column("footer", variant=True).spark == "variant"
    assert arrow_schema(["footer"], variant=True).field(0).type == VARIANT
    assert not any(field.nullable for field in VARIANT)


def test_a_column_that_there_is_not_is_refused() -> None:
    with pytest.raises(KeyError, match="bodi"):
        arrow_schema(["bodi"])


TYPED = (("tenant", pa.string()), ("count", pa.int64()))


def test_nothing_asked_for_is_the_default() -> None:
    assert WantedColumns().schema().names == list(DEFAULT)


def test_columns_of_the_application_stand_where_they_are_named() -> None:
    schema = WantedColumns(("count", "offset", "tenant"), app_columns=TYPED).schema()

    assert schema.names == ["count", "offset", "tenant"]
    assert schema.field("count").type == pa.int64()


def test_columns_of_the_application_that_are_not_named_come_last() -> None:
    assert WantedColumns(("count", "offset"), app_columns=TYPED).schema().names == [
        "count",
        "offset",
        "tenant",
    ]


def test_maps_are_variants_if_so_wanted() -> None:
    schema = WantedColumns(("footer", "header"), variant=True, app_columns=TYPED[:1]).schema()

    assert schema.field("footer").type == VARIANT
    assert schema.field("header").type != VARIANT


def test_a_wanted_column_that_there_is_not_is_refused() -> None:
    with pytest.raises(KeyError, match="bodi"):
        WantedColumns(("bodi",)).schema()
