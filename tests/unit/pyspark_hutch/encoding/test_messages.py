"""Messages of rows, read by the codec of another client."""

from typing import Any

import pyarrow as pa
import pytest
from rstream.amqp import amqp_decoder

from hutch.formats.amqp.writing import symbol, text
from pyspark_hutch.encoding.errors import BadColumn
from pyspark_hutch.encoding.messages import concatenate, messages_of
from tests.unit.pyspark_hutch.encoding.batches import (
    batch,
    encoded,
    filters_of,
    raw_messages,
    whole,
)

SIZES = [0, 1, 254, 255, 256, 257, 65_535, 65_536]


def test_a_body_becomes_a_data_section_in_its_shorter_form() -> None:
    short, long = encoded(batch(body=[b"x" * 255, b"x" * 256]))

    assert short == bytes.fromhex("005375 a0 ff") + b"x" * 255
    assert long == bytes.fromhex("005375 b0 00000100") + b"x" * 256


def test_bodies_of_every_size_are_read_as_they_were() -> None:
    bodies = [bytes([index]) * size for index, size in enumerate(SIZES)]

    assert [amqp_decoder(message).body for message in encoded(batch(body=bodies))] == bodies


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.large_binary()], ids=str)
def test_a_body_of_any_kind_is_its_bytes(kind: pa.DataType) -> None:
    rows = batch({"body": kind}, body=["ä", "", "z" * 300])

    assert [amqp_decoder(message).body for message in encoded(rows)] == [
        "ä".encode(),
        b"",
        b"z" * 300,
    ]


def test_a_part_of_a_batch_is_encoded_as_that_part() -> None:
    rows = batch(
        body=[b"a", b"bb", b"ccc", b"d"],
        properties=[{"to": "1"}, {"to": "2"}, None, {"to": "4"}],
        application_properties=[[("n", "1")], [("n", "2"), ("m", None)], [("n", "3")], None],
        filter_value=["v", "w", None, "x"],
    )

    assert encoded(rows[1:3]) == encoded(rows)[1:3]
    assert filters_of(messages_of(rows[1:3])) == [b"w", None]


def test_raw_bodies_are_messages_as_they_stand() -> None:
    bodies = [b"", b"\x00\x53\x75", b"x" * 300]

    assert encoded(batch(body=bodies), raw=True) == bodies


def test_a_batch_without_rows_has_no_messages() -> None:
    rows = batch(
        body=[], properties=[], application_properties=[], message_annotations=[], filter_value=[]
    )

    assert encoded(rows) == []
    assert encoded(rows, raw=True) == []


@pytest.mark.parametrize("raw", [False, True])
def test_a_null_body_is_refused_with_its_row(raw: bool) -> None:  # noqa: FBT001  # a parameter
    with pytest.raises(BadColumn, match=r"^column 'body': null in row 2 of a batch; .*never null$"):
        messages_of(batch(body=[b"a", b"b", None, None]), raw=raw)


def test_application_properties_are_read_as_they_were() -> None:
    maps: list[dict[str, str | None]] = [
        {"a": "1"},
        {f"name {index}": "x" * index for index in range(130)},
        {"long" * 70: "ü" * 200, "empty": ""},
        {"null": None},
    ]
    rows = batch(body=[b"b"] * len(maps), application_properties=[list(m.items()) for m in maps])

    for message, wanted in zip(encoded(rows), maps, strict=True):
        found = amqp_decoder(message).application_properties
        assert {
            key.decode(): None if value is None else value.decode() for key, value in found.items()
        } == wanted


