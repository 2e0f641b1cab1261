"""Why the source takes no filters from Spark: with them other queries lose rows.

Spark keeps what a filter has planned with the data frame, and uses it for other queries of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, cast

from pyspark_hutch.batch_reads import BatchReader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.datasource import DataSourceReader, Filter, LessThan

SWITCH = "spark.sql.python.filterPushdown.enabled"


def reader_class() -> type[DataSourceReader]:
    """Make the reader: the numbers 0 to 9, of which it leaves out what it may."""
    from pyspark.sql.datasource import DataSourceReader, InputPartition

    class Reader(DataSourceReader):
        def __init__(self) -> None:
            self.bounds = {"LessThan": 10, "GreaterThanOrEqual": 0}

        def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802  # Spark's
            for given in filters:
                if type(given).__name__ in self.bounds:
                    self.bounds[type(given).__name__] = cast("LessThan", given).value
                else:
                    yield given

        def partitions(self) -> list[InputPartition]:
            return [InputPartition((self.bounds["GreaterThanOrEqual"], self.bounds["LessThan"]))]

        def read(self, partition: InputPartition) -> Iterator[tuple[int, ...]]:
            for number in range(*partition.value):
                yield (number,)

    return Reader


def register_filtering_source(spark: SparkSession) -> None:
    """Make the format `filtering`."""
    from pyspark.sql.datasource import DataSource

    reader = reader_class()

    class Filtering(DataSource):
        @classmethod
        def name(cls) -> str:
            return "filtering"

        def schema(self) -> str:
            return "o int"

        def reader(self, schema: object) -> DataSourceReader:  # noqa: ARG002  # Spark's
            return reader()

    spark.dataSource.register(Filtering)


def counts(frame: DataFrame) -> dict[str, int]:
    return {
        "some": frame.where("o < 3").count(),
        "all": frame.count(),
        "union": frame.where("o < 3").union(frame.where("o >= 5")).count(),
    }


def test_filters_stay_with_spark_since_they_leak_into_other_queries(spark: SparkSession) -> None:
    from pyspark.sql.datasource import DataSourceReader

    assert BatchReader.pushFilters is DataSourceReader.pushFilters

    spark.conf.set(SWITCH, "true")
    try:
        register_filtering_source(spark)
        found = counts(spark.read.format("filtering").load())
    finally:
        spark.conf.unset(SWITCH)

    assert found["some"] == 3
    assert (found["all"], found["union"]) != (10, 8), (
        f"Spark {spark.version} gives the right rows to a source with pushFilters: "
        "it may come to this one, for this version and later ones"
    )
