"""A user's schema as a choice of columns; needs Spark's classes, and no Java."""

import pytest
from pyspark.sql.types import (
    BinaryType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    VariantType,
)

from pyspark_hutch.options.errors import WrongOption
from pyspark_hutch.options.read_settings import Decoding
from pyspark_hutch.schemas import columns_of, schema_of

OFFSET = StructField("offset", LongType())
TEXTS = MapType(StringType(), StringType())


def test_columns_are_chosen_in_any_order() -> None:
    schema = StructType([StructField("body", BinaryType()), OFFSET])

    assert columns_of(schema, Decoding()) == (("body", "offset"), False)


@pytest.mark.parametrize("variant", [False, True])
def test_every_column_can_be_chosen_as_it_is_offered(variant: bool) -> None:  # noqa: FBT001
    maps = ("application_properties", "footer")
    offered = schema_of(Decoding(extra_columns=("header", "properties", *maps), variant=variant))

    assert columns_of(offered, Decoding()) == (tuple(offered.names), variant)


def test_a_column_of_the_application_has_the_type_that_its_option_says() -> None:
    decoding = Decoding(app_columns=(("tenant", "int"),))

    assert columns_of(StructType([StructField("tenant", IntegerType())]), decoding)[0] == (
        "tenant",
    )
    with pytest.raises(WrongOption, match="column 'tenant' has type string; it can be int"):
        columns_of(StructType([StructField("tenant", StringType())]), decoding)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ([], "schema: names no column"),
        ([OFFSET, OFFSET], "schema: column 'offset' is given twice"),
        ([StructField("OFFSET", LongType())], "no column 'OFFSET' can be read; did you mean 'offs"),
        ([StructField("offset", LongType(), nullable=False)], "column 'offset' is not null"),
        (
            [StructField("footer", MapType(StringType(), StringType(), valueContainsNull=False))],
            "column 'footer' is not null, or has a field that is not",
        ),
        (
            [StructField("footer", TEXTS), StructField("application_properties", VariantType())],
            "must all be maps, or all be variants",
        ),
    ],
)
def test_a_schema_that_cannot_be_read_is_refused(fields: list[StructField], words: str) -> None:
    with pytest.raises(WrongOption, match=words):
        columns_of(StructType(fields), Decoding())