@pytest.mark.parametrize("count", [1, 62, 63, 64, 127, 128])
def test_a_map_has_its_short_form_as_long_as_it_fits(count: int) -> None:
    pairs = [(chr(0x21 + index % 90) * (1 + index // 90), "") for index in range(count)]
    content = b"".join(text(key) + text(value) for key, value in pairs)
    if len(content) < 255 and 2 * count <= 255:
        wanted = bytes((0xC1, len(content) + 1, 2 * count)) + content
    else:
        size = (len(content) + 4).to_bytes(4)
        wanted = b"\xd1" + size + (2 * count).to_bytes(4) + content

    message = encoded(batch(body=[b""], application_properties=[pairs]))[0]

    assert message == b"\x00\x53\x74" + wanted + bytes.fromhex("005375 a0 00")


def test_annotations_have_symbols_for_keys_and_stand_before_the_properties() -> None:
    rows = batch(
        body=[b""],
        application_properties=[[("k", "v")]],
        message_annotations=[[("x-a", "v")]],
        properties=[{"to": "t"}],
    )
    pair = symbol("x-a") + text("v")

    message = encoded(rows)[0]

    assert message.startswith(b"\x00\x53\x72" + bytes((0xC1, len(pair) + 1, 2)) + pair)
    sections = [message.index(bytes((0, 0x53, code))) for code in (0x72, 0x73, 0x74, 0x75)]
    assert sections == sorted(sections)
    assert amqp_decoder(message).message_annotations == {b"x-a": b"v"}


def test_an_annotation_that_is_no_symbol_is_refused() -> None:
    rows = batch(body=[b"", b""], message_annotations=[[("x-a", "ü")], [("x-ü", "a")]])

    with pytest.raises(BadColumn, match="column 'message_annotations': 'x-ü' has letters"):
        messages_of(rows)


@pytest.mark.parametrize("name", ["application_properties", "message_annotations"])
def test_a_map_that_is_null_or_empty_is_no_section(name: str) -> None:
    columns: dict[str, list[Any]] = {"body": [b"a", b"b"], name: [None, []]}

    assert encoded(batch(None, **columns)) == encoded(batch(body=[b"a", b"b"]))


def test_what_lies_under_a_null_map_is_not_written() -> None:
    texts = pa.map_(pa.string(), pa.string())
    entries = pa.StructArray.from_arrays(
        [pa.array(["a", "hidden", "c"]), pa.array(["1", "2", "3"])],
        fields=[pa.field("key", pa.string(), nullable=False), pa.field("value", pa.string())],
    )
    buffers = [pa.py_buffer(b"\x05"), pa.py_buffer(pa.array([0, 1, 2, 3], pa.int32()).buffers()[1])]
    maps = pa.Array.from_buffers(texts, 3, buffers, children=[entries])
    rows = pa.RecordBatch.from_arrays(
        [pa.array([b"", b"", b""]), maps], names=["body", "application_properties"]
    )

    found = [amqp_decoder(message).application_properties for message in encoded(rows)]

    assert found == [{b"a": b"1"}, None, {b"c": b"3"}]


def test_filter_values_are_beside_the_message_and_not_in_it() -> None:
    messages = messages_of(batch(body=[b"a", b"b", b"c"], filter_value=["ü", None, ""]))

    assert filters_of(messages) == ["ü".encode(), None, b""]
    assert whole(messages) == encoded(batch(body=[b"a", b"b", b"c"]))


def test_a_column_of_no_filter_values_is_none() -> None:
    assert messages_of(batch(body=[b"a"], filter_value=[None])).filters is None


@pytest.mark.parametrize(("size", "fits"), [(65_533, True), (65_534, True), (65_535, False)])
def test_a_filter_value_has_its_largest_size(size: int, fits: bool) -> None:  # noqa: FBT001  # a parameter
    rows = batch(body=[b"a"], filter_value=["x" * size])

    if fits:
        assert messages_of(rows).filters is not None
    else:
        with pytest.raises(BadColumn, match="65,535 bytes; at most 65,534"):
            messages_of(rows)


def test_messages_are_taken_by_row_and_put_together_again() -> None:
    rows = batch(body=[b"a", b"bb", b"ccc"], properties=[{"to": "1"}, None, {"to": "3"}])
    messages = messages_of(rows)
    all_of_them = whole(messages)

    taken = messages.take(pa.array([2, 0]).to_numpy())

    assert whole(taken) == [all_of_them[2], all_of_them[0]]
    assert whole(messages.between(1, 3)) == all_of_them[1:]
    assert whole(concatenate([taken, messages])) == whole(taken) + all_of_them
    assert concatenate([taken, messages]).sizes.tolist() == [
        *taken.sizes.tolist(),
        *messages.sizes.tolist(),
    ]
    raw = raw_messages([b"a", b"b"])
    assert whole(concatenate([raw, raw])) == [b"a", b"b", b"a", b"b"]


def test_filter_values_are_taken_with_their_rows() -> None:
    messages = raw_messages([b"a", b"b", b"c"], ["x", None, "z"])

    assert filters_of(messages.take(pa.array([2, 1]).to_numpy())) == [b"z", None]
    assert filters_of(messages.between(0, 1)) == [b"x"]
