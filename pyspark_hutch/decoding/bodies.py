"""Bodies and sections of messages: their kinds, and the places that the kernel leaves to Python.

Python looks for them where a body has to be put together, and on workers that have no compiled
kernel. The numbers are those of the compiled loops; the picture of a section is there.
"""

from typing import Final

from hutch.formats.amqp.message import data_of, items_of
from hutch.formats.amqp.reading import value_of
from hutch.formats.amqp.sections import (
    DATA_SECTION,
    SEQUENCE_SECTION,
    VALUE_SECTION,
    NotAmqp,
    Source,
    sections,
)
from hutch.formats.amqp.values import json_of

DONE: Final = 0
"""Done: as many records as were asked for."""
SUB_BATCH: Final = 1
"""The entry at the place is a sub-batch."""
BEYOND: Final = 2
"""The entry at the place reaches past the limit."""
FULL: Final = 3
"""The message at the place is larger than the rest of the budget."""
ODD: Final = 4
"""The body of the message at the place must be put together first."""

DATA: Final = 0
VALUE: Final = 1
SEQUENCE: Final = 2
RAW: Final = 3
NOTHING: Final = 4
ODD_BODY: Final = 5

BAD_SUB_BATCH: Final = 6

BODY_TYPES: Final = ("data", "amqp-value", "amqp-sequence", "raw", None, None, "bad-sub-batch")
"""Names of kinds of bodies, by number; a message of sections without a body has none.

The last one is no message, but the bytes that a publisher sent as a sub-batch.
"""

EXTENTS: Final = 14
"""Numbers for each record: start and end of six sections, and two that the loops use."""
EXTENT_NAMES: Final = (
    "header",
    "delivery_annotations",
    "message_annotations",
    "properties",
    "application_properties",
    "footer",
)


_BYTES: Final = (0xA0, 0xA1, 0xA3, 0xB0, 0xB1, 0xB3)
_SLOTS: Final = {0x70: 0, 0x71: 2, 0x72: 4, 0x73: 6, 0x74: 8, 0x78: 10}


def skim(source: Source, position: int, end: int) -> tuple[int, int, int, list[int]]:
    """Find the sections of the message in [position, end).

    Returns:
        (kind, start, end, extents): the kind of the body, where it is in the source, and where the
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


def body_of(message: bytes) -> tuple[int, bytes]:
    """Put the body of a message together whose kind was found to be ODD_BODY.

    Several data sections are joined. A value that is no bytes and no text is JSON, sequences are
    one array of JSON. A message that cannot be read is raw: it is the body itself.
    """
    found: dict[int, list[bytes]] = {DATA_SECTION: [], SEQUENCE_SECTION: [], VALUE_SECTION: []}
    try:
        for code, start, end in sections(message, 0, len(message)):
            found.get(code, []).append(message[start:end])
        if data := found[DATA_SECTION]:
            return DATA, data_of(data)
        if values := found[VALUE_SECTION]:
            return VALUE, json_of(value_of(values[0])).encode()
        return SEQUENCE, json_of(items_of(found[SEQUENCE_SECTION])).encode()
    except NotAmqp:
        return RAW, message
