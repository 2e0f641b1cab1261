"""Finds the sections of an AMQP 1.0 message, without looking into them.

    section     | 00 | 53 code u8, or 80 code u64 | value |

Order is not checked, since clients differ in it. A section that is not data or a sequence may occur
once, the body is of one kind, and the sections fill the message; else it is not AMQP.

Source: AMQP 1.0, part 3.2.
"""

import sys
from typing import Final, TypeAlias

_DESCRIBED: Final = 0x00
_SMALL_CODE, _LARGE_CODE = 0x53, 0x80
_SMALL_BYTES, _LARGE_BYTES = 3, 10
_NO_WIDTH: Final = 8
_SIZES: Final = (
    *(_NO_WIDTH,) * 0x40,
    *(size for size in (0, -1, -2, -4, -8, -16) for _ in range(0x10)),
    *(size for _ in range(3) for size in (1, 4) for _ in range(0x10)),
)
"""By the constructor: the bytes of its size field, or the negative size of a fixed value; 0 for a
value without bytes."""

DATA_SECTION: Final = 0x75
SEQUENCE_SECTION: Final = 0x76
VALUE_SECTION: Final = 0x77
_LISTS: Final = frozenset((0x45, 0xC0, 0xD0))
_MAPS: Final = frozenset((0xC1, 0xD1))
_CONSTRUCTORS: Final = {
    0x70: _LISTS,
    0x71: _MAPS,
    0x72: _MAPS,
    0x73: _LISTS,
    0x74: _MAPS,
    DATA_SECTION: frozenset((0xA0, 0xB0)),
    SEQUENCE_SECTION: _LISTS,
    VALUE_SECTION: frozenset(range(0x100)),
    0x78: _MAPS,
}
"""Constructors with which the value of a section may begin."""
_BITS: Final = {code: 1 << index for index, code in enumerate(_CONSTRUCTORS)}
_BODIES: Final = _BITS[DATA_SECTION] | _BITS[SEQUENCE_SECTION] | _BITS[VALUE_SECTION]
_EXCLUDED: Final = _BITS | {
    DATA_SECTION: _BODIES & ~_BITS[DATA_SECTION],
    SEQUENCE_SECTION: _BODIES & ~_BITS[SEQUENCE_SECTION],
    VALUE_SECTION: _BODIES,
}
"""For each section, those that may not come before it, as bits."""

Source: TypeAlias = bytes | bytearray | memoryview


class NotAmqp(ValueError):
    """Bytes that are no message of AMQP 1.0."""


class TooManySections(ValueError):
    """A message with more sections, or a value with more descriptors, than are looked at."""


def sections(
    source: Source, position: int, end: int, most: int = sys.maxsize
) -> list[tuple[int, int, int]]:
    """Return code, start and end of each section's value, from its constructor on.

    Raises:
        NotAmqp: It is no message.
        TooManySections: It has more than `most` sections, or a value more descriptors.
    """
    found: list[tuple[int, int, int]] = []
    seen = 0
    while position < end:
        if len(found) == most:
            raise TooManySections(f"it has more than {most} sections")
        code, start = _descriptor(source, position, end)
        constructor = source[start]
        value = start if constructor else undescribed(source, start, end, most)
        position = _plain_end(source, value, end)
        if constructor not in _CONSTRUCTORS[code] or seen & _EXCLUDED[code]:
            raise NotAmqp
        seen |= _BITS[code]
        found.append((code, start, position))
    return found


def _descriptor(source: Source, position: int, end: int) -> tuple[int, int]:
    """Return a section's code and the position of its value, of which a byte is there."""
    start = position + _SMALL_BYTES
    if start >= end or source[position] != _DESCRIBED:
        raise NotAmqp
    form, code = source[position + 1], source[position + 2]
    if form == _LARGE_CODE:
        start = position + _LARGE_BYTES
        code = int.from_bytes(source[position + 2 : start], "big")
    elif form != _SMALL_CODE:
        raise NotAmqp
    if start >= end or code not in _CONSTRUCTORS:
        raise NotAmqp
    return code, start


def undescribed(source: Source, position: int, end: int, most: int = sys.maxsize) -> int:
    """Return where a value begins behind its descriptors.

    Raises:
        NotAmqp: There is none.
        TooManySections: It has more than `most` descriptors.
    """
    count = 0
    while position < end and source[position] == _DESCRIBED:
        if count == most:
            raise TooManySections(f"a value has more than {most} descriptors")
        count += 1
        position += 1
        if position >= end or source[position] == _DESCRIBED:
            raise NotAmqp
        position = _plain_end(source, position, end)
    if position >= end:
        raise NotAmqp
    return position


def _plain_end(source: Source, position: int, end: int) -> int:
    size = _SIZES[source[position]]
    position += 1
    if size == _NO_WIDTH:
        raise NotAmqp
    if size > 0:
        first = position + size
        if first > end:
            raise NotAmqp
        position = first + int.from_bytes(source[position:first], "big")
    else:
        position -= size
    if position > end:
        raise NotAmqp
    return position
