"""Tells where the sections and the body of a message are, as the kernel's `_skim` does.

For messages that the kernel leaves to Python and for workers that have no compiled kernel. The
picture of a section is there.
"""

from typing import Final

from hutch.formats.amqp.sections import (
    DATA_SECTION,
    SEQUENCE_SECTION,
    NotAmqp,
    Source,
    sections,
)
from pyspark_hutch.decoding.reasons import DATA, EXTENTS, NOTHING, ODD_BODY, RAW, VALUE

_BYTES: Final = (0xA0, 0xA1, 0xA3, 0xB0, 0xB1, 0xB3)
_SLOTS: Final = {0x70: 0, 0x71: 2, 0x72: 4, 0x73: 6, 0x74: 8, 0x78: 10}


def skim(source: Source, position: int, end: int) -> tuple[int, int, int, list[int]]:
    """Find the sections of the message in [position, end).

    Returns:
        (kind, start, end, extents): what the body is, where it is in the source, and where the
        sections are. A body that must be put together has the kind ODD_BODY.
    """
    extents = [0] * EXTENTS
    if position == end:
        return RAW, position, end, extents
    kind, body_start, body_end = NOTHING, position, position
    try:
        for code, start, value_end in sections(source, position, end):
            slot = _SLOTS.get(code)
            if slot is not None:
                extents[slot] = start
                extents[slot + 1] = value_end
            else:
                kind = _kind(source[start], code, kind)
                body_start = start + (2 if source[start] >> 4 == _BYTES[0] >> 4 else 5)
                body_end = value_end
    except NotAmqp:
        return RAW, position, end, [0] * EXTENTS
    return kind, body_start, body_end, extents


def _kind(constructor: int, code: int, before: int) -> int:
    if before != NOTHING or code == SEQUENCE_SECTION:
        return ODD_BODY
    if code == DATA_SECTION:
        return DATA
    return VALUE if constructor in _BYTES else ODD_BODY
