"""Values as text and as JSON."""

from decimal import Decimal
from uuid import UUID

import pytest

from hutch.formats.amqp.values import Moment, Single, Value, json_of, text_of

ID = UUID("01234567-89ab-cdef-0123-456789abcdef")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        ("", ""),
        ("ü", "ü"),
        (True, "true"),
        (False, "false"),
        ((1 << 64) - 1, "18446744073709551615"),
        (-5, "-5"),
        (0.1, "0.1"),
        (1e300, "1e+300"),
        (Single(0.10000000149011612), "0.1"),
        (float("nan"), "NaN"),
        (float("inf"), "Infinity"),
        (Single("-inf"), "-Infinity"),
        (Decimal("1.50"), "1.50"),
        (b"\x00\xff", "AP8="),
        (Moment(0), "1970-01-01T00:00:00.000Z"),
        (Moment(-1), "1969-12-31T23:59:59.999Z"),
        (Moment(1_700_000_000_123), "2023-11-14T22:13:20.123Z"),
        (Moment(1 << 62), "4611686018427387904"),
        (ID, "01234567-89ab-cdef-0123-456789abcdef"),
        ([1, "a"], '[1,"a"]'),
        ({"a": [None]}, '{"a":[null]}'),
    ],
)
def test_a_value_has_its_text(value: Value, text: str | None) -> None:
    assert text_of(value) == text


@pytest.mark.parametrize(
    ("value", "json"),
    [
        (None, "null"),
        ("a", '"a"'),
        ("ü\n", '"ü\\n"'),
        (True, "true"),
        (5, "5"),
        (2.5, "2.5"),
        (Single(0.10000000149011612), "0.1"),
        (float("nan"), '"NaN"'),
        (Single("inf"), '"Infinity"'),
        (Decimal("1.5"), '"1.5"'),
        (b"\x00", '"AA=="'),
        (Moment(0), '"1970-01-01T00:00:00.000Z"'),
        (ID, f'"{ID}"'),
        (
            {"a": {"b": [1, b"\x00", Moment(0)]}},
            '{"a":{"b":[1,"AA==","1970-01-01T00:00:00.000Z"]}}',
        ),
    ],
)
def test_a_value_has_its_json(value: Value, json: str) -> None:
    assert json_of(value) == json
