import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyspark_hutch.columns import arrow_schema
from pyspark_hutch.jobs.errors import JobFailed
from pyspark_hutch.jobs.preparation.functions import named_function
from pyspark_hutch.jobs.transform import OUTPUT, READ, Transform

Gives = Callable[[Any], object]
WHEN = datetime(2026, 1, 1, tzinfo=UTC)


def rows(*bodies: bytes, properties: dict[str, str] | None = None) -> pa.StructArray:
    schema = arrow_schema(READ)
    given = [
        {
            "stream": "orders",
            "partition": 0,
            "offset": 10 + at,
            "timestamp": WHEN,
            "body": body,
            "body_type": "data",
            "properties": {"subject": "s"},
            "application_properties": properties,
            "message_annotations": None,
        }
        for at, body in enumerate(bodies)
    ]
    return pa.array(given, pa.struct(list(schema)))


def made(transform: Transform, given: pa.StructArray) -> list[dict[str, Any]]:
    found = transform(given)
    assert found.type == OUTPUT
    listed: list[dict[str, Any]] = found.to_pylist(maps_as_pydicts="lossy")
    return listed


def test_without_a_function_rows_go_as_they_are() -> None:
    (row,) = made(Transform(), rows(b"x", properties={"a": "1"}))

    assert row["body"] == b"x"
    assert row["properties"]["subject"] == "s"
    assert row["application_properties"] == {"a": "1"}
    assert row["reason"] is None


REASON = "a publisher sent a sub-batch of 4 records that is not 28 bytes compressed by gzip"


def rows_with_bad_ones(bodies: list[bytes], bad: list[int]) -> pa.StructArray:
    """Rows as badSubBatches=raw gives them; `bad` has the indexes of those that are no messages."""
    schema = arrow_schema((*READ, "bad_sub_batch"))
    plain = rows(*bodies).to_pylist(maps_as_pydicts="strict")
    said = {"reason": REASON, "codec": 1, "records": 4, "uncompressed_bytes": 28}
    given = [row | {"bad_sub_batch": said if at in bad else None} for at, row in enumerate(plain)]
    return pa.array(given, pa.struct(list(schema)))


@pytest.mark.parametrize("takes_batches", [False, True])
@pytest.mark.parametrize("bad", [[], [0], [1], [3], [0, 1], [2, 3], [0, 1, 2, 3]])
def test_a_sub_batch_that_cannot_be_opened_is_a_bad_row_that_no_function_sees(
    bad: list[int], *, takes_batches: bool
) -> None:
    seen: list[bytes] = []

    def function(given: Any) -> Any:  # noqa: ANN401  # a row or a batch
        if takes_batches:
            assert given.schema.names == list(READ)
            assert given.num_rows
            seen.extend(given.column("body").to_pylist())
        else:
            assert set(given) == set(READ)
            seen.append(given["body"])
        return given

    transform = Transform(function, takes_batches=takes_batches, fails=False)
    bodies = [b"0", b"1", b"2", b"3"]

    found = made(transform, rows_with_bad_ones(bodies, bad))

    assert [row["body"] for row in found] == bodies
    assert [row["reason"] for row in found] == [REASON if at in bad else None for at in range(4)]
    assert seen == [body for at, body in enumerate(bodies) if at not in bad]
    for at in bad:
        assert found[at]["application_properties"] == {
            "dead-letter-reason": REASON,
            "dead-letter-stream": "orders",
            "dead-letter-offset": str(10 + at),
        }


def test_a_sub_batch_that_cannot_be_opened_ends_a_copy_that_is_told_nothing_else() -> None:
    with pytest.raises(JobFailed, match="row at offset 11 of stream 'orders': a publisher sent a"):
        Transform()(rows_with_bad_ones([b"0", b"1"], [1]))


def test_no_rows_are_none() -> None:
    assert made(Transform(), rows_with_bad_ones([], [])) == []


def test_a_function_gets_the_stream_offset_and_time_of_a_row() -> None:
    seen: list[Any] = []

    made(Transform(seen.append), rows(b"x"))

    assert (seen[0]["stream"], seen[0]["offset"], seen[0]["timestamp"]) == ("orders", 10, WHEN)


