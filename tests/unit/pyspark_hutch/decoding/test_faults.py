import copy
import gzip
import logging
import pickle
from itertools import pairwise
from types import ModuleType
from typing import Any

import pytest

from pyspark_hutch.columns import DEFAULT, WantedColumns
from pyspark_hutch.decoding.decoder import Decoder
from pyspark_hutch.decoding.faults import DamagedChunk, UnopenedSubBatch
from pyspark_hutch.decoding.open_batch import BATCH_BYTES_MAX, ROWS_MAX
from pyspark_hutch.options.read_settings import Fate
from tests.chunks import GZIP, LZ4, NONE, SNAPPY, ZSTD, SubBatch
from tests.property.pyspark_hutch.chunk_rig import (
    EVERYTHING,
    WAYS,
    batches_of,
    chunk_of,
    data,
    mapped,
    rows_of,
    section,
    text,
    way_of,
)

REASON = "a publisher sent a sub-batch of 4 records that is not 28 bytes compressed by gzip"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            DamagedChunk("orders", 5, "its data has another checksum"),
            "stream 'orders' is damaged at offset 5: its data has another checksum",
        ),
        (
            UnopenedSubBatch("orders", 5, REASON),
            f"stream 'orders': at offset 5 {REASON}. Set badSubBatches to skip or raw to go on.",
        ),
    ],
)
def test_an_error_says_where_and_why(error: DamagedChunk | UnopenedSubBatch, text: str) -> None:
    assert str(error) == text
    assert (error.stream, error.offset) == ("orders", 5)
    assert str(copy.copy(error)) == str(error)


SHORT = SubBatch.of([b"ab", b"c"])
RAW = SHORT.body
LARGE = SubBatch.of([bytes(1 << 20)] * 4, ZSTD)
KINDS: dict[str, tuple[SubBatch, str]] = {
    "no gzip": (SubBatch(GZIP, 4, 28, b"garbage"), "is not 28 bytes compressed by gzip"),
    "no snappy": (SubBatch(SNAPPY, 4, 28, b"garbage"), "is not 28 bytes compressed by snappy"),
    "no lz4": (SubBatch(LZ4, 4, 28, b"garbage"), "is not 28 bytes compressed by lz4"),
    "no zstd": (SubBatch(ZSTD, 4, 28, b"garbage"), "is not 28 bytes compressed by zstd"),
    "another codec": (SubBatch(SNAPPY, 2, 11, gzip.compress(RAW)), "is not 11 bytes compressed by"),
    "nothing": (SubBatch(GZIP, 2, 11, b""), "is not 11 bytes compressed by gzip"),
    "fewer bytes": (SubBatch(GZIP, 2, 12, gzip.compress(RAW)), "is not 12 bytes compressed by"),
    "more bytes": (SubBatch(GZIP, 2, 10, gzip.compress(RAW)), "is not 10 bytes compressed by"),
    "far more bytes": (SubBatch(ZSTD, 4, 99, LARGE.body), "is not 99 bytes compressed by zstd"),
    "fewer records": (SubBatch(NONE, 3, 11, RAW), "does not hold 3 records in 11 bytes"),
    "more records": (SubBatch(NONE, 1, 11, RAW), "does not hold 1 records in 11 bytes"),
    "fewer records, compressed": (
        SubBatch(GZIP, 3, 11, gzip.compress(RAW)),
        "does not hold 3 records in 11 bytes",
    ),
    "a length that is too large": (
        SubBatch(NONE, 2, 10, RAW[:-1]),
        "does not hold 2 records in 10",
    ),
    "a length that is cut off": (SubBatch(NONE, 2, 8, RAW[:8]), "does not hold 2 records in 8"),
    "bytes behind the records": (
        SubBatch(NONE, 2, 12, RAW + b"x"),
        "does not hold 2 records in 12",
    ),
    "a sub-batch in it": (SubBatch(NONE, 1, 22, SHORT.encoded()), "does not hold 1 records in 22"),
    "an unknown codec": (SubBatch(5, 2, 11, RAW), "is compressed by an unknown codec, 5"),
    "a size above the limit": (
        SubBatch(GZIP, 2, 1 << 27, b"x"),
        "says that it has 134217728 bytes, more than 67108864",
    ),
    "no size": (SubBatch(GZIP, 2, 0, gzip.compress(RAW)), "does not hold 2 records in 0 bytes"),
}
EACH_KIND = pytest.mark.parametrize(("bad", "fault"), KINDS.values(), ids=KINDS)
ONE = KINDS["no gzip"][0]
SAID = "a publisher sent a sub-batch of 4 records that is not 28 bytes compressed by gzip"


@pytest.fixture(params=WAYS[::2])
def way(request: pytest.FixtureRequest) -> ModuleType:
    return way_of(request.param)


