"""The schema of what is wanted."""

import pyarrow as pa
import pytest

from pyspark_hutch.decoding import Wanted
from pyspark_hutch.rows.columns import DEFAULT, VARIANT

TYPED = (("tenant", pa.string()), ("count", pa.int64()))


def test_nothing_asked_for_is_the_default() -> None:
    assert Wanted().schema().names == list(DEFAULT)


def test_columns_of_the_application_stand_where_they_are_named() -> None:
    schema = Wanted(("count", "offset", "tenant"), app_columns=TYPED).schema()

    assert schema.names == ["count", "offset", "tenant"]
    assert schema.field("count").type == pa.int64()


def test_columns_of_the_application_that_are_not_named_come_last() -> None:
    assert Wanted(("count", "offset"), app_columns=TYPED).schema().names == [
        "count",
        "offset",
        "tenant",
    ]


def test_maps_are_variants_if_so_wanted() -> None:
    schema = Wanted(("footer", "header"), variant=True, app_columns=TYPED[:1]).schema()

    assert schema.field("footer").type == VARIANT
    assert schema.field("header").type != VARIANT


def test_a_column_that_there_is_not_is_refused() -> None:
    with pytest.raises(KeyError, match="bodi"):
        Wanted(("bodi",)).schema()
