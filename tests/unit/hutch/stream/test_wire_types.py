import struct
from typing import Any

import pytest

from hutch.stream import wire_types as w
from hutch.stream.errors import MalformedFrame
from hutch.stream.layout import FrameLayout
from hutch.stream.messages import CommandVersions
from hutch.stream.offsets import FIRST, NONE, OffsetType, at_offset, at_timestamp

STARTING = w.Offset(frozenset(OffsetType) - {OffsetType.NONE}, at_offset(0))
ANSWER = w.Offset(frozenset(OffsetType), NONE, is_last=True)
VERSIONS = w.Rest(FrameLayout(CommandVersions))

VALUES: list[tuple[w.FieldType[Any], object, str]] = [
    (w.U16_TYPE, 0x0102, "0102"),
    (w.U32_TYPE, 2**32 - 1, "ffffffff"),
    (w.U64_TYPE, 2**64 - 1, "ffffffffffffffff"),
    (w.I64_TYPE, -2, "fffffffffffffffe"),
    (w.FixedNumber("u8", "?", zero=False), True, "01"),
    (w.STRING_TYPE, "", "0000"),
    (w.STRING_TYPE, "é", "0002 c3a9"),
    (w.STRING_TYPE, "\udcff", "0001 ff"),
    (w.STRING_TYPE, "x" * 65_534, "fffe" + "78" * 65_534),
    (w.NullableString(), None, "ffff"),
    (w.NullableString(), "", "0000"),
    (w.NullableString(), "é", "0002 c3a9"),
    (w.ShortBytes(), b"\0\xff", "0002 00ff"),
    (w.Bytes(), b"", "00000000"),
    (w.Bytes(), b"ab", "00000002 6162"),
    (w.NullableBytes(), None, "ffffffff"),
    (w.NullableBytes(), b"", "00000000"),
    (w.NullableBytes(), b"ab", "00000002 6162"),
    (w.Remainder(), b"abc", "616263"),
    (w.Counted(w.U16_TYPE), (), "00000000"),
    (w.Counted(w.U16_TYPE), (1, 2), "00000002 0001 0002"),
    (w.Rest(w.STRING_TYPE), ("a", ""), "00000002 0001 61 0000"),
    (VERSIONS, (CommandVersions(8, 1, 2),), "00000001 0008 0001 0002"),
    (w.StringMap(), {"a": "b", "": ""}, "00000002 0001 61 0001 62 0000 0000"),
    (w.NumberMap(), {"a": -1}, "00000001 0001 61 ffffffffffffffff"),
    (STARTING, FIRST, "0001"),
    (STARTING, at_offset(2**64 - 1), "0004 ffffffffffffffff"),
    (STARTING, at_timestamp(-5), "0005 fffffffffffffffb"),
    (ANSWER, NONE, "0000"),
    (w.PlainOffset(), 7, "0004 0000000000000007"),
    (w.Trailing(w.StringMap()), {}, ""),
    (w.Trailing(w.StringMap()), {"a": "b"}, "00000001 0001 61 0001 62"),
    (w.Trailing(w.ShortBytes()), b"", ""),
]


def type_name(value: object) -> str | None:
    return type(value).__name__ if hasattr(value, "is_last") else None


@pytest.mark.parametrize(("wire_type", "value", "text"), VALUES, ids=type_name)
def test_a_value_is_written_and_read_as_these_bytes(
    wire_type: w.FieldType[Any], value: object, text: str
) -> None:
    target = bytearray(b"before")
    wire_type.write(value, target)
    frame = bytes(target)

    assert frame == b"before" + bytes.fromhex(text)
    assert wire_type.read(frame, 6) == (value, len(frame))


@pytest.mark.parametrize(
    "wire_type", {id(row[0]): row[0] for row in VALUES}.values(), ids=type_name
)
def test_only_a_type_that_ends_the_frame_reads_beyond_its_own_bytes(
    wire_type: w.FieldType[Any],
) -> None:
    value, text = next(row[1:] for row in VALUES if row[0] is wire_type)
    frame = bytes.fromhex(text) + b"\0\0\0\0\0\0\0\0\0\0\0\0"
    if not wire_type.is_last:
        assert wire_type.read(frame, 0) == (value, len(frame) - 12)
        return
    try:
        _, end = wire_type.read(frame, 0)
    except MalformedFrame:
        return  # not the values that it takes
    assert end == len(frame) or isinstance(wire_type, w.NumberMap | w.Trailing)


