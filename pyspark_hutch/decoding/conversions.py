"""Conversion of AMQP values to a column's type, if nothing is lost by it; else null.

column      | takes
string      | any value, as its text
int, bigint | whole numbers in range, also written as a decimal or in a text
double      | numbers that a double has, and texts that are numbers
boolean     | booleans, and the texts true and false
binary      | binaries, and texts as UTF-8
timestamp   | timestamps, and texts of ISO 8601 that name a time zone
"""

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Final

import pyarrow as pa

from hutch.formats.amqp.values import Moment, Value, text_of

_INT_MIN, _INT_MAX = -(1 << 31), (1 << 31) - 1
_BIGINT_MIN, _BIGINT_MAX = -(1 << 63), (1 << 63) - 1
_DIGITS_MAX: Final = 400
"""Characters of a number in a text: more than the largest double has, so none is slow to read."""
_NUMBER: Final = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

Converted = str | int | float | bool | bytes | None


def converter(kind: pa.DataType) -> Callable[[Value], Converted]:
    """Return the converter of values to a type of Arrow. Raises KeyError for an unknown type."""
    return _CONVERTERS[str(kind)]


def _to_number(value: Value) -> int | float | Decimal | None:
    if isinstance(value, str):
        if len(value) > _DIGITS_MAX or not _NUMBER.fullmatch(value):
            return None
        return Decimal(value)
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        return None
    return value


def _to_whole(value: Value, least: int, most: int) -> int | None:
    number = _to_number(value)
    # Compared first: a decimal's exponent may stand for millions of digits.
    if number is None or math.isnan(number) or not least <= number <= most or number % 1:
        return None
    return int(number)


def _to_double(value: Value) -> float | None:
    number = _to_number(value)
    if number is None or isinstance(number, float):
        return None if number is None else float(number)
    try:
        converted = float(number)
    except OverflowError:
        return None
    if isinstance(number, int):
        return converted if int(converted) == number else None
    return None if math.isinf(converted) and number.is_finite() else converted


def _to_boolean(value: Value) -> bool | None:
    if isinstance(value, bool):
        return value
    return {"true": True, "false": False}.get(value) if isinstance(value, str) else None


def _to_binary(value: Value) -> bytes | None:
    if isinstance(value, str):
        return value.encode()
    return value if isinstance(value, bytes) else None


def to_micros(value: Value) -> int | None:
    """Return microseconds since 1970 of a timestamp, or of a text that is one."""
    if isinstance(value, Moment):
        micros = value.ms * 1000
        return micros if _BIGINT_MIN <= micros <= _BIGINT_MAX else None
    if not isinstance(value, str):
        return None
    try:
        time = datetime.fromisoformat(value)
    except ValueError:
        return None
    return None if time.tzinfo is None else (time - _EPOCH) // timedelta(microseconds=1)


_CONVERTERS: Final[dict[str, Callable[[Value], Converted]]] = {
    str(pa.string()): text_of,
    str(pa.int32()): partial(_to_whole, least=_INT_MIN, most=_INT_MAX),
    str(pa.int64()): partial(_to_whole, least=_BIGINT_MIN, most=_BIGINT_MAX),
    str(pa.float64()): _to_double,
    str(pa.bool_()): _to_boolean,
    str(pa.binary()): _to_binary,
    str(pa.timestamp("us", tz="UTC")): to_micros,
}
