"""Documents are recognised as pymongo recognises them, and taken apart."""

from __future__ import annotations

import struct
from typing import Any

import bson
import pytest
from bson.codec_options import CodecOptions, DatetimeConversion
from hypothesis import given
from hypothesis import strategies as st

from gateway.mewbase.wire.kernel import documents

OPTIONS: CodecOptions[dict[str, Any]] = CodecOptions(
    datetime_conversion=DatetimeConversion.DATETIME_MS
)
MOST = 1_000
"""Size of the largest value of a frame that is looked into."""
names = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=5)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats()
    | texts
    | st.binary(max_size=10)
    | st.builds(bson.Binary, st.binary(max_size=10), st.sampled_from([0, 2, 3, 4, 5, 128]))
    | st.builds(bson.ObjectId, st.binary(min_size=12, max_size=12))
    | st.builds(bson.Code, texts, st.none() | st.just({"a": 1}))
    | st.builds(bson.Regex, names, st.sampled_from([0, 2]))
    | st.builds(bson.Timestamp, st.integers(0, 9), st.integers(0, 9))
    | st.builds(bson.DatetimeMS, st.integers(-(2**63), 2**63 - 1))
    | st.just(bson.Decimal128("1.5"))
    | st.sampled_from([bson.MinKey(), bson.MaxKey()]),
    lambda some: st.lists(some, max_size=4) | st.dictionaries(names, some, max_size=4),
    max_leaves=8,
)
dictionaries = st.dictionaries(names, values, max_size=6)


def document(content: bytes) -> bytes:
    return struct.pack("<i", len(content) + 5) + content + b"\0"


def is_document(data: bytes) -> bool:
    return documents.is_document(data, 0, len(data))


def is_one_to_pymongo(data: bytes) -> bool:
    try:
        bson.decode(data, OPTIONS)
    except (bson.errors.InvalidBSON, ValueError, OverflowError):
        return False
    return True


@given(dictionaries)
def test_what_pymongo_writes_is_a_document(some: dict[str, object]) -> None:
    data = bson.encode(some)
    assert is_document(data)
    assert documents.is_document(b"xx" + data + b"x", 2, 2 + len(data))


@given(dictionaries, st.data())
def test_damaged_bytes_are_a_document_if_pymongo_can_read_them(
    some: dict[str, object], data: st.DataObject
) -> None:
    damaged = bytearray(bson.encode(some))
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    if is_document(bytes(damaged)):
        assert is_one_to_pymongo(bytes(damaged))


@pytest.mark.parametrize(
    "content",
    [
        b"\x20a\0",
        b"\x08a\0\x02",
        b"\x02a\0\x02\0\0\0xy",
        b"\x02a\0\0\0\0\0",
        b"\x02a\0\x03\0\0\0\xed\xa0\x80\0",
        b"\x02a\0\x02\0\0\0\xff\0",
        b"\x02\xff\0\x02\0\0\0a\0",
        b"\x05a\0\xff\xff\xff\xff\0",
        b"\x05a\0\x04\0\0\0\x02\1\0\0\0",
        b"\x03a\0\x06\0\0\0\0",
        b"\x10a\0\0\0\0",
        b"\x0ba\0x",
        b"\x0a",
        b"\x0fa\0\x0f\0\0\0\x01\0\0\0\0\x05\0\0\0\0",
    ],
)
def test_what_is_broken_is_no_document(content: bytes) -> None:
    assert not is_document(document(content))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x06a\0",
        b"\xffa\0",
        b"\x7fa\0",
        b"\x0ca\0\x02\0\0\0n\0" + bytes(12),
        b"\x0ea\0\x02\0\0\0s\0",
        b"\x0fa\0\x0e\0\0\0\x01\0\0\0\0\x05\0\0\0\0",
        b"\x0ba\0x\0i\0",
        b"\x10a\0\1\0\0\0\x10a\0\2\0\0\0",
    ],
)
def test_rare_types_are_taken(content: bytes) -> None:
    assert is_document(document(content))
    assert is_one_to_pymongo(document(content))


def test_a_document_is_at_most_100_deep() -> None:
    deep: dict[str, object] = {}
    for _ in range(99):
        deep = {"a": deep}
    assert is_document(bson.encode(deep))
    assert not is_document(bson.encode({"a": deep}))
    very = document(b"")
    for _ in range(5_000):
        very = document(b"\x03a\0" + very)
    assert not is_document(very)


@given(dictionaries)
def test_the_elements_of_a_document_are_found(some: dict[str, object]) -> None:
    data = b"before" + bson.encode(some) + b"behind"
    found = documents.elements(data, 6, len(data) - 6, len(data))
    assert found is not None
    assert {name.decode() for name in found} == set(some)
    for code, start, end in found.values():
        assert 6 < start <= end < len(data) - 6
        assert code != 3 or documents.is_document(data, start, end)


