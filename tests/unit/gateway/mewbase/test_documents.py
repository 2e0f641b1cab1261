"""Documents made of others, against what pymongo makes of them."""

import math
from typing import Any

import bson
import pytest
from bson import Decimal128, Int64
from bson.codec_options import CodecOptions, DatetimeConversion
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.mewbase.documents import (
    EMPTY,
    FIELDS_MAX,
    NoDocument,
    added,
    elements_of,
    merged,
    text_of,
    value_in,
)

OPTIONS: CodecOptions[dict[str, Any]] = CodecOptions(
    datetime_conversion=DatetimeConversion.DATETIME_MS
)
NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=3)
NUMBERS = st.one_of(
    st.integers(-(2**31), 2**31 - 1),
    st.integers(-(2**62), 2**62).map(Int64),
    st.floats(allow_nan=False, allow_infinity=False, width=32),
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, st.text(max_size=5), st.binary(max_size=5)),
    lambda inner: st.dictionaries(NAMES, inner, max_size=3) | st.lists(inner, max_size=3),
    max_leaves=6,
)
DOCUMENTS = st.dictionaries(NAMES, VALUES, max_size=5)


def decoded(content: bytes) -> dict[str, Any]:
    return bson.decode(content, OPTIONS)


@given(DOCUMENTS, DOCUMENTS)
def test_merged_documents_are_those_of_pymongo(
    older: dict[str, Any], newer: dict[str, Any]
) -> None:
    assert merged(bson.encode(older), bson.encode(newer)) == bson.encode(older | newer)


@given(DOCUMENTS, st.lists(NAMES, min_size=1, max_size=3), NUMBERS)
@example({"n": Int64(0)}, ["n"], 1)
@example({"n": 0.0}, ["n"], 1)
def test_added_amounts_are_those_of_pymongo(
    source: dict[str, Any], path: list[str], amount: float
) -> None:
    event = bson.encode({"q": amount})
    (value,) = elements_of(event, 0, len(event)).values()
    raw = [name.encode() for name in path]
    try:
        found = added(bson.encode(source), raw, event, value)
    except NoDocument:
        assert not is_addable(source, path, amount)
        return
    assert is_addable(source, path, amount)
    here = source
    for name in path[:-1]:
        if here.get(name) is None:
            here[name] = {}
        here = here[name]
    number = here.get(path[-1])
    before = 0 if number is None else number  # a zero keeps its type
    total = before + amount
    kinds = {type(before).__name__, type(amount).__name__}
    is_long = "Int64" in kinds or not -(2**31) <= total < 2**31
    here[path[-1]] = Int64(total) if isinstance(total, int) and is_long else total
    assert found == bson.encode(source)


def is_addable(source: dict[str, Any], path: list[str], amount: Any) -> bool:  # noqa: ANN401
    here: Any = source
    for name in path[:-1]:
        here = here.get(name)
        if here is None:
            return True
        if not isinstance(here, dict):
            return False
    number = here.get(path[-1])
    if number is None:
        return True
    if isinstance(number, bool) or not isinstance(number, int | float):
        return False
    total = number + amount
    return isinstance(total, float) or -(2**63) <= total < 2**63


def add(source: dict[str, Any], path: str, amount: object) -> dict[str, Any]:
    event = bson.encode({"q": amount})
    (value,) = elements_of(event, 0, len(event)).values()
    return decoded(added(bson.encode(source), path.encode().split(b"."), event, value))


def test_numbers_keep_the_widest_type() -> None:
    assert add({}, "a.b", 1) == {"a": {"b": 1}}
    for source, amount, wanted in (
        (1, 2, int),
        (2**31 - 1, 1, Int64),
        (Int64(1), 1, Int64),
        (1, Int64(1), Int64),
        (1, 0.5, float),
        (0.5, Int64(1), float),
    ):
        found = add({"n": source}, "n", amount)["n"]
        assert (type(found), found) == (wanted, source + amount)


@pytest.mark.parametrize(
    ("source", "amount", "reason"),
    [
        ({"a": 5}, 1, "a of the document is no document"),
        ({"a": {"n": "x"}}, 1, "n is no number"),
        ({"a": {"n": True}}, 1, "n is no number"),
        ({}, "1", "the quantity is no number"),
        ({}, Decimal128("1"), "the quantity is no number"),
        ({"a": {"n": Int64(2**63 - 1)}}, 1, "the sum for n is beyond an int64"),
    ],
)
def test_what_cannot_be_added_makes_no_document(
    source: dict[str, Any], amount: object, reason: str
) -> None:
    with pytest.raises(NoDocument, match=reason):
        add(source, "a.n", amount)


def many(count: int) -> dict[str, int]:
    return {f"{number:05}": number for number in range(count)}


def test_a_document_made_of_others_has_a_largest_number_of_fields() -> None:
    almost = many(FIELDS_MAX - 1)
    for change in ({"00000": "x"}, {"new": 1}):
        assert decoded(merged(bson.encode(almost), bson.encode(change))) == almost | change
    assert len(add(almost, "new", 1)) == FIELDS_MAX
    full, too_many = many(FIELDS_MAX), many(FIELDS_MAX + 1)
    assert decoded(merged(bson.encode(full), bson.encode({"00007": 1}))) == full | {"00007": 1}
    assert decoded(merged(EMPTY, bson.encode(full))) == full
    for older, newer in ((full, {"new": 1}), (too_many, {"00007": 1}), ({}, too_many)):
        with pytest.raises(NoDocument, match="more than 10000 fields"):
            merged(bson.encode(older), bson.encode(newer))
    with pytest.raises(NoDocument, match="more than 10000 fields"):
        add(full, "new.x", 1)


def test_documents_within_a_document_may_have_more_fields() -> None:
    assert len(add({"of": many(FIELDS_MAX)}, "of.new", 1)["of"]) == FIELDS_MAX + 1


def test_no_number_is_no_trouble() -> None:
    assert math.isnan(add({"n": math.nan}, "n", 1)["n"])
    assert add({"n": math.inf}, "n", 1)["n"] == math.inf


def test_texts_and_whole_numbers_name_documents() -> None:
    content = bson.encode({"t": "ä", "i": 7, "l": Int64(8), "d": 7.0, "n": None, "a": {"b": "c"}})
    found = elements_of(content, 0, len(content))
    texts = {name: text_of(content, value) for name, value in found.items()}
    assert texts == {b"t": "ä", b"i": "7", b"l": "8", b"d": None, b"n": None, b"a": None}
    value = value_in(content, b"a.b")
    assert value is not None
    assert text_of(content, value) == "c"
    assert (
        value_in(content, b"a.b.c") is value_in(content, b"x") is value_in(content, b"x.y") is None
    )


def test_nothing_is_lost_that_python_does_not_know() -> None:
    # Two elements of one name, of which the last counts; the type of the first.
    odd = b"\x10n\0\x01\0\0\0\x10m\0\x02\0\0\0"
    content = (len(odd) + 5).to_bytes(4, "little") + odd + b"\0"
    assert merged(EMPTY, content) == content


def test_of_two_elements_of_one_name_none_outlives_a_change() -> None:
    odd = b"\x10n\0\x01\0\0\0\x10m\0\x02\0\0\0\x10n\0\x03\0\0\0"
    content = (len(odd) + 5).to_bytes(4, "little") + odd + b"\0"
    assert merged(content, bson.encode({"n": 4})) == bson.encode({"n": 4, "m": 2})
    assert decoded(merged(EMPTY, content)) == {"n": 3, "m": 2}
