"""Values of AMQP as Spark's variants, which keep their types.

    metadata   | 01 + size of numbers | count | starts, and the end | names        (little-endian)
    value      | header:6 kind:2 | bytes
    kind       | 0 primitive: its number | 1 text of at most 63 bytes: its size
               | 2 object: count, ids of names, starts and end, values | 3 array: count, starts …

A value that a variant cannot hold (an UUID, a decimal of more than 38 digits) is a text.

Source: Variant Binary Encoding of Apache Parquet, version 1, which is Spark's own.
"""

import struct
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any, Final

from hutch.formats.amqp.values import Moment, Single, Value, text_of
from pyspark_hutch.decoding.conversions import to_micros

_VERSION: Final = 1
_PRIMITIVE, _SHORT_TEXT, _OBJECT, _ARRAY = range(4)
_SHORT_TEXT_MAX: Final = 63
_COUNT_MAX: Final = 255
_DIGITS_MAX: Final = 38

_NULL, _TRUE, _FALSE = 0, 1, 2
_INTS: Final = ((3, 1), (4, 2), (5, 4), (6, 8))
_DOUBLE: Final = 7
_DECIMALS: Final = ((8, 4, 9), (9, 8, 18), (10, 16, 38))
_TIMESTAMP: Final = 12
_FLOAT: Final = 14
_BINARY, _TEXT = 15, 16


def variant_of(value: Value) -> tuple[bytes, bytes]:
    """Return value and metadata of a variant."""
    names = {name: index for index, name in enumerate(sorted(set(_names(value))))}
    return _value(value, names), _metadata(names)


def _names(value: Value) -> Iterable[str]:
    if isinstance(value, dict):
        yield from value
        for item in value.values():
            yield from _names(item)
    elif isinstance(value, list):
        for item in value:
            yield from _names(item)


def _metadata(names: Iterable[str]) -> bytes:
    raw = [name.encode() for name in names]
    starts = _starts(raw)
    width = _width(max(starts[-1], len(raw)))
    head = bytes((_VERSION | (width - 1) << 6,))
    return b"".join((head, _number(len(raw), width), _numbers(starts, width), *raw))


def _value(value: Value, names: dict[str, int]) -> bytes:
    if isinstance(value, list):
        return _array([_value(item, names) for item in value])
    if isinstance(value, dict):
        return _object(value, names)
    if value is None:
        return _primitive(_NULL)
    return _SCALARS.get(type(value), _other)(value)


def _primitive(number: int, *content: bytes) -> bytes:
    return b"".join((bytes((number << 2 | _PRIMITIVE,)), *content))


def _boolean(value: bool) -> bytes:  # noqa: FBT001  # the value itself
    return _primitive(_TRUE if value else _FALSE)


def _single(value: Single) -> bytes:
    return _primitive(_FLOAT, struct.pack("<f", value))


def _double(value: float) -> bytes:
    return _primitive(_DOUBLE, struct.pack("<d", value))


def _binary(value: bytes) -> bytes:
    return _primitive(_BINARY, _number(len(value), 4), value)


def _moment(value: Moment) -> bytes:
    micros = to_micros(value)
    if micros is None:
        return _other(value)
    return _primitive(_TIMESTAMP, micros.to_bytes(8, "little", signed=True))


def _other(value: Value) -> bytes:
    return _text(text_of(value) or "")


def _text(text: str) -> bytes:
    raw = text.encode()
    if len(raw) <= _SHORT_TEXT_MAX:
        return bytes((len(raw) << 2 | _SHORT_TEXT,)) + raw
    return _primitive(_TEXT, _number(len(raw), 4), raw)


def _exact(value: int | Decimal) -> bytes:
    if isinstance(value, int):
        for number, size in _INTS:
            if -(1 << (8 * size - 1)) <= value < 1 << (8 * size - 1):
                return _primitive(number, value.to_bytes(size, "little", signed=True))
        return _decimal(value, 0)
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int) or not -_DIGITS_MAX <= exponent <= _DIGITS_MAX:
        return _other(value)
    whole = int("".join(map(str, digits))) * 10 ** max(exponent, 0)
    return _decimal(-whole if sign else whole, max(-exponent, 0)) or _other(value)


def _decimal(whole: int, scale: int) -> bytes:
    """Encode a number of at most 38 digits; nothing for a longer one."""
    for number, size, digits in _DECIMALS:
        if abs(whole) < 10**digits and scale <= digits:
            return _primitive(number, bytes((scale,)), whole.to_bytes(size, "little", signed=True))
    return b""


def _object(value: dict[str, Value], names: dict[str, int]) -> bytes:
    # By their bytes; Python sorts texts by code points, which is the same order in UTF-8.
    pairs = [(names[name], _value(value[name], names)) for name in sorted(value)]
    items = [item for _, item in pairs]
    starts = _starts(items)
    id_width, width = _width(max(len(names) - 1, 0)), _width(starts[-1])
    is_large = len(items) > _COUNT_MAX
    head = (is_large << 4 | (id_width - 1) << 2 | width - 1) << 2 | _OBJECT
    return b"".join(
        (
            bytes((head,)),
            _number(len(items), 4 if is_large else 1),
            _numbers([name for name, _ in pairs], id_width),
            _numbers(starts, width),
            *items,
        )
    )


def _array(items: list[bytes]) -> bytes:
    starts = _starts(items)
    width = _width(starts[-1])
    is_large = len(items) > _COUNT_MAX
    head = bytes(((is_large << 2 | width - 1) << 2 | _ARRAY,))
    count = _number(len(items), 4 if is_large else 1)
    return b"".join((head, count, _numbers(starts, width), *items))


def _starts(items: list[bytes]) -> list[int]:
    """Return where each item begins, and where the last one ends."""
    starts = [0]
    for item in items:
        starts.append(starts[-1] + len(item))
    return starts


def _width(largest: int) -> int:
    """Bytes of the smallest number that holds the largest."""
    return max((largest.bit_length() + 7) // 8, 1)


def _number(number: int, width: int) -> bytes:
    return number.to_bytes(width, "little")


def _numbers(numbers: Iterable[int], width: int) -> bytes:
    return b"".join(number.to_bytes(width, "little") for number in numbers)


_SCALARS: Final[dict[type, Callable[[Any], bytes]]] = {
    bool: _boolean,
    bytes: _binary,
    Decimal: _exact,
    float: _double,
    int: _exact,
    Moment: _moment,
    Single: _single,
}