def test_a_function_can_add_to_sections_that_a_message_does_not_have() -> None:
    def function(row: dict[str, Any]) -> dict[str, Any]:
        row["application_properties"]["a"] = "1"
        row["message_annotations"]["b"] = "2"
        return row

    (row,) = made(Transform(function), rows(b"x"))

    assert row["application_properties"] == {"a": "1"}
    assert row["message_annotations"] == {"b": "2"}


def test_sections_that_stay_empty_are_not_written() -> None:
    (row,) = made(Transform(lambda _: {"body": b"", "properties": {"to": None}}), rows(b"x"))

    assert row["properties"] is None
    assert row["application_properties"] is None
    assert row["message_annotations"] is None


def test_a_function_gives_a_row_several_or_none() -> None:
    def function(row: dict[str, Any]) -> object:
        return {b"a": row, b"b": [row, row], b"c": None, b"d": []}[row["body"]]

    assert [row["body"] for row in made(Transform(function), rows(b"a", b"b", b"c", b"d"))] == [
        b"a",
        b"b",
        b"b",
    ]


def test_a_filter_value_that_cannot_be_written_ends_the_job() -> None:
    function = lambda row: {**row, "filter_value": "north"}  # noqa: E731

    assert made(Transform(function), rows(b"x"))[0]["filter_value"] == "north"
    with pytest.raises(JobFailed, match="the function gave a filter_value, which staged and"):
        Transform(function, takes_filter_values=False)(rows(b"x"))
    assert Transform(takes_filter_values=False)(rows(b"x", b"y"))


def test_values_that_a_function_gives_become_those_of_a_message() -> None:
    def function(_: object) -> dict[str, Any]:
        return {
            "body": "text",
            "routing_key": 7,
            "application_properties": {"n": 1, "none": None},
            "offset": 99,
        }

    (row,) = made(Transform(function), rows(b"x"))

    assert row["body"] == b"text"
    assert row["routing_key"] == "7"
    assert row["application_properties"] == {"n": "1", "none": None}


def test_with_json_a_function_gets_and_gives_values() -> None:
    def function(row: dict[str, Any]) -> dict[str, Any]:
        row["body"]["b"] = "é"
        return row

    (row,) = made(Transform(function, is_json=True), rows(b'{"a": 1}'))

    assert row["body"] == '{"a":1,"b":"é"}'.encode()


@pytest.mark.parametrize(
    "body", [b"nope", b"", b"\xff\xfe", b'{"a":', b"NaN", b'{"a":-Infinity}', "1".encode("utf-16")]
)
def test_a_body_that_is_not_json_is_a_bad_row_that_stays_as_it_was(body: bytes) -> None:
    good, bad = made(
        Transform(is_json=True, fails=False), rows(b"[1]", body, properties={"a": "1"})
    )

    assert good["reason"] is None
    assert bad["reason"].startswith("the body is not JSON: ")
    assert bad["body"] == body
    assert bad["properties"]["subject"] == "s"
    assert bad["application_properties"] == {
        "a": "1",
        "dead-letter-reason": bad["reason"],
        "dead-letter-stream": "orders",
        "dead-letter-offset": "11",
    }


@pytest.mark.parametrize(
    ("gives", "reason"),
    [
        (lambda _: 1 / 0, "ZeroDivisionError: division by zero"),
        (lambda _: "text", "the function gave str, not a dictionary"),
        (lambda _: 7, "the function gave int, not a dictionary"),
        (lambda _: sys.exit(3), "SystemExit: 3"),
        (lambda _: {"routing_key": "k"}, "the function gave a row without a body"),
        (lambda _: {"body": {1, 2}}, "TypeError: Object of type set is not JSON serializable"),
        (lambda _: {"body": b"", "properties": {"group_sequence": "x"}}, "ArrowInvalid: "),
        (lambda _: {"body": b"", "application_properties": 7}, "AttributeError: "),
    ],
)
def test_a_mistake_of_a_function_makes_its_row_bad(gives: Gives, reason: str) -> None:
    def function(row: dict[str, Any]) -> object:
        return gives(row) if row["body"] == b"bad" else row

    found = made(Transform(function, fails=False), rows(b"a", b"bad", b"c"))

    assert [row["body"] for row in found] == [b"a", b"bad", b"c"]
    assert found[1]["reason"].startswith(reason)
    assert [found[0]["reason"], found[2]["reason"]] == [None, None]