MALFORMED: list[tuple[w.FieldType[Any], str, str, int]] = [
    (w.U16_TYPE, "01", "u16 is cut short", 0),
    (w.STRING_TYPE, "00", "string size is cut short", 0),
    (w.STRING_TYPE, "0002 61", "string ends past the frame", 0),
    (w.STRING_TYPE, "ffff" + "00" * 65_535, "null where a string is needed", 0),
    (w.ShortBytes(), "", "short bytes end past the frame", 0),
    (w.ShortBytes(), "00", "short bytes end past the frame", 0),
    (w.ShortBytes(), "0002 61", "short bytes end past the frame", 0),
    (w.NullableBytes(), "000000", "bytes size is cut short", 0),
    (w.NullableBytes(), "00000002 61", "bytes end past the frame", 0),
    (w.NullableBytes(), "fffffffe", "bytes end past the frame", 0),
    (w.NullableString(), "ff", "string size is cut short", 0),
    (w.NullableString(), "0002 61", "string ends past the frame", 0),
    (w.Bytes(), "000000", "bytes size is cut short", 0),
    (w.Bytes(), "ffffffff", "null where bytes are needed", 0),
    (w.Counted(w.U16_TYPE), "00000002 0001", "u16 is cut short", 6),
    (w.Counted(w.U16_TYPE), "ffffffff", "list says more items than the frame can hold", 0),
    (w.Counted(w.U16_TYPE), "00000005 00010002", "list says more items than the frame can hold", 0),
    (w.Counted(w.U16_TYPE, 1), "00000002 00010002", "list is too long", 0),
    (w.Rest(w.STRING_TYPE), "0000", "u32 is cut short", 0),
    (w.Rest(w.STRING_TYPE), "00000000 0000 00", "string size is cut short", 6),
    (w.Rest(w.STRING_TYPE), "00000000 0000 0002 61", "string ends past the frame", 6),
    (w.Rest(w.STRING_TYPE), "00000000 ffff", "null where a string is needed", 4),
    (VERSIONS, "00000001 0008 0001", "key, version_min, version_max are cut short", 4),
    (
        w.Rest(FrameLayout(CommandVersions), bytes_max=6),
        "00000000" + "00" * 12,
        "list is too long",
        4,
    ),
    (
        w.StringMap(),
        "00000000" + (2 * w.StringMap.PAIRS_MAX + 1) * "0000",
        "list is too long",
        4 + 2 * (2 * w.StringMap.PAIRS_MAX + 1),
    ),
    (w.StringMap(), "00000001 0001 61", "a key without a value ends the map", 7),
    (w.NumberMap(), "00000001 0001 61 00", "i64 is cut short", 7),
    (STARTING, "00", "u16 is cut short", 0),
    (STARTING, "0000", "offset type 0 is not allowed here", 0),
    (STARTING, "0006", "offset type 6 is not allowed here", 0),
    (STARTING, "0004 00", "u64 is cut short", 2),
    (STARTING, "0005 00", "i64 is cut short", 2),
    (ANSWER, "0006", "offset type 6 is not allowed here", 0),
    (w.PlainOffset(), "0001", "offset type 1 is not allowed here", 0),
    (w.PlainOffset(), "0004 00", "u64 is cut short", 2),
    (w.Trailing(w.StringMap()), "00", "u32 is cut short", 0),
]


@pytest.mark.parametrize(("wire_type", "text", "reason", "position"), MALFORMED, ids=type_name)
def test_bytes_that_are_no_value_are_malformed_at_their_position(
    wire_type: w.FieldType[Any], text: str, reason: str, position: int
) -> None:
    with pytest.raises(MalformedFrame) as caught:
        wire_type.read(b"before" + bytes.fromhex(text), 6)

    assert (caught.value.reason, caught.value.position - 6) == (reason, position)


def test_a_string_of_65535_bytes_cannot_be_written_since_its_size_means_null() -> None:
    with pytest.raises(ValueError, match="65535 bytes"):
        w.STRING_TYPE.write("x" * 65_535, bytearray())


