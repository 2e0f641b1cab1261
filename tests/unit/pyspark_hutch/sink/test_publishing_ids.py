from collections.abc import Sequence

import pyarrow as pa
import pytest

from pyspark_hutch.encoding.errors import BadColumn
from pyspark_hutch.sink.publishing_ids import (
    BATCHES_MAX,
    NUMBER_MAX,
    NumberedByColumn,
    NumberedByPlace,
    Numbering,
    TaskIdentity,
    Unnamed,
    reference_of,
)

QUERY = "0123456789abcdef"


def rows(count: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"body": [b""] * count})


def keyed(keys: Sequence[object], numbers: Sequence[int | None]) -> pa.RecordBatch:
    columns = {"key": pa.array(keys), "number": pa.array(numbers, pa.int64())}
    return pa.RecordBatch.from_pydict(columns)


def runs(numbering: Numbering, batch: pa.RecordBatch) -> dict[str, tuple[object, list[int]]]:
    return {
        run.reference: (None if run.rows is None else run.rows.tolist(), run.ids.tolist())
        for run in numbering.runs(batch)
    }


def test_rows_without_a_producer_are_only_counted() -> None:
    numbering = Unnamed()

    assert runs(numbering, rows(2)) == {"": (None, [1, 2])}
    assert runs(numbering, rows(1)) == {"": (None, [3])}


def test_ids_by_place_begin_at_one_and_go_on_over_batches_of_rows() -> None:
    numbering = NumberedByPlace("name", TaskIdentity(3))

    assert runs(numbering, rows(2)) == {"name-p3": (None, [1, 2])}
    assert runs(numbering, rows(2)) == {"name-p3": (None, [3, 4])}


def test_a_streaming_batch_has_ids_of_its_own_under_the_same_name() -> None:
    first = NumberedByPlace("name", TaskIdentity(0, QUERY, 0))
    seventh = NumberedByPlace("name", TaskIdentity(0, QUERY, 7))

    assert runs(first, rows(1)) == {"name-01234567-p0": (None, [1])}
    assert runs(seventh, rows(1)) == {"name-01234567-p0": (None, [(7 << 32) + 1])}


def test_the_last_batch_that_ids_have_room_for_is_taken_and_the_next_is_refused() -> None:
    last = NumberedByPlace("name", TaskIdentity(0, QUERY, BATCHES_MAX - 1))

    assert max(runs(last, rows(1))["name-01234567-p0"][1]) < 1 << 63
    with pytest.raises(BadColumn, match="batch"):
        NumberedByPlace("name", TaskIdentity(0, QUERY, BATCHES_MAX))


def test_more_rows_than_a_batch_has_ids_for_are_refused() -> None:
    numbering = NumberedByPlace("name", TaskIdentity(0))
    numbering._next = (1 << 32) - 2

    assert runs(numbering, rows(1)) == {"name-p0": (None, [(1 << 32) - 2])}
    with pytest.raises(BadColumn, match="more partitions"):
        numbering.runs(rows(1))


def test_ids_by_column_are_one_above_the_numbers() -> None:
    numbering = NumberedByColumn("name", "number", None)

    assert runs(numbering, keyed("xyz", [0, 5, 6])) == {"name": (None, [1, 6, 7])}
    assert runs(numbering, keyed("x", [7])) == {"name": (None, [8])}


def test_each_key_is_a_producer_with_ids_of_its_own() -> None:
    numbering = NumberedByColumn("name", "number", "key")

    assert runs(numbering, keyed(["x", "y", "x"], [4, 2, 9])) == {
        "name-x": ([0, 2], [5, 10]),
        "name-y": ([1], [3]),
    }
    assert runs(numbering, keyed(["y"], [3])) == {"name-y": (None, [4])}


def test_keys_may_be_numbers_or_bytes() -> None:
    assert list(runs(NumberedByColumn("n", "number", "key"), keyed([7], [1]))) == ["n-7"]
    assert list(runs(NumberedByColumn("n", "number", "key"), keyed([b"k"], [1]))) == ["n-k"]


@pytest.mark.parametrize(
    ("batches", "said"),
    [
        ([keyed("xx", [5, 5])], r"5 comes behind 5 of producer 'x'"),
        ([keyed("xyx", [5, 1, 4])], r"4 comes behind 5 of producer 'x'"),
        ([keyed("x", [5]), keyed("yx", [9, 3])], r"3 comes behind 5 of producer 'x'"),
    ],
)
def test_numbers_that_do_not_ascend_are_refused_before_anything_of_the_batch(
    batches: list[pa.RecordBatch], said: str
) -> None:
    numbering = NumberedByColumn("name", "number", "key")
    for batch in batches[:-1]:
        numbering.runs(batch)

    with pytest.raises(BadColumn, match=said):
        numbering.runs(batches[-1])


@pytest.mark.parametrize(
    ("batch", "said"),
    [
        (keyed("x", [-1]), "-1 is negative"),
        (keyed("xy", [1, None]), "null, where each row needs its number"),
        (keyed(["x", None], [1, 2]), "null, where each row needs its producer"),
        (keyed("x", [NUMBER_MAX + 1]), "above what ids have room for"),
        (keyed(["x" * 300], [1]), "more than 255 bytes"),
    ],
)
def test_what_is_no_number_or_no_producer_is_refused(batch: pa.RecordBatch, said: str) -> None:
    with pytest.raises(BadColumn, match=said):
        NumberedByColumn("name", "number", "key").runs(batch)


def test_the_highest_number_is_taken() -> None:
    found = runs(NumberedByColumn("name", "number", None), keyed("x", [NUMBER_MAX]))

    assert found == {"name": (None, [(1 << 63) - 1])}


def test_a_batch_without_rows_has_no_runs() -> None:
    assert not runs(NumberedByColumn("name", "number", "key"), keyed([], []))
    assert not runs(NumberedByColumn("name", "number", None), keyed([], []))


def test_a_name_of_255_bytes_is_the_longest() -> None:
    assert reference_of("x" * 255) == "x" * 255
    with pytest.raises(BadColumn, match="255"):
        reference_of("é" * 128)
