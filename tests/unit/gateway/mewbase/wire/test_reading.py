"""Frames of clients: sizes, types, fields."""

from typing import Any

import bson
import pytest
from bson import Int64

from gateway.mewbase.handlers.connect import INFO_BYTES_MAX
from gateway.mewbase.matcher import MATCHER_BYTES_MAX
from gateway.mewbase.wire.errors import BadRequest, UnreadableFrame
from gateway.mewbase.wire.frames import FRAMES, REQUESTS, FrameType, SendingSide, ValueKind
from gateway.mewbase.wire.reading import (
    VALUE_BYTES_MAX,
    OversizedFrame,
    Request,
    frame_bytes,
    read,
)
from gateway.settings.mewbase import EVENT_BYTES_MAX

EXAMPLES: dict[ValueKind, list[Any]] = {
    ValueKind.TEXT: ["", "größer"],
    ValueKind.DOCUMENT: [{}, {"a": [1]}],
    ValueKind.INT32: [0, -(2**31), Int64(7), 7.0],
    ValueKind.INT64: [0, Int64(2**62), -7.0],
}
WRONG: dict[ValueKind, list[Any]] = {
    ValueKind.TEXT: [1, {}, b"x"],
    ValueKind.DOCUMENT: [[1], "x", 1],
    ValueKind.INT32: ["1", Int64(2**31), 1.5, True, float("nan")],
    ValueKind.INT64: ["1", 1.5, 1e300, True],
}


def request(kind: str, fields: dict[str, object], limit: int = 1 << 20) -> Request:
    data = bytearray(bson.encode({"type": kind, "frame": fields}))
    assert frame_bytes(data, 0, len(data), limit) == len(data)
    return read(bytearray(b"xyz") + data, 3, 3 + len(data))


@pytest.mark.parametrize("frame", REQUESTS.values(), ids=lambda each: each.type)
def test_each_field_of_each_request_is_read_and_checked(frame: FrameType) -> None:
    assert frame in FRAMES
    fields = [each for each in frame.fields if each.kind is not ValueKind.ANY]
    good = {each.name: EXAMPLES[each.kind][0] for each in fields}
    kind = frame.type
    for field in fields:
        for value in EXAMPLES[field.kind]:
            found = request(kind, good | {field.name: value}).values[field.name]
            assert found == (bson.encode(value) if isinstance(value, dict) else value)
        for value in WRONG[field.kind]:
            with pytest.raises(BadRequest, match=field.name):
                request(kind, good | {field.name: value})
        for absent in ({**good, field.name: None}, {k: good[k] for k in good if k != field.name}):
            if field.is_mandatory:
                with pytest.raises(BadRequest, match=f"{field.name} is missing"):
                    request(kind, absent)
            else:
                assert request(kind, absent).values[field.name] is None


@pytest.mark.parametrize("size", [1, Int64(2**40), -1, 1.5, "x", {}, None])
def test_the_size_in_an_acknowledgement_is_not_looked_at(size: object) -> None:
    assert request("ACKEV", {"subID": 1, "pos": 2, "bytes": size}).values["pos"] == 2
    assert request("QUERYACK", {"queryID": 1, "bytes": size}).values["queryID"] == 1


def test_a_bad_request_says_which_request_and_query_it_is() -> None:
    with pytest.raises(BadRequest) as caught:
        request("QUERY", {"queryID": 3, "binder": 1, "rID": 4})
    assert (caught.value.request_id, caught.value.query_id) == (4, 3)
    with pytest.raises(BadRequest) as caught:
        request("PUB", {"rID": "4"})
    assert caught.value.request_id is None


def test_of_a_document_that_no_field_takes_only_the_size_is_known() -> None:
    assert max(EVENT_BYTES_MAX, MATCHER_BYTES_MAX, INFO_BYTES_MAX) <= VALUE_BYTES_MAX
    around = len(bson.encode({"a": b""}))
    for frame_type, name in (("PUB", "event"), ("QUERY", "matcher"), ("CONNECT", "authInfo")):
        given = {"version": "1", "channel": "c", "rID": 1, "queryID": 1}
        for more in (0, 1):
            found = {"a": bytes(VALUE_BYTES_MAX + more - around)}
            value = request(frame_type, given | {name: found}, 2 << 20).values[name]
            assert len(value) == VALUE_BYTES_MAX + more
            assert value == (OversizedFrame(VALUE_BYTES_MAX + 1) if more else bson.encode(found))


@pytest.mark.parametrize("value", ["x" * VALUE_BYTES_MAX, "ö" * (VALUE_BYTES_MAX // 2)])
def test_no_field_takes_a_string_of_a_mebibyte(value: str) -> None:
    given = {"channel": value[1:], "rID": 7, "event": {}}
    assert request("PUB", given, 2 << 20).values["channel"] == value[1:]
    with pytest.raises(BadRequest, match="PUB: channel has 1048576 bytes or more") as caught:
        request("PUB", given | {"channel": value}, 2 << 20)
    assert caught.value.request_id == 7


def test_the_beginning_of_a_long_type_is_kept() -> None:
    found = request("ä" * VALUE_BYTES_MAX, {"rID": 7}, 4 << 20)
    assert (found.frame, found.type[:80], found.request_id) == (None, "ä" * 80, 7)


def test_the_names_of_what_is_there_are_kept() -> None:
    assert b"authInfo" in request("CONNECT", {"version": "1", "authInfo": None}).names
    assert b"authInfo" not in request("CONNECT", {"version": "1"}).names


def test_an_unknown_type_is_no_row_of_the_table() -> None:
    for kind in ("NOSUCH", *(each.type for each in FRAMES if each.sender is SendingSide.SERVER)):
        found = request(kind, {"rID": 7})
        assert (found.frame, found.type, found.request_id) == (None, kind, 7)


def test_a_size_is_read_when_it_is_there_and_bounded() -> None:
    assert frame_bytes(bytearray(b"\5\0\0"), 0, 3, 100) == 0
    assert frame_bytes(bytearray(b"x\5\0\0\0"), 1, 5, 100) == 5
    for head in (b"\4\0\0\0", b"\xff\xff\xff\xff", b"\x65\0\0\0"):
        with pytest.raises(UnreadableFrame):
            frame_bytes(bytearray(head), 0, 4, 100)


@pytest.mark.parametrize("whole", [{}, {"type": "PING"}, {"type": 1, "frame": {}}, {"frame": {}}])
def test_a_document_that_is_no_frame_cannot_be_read(whole: dict[str, object]) -> None:
    data = bytearray(bson.encode(whole))
    with pytest.raises(UnreadableFrame):
        read(data, 0, len(data))
