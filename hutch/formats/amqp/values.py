"""Values of AMQP as Python has them, and their forms as text and as JSON.

    AMQP                     | Python     | text
    null                     | None       | null
    boolean                  | bool       | true, false
    numbers without point    | int        | decimal
    double, float            | float, Single | shortest that reads back; NaN, Infinity, -Infinity
    decimal32, 64, 128       | Decimal    | as it is
    char, string, symbol     | str        | itself; bytes that are not Unicode become U+FFFD
    timestamp                | Moment     | ISO 8601 in UTC, milliseconds; far years as a number
    uuid                     | UUID       | 8-4-4-4-12
    binary                   | bytes      | base64
    list, array              | list       | JSON
    map                      | dict       | JSON; keys by their text, of equal keys the last
    described value          | the value, without its descriptor

In JSON a value without a form of its own is its text as a string.
"""

import base64
import json
import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, TypeAlias
from uuid import UUID

_SINGLE: Final = struct.Struct(">f")
_SINGLE_DIGITS_MAX: Final = 9
"""Digits that are enough to tell any two floats of 32 bits apart."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Single(float):
    """A float of 32 bits."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Moment:
    """A timestamp: milliseconds since 1970."""

    ms: int


Value: TypeAlias = (
    "bool | int | float | Decimal | str | bytes | Moment | UUID | list[Value] | dict[str, Value]"
    " | None"
)


def text_of(value: Value) -> str | None:
    """Return a value as text; None for null."""
    if value is None or isinstance(value, str):
        return value
    return _TEXTS.get(type(value), str)(value)


def json_of(value: Value) -> str:
    """Return a value as JSON, without spaces."""
    return json.dumps(_for_json(value), ensure_ascii=False, separators=(",", ":"))


def _for_json(value: Value) -> object:
    match value:
        case list():
            return [_for_json(item) for item in value]
        case dict():
            return {key: _for_json(item) for key, item in value.items()}
        case None | bool() | int() | str():
            return value
        case Single() if math.isfinite(value):
            return float(_float_text(value))
        case float() if math.isfinite(value):
            return value
        case _:
            return text_of(value)


def _bool_text(value: bool) -> str:  # noqa: FBT001  # the value itself
    return "true" if value else "false"


def _bytes_text(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _float_text(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return _single_text(value) if isinstance(value, Single) else repr(float(value))


def _single_text(value: float) -> str:
    """Return the shortest decimal that reads back as these 32 bits."""
    for digits in range(1, _SINGLE_DIGITS_MAX):
        text = f"{value:.{digits}g}"
        if _SINGLE.pack(float(text)) == _SINGLE.pack(value):
            return repr(float(text))
    return repr(float(f"{value:.{_SINGLE_DIGITS_MAX}g}"))


def _moment_text(moment: Moment) -> str:
    try:
        time = _EPOCH + timedelta(milliseconds=moment.ms)
    except OverflowError:
        return str(moment.ms)
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


_TEXTS: Final[dict[type, Callable[[Any], str]]] = {
    bool: _bool_text,
    bytes: _bytes_text,
    dict: json_of,
    float: _float_text,
    list: json_of,
    Moment: _moment_text,
    Single: _float_text,
}
"""Texts of values that Python would write in another way."""
