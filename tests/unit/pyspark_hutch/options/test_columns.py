import pytest

from pyspark_hutch.columns import COLUMNS, DEFAULT
from pyspark_hutch.options.columns import (
    APP_COLUMNS,
    ASSIGN,
    BAD_SUB_BATCH,
    CHUNK_FIELDS,
    FIELDS,
    METADATA_FIELDS,
    TAKEN,
)
from pyspark_hutch.options.errors import Unfit
from pyspark_hutch.options.kinds import ValueKind


def refused(kind: ValueKind, text: str) -> str:
    with pytest.raises(Unfit) as caught:
        kind.parse(text)
    return str(caught.value)


def test_the_names_are_those_of_the_table_of_columns() -> None:
    assert tuple(column.name for column in COLUMNS) == (
        *DEFAULT,
        *FIELDS,
        *CHUNK_FIELDS,
        BAD_SUB_BATCH,
    )
    assert {column.name for column in COLUMNS} == TAKEN


def test_fields_come_in_the_order_of_the_columns() -> None:
    assert METADATA_FIELDS.parse("Footer, header") == ("header", "footer")
    assert METADATA_FIELDS.parse(",".join(FIELDS)) == FIELDS
    assert METADATA_FIELDS.parse("bad_sub_batch,footer") == ("footer", "bad_sub_batch")


@pytest.mark.parametrize("text", ["", "body", "chunk_id", "header,", "headers"])
def test_what_is_no_field_is_refused(text: str) -> None:
    assert refused(METADATA_FIELDS, text) == ""


def test_columns_of_the_application_have_a_name_and_a_type() -> None:
    assert APP_COLUMNS.parse("tenant string, user_id: BIGINT,n long ,i integer") == (
        ("tenant", "string"),
        ("user_id", "bigint"),
        ("n", "bigint"),
        ("i", "int"),
    )


@pytest.mark.parametrize(
    "spark_type", ["string", "bigint", "int", "double", "boolean", "binary", "timestamp"]
)
def test_a_column_has_any_of_the_simple_types(spark_type: str) -> None:
    assert APP_COLUMNS.parse(f"c {spark_type}") == (("c", spark_type),)


def test_an_odd_name_stands_in_backquotes() -> None:
    assert APP_COLUMNS.parse("`x-user id, the ``second``` string,b int") == (
        ("x-user id, the `second`", "string"),
        ("b", "int"),
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "tenant",
        "tenant string,",
        ",",
        "a string b int",
        "x-y int",
        "a int,,b int",
        "`a int",
    ],
)
def test_what_is_no_list_of_columns_is_refused(text: str) -> None:
    assert refused(APP_COLUMNS, text) == ""


def test_a_column_of_another_type_twice_or_of_a_name_that_is_taken_is_told() -> None:
    assert refused(APP_COLUMNS, "a map").startswith("type 'map' is none of string, bigint")
    assert refused(APP_COLUMNS, "a int, A string") == "column 'A' is given twice"
    assert refused(APP_COLUMNS, "Offset int") == "rows have a column 'Offset' anyway"


def test_partitions_are_assigned_by_index() -> None:
    assert ASSIGN.parse('{"orders": [2, 0], "bills": [1]}') == (
        ("orders", (2, 0)),
        ("bills", (1,)),
    )


@pytest.mark.parametrize(
    "text", ["orders", "[]", "{}", '{"orders": 1}', '{"orders": []}', '{"": [1]}']
)
def test_what_assigns_nothing_is_refused(text: str) -> None:
    refused(ASSIGN, text)


@pytest.mark.parametrize("index", ["-1", "true", "1.0", '"1"', "null", str(2**31)])
def test_an_index_is_a_whole_number_from_0_on(index: str) -> None:
    assert "the value of 'orders' is no list" in refused(ASSIGN, f'{{"orders": [0, {index}]}}')


def test_a_partition_or_a_super_stream_twice_is_refused() -> None:
    assert refused(ASSIGN, '{"orders": [1, 1]}') == "'orders' has an index twice"
    assert "twice" in refused(ASSIGN, '{"orders": [1], "orders": [2]}')
