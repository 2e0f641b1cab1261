"""Chunks to batches: what is read of a chunk, what is refused, and where batches end."""

import pickle
import tracemalloc
from datetime import UTC, datetime
from types import ModuleType
from zlib import crc32

import pyarrow as pa
import pytest

from hutch.formats.amqp.writing import BasicProperties, pack_message
from pyspark_hutch.columns import DEFAULT, WantedColumns
from pyspark_hutch.decoding.decoder import Decoder
from pyspark_hutch.decoding.faults import DamagedChunk
from pyspark_hutch.decoding.open_batch import BATCH_BYTES_MAX, ROWS_MAX
from tests.chunks import GZIP, HEADER, SubBatch
from tests.property.pyspark_hutch.chunk_rig import (
    EVERYTHING,
    TIMESTAMP_MS,
    WAYS,
    batches_of,
    chunk_of,
    data,
    data_of,
    listed,
    mapped,
    rows_of,
    section,
    text,
    way_of,
)

TIME = datetime(2023, 11, 14, 22, 13, 20, 123_000, UTC)
BODIES = WantedColumns(("offset", "body"), stream="orders")


@pytest.fixture(params=WAYS[::2])
def way(request: pytest.FixtureRequest) -> ModuleType:
    return way_of(request.param)


def damage(chunk: bytes, low: int = 0, high: int = EVERYTHING) -> DamagedChunk:
    with pytest.raises(DamagedChunk) as caught:
        list(Decoder(BODIES).add(chunk, low, high))
    return caught.value


def test_a_record_has_the_seven_default_columns(way: ModuleType) -> None:
    wanted = WantedColumns(stream="orders-1", super_stream="orders", partition=1)

    rows = rows_of([chunk_of(data(b"abc"), chunk_id=5)], wanted, way)

    assert rows == [
        {
            "stream": "orders-1",
            "super_stream": "orders",
            "partition": 1,
            "offset": 5,
            "timestamp": TIME,
            "body": b"abc",
            "body_type": "data",
        }
    ]


def test_a_plain_stream_has_no_super_stream_and_is_partition_0() -> None:
    row = rows_of([chunk_of(b"x")], WantedColumns(stream="orders"))[0]

    assert (row["super_stream"], row["partition"]) == (None, 0)


def test_the_columns_asked_for_come_in_that_order() -> None:
    names = ("body", "sub_index", "offset", "stream")

    batch = batches_of([chunk_of(b"x")], WantedColumns(names))[0]

    assert batch.schema.names == list(names)


def test_text_columns_are_plain_and_not_dictionaries() -> None:
    batch = batches_of([chunk_of(data(b"x"), b"y")], WantedColumns(stream="orders"))[0]

    assert [batch.schema.field(name).type for name in ("stream", "body_type")] == [pa.string()] * 2


@pytest.mark.parametrize(("low", "high"), [(0, 0), (0, 10), (14, 99), (15, 12)])
def test_a_chunk_outside_the_range_gives_nothing(way: ModuleType, low: int, high: int) -> None:
    chunk = chunk_of(b"a", b"b", SubBatch.of([b"c", b"d"]), chunk_id=10)

    assert rows_of([chunk], BODIES, way, low, high) == []


@pytest.mark.parametrize("low", range(9, 16))
@pytest.mark.parametrize("high", range(9, 16))
def test_rows_are_cut_by_offset(way: ModuleType, low: int, high: int) -> None:
    chunk = chunk_of(b"0", SubBatch.of([b"1", b"2", b"3"], GZIP), b"4", chunk_id=10)

    rows = rows_of([chunk], BODIES, way, low, high)

    expected = [(10 + n, b"%d" % n) for n in range(5) if low <= 10 + n < high]
    assert [(row["offset"], row["body"]) for row in rows] == expected


def test_bytes_behind_the_data_do_not_count(way: ModuleType) -> None:
    chunk = memoryview(bytearray(chunk_of(data(b"a")) + b"a trailer that a server left in"))

    assert [row["body"] for row in rows_of([chunk], BODIES, way)] == [b"a"]


@pytest.mark.parametrize("kind", [1, 2])
def test_tracking_chunks_have_no_rows(kind: int) -> None:
    assert rows_of([chunk_of(b"\0\1a", kind=kind)], BODIES) == []


def test_a_tracking_chunk_between_others_takes_an_offset() -> None:
    chunks = [
        chunk_of(b"a", chunk_id=0),
        chunk_of(b"tracking", chunk_id=1, kind=1),
        chunk_of(b"b", chunk_id=2),
    ]

    rows = rows_of(chunks, BODIES)

    assert [(row["offset"], row["body"]) for row in rows] == [(0, b"a"), (2, b"b")]


def test_every_record_says_where_it_was_in_its_chunk(way: ModuleType) -> None:
    wanted = WantedColumns(("offset", "chunk_id", "entry_index", "sub_index"))
    entries = (b"a", b"b", SubBatch.of([b"c", b"d"]), SubBatch.of([b"e"]), b"f")

    rows = rows_of([chunk_of(*entries, chunk_id=10), chunk_of(b"g", chunk_id=20)], wanted, way)

    assert [tuple(row.values()) for row in rows] == [
        (10, 10, 0, None),
        (11, 10, 1, None),
        (12, 10, 2, 0),
        (13, 10, 2, 1),
        (14, 10, 3, 0),
        (15, 10, 4, None),
        (20, 20, 0, None),
    ]


