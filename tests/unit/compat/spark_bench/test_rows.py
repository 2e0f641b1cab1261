"""The rows that are measured."""

import pytest

from compat.spark_bench.rows import DRAWN, FIXED_100, FIXED_1024, GZIP, PROPERTIES, Rows
from pyspark_hutch.encoding.columns import check_columns

KINDS = (DRAWN, FIXED_100, FIXED_1024, GZIP, PROPERTIES)


@pytest.mark.parametrize("rows", KINDS, ids=lambda rows: rows.name)
def test_rows_are_the_same_ones_each_time_as_many_as_asked_for_and_can_be_written(
    rows: Rows,
) -> None:
    batches = list(rows.batches(12_345))

    assert sum(batch.num_rows for batch in batches) == 12_345
    assert batches == list(rows.batches(12_345))
    check_columns(batches[0].schema, extra={}, ignore_unknown=False, raw=False, sub_batches="")


@pytest.mark.parametrize(
    ("rows", "sizes"),
    [(FIXED_100, {100}), (FIXED_1024, {1024}), (DRAWN, set(range(50, 151))), (GZIP, {100})],
    ids=lambda value: getattr(value, "name", ""),
)
def test_bodies_have_their_sizes(rows: Rows, sizes: set[int]) -> None:
    (batch,) = rows.batches(10_000)

    assert {len(body.as_py()) for body in batch.column(0)} == sizes
