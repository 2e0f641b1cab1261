"""Values of AMQP 1.0 from their bytes.

    value       | constructor | bytes                          | described: 00, descriptor, value
    list, map   | c0 c1: size u8, count u8 | d0 d1: size u32, count u32 | values
    array       | e0: size u8, count u8    | f0: size u32, count u32    | constructor, values

No number is trusted: a value ends within its surroundings, nesting has a largest depth, and there
are never more items than bytes (though an item in an array of nulls takes no byte).

Source: AMQP 1.0, part 1.6.
"""

import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Final
from uuid import UUID

from hutch.formats.amqp.sections import NotAmqp
from hutch.formats.amqp.values import Moment, Single, Value, text_of

DEPTH_MAX: Final = 32
"""Deepest nesting of lists in lists; a deeper one is taken for damage."""
VALUE_BYTES_MAX: Final = 1 << 20
"""Most bytes of a value that is decoded: the default size of a server's frame. Each byte may become
an object of Python."""

_DESCRIBED: Final = 0x00
_UNICODE_MAX: Final = 0x10FFFF
_SURROGATES: Final = range(0xD800, 0xE000)


def value_of(raw: bytes) -> Value:
    """Decode one value that takes all of the bytes. Raises NotAmqp."""
    if len(raw) > VALUE_BYTES_MAX:
        raise NotAmqp
    reader = _Reader(raw)
    value, end = reader.value(0, len(raw), 0)
    if end != len(raw):
        raise NotAmqp
    return value


def list_of(raw: bytes) -> list[Value]:
    """Decode a list. Raises NotAmqp."""
    value = value_of(raw)
    if not isinstance(value, list):
        raise NotAmqp
    return value


def map_of(raw: bytes) -> dict[str, Value]:
    """Decode a map. Raises NotAmqp."""
    value = value_of(raw)
    if not isinstance(value, dict):
        raise NotAmqp
    return value


def _unsigned(raw: bytes) -> int:
    return int.from_bytes(raw, "big")


def _signed(raw: bytes) -> int:
    return int.from_bytes(raw, "big", signed=True)


def _boolean(raw: bytes) -> bool:
    if raw not in (b"\x00", b"\x01"):
        raise NotAmqp
    return raw == b"\x01"


def _single(raw: bytes) -> Single:
    return Single(struct.unpack(">f", raw)[0])


def _double(raw: bytes) -> float:
    number: float = struct.unpack(">d", raw)[0]
    return number


def _char(raw: bytes) -> str:
    number = _unsigned(raw)
    if number > _UNICODE_MAX or number in _SURROGATES:
        return "\ufffd"
    return chr(number)


def _moment(raw: bytes) -> Moment:
    return Moment(_signed(raw))


def _uuid(raw: bytes) -> UUID:
    return UUID(bytes=raw)


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _decimal(raw: bytes) -> Decimal:
    """Decode IEEE 754's decimals, whose digits are one binary number.

    | sign | exponent | digits |, or with 11 after the sign | sign | 11 | exponent | digits - 8 … |.
    """
    bits = 8 * len(raw)
    exponent_bits = {32: 8, 64: 10, 128: 14}[bits]
    digits_bits = bits - 1 - exponent_bits
    number = _unsigned(raw)
    sign = number >> (bits - 1)
    top = number >> (bits - 6) & 0x1F
    if top >= 0x1E:  # noqa: PLR2004  # 11110: infinite, 11111: not a number
        return Decimal("NaN") if top & 1 else Decimal("-Infinity" if sign else "Infinity")
    bias = {32: 101, 64: 398, 128: 6176}[bits]
    if top >> 3 == 3:  # noqa: PLR2004  # 11: the digits begin with 100
        digits_bits -= 2
        digits = (4 << digits_bits) | number & ((1 << digits_bits) - 1)
    else:
        digits = number & ((1 << digits_bits) - 1)
    exponent = number >> digits_bits & ((1 << exponent_bits) - 1)
    if digits >= 10 ** {32: 7, 64: 16, 128: 34}[bits]:
        digits = 0
    return Decimal((sign, tuple(map(int, str(digits))), exponent - bias))