def wanted(fate: Fate, *columns: str, **more: Any) -> WantedColumns:  # noqa: ANN401  # of Wanted
    names = columns or ("offset", "body", "body_type")
    return WantedColumns(names, stream="orders", bad_sub_batches=fate, **more)


def refused(chunk: bytes, low: int = 0, high: int = EVERYTHING) -> UnopenedSubBatch:
    with pytest.raises(UnopenedSubBatch) as caught:
        list(Decoder(wanted("fail")).add(chunk, low, high))
    return caught.value


def bodies(chunk: bytes, fate: Fate, *cut: int, way: ModuleType | None = None) -> list[Any]:
    return [(r["offset"], r["body"]) for r in rows_of([chunk], wanted(fate), way, *cut)]


# Each kind, each fate


@EACH_KIND
def test_fail_names_the_stream_the_place_the_publisher_and_the_option(
    bad: SubBatch, fault: str
) -> None:
    error = refused(chunk_of(b"a", bad, chunk_id=10))

    sent = f"a publisher sent a sub-batch of {bad.record_count} records that {fault}"
    assert str(error).startswith(f"stream 'orders': at offset 11 {sent}")
    assert str(error).endswith(". Set badSubBatches to skip or raw to go on.")
    assert "damage" not in str(error)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


@EACH_KIND
def test_skip_leaves_out_as_many_offsets_as_the_head_says_and_logs_them(
    bad: SubBatch, fault: str, way: ModuleType, caplog: pytest.LogCaptureFixture
) -> None:
    chunk = chunk_of(data(b"a"), bad, data(b"z"), SubBatch.of([b"y"], GZIP), chunk_id=10)

    end = 11 + bad.record_count
    found = bodies(chunk, "skip", way=way)
    assert found == [(10, b"a"), (end, b"z"), (end + 1, b"y")]
    (line,) = [record.getMessage() for record in caplog.records]
    count = bad.record_count
    sent = f"a publisher sent a sub-batch of {count} records that {fault}"
    assert line.startswith(
        f"stream 'orders': {count} offsets of 1 bad sub-batches were left out; "
        f"the first: at offset 11 {sent}"
    )


@EACH_KIND
def test_raw_gives_one_row_of_the_bytes_that_were_sent(
    bad: SubBatch, fault: str, way: ModuleType
) -> None:
    chunk = chunk_of(data(b"a"), bad, data(b"z"), chunk_id=10)
    columns = ("offset", "body", "body_type", "bad_sub_batch", "entry_index", "sub_index")

    before, row, after = rows_of([chunk], wanted("raw", *columns), way)

    head = row.pop("bad_sub_batch")
    assert row == {
        "offset": 11,
        "body": bad.body,
        "body_type": "bad-sub-batch",
        "entry_index": 1,
        "sub_index": None,
    }
    sent = f"a publisher sent a sub-batch of {bad.record_count} records that {fault}"
    assert head.pop("reason").startswith(sent)
    assert head == {
        "codec": bad.compression,
        "records": bad.record_count,
        "uncompressed_bytes": bad.raw_size,
    }
    assert before == dict(zip(columns, (10, b"a", "data", None, 0, None), strict=True))
    end = 11 + bad.record_count
    assert after == dict(zip(columns, (end, b"z", "data", None, 2, None), strict=True))


@pytest.mark.parametrize("fate", ["fail", "skip", "raw"])
def test_a_sub_batch_without_records_takes_no_offset_and_is_passed_over(fate: Fate) -> None:
    chunk = chunk_of(b"a", SubBatch(7, 0, 0, b"?"), b"b", chunk_id=10)

    assert bodies(chunk, fate) == [(10, b"a"), (11, b"b")]


# Ranges that begin or end within one


@pytest.mark.parametrize("fate", ["skip", "raw"])
@pytest.mark.parametrize("bad", [ONE, KINDS["fewer records"][0], KINDS["more bytes"][0]])
@pytest.mark.parametrize("cut", range(9, 18))
def test_ranges_that_meet_within_one_give_what_one_range_gives(
    fate: Fate, bad: SubBatch, cut: int
) -> None:
    chunk = chunk_of(b"a", bad, b"z", SHORT, chunk_id=10)

    pieces = [bodies(chunk, fate, *piece) for piece in pairwise((0, cut, EVERYTHING))]

    assert [row for piece in pieces for row in piece] == bodies(chunk, fate)


@pytest.mark.parametrize(("low", "count"), [(0, 4), (11, 4), (12, 3), (14, 1), (15, 0)])
def test_offsets_before_the_range_are_not_counted(
    low: int, count: int, caplog: pytest.LogCaptureFixture
) -> None:
    assert bodies(chunk_of(b"a", ONE, chunk_id=10), "skip", max(low, 11)) == []

    lines = [record.getMessage() for record in caplog.records]
    assert [line.split(" offsets of ")[0] for line in lines] == (
        [f"stream 'orders': {count}"] if count else []
    )


