"""Columns of a written DataFrame, right and wrong ones."""

import pyarrow as pa
import pytest

from pyspark_hutch.columns import TEXTS
from pyspark_hutch.encoding.columns import ANYTHING, KEY, NUMBER, check_columns
from pyspark_hutch.encoding.errors import BadColumn
from tests.unit.pyspark_hutch.encoding.batches import PROPERTIES

BODY = ("body", pa.binary())


def refused(*fields: tuple[str, pa.DataType], **options: object) -> str:
    """Return why a schema is refused; asserts that it is one line."""
    with pytest.raises(BadColumn) as caught:
        check_columns(pa.schema(list(fields)), **options)  # type: ignore[arg-type]
    text = str(caught.value)
    assert "\n" not in text
    assert repr(caught.value.column) in text
    return text


def test_every_column_of_the_table_is_taken() -> None:
    check_columns(
        pa.schema(
            [
                BODY,
                ("routing_key", pa.string()),
                ("stream", pa.string()),
                ("properties", PROPERTIES),
                ("application_properties", TEXTS),
                ("message_annotations", TEXTS),
                ("filter_value", pa.string()),
            ]
        )
    )


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()], ids=str
)
def test_a_body_is_text_or_bytes(kind: pa.DataType) -> None:
    check_columns(pa.schema([("body", kind)]))


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (pa.int64(), "bigint"),
        (pa.float64(), "double"),
        (pa.null(), "void"),
        (pa.timestamp("us", "UTC"), "timestamp"),
        (pa.timestamp("us"), "timestamp_ntz"),
        (pa.decimal128(10, 2), "decimal(10,2)"),
        (pa.list_(pa.string()), "array<string>"),
        (pa.struct([("a", pa.int32())]), "struct<a:int>"),
        (pa.map_(pa.string(), pa.bool_()), "map<string,boolean>"),
        (pa.duration("us"), "duration[us]"),
    ],
    ids=str,
)
def test_a_wrong_type_is_named_as_spark_names_it(kind: pa.DataType, name: str) -> None:
    text = refused(("body", kind))

    assert text == f"column 'body': is {name}, must be binary or string"


@pytest.mark.parametrize(
    ("name", "kind", "allowed"),
    [
        ("routing_key", pa.binary(), "string"),
        ("stream", pa.int32(), "string"),
        ("filter_value", pa.binary(), "string"),
        ("properties", TEXTS, "struct"),
        ("application_properties", pa.map_(pa.string(), pa.int64()), "map<string,string>"),
        ("message_annotations", pa.map_(pa.int64(), pa.string()), "map<string,string>"),
        ("application_properties", PROPERTIES, "map<string,string>"),
    ],
)
def test_each_column_has_its_type(name: str, kind: pa.DataType, allowed: str) -> None:
    assert refused(BODY, (name, kind)).endswith(f", must be {allowed}")


@pytest.mark.parametrize(
    ("given", "meant"),
    [("value", "value"), ("Payload", "Payload"), ("bodi", "bodi"), ("Body", "Body")],
)
def test_a_missing_body_is_told_with_what_may_be_meant(given: str, meant: str) -> None:
    text = refused((given, pa.binary()), ("number", pa.int64()))

    assert text == (
        "column 'body': missing (binary or string); "
        f"the rows have {given}, number; is it {meant!r}?"
    )


def test_nothing_is_guessed_where_nothing_is_near() -> None:
    assert refused(("number", pa.int64())).endswith("the rows have number")
    assert refused().endswith("the rows have no columns")


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("filtervalue", "filter_value"),
        ("ROUTING_KEY", "routing_key"),
        ("headers", "application_properties"),
        ("key", "routing_key"),
        ("topic", "stream"),
    ],
)
def test_an_unknown_column_is_told_with_the_nearest_one(given: str, meant: str) -> None:
    text = refused(BODY, (given, pa.string()))

    assert f"did you mean {meant!r}?" in text
    assert "ignoreUnknownColumns=true" in text


def test_an_unknown_column_may_be_passed_over() -> None:
    schema = pa.schema([BODY, ("number", pa.int64())])

    assert "did you mean" not in refused(*[(field.name, field.type) for field in schema])
    check_columns(schema, ignore_unknown=True)


def test_a_column_that_an_option_names_is_known_and_must_be_there() -> None:
    schema = pa.schema([BODY, ("number", pa.int64())])

    check_columns(schema, extra={"number": ANYTHING})
    assert "'user'" in refused(BODY, extra={"user": KEY})


def test_a_column_that_an_option_names_has_the_type_that_it_needs() -> None:
    text = refused(BODY, ("number", pa.string()), extra={"number": NUMBER})

    assert text == "column 'number': is string, must be bigint or int"
    for kind in (pa.string(), pa.binary(), pa.int32(), pa.int64()):
        check_columns(pa.schema([BODY, ("user", kind)]), extra={"user": KEY})
    assert "string, binary, bigint or int" in refused(
        BODY, ("user", pa.float64()), extra={"user": KEY}
    )


def test_two_columns_of_a_name_are_refused() -> None:
    assert refused(BODY, BODY) == "column 'body': there are two of this name"


@pytest.mark.parametrize(
    ("name", "kind"),
    [("properties", PROPERTIES), ("application_properties", TEXTS), ("message_annotations", TEXTS)],
)
def test_raw_bodies_have_no_sections(name: str, kind: pa.DataType) -> None:
    assert "bodyFormat=raw" in refused(BODY, (name, kind), raw=True)
    check_columns(pa.schema([BODY, ("filter_value", pa.string())]), raw=True)


def test_filter_values_and_sub_batches_exclude_each_other_by_name() -> None:
    text = refused(BODY, ("filter_value", pa.string()), sub_batches="compression=gzip")

    assert text.startswith("column 'filter_value': ")
    assert "compression=gzip" in text
    check_columns(pa.schema([BODY]), sub_batches="compression=gzip")


def properties(*fields: tuple[str, pa.DataType]) -> tuple[str, pa.DataType]:
    return ("properties", pa.struct(list(fields)))


def test_properties_may_have_any_of_their_fields() -> None:
    for field in PROPERTIES:
        if not field.name.endswith("_id_type"):
            check_columns(pa.schema([BODY, properties((field.name, field.type))]))
    check_columns(pa.schema([BODY, properties(("group_sequence", pa.int32()))]))
    check_columns(pa.schema([BODY, properties(("user_id", pa.string()))]))


def test_a_wrong_field_of_the_properties_is_named() -> None:
    assert "'properties.subjekt': no such field; did you mean 'subject'?" in refused(
        BODY, properties(("subjekt", pa.string()))
    )
    assert refused(BODY, properties(("to", pa.int64()))) == (
        "column 'properties.to': is bigint, must be string"
    )
    assert "two" in refused(BODY, properties(("to", pa.string()), ("to", pa.string())))


@pytest.mark.parametrize("name", ["message_id", "correlation_id"])
def test_the_type_of_an_identifier_needs_the_identifier(name: str) -> None:
    text = refused(BODY, properties((f"{name}_type", pa.string())))

    assert text == f"column 'properties.{name}_type': there is no {name} beside it"