_FIXED: Final[dict[int, tuple[int, Callable[[bytes], Value]]]] = {
    0x40: (0, lambda _: None),
    0x41: (0, lambda _: True),
    0x42: (0, lambda _: False),
    0x43: (0, lambda _: 0),
    0x44: (0, lambda _: 0),
    0x45: (0, lambda _: []),
    0x50: (1, _unsigned),
    0x51: (1, _signed),
    0x52: (1, _unsigned),
    0x53: (1, _unsigned),
    0x54: (1, _signed),
    0x55: (1, _signed),
    0x56: (1, _boolean),
    0x60: (2, _unsigned),
    0x61: (2, _signed),
    0x70: (4, _unsigned),
    0x71: (4, _signed),
    0x72: (4, _single),
    0x73: (4, _char),
    0x74: (4, _decimal),
    0x80: (8, _unsigned),
    0x81: (8, _signed),
    0x82: (8, _double),
    0x83: (8, _moment),
    0x84: (8, _decimal),
    0x94: (16, _decimal),
    0x98: (16, _uuid),
}
"""Constructor: bytes of the value, and their decoder."""

_SIZED: Final[dict[int, tuple[int, Callable[[bytes], Value]]]] = {
    0xA0: (1, bytes),
    0xA1: (1, _text),
    0xA3: (1, _text),
    0xB0: (4, bytes),
    0xB1: (4, _text),
    0xB3: (4, _text),
}
"""Constructor: bytes of the size in front of the value, and the value's decoder."""

_COMPOUND: Final = {
    0xC0: (1, "list"),
    0xC1: (1, "map"),
    0xD0: (4, "list"),
    0xD1: (4, "map"),
    0xE0: (1, "array"),
    0xF0: (4, "array"),
}
"""Constructor: bytes of size and of count, each, and the type."""


class _Reader:
    """Decodes values that stand in one run of bytes."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._items_left = len(raw)

    def value(self, position: int, end: int, depth: int) -> tuple[Value, int]:
        """Decode the value at a position; return it and the position after it."""
        for _ in range(DEPTH_MAX):
            if position >= end:
                raise NotAmqp
            code = self._raw[position]
            position += 1
            if code != _DESCRIBED:
                return self._plain(code, position, end, depth)
            _, position = self.value(position, end, self._deeper(depth))
        raise NotAmqp

    def _plain(self, code: int, position: int, end: int, depth: int) -> tuple[Value, int]:
        """Decode the bytes behind a constructor."""
        if code in _FIXED:
            size, convert = _FIXED[code]
            stop = position + size
        elif code in _SIZED:
            width, convert = _SIZED[code]
            first = position + width
            stop = first + _unsigned(self._raw[position:first])
            position = first
        else:
            return self._compound(code, position, end, self._deeper(depth))
        if stop > end:
            raise NotAmqp
        return convert(self._raw[position:stop]), stop

    def _compound(self, code: int, position: int, end: int, depth: int) -> tuple[Value, int]:
        if code not in _COMPOUND:
            raise NotAmqp
        width, kind = _COMPOUND[code]
        first = position + width
        stop = first + _unsigned(self._raw[position:first])
        count = _unsigned(self._raw[first : first + width])
        self._items_left -= count
        if stop > end or first + width > stop or self._items_left < 0:
            raise NotAmqp
        if kind == "array":
            items = self._array(first + width, stop, count, depth)
        else:
            items = self._values(first + width, stop, count, depth)
        if kind != "map":
            return items, stop
        if count % 2:
            raise NotAmqp
        keys = (text_of(key) or "" for key in items[::2])
        return dict(zip(keys, items[1::2], strict=True)), stop

    def _values(self, position: int, stop: int, count: int, depth: int) -> list[Value]:
        items: list[Value] = []
        for _ in range(count):
            # As `value` does, but faster for the most frequent values.
            fixed = _FIXED.get(self._raw[position]) if position < stop else None
            if fixed is not None:
                first, position = position + 1, position + 1 + fixed[0]
                if position > stop:
                    raise NotAmqp
                items.append(fixed[1](self._raw[first:position]))
            else:
                item, position = self.value(position, stop, depth)
                items.append(item)
        if position != stop:
            raise NotAmqp
        return items

    def _array(self, position: int, stop: int, count: int, depth: int) -> list[Value]:
        """Decode items that share a constructor, which may be described."""
        if position < stop and self._raw[position] == _DESCRIBED:
            _, position = self.value(position + 1, stop, depth)
        if position >= stop:
            if count:
                raise NotAmqp
            return []
        code = self._raw[position]
        position += 1
        items: list[Value] = []
        for _ in range(count):
            item, position = self._plain(code, position, stop, depth)
            items.append(item)
        if position != stop:
            raise NotAmqp
        return items

    @staticmethod
    def _deeper(depth: int) -> int:
        if depth >= DEPTH_MAX:
            raise NotAmqp
        return depth + 1