@given(dictionaries, st.frozensets(names, max_size=3))
def test_the_chosen_elements_are_those_of_their_names(
    some: dict[str, object], wanted: frozenset[str]
) -> None:
    data = b"before" + bson.encode(some) + b"behind"
    every = documents.elements(data, 6, len(data) - 6, len(data)) or {}
    raw = frozenset(name.encode() for name in {*wanted, *list(some)[:2]})
    expected = {name: every[name] for name in every if name in raw}
    assert documents.chosen(data, 6, len(data) - 6, raw) == expected


def test_elements_are_counted_and_those_of_a_document_in_it_are_not() -> None:
    data = bson.encode({"a": 1, "b": {"c": 1, "d": 1}})
    assert documents.elements(data, 0, len(data), 1) is None
    assert documents.elements(data, 0, len(data), 2)


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_any_bytes_are_looked_at_within_their_bounds(one: bytes, other: bytes) -> None:
    """As a sanitizer watches it."""
    data = document(one)
    documents.elements(data, 0, len(data), 9)
    documents.chosen(data, 0, len(data), frozenset((b"a", b"")))
    documents.merged(data, document(other), 9)
    documents.merged(document(other), bson.encode({"a": 1}), 9)


def test_the_parts_of_a_frame_are_found_in_any_order() -> None:
    for keys in (("type", "frame"), ("frame", "type")):
        whole = {"type": "PING", "frame": {"a": 1}}
        data = bson.encode({key: whole[key] for key in keys})
        kind, elements = documents.frame(data, 0, len(data), MOST) or (None, None)
        assert kind == b"PING"
        assert elements is not None
        assert elements.keys() == {b"a"}
    for broken in ({}, {"type": 1, "frame": []}, {"type": "A"}):
        data = bson.encode(broken)
        found = documents.frame(data, 0, len(data), MOST)
        assert found is not None
        assert None in found


@pytest.mark.parametrize(("count", "is_frame"), [(999, True), (1_000, True), (1_001, False)])
def test_a_frame_has_at_most_1000_fields(count: int, *, is_frame: bool) -> None:
    many = dict.fromkeys(map(str, range(count)))
    inner = bson.encode({"type": "PING", "frame": many})
    assert (documents.frame(inner, 0, len(inner), MOST) is not None) is is_frame
    outer = bson.encode({"type": "PING", "frame": {}} | dict.fromkeys(list(many)[2:]))
    assert (documents.frame(outer, 0, len(outer), MOST) is not None) is is_frame


@pytest.mark.parametrize("code", [2, 3, 4])
@pytest.mark.parametrize(("size", "is_looked_into"), [(MOST, True), (MOST + 1, False)])
def test_of_a_large_value_of_a_frame_only_the_size_is_looked_at(
    code: int, size: int, *, is_looked_into: bool
) -> None:
    is_string = code == 2
    content = b"\xff" * (size - 1) + b"\0" if is_string else b"\x20" * (size - 4)
    broken = struct.pack("<i", size) + content
    head = b"\x02type\0\x02\0\0\0P\0\x03frame\0"
    data = document(head + document(bytes((code,)) + b"a\0" + broken + b"\x0ab\0"))
    found = documents.frame(data, 0, len(data), MOST)
    if is_looked_into:
        assert found is None
        return
    assert found is not None
    kind, elements = found
    assert kind == b"P"
    assert elements is not None
    assert elements.keys() == {b"a", b"b"}
    assert elements[b"a"][0] == code
    _, start, end = elements[b"a"]
    assert data[start:end] == broken


@pytest.mark.parametrize("code", [2, 3, 4])
@pytest.mark.parametrize("size", [MOST + 2, 1 << 30])
def test_a_large_value_that_does_not_fit_its_frame_makes_it_none(code: int, size: int) -> None:
    broken = bytes((code,)) + b"a\0" + struct.pack("<i", size) + bytes(MOST - 4)
    data = document(b"\x02type\0\x02\0\0\0P\0\x03frame\0" + document(broken))
    assert documents.frame(data, 0, len(data), MOST) is None


def test_of_a_long_type_the_beginning_is_given() -> None:
    for size in (999, 1_000, 1_001, 1 << 20):
        data = bson.encode({"type": "x" * size, "frame": {}})
        kind, _ = documents.frame(data, 0, len(data), MOST) or (None, None)
        assert kind == b"x" * min(size, 1_000)


def test_what_is_broken_anywhere_is_no_frame() -> None:
    bad = document(b"\x20a\0")
    for content in (
        b"\x02type\0\x02\0\0\0P\0\x03frame\0" + bad,
        b"\x02type\0\x02\0\0\0P\0\x03other\0" + bad,
        b"\x02type\0\x02\0\0\0P\0\x03frame\0\xff\xff\xff\xff\0",
        b"\x02type\0\x02\0\0\0P\0\x03frame\0",
    ):
        assert documents.frame(document(content), 0, len(document(content)), MOST) is None
    assert documents.frame(b"\5\0\0\0\1", 0, 5, MOST) is None
    assert documents.elements(b"\6\0\0\0\0", 0, 5, 9) is None
