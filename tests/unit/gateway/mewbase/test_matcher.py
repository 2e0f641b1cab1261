"""Matchers, on events and against the same rules for values of Python."""

import datetime as dt
from typing import Any

import bson
import pytest
from bson import Decimal128, Int64, ObjectId
from hypothesis import given
from hypothesis import strategies as st

from gateway.mewbase.matcher import MATCHER_BYTES_MAX, BadMatcher, Matcher

NOW = dt.datetime(2016, 12, 1, tzinfo=dt.UTC)
ID = ObjectId("0123456789abcdef01234567")

MATCHES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({}, {"a": 1}),
    ({"type": "a"}, {"type": "a", "b": 1}),
    ({"n": 1}, {"n": Int64(1)}),
    ({"n": Int64(1)}, {"n": 1.0}),
    ({"n": 0.0}, {"n": -0.0}),
    ({"o": {"x": 1}}, {"o": {"x": 1, "y": 2}}),
    ({"o": {}}, {"o": {"y": 2}}),
    ({"a": [1, "x", {"y": 2}]}, {"a": [1.0, "x", {"y": Int64(2)}]}),
    ({"a": None}, {"a": None}),
    ({"a": None}, {}),
    ({"a.b": 1}, {"a.b": 1}),
    ({"a.b": 1}, {"a": {"b": 1, "c": 2}}),
    ({"a.b.c": {"d": 1}}, {"a": {"b": {"c": {"d": 1, "e": 2}}}}),
    ({"a.b": None}, {"a": {}}),
    ({"a.b": 1, "a": {"c": 2, "b": 1}, "a.c": 2}, {"a": {"b": 1, "c": 2, "d": 3}}),
    ({"a": []}, {"a": []}),
    ({"a.b": None}, {"a": 1}),
    ({"d": NOW, "i": ID, "x": Decimal128("1.0")}, {"d": NOW, "i": ID, "x": Decimal128("1.0")}),
    ({"b": True}, {"b": True}),
    ({"r": {"ref": 1}}, {"r": {"$ref": 1, "ref": 1}}),
]
DIFFERS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"type": "a"}, {"type": "b"}),
    ({"type": "a"}, {}),
    ({"n": 1}, {"n": True}),
    ({"n": True}, {"n": 1}),
    ({"n": 1}, {"n": "1"}),
    ({"n": 1}, {"n": 1.5}),
    ({"n": 2**53 + 1}, {"n": float(2**53)}),
    ({"n": float("nan")}, {"n": float("nan")}),
    ({"o": {"x": 1}}, {"o": {"y": 1}}),
    ({"o": {"x": 1}}, {"o": 1}),
    ({"o": {}}, {"o": []}),
    ({"a": [1, 2]}, {"a": [2, 1]}),
    ({"a": [1]}, {"a": [1, 2]}),
    ({"a": [1, 2]}, {"a": [1]}),
    ({"a": []}, {"a": [1]}),
    ({"a": [1]}, {"a": []}),
    ({"a": [{}]}, {"a": [{"x": 1}]}),
    ({"a": [{"x": 1}]}, {"a": [{"x": 1, "y": 2}]}),
    ({"a": None}, {"a": 0}),
    ({"a": 0}, {"a": None}),
    ({"a.b": 1}, {"a.b": 2, "a": {"b": 1}}),
    ({"a.b": 1}, {"a": [1]}),
    ({"d": NOW}, {"d": NOW + dt.timedelta(milliseconds=1)}),
    ({"b": False}, {}),
    ({"b": b"x"}, {"b": "x"}),
]


def matches(matcher: dict[str, Any], event: dict[str, Any]) -> bool:
    return Matcher(bson.encode(matcher)).matches(bson.encode(event))


@pytest.mark.parametrize(("matcher", "event"), MATCHES)
def test_an_event_with_equal_values_matches(matcher: dict[str, Any], event: dict[str, Any]) -> None:
    assert matches(matcher, event)


@pytest.mark.parametrize(("matcher", "event"), DIFFERS)
def test_any_other_event_does_not(matcher: dict[str, Any], event: dict[str, Any]) -> None:
    assert not matches(matcher, event)


@pytest.mark.parametrize("matcher", [{"$gt": 1}, {"a": {"$in": []}}, {"a": [{"$": 1}]}])
def test_there_are_no_operators(matcher: dict[str, Any]) -> None:
    with pytest.raises(BadMatcher, match=r"\$"):
        Matcher(bson.encode(matcher))


names = st.sampled_from(["a", "b", "a.b", "c"])
values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([1.0, 0.5, "x", b"x"]),
    lambda some: st.lists(some, max_size=3) | st.dictionaries(names, some, max_size=3),
    max_leaves=6,
)


def equal(wanted: object, found: object) -> bool:
    if isinstance(wanted, dict):
        return (
            isinstance(found, dict)
            and wanted.keys() == found.keys()
            and all(equal(value, found[key]) for key, value in wanted.items())
        )
    if isinstance(wanted, list):
        return (
            isinstance(found, list) and len(wanted) == len(found) and all(map(equal, wanted, found))
        )
    if isinstance(wanted, bool) or isinstance(found, bool):
        return wanted is found
    return wanted == found


def wants(wanted: dict[str, Any], found: dict[str, Any]) -> bool:
    """The same rules on values of Python."""
    for key, value in wanted.items():
        there = found.get(key)
        if key not in found and "." in key:
            first, _, second = key.partition(".")
            inner = found.get(first)
            there = inner.get(second) if isinstance(inner, dict) else None
        if isinstance(value, dict):
            if not isinstance(there, dict) or not wants(value, there):
                return False
        elif not equal(value, there):
            return False
    return True


@given(st.dictionaries(names, values, max_size=3), st.dictionaries(names, values, max_size=4))
def test_bytes_match_as_values_do(wanted: dict[str, Any], found: dict[str, Any]) -> None:
    assert matches(wanted, found) == wants(wanted, found)
    assert matches(found, found)


def test_a_matcher_has_a_largest_size() -> None:
    rest = len(bson.encode({"a": ""}))
    for size in (MATCHER_BYTES_MAX - 1, MATCHER_BYTES_MAX):
        wanted = {"a": "x" * (size - rest)}
        assert len(bson.encode(wanted)) == size
        assert matches(wanted, wanted)
    with pytest.raises(BadMatcher, match="are the most"):
        Matcher(bson.encode({"a": "x" * (MATCHER_BYTES_MAX + 1 - rest)}))