def test_a_value_that_json_does_not_have_makes_its_row_bad() -> None:
    (row,) = made(
        Transform(lambda _: {"body": [float("nan")]}, is_json=True, fails=False), rows(b"1")
    )

    assert row["reason"].startswith("ValueError: Out of range float values are not JSON")
    assert row["body"] == b"1"


def test_without_a_function_json_is_checked_and_stays_as_it_is_to_the_byte() -> None:
    body = b'{ "a": 1e400, "a": 0.10000000000000000001 }'

    assert [row["body"] for row in made(Transform(is_json=True), rows(body))] == [body]


def test_a_function_that_changes_a_row_before_it_fails_does_not_change_the_bad_one() -> None:
    def function(row: dict[str, Any]) -> None:
        row["body"] = b"changed"
        raise ValueError

    (row,) = made(Transform(function, fails=False), rows(b"was"))

    assert row["body"] == b"was"


def test_a_bad_row_can_end_the_job_and_is_named() -> None:
    with pytest.raises(
        JobFailed, match="row at offset 11 of stream 'orders': the body is not JSON"
    ):
        Transform(is_json=True)(rows(b"1", b"x"))


def test_a_reason_is_cut() -> None:
    def function(_: object) -> None:
        raise ValueError("x" * 10_000)

    (row,) = made(Transform(function, fails=False), rows(b"a"))

    assert len(row["reason"]) == 500


def test_a_function_by_name_is_loaded_when_it_is_called(tmp_path: Path) -> None:
    path = tmp_path / "f.py"
    path.write_text("def f(row):\n    return {'body': row['body'].upper()}\n")

    (row,) = made(Transform(named_function(f"{path}:f")), rows(b"a"))

    assert row["body"] == b"A"


# ------------------------------------------------------------------------- functions of batches


def upper(batch: pa.RecordBatch) -> pa.RecordBatch:
    if b"bad" in batch.column("body").to_pylist():
        raise ValueError("bad one")
    bodies = [body.upper() for body in batch.column("body").to_pylist()]
    return pa.RecordBatch.from_pydict({"body": bodies, "routing_key": ["k"] * len(bodies)})


def test_a_function_of_batches_gives_batches() -> None:
    found = made(Transform(upper, takes_batches=True), rows(b"a", b"b"))

    assert [(row["body"], row["routing_key"]) for row in found] == [(b"A", "k"), (b"B", "k")]


def test_of_a_batch_that_fails_only_the_bad_rows_are_bad() -> None:
    found = made(Transform(upper, takes_batches=True, fails=False), rows(b"a", b"bad", b"c"))

    assert [row["body"] for row in found] == [b"A", b"bad", b"C"]
    assert [row["reason"] for row in found] == [None, "ValueError: bad one", None]


def test_with_json_bodies_of_a_batch_are_checked() -> None:
    function = lambda batch: batch.select(["body"])  # noqa: E731

    found = made(
        Transform(function, is_json=True, takes_batches=True, fails=False), rows(b"{}", b"x")
    )

    assert json.loads(found[0]["body"]) == {}
    assert found[1]["reason"].startswith("the body is not JSON")


@pytest.mark.parametrize(
    ("gives", "reason"),
    [
        (lambda _: None, "the function gave NoneType, not a RecordBatch"),
        (lambda batch: batch.select(["stream"]), "the function gave a batch without a column body"),
    ],
)
def test_a_batch_that_is_none_is_told(gives: Gives, reason: str) -> None:
    (row,) = made(Transform(gives, takes_batches=True, fails=False), rows(b"a"))

    assert row["reason"] == reason
