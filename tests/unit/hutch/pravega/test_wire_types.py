from typing import Any, TypeAlias, get_args
from uuid import UUID

import pytest

from hutch.pravega import wire_types as w
from hutch.pravega.errors import WireError
from hutch.pravega.wire_types import ANY_VERSION, DATA_TYPE, KEY_TYPE, STRING_TYPE, TableKey

AnyType: TypeAlias = w.PayloadType[Any]
BOOLEAN: w.PayloadType[bool] = w.Number("boolean", "?")
STRINGS = w.Items(STRING_TYPE)
KEYS = w.Items(KEY_TYPE)
FEW_KEYS = w.Items(KEY_TYPE, 3)
EVENT, VALUE = w.StoredEvent(), w.Value()

SAMPLES = [
    (w.INT_TYPE, -2, "fffffffe"),
    (w.LONG_TYPE, ANY_VERSION, "8000000000000000"),
    (BOOLEAN, True, "01"),
    (w.Uuid(), UUID(int=7), "00000000000000000000000000000007"),
    (STRING_TYPE, "a", "000161"),
    (DATA_TYPE, b"a", "0000000161"),
    (w.PayloadRest(), b"ab", "6162"),
    (EVENT, b"a", "000000000000000161"),
    (STRINGS, ("a", ""), "000000020001610000"),
    (KEY_TYPE, TableKey(b"k", -1), "0000000d000000016bffffffffffffffff"),
    (KEY_TYPE, TableKey(b""), "0000000c00000000"),
    (VALUE, b"v", "000000050000000176"),
    (VALUE, b"", "0000000400000000"),
]


@pytest.mark.parametrize(("wire_type", "value", "text"), SAMPLES)
def test_a_value_is_written_and_read(wire_type: AnyType, value: object, text: str) -> None:
    target = bytearray(b"?")

    wire_type.write(value, target)

    assert target[1:].hex() == text
    assert wire_type.read(memoryview(target), 1) == (value, len(target))
    assert len(target) - 1 >= wire_type.bytes_min


@pytest.mark.parametrize(("wire_type", "value", "text"), SAMPLES)
def test_a_value_that_is_cut_short_is_refused(wire_type: AnyType, value: object, text: str) -> None:
    data = memoryview(bytes.fromhex(text))
    if isinstance(wire_type, w.PayloadRest):
        assert wire_type.read(data[:1], 0) == (b"a", 1)
        return

    for size in range(len(data)):
        with pytest.raises(WireError):
            wire_type.read(data[:size], 0)
    assert wire_type.read(data, 0)[0] == value


def test_any_byte_but_zero_is_true() -> None:
    assert [BOOLEAN.read(memoryview(bytes([byte])), 0)[0] for byte in (0, 1, 2, 255)] == [
        False,
        True,
        True,
        True,
    ]


@pytest.mark.parametrize(
    ("wire_type", "text", "words"),
    [
        (DATA_TYPE, "ffffffff61", "a data of -1 bytes where 1 are left"),
        (DATA_TYPE, "7fffffff61", "where 1 are left"),
        (STRING_TYPE, "ffff61", "a string of 65535 bytes where 1 are left"),
        (EVENT, "000000010000000161", "an event begins with 1, not 0"),
        (STRINGS, "ffffffff", "a list of -1 items"),
        (STRINGS, "00000003000000", "a list of 3 items in 3 bytes"),
        (KEYS, "7fffffff0000000c00000000", "a list of 2147483647 items in 8 bytes"),
        (KEYS, "00010001" + "0000000c00000000" * 65_537, "a list of 65537 items is above 65536"),
        (FEW_KEYS, "00000004" + "0000000c00000000" * 4, "a list of 4 items is above 3"),
        (KEY_TYPE, "0000000c000000016bffffffffffffffff", "a key of 1 bytes is said to take 12"),
        (VALUE, "000000060000000176", "a value of 1 bytes is said to take 6"),
    ],
)
def test_a_size_that_cannot_be_is_refused(wire_type: AnyType, text: str, words: str) -> None:
    with pytest.raises(WireError, match=words):
        wire_type.read(memoryview(bytes.fromhex(text)), 0)


def test_the_size_before_an_empty_key_or_value_says_nothing() -> None:
    four = memoryview(bytes.fromhex("00000004 00000000"))

    assert KEY_TYPE.read(four, 0) == (TableKey(b""), 8)
    assert VALUE.read(four, 0) == (b"", 8)


def test_a_string_may_have_65535_bytes() -> None:
    target = bytearray()

    STRING_TYPE.write("a" * 65_535, target)

    assert STRING_TYPE.read(memoryview(target), 0) == ("a" * 65_535, 65_537)
    with pytest.raises(ValueError, match="65536 bytes has no size"):
        STRING_TYPE.write("a" * 65_536, target)


def test_a_list_that_would_not_be_read_is_not_written() -> None:
    with pytest.raises(ValueError, match="above 65536"):
        KEYS.write((TableKey(b""),) * 65_537, bytearray())


def test_lists_are_read_where_no_cython_is(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = (TableKey(b"a", 1), TableKey(b"b", 2))
    target = bytearray()
    wire_type = get_args(w.Keys)[1]
    wire_type.write(keys, target)
    monkeypatch.setattr(w, "table_items", None)
    assert wire_type.read(memoryview(target), 0) == (keys, len(target))