def test_a_number_out_of_range_cannot_be_written() -> None:
    with pytest.raises(struct.error):
        w.U16_TYPE.write(-1, bytearray())


def test_an_offset_type_that_is_not_legal_cannot_be_written() -> None:
    with pytest.raises(ValueError, match="NONE is not allowed"):
        STARTING.write(NONE, bytearray())


@pytest.mark.parametrize("count", ["00000000", "00000001", "ffffffff"])
def test_the_count_of_a_list_or_map_that_ends_the_frame_is_ignored(count: str) -> None:
    frame = bytes.fromhex(count + "0001 61 0001 62")

    assert w.Rest(w.STRING_TYPE).read(frame, 0) == (("a", "b"), len(frame))
    assert w.StringMap().read(frame, 0) == ({"a": "b"}, len(frame))


def test_of_equal_keys_the_last_one_counts() -> None:
    frame = bytes.fromhex("00000002 0001 61 0001 62 0001 61 0001 63")

    assert w.StringMap().read(frame, 0)[0] == {"a": "c"}


@pytest.mark.parametrize("leftover_bytes", [0, 1, 2, 3])
def test_a_part_of_a_count_stands_for_a_missing_field_where_that_is_allowed(
    leftover_bytes: int,
) -> None:
    trailing = w.Trailing(w.StringMap(), slack_bytes=3)

    assert trailing.read(b"before" + bytes(leftover_bytes), 6) == ({}, 6 + leftover_bytes)


def test_zero_maps_are_not_shared() -> None:
    assert w.StringMap().zero is not w.StringMap().zero
    trailing = w.Trailing(w.StringMap())
    assert trailing.read(b"", 0)[0] is not trailing.read(b"", 0)[0]


@pytest.mark.parametrize("tail", ["", "00", "0000000000000005"])
def test_what_follows_a_type_without_number_in_an_answer_is_ignored(tail: str) -> None:
    frame = bytes.fromhex("0001" + tail)

    assert ANSWER.read(frame, 0) == (FIRST, len(frame))
    assert STARTING.read(frame, 0) == (FIRST, 2)


def test_items_that_were_written_before_are_a_list_like_any_other() -> None:
    item = w.STRING_TYPE
    written: w.WrittenItems[str] = w.WrittenItems(item)
    for text in ("a", "", "bc"):
        written.append(text)
    assert len(written) == 3

    targets = [bytearray(), bytearray()]
    for value, target in zip((("a", "", "bc"), written), targets, strict=True):
        w.Counted(item).write(value, target)  # type: ignore[arg-type]  # instead of a tuple
    assert targets[0] == targets[1]


@pytest.mark.parametrize(("late_bytes", "is_late"), [(None, False), (9, False), (8, True)])
def test_a_list_above_a_size_is_read_while_it_is_looked_at(
    late_bytes: int | None, *, is_late: bool
) -> None:
    frame = bytes.fromhex("00000000 0001 61 0000 0002 6263")
    found, end = w.Rest(w.STRING_TYPE, late_bytes=late_bytes).read(frame, 0)

    assert isinstance(found, w.Late) == is_late
    assert end == len(frame)
    assert list(found) == list(found) == ["a", "", "bc"]
    assert ("list of 9 bytes" in repr(found)) == is_late


def test_a_list_read_late_is_malformed_where_it_is_wrong() -> None:
    frame = bytes.fromhex("00000000 0001 61 0005 62")
    found, _ = w.Rest(w.STRING_TYPE, late_bytes=0).read(frame, 0)

    items = iter(found)
    assert next(items) == "a"
    with pytest.raises(MalformedFrame):
        next(items)


@pytest.mark.parametrize("bytes_max", [9, 8])
def test_a_list_that_ends_the_frame_may_have_a_largest_size(bytes_max: int) -> None:
    frame = bytes.fromhex("00000000 0001 61 0000 0002 6263")
    wire_type = w.Rest(w.STRING_TYPE, bytes_max=bytes_max)

    if bytes_max == 9:
        assert wire_type.read(frame, 0)[0] == ("a", "", "bc")
    else:
        with pytest.raises(MalformedFrame, match="too long") as error:
            wire_type.read(frame, 0)
        assert error.value.position == 4