def test_offsets_behind_the_range_are_not_counted(caplog: pytest.LogCaptureFixture) -> None:
    assert bodies(chunk_of(b"a", ONE, chunk_id=10), "skip", 12, 14) == []

    assert "orders': 2 offsets of 1 bad" in caplog.text


def test_one_outside_the_range_is_not_looked_at() -> None:
    chunk = chunk_of(b"a", ONE, b"b", chunk_id=10)

    assert bodies(chunk, "fail", 15) == [(15, b"b")]
    assert bodies(chunk, "fail", 0, 11) == [(10, b"a")]
    assert refused(chunk, 12, 13).offset == 11


def test_one_is_judged_as_a_whole_however_little_of_it_is_wanted() -> None:
    chunk = chunk_of(SubBatch(NONE, 3, 11, RAW), chunk_id=10)

    assert "does not hold 3 records" in refused(chunk, 10, 11).reason
    assert bodies(chunk, "raw", 10, 11) == [(10, RAW)]
    assert bodies(chunk, "raw", 11, 13) == []


# What else there is


def test_rows_before_it_are_not_lost(way: ModuleType) -> None:
    decoder = Decoder(wanted("fail"), way)

    with pytest.raises(UnopenedSubBatch):
        list(decoder.add(chunk_of(b"a", SubBatch.of([b"b"]), ONE), 0, 99))

    rows: list[Any] = [row for batch in decoder.finish() for row in batch.to_pylist()]
    assert [row["body"] for row in rows] == [b"a", b"b"]


def test_many_are_one_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    chunks = [chunk_of(b"a", ONE, ONE, chunk_id=offset) for offset in (10, 30)]
    decoder = Decoder(wanted("skip"))
    for chunk in chunks:
        list(decoder.add(chunk, 0, 99))
    assert caplog.records == []

    list(decoder.finish())
    list(decoder.finish())

    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage() == (
        f"stream 'orders': 16 offsets of 4 bad sub-batches were left out; "
        f"the first: at offset 11 {SAID}"
    )


def test_rows_of_what_was_sent_are_logged_too(caplog: pytest.LogCaptureFixture) -> None:
    bodies(chunk_of(ONE), "raw")

    assert (
        "4 offsets of 1 bad sub-batches became rows of what was sent, one for each" in caplog.text
    )


@pytest.mark.parametrize("body_format", ["amqp", "raw"])
def test_a_body_that_looks_like_a_message_is_none(body_format: str, way: ModuleType) -> None:
    message = section(0x74, mapped(a=text("b"))) + data(b"inner")
    columns = (*DEFAULT, "application_properties", "properties")
    sent = SubBatch(NONE, 5, 0, message)

    (row,) = rows_of([chunk_of(sent)], wanted("raw", *columns, body_format=body_format), way)

    assert (row["body"], row["body_type"]) == (message, "bad-sub-batch")
    assert row["application_properties"] is row["properties"] is None


@pytest.mark.parametrize("columns", [("offset",), ("bad_sub_batch",), ("body_type",), ("stream",)])
def test_few_columns_have_as_many_rows(columns: tuple[str, ...], way: ModuleType) -> None:
    chunk = chunk_of(b"a", ONE, b"z")

    assert len(rows_of([chunk], wanted("raw", *columns), way)) == 3
    assert len(rows_of([chunk], wanted("skip", *columns), way)) == 2


def test_the_column_is_null_where_every_row_is_a_message() -> None:
    chunk = chunk_of(b"a", SHORT)

    rows = rows_of([chunk], wanted("fail", "bad_sub_batch"))

    assert rows == [{"bad_sub_batch": None}] * 3


def test_rows_of_many_make_batches_as_others_do(way: ModuleType) -> None:
    sent = SubBatch(GZIP, 1, 9, b"bad")
    chunks = [chunk_of(*[sent] * 5_000, b"a", chunk_id=5_001 * n) for n in range(5)]
    columns = ("offset", "body", "bad_sub_batch")

    batches = batches_of(chunks, wanted("raw", *columns), way)

    assert [batch.num_rows for batch in batches] == [ROWS_MAX, ROWS_MAX, 5_005]
    rows = [row for batch in batches for row in batch.to_pylist()]
    assert [row["offset"] for row in rows] == list(range(25_005))
    is_bad = [row["bad_sub_batch"] is not None for row in rows]
    assert (
        is_bad
        == [row["body"] == b"bad" for row in rows]
        == [n % 5_001 < 5_000 for n in range(25_005)]
    )


def test_large_ones_end_batches_as_large_messages_do(way: ModuleType) -> None:
    third = SubBatch(GZIP, 1, 9, bytes(BATCH_BYTES_MAX // 3 + 1))
    larger = SubBatch(GZIP, 1, 9, bytes(BATCH_BYTES_MAX + 1))

    batches = batches_of([chunk_of(b"a", *[third] * 4, larger, third)], wanted("raw"), way)

    assert [batch.num_rows for batch in batches] == [3, 2, 1, 1]
