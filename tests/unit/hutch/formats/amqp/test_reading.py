"""Values of AMQP from their bytes: every constructor, an independent encoder, and damage."""

import datetime as dt
import struct
import tracemalloc
import uuid
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rstream._pyamqp import _encode

from hutch.formats.amqp.reading import (
    DEPTH_MAX,
    VALUE_BYTES_MAX,
    list_of,
    map_of,
    value_of,
)
from hutch.formats.amqp.sections import NotAmqp
from hutch.formats.amqp.values import Moment, Single, Value
from tests.property.pyspark_hutch.chunk_rig import listed, mapped, sized, text

ID = uuid.UUID("01234567-89ab-cdef-0123-456789abcdef")


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ("40", None),
        ("41", True),
        ("42", False),
        ("5600", False),
        ("5601", True),
        ("43", 0),
        ("44", 0),
        ("45", []),
        ("50ff", 255),
        ("51ff", -1),
        ("52ff", 255),
        ("53ff", 255),
        ("5480", -128),
        ("5580", -128),
        ("60ffff", 65535),
        ("61ffff", -1),
        ("70ffffffff", 4294967295),
        ("71ffffffff", -1),
        ("7240200000", Single(2.5)),
        ("730001f600", "\U0001f600"),
        ("730000d800", "\ufffd"),
        ("73ffffffff", "\ufffd"),
        ("80ffffffffffffffff", (1 << 64) - 1),
        ("81ffffffffffffffff", -1),
        ("824004000000000000", 2.5),
        ("83ffffffffffffffff", Moment(-1)),
        ("98" + ID.hex, ID),
        ("a00200ff", b"\x00\xff"),
        ("b00000000200ff", b"\x00\xff"),
        ("a102c3bc", "ü"),
        ("a101ff", "\ufffd"),
        ("b100000001" + "61", "a"),
        ("a30161", "a"),
        ("b30000000161", "a"),
        ("c0030254c8" + "41", None),
        ("c00302" + "5400", None),
        ("c00401" + "61000a", [10]),
        ("d00000000601000000", None),
        ("d00000000600000001" + "54ff", [-1]),
        ("c10602" + "a10161" + "5405", {"a": 5}),
        ("c10b04" + "a10161" + "5405" + "a10161" + "5406", {"a": 6}),
        ("c105025405" + "5406", {"5": 6}),
        ("c104024041", None),
        ("c10302" + "4041", {"": True}),
        ("d10000000700000002" + "4241", None),
        ("d10000000600000002" + "4241", {"false": True}),
        ("e00502540102", None),
        ("e00403540102", None),
        ("c00301" + "7200", None),
        ("c00402" + "547200", None),
        ("c00301" + "0054", None),
        ("7200", None),
        ("e00302" + "7240", None),
        ("e00402" + "540102", [1, 2]),
        ("e00100", []),
        ("e0020054", []),
        ("f0000000070000000254" + "0102", [1, 2]),
        ("e00702" + "005301540102", [1, 2]),
        ("e00602" + "c0" + "0100" + "0100", [[], []]),
        ("005301a10161", "a"),
        ("00a30161005302a10162", "b"),
    ],
)
def test_every_constructor_is_decoded(raw: str, value: Value) -> None:
    if value is None and raw != "40":
        with pytest.raises(NotAmqp):
            value_of(bytes.fromhex(raw))
        return

    found = value_of(bytes.fromhex(raw))

    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        # IEEE 754-2008: an exponent biased by 101, 398 and 6176, digits as a binary number.
        ("7432800001", "1"),
        ("7431800001", "0.01"),
        ("74b2800001", "-1"),
        ("7477f8967f", "9.999999E+96"),
        ("747" + "8000000", "Infinity"),
        ("74f8000000", "-Infinity"),
        ("747c000000", "NaN"),
        ("746cb8967f", "9999999"),
        ("8431c0000000000005", "5"),
        ("8431a000000000000f", "1.5"),
        ("94303e00000000000000000000000000" + "7b", "12.3"),
    ],
)
def test_decimals_are_decoded(raw: str, value: str) -> None:
    found = value_of(bytes.fromhex(raw))

    assert isinstance(found, Decimal)
    assert str(found) == str(Decimal(value))


def test_a_decimal_of_more_digits_than_its_form_has_is_zero() -> None:
    assert value_of(bytes.fromhex("746cffffff")) == 0


VALUES: list[tuple[object, Value]] = [
    (None, None),
    (True, True),
    (b"binary", b"binary"),
    ("text", "text"),
    (2**40, 2**40),
    (-5, -5),
    (2.5, 2.5),
    (ID, ID),
    (dt.datetime(2024, 1, 2, tzinfo=dt.UTC), Moment(1_704_153_600_000)),
    ([1, "a", None], [1, "a", None]),
    ({"a": 1, "b": [True]}, {"a": 1, "b": [True]}),
    (list(range(300)), list(range(300))),
]


@pytest.mark.parametrize(("given_value", "value"), VALUES, ids=range(len(VALUES)))
def test_what_a_client_encodes_is_decoded(given_value: object, value: Value) -> None:
    output = bytearray()
    _encode.encode_value(output, given_value)  # type: ignore[attr-defined]  # it has no types

    assert value_of(bytes(output)) == value


def test_lists_and_maps_are_told_apart() -> None:
    assert list_of(listed(text("a"))) == ["a"]
    assert map_of(mapped(a=text("b"))) == {"a": "b"}
    with pytest.raises(NotAmqp):
        list_of(mapped())
    with pytest.raises(NotAmqp):
        map_of(listed())


def test_nesting_has_a_largest_depth() -> None:
    def nested(depth: int) -> bytes:
        raw = b"\x45"
        for _ in range(depth):
            raw = listed(raw)
        return raw

    value_of(nested(DEPTH_MAX))
    with pytest.raises(NotAmqp):
        value_of(nested(DEPTH_MAX + 1))


@pytest.mark.parametrize("described", [b"\0\x43", b"\0\0"])
def test_descriptors_do_not_go_on_for_ever(described: bytes) -> None:
    with pytest.raises(NotAmqp):
        value_of(described * 100_000 + b"\x43")


def test_an_array_of_nothing_has_no_more_items_than_bytes() -> None:
    assert value_of(b"\xe0\x02\x03\x41") == [True] * 3
    tracemalloc.start()
    for count in (0xFFFFFFFF, 100_000):
        array = struct.pack(">BIIB", 0xF0, 5, count, 0x40)
        with pytest.raises(NotAmqp):
            value_of(listed(*[array] * 20))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 1 << 20


@pytest.mark.parametrize("size", [VALUE_BYTES_MAX - 6, VALUE_BYTES_MAX - 5, VALUE_BYTES_MAX - 4])
def test_a_value_has_a_largest_size(size: int) -> None:
    raw = sized(0xA0, bytes(size))

    if len(raw) <= VALUE_BYTES_MAX:
        assert value_of(raw) == bytes(size)
    else:
        with pytest.raises(NotAmqp):
            value_of(raw)


@given(st.binary(max_size=60))
def test_any_bytes_are_a_value_or_no_amqp(raw: bytes) -> None:
    for _ in range(2):
        try:
            value_of(raw)
        except NotAmqp:
            raw = b"\xc0" + bytes((len(raw) + 1, 2)) + raw
