"""Reads by SQL: the ways that work, and the line that names them where one does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.spark.conftest import Place
from tests.spark.publishing import append, bodies_of, publish
from tests.spark.queries import refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

WAYS = (
    "a catalog table's options do not reach a Python source in Spark 4.x: use "
    "CREATE TEMPORARY VIEW … USING hutch OPTIONS (…), SELECT … FROM t WITH (…), or "
    "spark.read.options(…).table(t)"
)


@pytest.fixture
def table(spark: SparkSession) -> Iterator[str]:
    yield "streams"
    spark.sql("DROP TABLE IF EXISTS streams")
    spark.sql("DROP VIEW IF EXISTS streams")


@pytest.fixture
def options(place: Place, stream: str) -> dict[str, str]:
    """Of a stream with 20 rows."""
    with place.client() as client:
        publish(client, stream, bodies_of(20))
    return place.options | {"stream": stream}


def listed(options: dict[str, str]) -> str:
    return ", ".join(f"'{name}' = '{value}'" for name, value in options.items())


def test_a_temporary_view_keeps_its_options_and_the_rows_of_its_first_query(
    spark: SparkSession, place: Place, options: dict[str, str], table: str
) -> None:
    spark.sql(f"CREATE TEMPORARY VIEW {table} USING hutch OPTIONS ({listed(options)})")
    query = f"SELECT max(offset) AS last, count(*) AS count FROM {table}"  # ours

    assert spark.sql(query).first() == (19, 20)
    with place.client() as client:
        append(client, options["stream"], bodies_of(5))
    assert spark.sql(query).first() == (19, 20)


@pytest.mark.parametrize("columns", ["", "(offset bigint, body binary)"], ids=["bare", "typed"])
def test_a_table_without_options_gets_them_with_each_query(
    spark: SparkSession, options: dict[str, str], table: str, columns: str
) -> None:
    spark.sql(f"CREATE TABLE {table} {columns} USING hutch")
    query = f"SELECT offset, body FROM {table} WITH ({listed(options)}) WHERE offset >= 18"

    assert sorted(spark.sql(query).collect()) == [(18, b"row 18"), (19, b"row 19")]
    assert spark.read.options(**options).table(table).where("offset < 3").count() == 3
    assert refusal(spark.table(table).collect) == f"no option has come with this query; {WAYS}"


def test_a_table_with_options_is_refused_with_the_ways_that_work(
    spark: SparkSession, options: dict[str, str], table: str
) -> None:
    made = f"CREATE TABLE {table} USING hutch OPTIONS ({listed(options)})"
    assert refusal(lambda: spark.sql(made)) == WAYS

    # With columns of its own Spark asks nothing when the table is made.
    columns = f"CREATE TABLE {table} (body binary) USING hutch OPTIONS ({listed(options)})"
    spark.sql(columns)
    assert refusal(spark.table(table).collect) == f"no option has come with this query; {WAYS}"
    streaming = spark.readStream.table(table).writeStream.format("noop")
    assert WAYS in refusal(lambda: streaming.start().awaitTermination(60))


def test_a_read_without_any_option_says_what_is_missing(spark: SparkSession) -> None:
    assert refusal(lambda: spark.read.format("hutch").load()) == (
        "option stream is missing: one of stream, superStream, assign and streamPattern says "
        "what is read; "
        "option endpoints is missing: it or uri says where the servers are, "
        "as endpoints=localhost:5552"
    )