def test_a_cut_leaves_the_places_as_they_are(way: ModuleType) -> None:
    wanted = WantedColumns(("offset", "entry_index", "sub_index"))
    chunk = chunk_of(b"a", b"b", SubBatch.of([b"c", b"d"]), b"e", chunk_id=10)

    places = [tuple(row.values()) for row in rows_of([chunk], wanted, way, 13, 15)]

    assert places == [(13, 2, 1), (14, 3, None)]


@pytest.mark.parametrize("ms", [0, -1, TIMESTAMP_MS])
def test_the_time_is_the_chunks(ms: int) -> None:
    batch = batches_of([chunk_of(b"a", timestamp_ms=ms)], WantedColumns(("timestamp",)))[0]

    assert batch.column(0).cast(pa.int64()).to_pylist() == [ms * 1000]


@pytest.mark.parametrize("ms", [(1 << 63) - 1, -(1 << 63), (1 << 63) // 1000 + 1])
def test_a_time_that_has_no_microseconds_is_null(ms: int) -> None:
    chunks = [chunk_of(b"a", timestamp_ms=ms), chunk_of(b"b", timestamp_ms=5)]

    batch = batches_of(chunks, WantedColumns(("timestamp",)))[0]

    assert batch.column(0).cast(pa.int64()).to_pylist() == [None, 5000]


def test_messages_are_raw_where_the_format_is_raw(way: ModuleType) -> None:
    wanted = WantedColumns((*DEFAULT[-2:], "application_properties"), body_format="raw")

    rows = rows_of([chunk_of(data(b"abc"))], wanted, way)

    assert rows == [{"body": data(b"abc"), "body_type": "raw", "application_properties": None}]


def test_a_message_of_sections_without_a_body_has_none(way: ModuleType) -> None:
    message = section(0x74, mapped(a=text("b")))
    wanted = WantedColumns(("body", "body_type", "application_properties"))

    rows = rows_of([chunk_of(message, data(b""))], wanted, way)

    assert rows[0] == {
        "body": None,
        "body_type": None,
        "application_properties": [("a", "b")],
    }
    assert rows[1] == {"body": b"", "body_type": "data", "application_properties": None}


def test_what_an_amqp_client_published_to_this_server_is_read() -> None:
    properties = BasicProperties(
        content_type="text/plain", headers={"tenant": "a", "x-own": 1}, message_id="m-1"
    )
    message = pack_message(b"hello", properties, exchange="e", routing_key="k")
    names = ("body", "body_type", "properties", "application_properties", "message_annotations")

    row = rows_of([chunk_of(message)], WantedColumns(names))[0]

    assert (row["body"], row["body_type"]) == (b"hello", "data")
    assert row["properties"]["message_id"] == "m-1"
    assert row["properties"]["content_type"] == "text/plain"
    assert row["application_properties"] == [("tenant", "a")]
    expected = {"x-exchange": "e", "x-routing-key": "k", "x-own": "1"}
    assert dict(row["message_annotations"]) == expected


# Batches


@pytest.mark.parametrize("per_chunk", [1, 99, 1000, 30_000])
def test_a_batch_ends_at_ten_thousand_rows(way: ModuleType, per_chunk: int) -> None:
    chunks = [
        chunk_of(*[data(b"%05d" % n) for n in range(first, first + per_chunk)], chunk_id=first)
        for first in range(0, 25_000, per_chunk)
    ]

    batches = batches_of(chunks, BODIES, way, 0, 25_000)

    assert [batch.num_rows for batch in batches] == [ROWS_MAX, ROWS_MAX, 25_000 - 2 * ROWS_MAX]
    table = pa.Table.from_batches(batches)
    assert table["offset"].to_pylist() == list(range(25_000))
    assert table["body"].to_pylist() == [b"%05d" % n for n in range(25_000)]


def test_a_batch_ends_before_eight_megabytes_of_messages(way: ModuleType) -> None:
    fitting = BATCH_BYTES_MAX // 4
    chunk = chunk_of(*[bytes(fitting)] * 6, bytes(fitting + 1), *[bytes(fitting)] * 3)

    batches = batches_of([chunk], BODIES, way)

    assert [batch.num_rows for batch in batches] == [4, 3, 3]


def test_a_larger_message_is_a_batch_of_its_own(way: ModuleType) -> None:
    large = data(bytes(BATCH_BYTES_MAX + 1))

    batches = batches_of([chunk_of(b"a", large, b"b", b"c")], BODIES, way)

    assert [batch.num_rows for batch in batches] == [1, 1, 2]
    assert len(batches[1]["body"][0].as_py()) == BATCH_BYTES_MAX + 1


def test_large_messages_do_not_count_where_only_their_offsets_are_asked_for(
    way: ModuleType,
) -> None:
    chunk = chunk_of(*[bytes(BATCH_BYTES_MAX // 2)] * 5)

    assert [batch.num_rows for batch in batches_of([chunk], WantedColumns(("offset",)), way)] == [5]


def test_bodies_that_are_put_together_count_too(way: ModuleType) -> None:
    half = data(bytes(BATCH_BYTES_MAX // 4 - 8))

    batches = batches_of([chunk_of(*[half + half] * 5)], BODIES, way)

    assert [batch.num_rows for batch in batches] == [2, 2, 1]


def test_a_body_that_is_larger_than_its_message_counts_as_it_is() -> None:
    nulls = b"\xd0" + (500_004).to_bytes(4) + (500_000).to_bytes(4) + b"\x40" * 500_000
    message = section(0x77, nulls)

    batches = batches_of([chunk_of(*[message] * 5)], BODIES)

    assert len(batches[0]["body"][0].as_py()) == 2_500_001
    assert [batch.num_rows for batch in batches] == [4, 1]


def test_finishing_twice_gives_nothing_the_second_time() -> None:
    decoder = Decoder(BODIES)
    list(decoder.add(chunk_of(b"a"), 0, 9))

    assert [batch.num_rows for batch in decoder.finish()] == [1]
    assert list(decoder.finish()) == []


def test_a_decoder_that_got_nothing_gives_nothing() -> None:
    assert list(Decoder(BODIES).finish()) == []


def test_a_batch_stays_as_it_is_while_the_next_is_filled(way: ModuleType) -> None:
    decoder = Decoder(BODIES, way)
    list(decoder.add(chunk_of(*[data(b"old")] * 100), 0, 999))
    first = next(iter(decoder.finish()))

    list(decoder.add(chunk_of(*[data(b"new")] * 100, chunk_id=100), 0, 999))

    assert set(first["body"].to_pylist()) == {b"old"}
    assert first["offset"].to_pylist() == list(range(100))


@pytest.mark.parametrize("columns", [("offset", "body"), ("body", "properties", "footer")])
def test_a_decoder_takes_little_memory_beside_its_batch(columns: tuple[str, ...]) -> None:
    front = section(0x73, listed(text("m-1"), b"\x40", text("to"), text("subject")))
    chunk = chunk_of(*[front + data(bytes(1000))] * 8000)
    decoder = Decoder(WantedColumns(columns))
    before = pa.total_allocated_bytes()
    tracemalloc.start()
    most = 0
    for _ in range(10):
        for batch in decoder.add(chunk, 0, EVERYTHING):
            del batch
        most = max(most, pa.total_allocated_bytes() - before)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert most + peak < 4 * BATCH_BYTES_MAX


# Damage


def test_damage_names_stream_and_offset_and_survives_pickling() -> None:
    error = damage(chunk_of(b"abc", chunk_id=7)[:-1] + b"x")

    assert str(error) == "stream 'orders' is damaged at offset 7: its data has another checksum"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert isinstance(error, ValueError)


def test_a_chunk_without_a_whole_header_is_damaged() -> None:
    error = damage(bytes(47), low=12)

    assert (error.offset, error.reason) == (12, "a chunk of 47 bytes has no header")


@pytest.mark.parametrize(
    ("chunk", "reason"),
    [
        (chunk_of(b"a", magic=0x60), "6000 does not begin a chunk"),
        (chunk_of(b"a", magic=0x51), "5100 does not begin a chunk"),
        (chunk_of(b"a", kind=3), "5003 does not begin a chunk"),
        (chunk_of(b"a")[:-1], "5 bytes of data are not all there"),
        (chunk_of(b"a", records=2), "2 records in 5 bytes are 1 records in 5 bytes"),
        (chunk_of(b"a", b"b", records=1), "1 records in 10 bytes are 2 records in 10 bytes"),
        (chunk_of(b"a", b"b", records=1, entry_count=1), "1 records in 10 bytes are 1 records"),
        (chunk_of(b"a", records=2, entry_count=2), "an entry reaches past the chunk's end"),
        (chunk_of(b"a", records=0, entry_count=0), ""),
    ],
)
def test_a_chunk_that_contradicts_itself_is_damaged(chunk: bytes, reason: str) -> None:
    if not reason:
        assert rows_of([chunk], BODIES) == []
        return

    assert reason in damage(chunk).reason


@pytest.mark.parametrize("chunk_id", [(1 << 63) - 1, (1 << 64) - 1])
def test_offsets_beyond_63_bits_are_damage(chunk_id: int) -> None:
    assert "do not fit behind it" in damage(chunk_of(b"a", chunk_id=chunk_id)).reason


SHORT = SubBatch.of([b"ab", b"c"])


@pytest.mark.parametrize("size", [1, 10, 11, 15])
def test_a_sub_batch_that_is_not_all_there_is_damage(size: int) -> None:
    whole = data_of([SHORT])
    header = list(HEADER.unpack_from(chunk_of(SHORT)))
    header[7:9] = [crc32(whole[:size]), size]

    assert "reaches past the chunk's end" in damage(HEADER.pack(*header) + whole[:size]).reason
