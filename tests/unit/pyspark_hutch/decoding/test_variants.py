"""Variants, read back by a decoder that is written after Parquet's page about them."""

import struct
from decimal import Decimal
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest

from hutch.formats.amqp.values import Moment, Single, Value
from pyspark_hutch.decoding.variants import variant_of

PRIMITIVES = (
    *("null", "true", "false", "int8", "int16", "int32", "int64", "double"),
    *("decimal4", "decimal8", "decimal16", "date", "timestamp", "timestamp_ntz"),
    *("float", "binary", "string"),
)
SIZES = {"int8": 1, "int16": 2, "int32": 4, "int64": 8, "decimal4": 4, "decimal8": 8} | {
    "decimal16": 16,
    "timestamp": 8,
}


def number(raw: bytes) -> int:
    return int.from_bytes(raw, "little")


def names_of(metadata: bytes) -> list[str]:
    width = (metadata[0] >> 6) + 1
    assert metadata[0] & 0x1F == 1
    count = number(metadata[1 : 1 + width])
    places = [number(metadata[1 + width * n : 1 + width * (n + 1)]) for n in range(1, count + 2)]
    content = metadata[1 + width * (count + 2) :]
    assert places[-1] == len(content)
    pairs = pairwise(places)
    return [content[start:end].decode() for start, end in pairs]


def primitive(kind: str, raw: bytes) -> tuple[str, Any]:
    if kind in ("null", "true", "false"):
        assert not raw
        return kind, None
    if kind.startswith("decimal"):
        assert len(raw) == SIZES[kind] + 1
        whole = int.from_bytes(raw[1:], "little", signed=True)
        return kind, Decimal((whole < 0, tuple(map(int, str(abs(whole)))), -raw[0]))
    if kind in SIZES:
        assert len(raw) == SIZES[kind]
        return kind, int.from_bytes(raw, "little", signed=True)
    if kind in ("float", "double"):
        return kind, struct.unpack("<f" if kind == "float" else "<d", raw)[0]
    assert number(raw[:4]) == len(raw) - 4
    return kind, raw[4:].decode() if kind == "string" else raw[4:]


def read(raw: bytes, names: list[str]) -> tuple[str, Any]:
    """Type and content of a value; asserts that it takes all of the bytes."""
    head, basic = raw[0] >> 2, raw[0] & 3
    if basic == 0:
        return primitive(PRIMITIVES[head], raw[1:])
    if basic == 1:
        assert len(raw) == head + 1
        return "string", raw[1:].decode()
    is_large = head >> (4 if basic == 2 else 2) & 1
    first = 5 if is_large else 2
    count = number(raw[1:first])
    ids: list[int] = []
    if basic == 2:
        width = (head >> 2 & 3) + 1
        ids = [number(raw[first + width * n : first + width * (n + 1)]) for n in range(count)]
        first += width * count
    width = (head & 3) + 1
    places = [number(raw[first + width * n : first + width * (n + 1)]) for n in range(count + 1)]
    content = raw[first + width * (count + 1) :]
    assert places[-1] == len(content)
    items = [read(content[a:b], names) for a, b in pairwise(places)]
    if basic == 3:
        return "array", items
    keys = [names[index] for index in ids]
    assert [key.encode() for key in keys] == sorted(key.encode() for key in keys)
    return "object", dict(zip(keys, items, strict=True))


def read_back(value: Value) -> tuple[str, Any]:
    raw, metadata = variant_of(value)
    return read(raw, names_of(metadata))


@pytest.mark.parametrize(
    ("value", "kind", "content"),
    [
        (None, "null", None),
        (True, "true", None),
        (False, "false", None),
        (127, "int8", 127),
        (-128, "int8", -128),
        (128, "int16", 128),
        (-32769, "int32", -32769),
        (1 << 31, "int64", 1 << 31),
        (1 << 63, "decimal16", Decimal(1 << 63)),
        ((1 << 64) - 1, "decimal16", Decimal((1 << 64) - 1)),
        (2.5, "double", 2.5),
        (Single(2.5), "float", 2.5),
        (Decimal("1.50"), "decimal4", Decimal("1.50")),
        (Decimal("-1.5"), "decimal4", Decimal("-1.5")),
        (Decimal("1E+3"), "decimal4", Decimal(1000)),
        (Decimal("1234567890.5"), "decimal8", Decimal("1234567890.5")),
        (Decimal("1E-20"), "decimal16", Decimal("1E-20")),
        (Decimal(10**38 - 1), "decimal16", Decimal(10**38 - 1)),
        (Decimal(10**38), "string", str(Decimal(10**38))),
        (Decimal("1E-39"), "string", "1E-39"),
        (Decimal("1E+6000"), "string", "1E+6000"),
        (Decimal("NaN"), "string", "NaN"),
        ("", "string", ""),
        ("x" * 63, "string", "x" * 63),
        ("x" * 64, "string", "x" * 64),
        ("ü" * 40, "string", "ü" * 40),
        (b"\x00\xff", "binary", b"\x00\xff"),
        (Moment(-5), "timestamp", -5000),
        (Moment(1 << 62), "string", "4611686018427387904"),
        (UUID(int=1), "string", "00000000-0000-0000-0000-000000000001"),
        ([], "array", []),
        ([1, "a"], "array", [("int8", 1), ("string", "a")]),
        ({}, "object", {}),
        ({"b": 1, "a": {}}, "object", {"b": ("int8", 1), "a": ("object", {})}),
        ({"a": {"b": None}}, "object", {"a": ("object", {"b": ("null", None)})}),
    ],
)
def test_a_value_keeps_its_type(value: Value, kind: str, content: object) -> None:
    assert read_back(value) == (kind, content)


@pytest.mark.parametrize("count", [1, 255, 256, 300, 70_000])
def test_objects_and_arrays_have_numbers_as_wide_as_they_need(count: int) -> None:
    array: list[Value] = [n % 100 for n in range(count)]
    numbers: dict[str, Value] = {f"name {n}": n % 100 for n in range(count)}

    assert read_back(array) == ("array", [("int8", n % 100) for n in range(count)])
    assert read_back(numbers) == ("object", {f"name {n}": ("int8", n % 100) for n in range(count)})


def test_names_are_in_the_order_of_their_bytes() -> None:
    names = ["\uffff", "\U00010000", "b", "a", "ü", ""]

    _, metadata = variant_of(dict.fromkeys(names))

    assert [name.encode() for name in names_of(metadata)] == sorted(name.encode() for name in names)
    read_back(dict.fromkeys(names))
