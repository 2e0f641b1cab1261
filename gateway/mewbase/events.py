"""Events as records of a stream: messages of AMQP 1.0 with a body of BSON, and back.

properties: content type application/bson | data: the event's bytes
"""

from typing import Final

from gateway.log.records.reading import Record, UnreadableSubBatch
from gateway.mewbase.wire.kernel.documents import is_document
from gateway.mewbase.wire.writing import wrapped
from gateway.settings.mewbase import BadSubBatchRule
from hutch.formats.amqp.message import data_of
from hutch.formats.amqp.reading import VALUE_BYTES_MAX, value_of
from hutch.formats.amqp.sections import (
    DATA_SECTION,
    SEQUENCE_SECTION,
    VALUE_SECTION,
    NotAmqp,
    sections,
    undescribed,
)
from hutch.formats.amqp.writing import NULL, listed, section, sized, symbol

SECTIONS_MAX: Final = 64
"""The most sections of a message that is looked into. To find one takes the time of a few hundred
bytes, and a message of 1 MiB may have 200,000."""

CONTENT_TYPE: Final = "application/bson"
_PROPERTIES: Final = 0x73
_BODIES: Final = {DATA_SECTION, SEQUENCE_SECTION, VALUE_SECTION}
_TEXTS: Final = {0x73, 0xA0, 0xA1, 0xA3, 0xB0, 0xB1, 0xB3}
"""Constructors of characters, binary values, strings and symbols."""
_BEFORE_CONTENT_TYPE: Final = 6
_HEAD: Final = section(
    _PROPERTIES, listed([NULL] * _BEFORE_CONTENT_TYPE + [symbol(CONTENT_TYPE)])
) + section(DATA_SECTION, b"")
_SHORT, _SHORT_HEAD_BYTES, _LONG_HEAD_BYTES = 0xA0, 2, 5

RECORD_HEAD_BYTES: Final = len(_HEAD) + _LONG_HEAD_BYTES
"""Bytes of a record before its event, at most."""


def record_of(event: bytes) -> bytes:
    """Return an event as a record."""
    return _HEAD + sized(_SHORT, event)


def event_of(record: bytes) -> bytes:
    """Return a record as an event.

    A message whose body is one whole document is that event, wherever it comes from. Any other is
    {data: its body}; a record that is no message is a body itself. Of a message the body alone is
    looked at.

    Raises:
        TooManySections: It is a message of more than SECTIONS_MAX.
    """
    if record.startswith(_HEAD) and len(record) > len(_HEAD):
        is_short = record[len(_HEAD)] == _SHORT
        start = len(_HEAD) + (_SHORT_HEAD_BYTES if is_short else _LONG_HEAD_BYTES)
        if is_document(record, start, len(record)):
            return record[start:]
    body = _body_of(record)
    return body if is_document(body, 0, len(body)) else wrapped(body)


class NoEvents(Exception):
    """A sub-batch whose events nothing can stand for, since `mewbase.bad_sub_batches` is fail."""


def records_instead(bad: UnreadableSubBatch, fate: BadSubBatchRule) -> list[Record]:
    """Return the records that stand for those of a sub-batch. Raises NoEvents."""
    if fate is BadSubBatchRule.FAIL:
        raise NoEvents(
            f"at position {bad.offset} {bad.reason}; set mewbase.bad_sub_batches to skip or raw to "
            "go on behind it"
        )
    if fate is BadSubBatchRule.SKIP or bad.body is None:
        return []
    return [(bad.offset, bad.timestamp_ms, record_of(wrapped(bad.body)))]


def _body_of(record: bytes) -> bytes:
    try:
        found = sections(record, 0, len(record), SECTIONS_MAX)
    except NotAmqp:
        return record
    parts = [(code, record[start:end]) for code, start, end in found if code in _BODIES]
    if not parts:
        return b"" if found else record
    kind, first = parts[0]  # all are of one kind
    if kind == DATA_SECTION:
        return data_of([raw for _, raw in parts])
    text = _text_of(first) if kind == VALUE_SECTION else None
    return record if text is None else text


def _text_of(raw: bytes) -> bytes | None:
    """Return a value that is a text, or bytes; None for any other: it may take long to decode."""
    start = undescribed(raw, 0, len(raw), SECTIONS_MAX)
    if raw[start] not in _TEXTS or len(raw) > VALUE_BYTES_MAX:
        return None
    value = value_of(raw[start:])
    if isinstance(value, str):
        return value.encode("utf-8", "replace")
    return value if isinstance(value, bytes) else None
