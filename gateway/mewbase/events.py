"""Events as records of a stream: messages of AMQP 1.0 with a body of BSON, and back.

properties: content type application/bson | data: the event's bytes
"""

from typing import Final

from gateway.log.amqp.message import Body, message_of
from gateway.log.amqp.writing import NULL, listed, section, sized, symbol
from gateway.log.records.reading import Record, Unreadable
from gateway.mewbase.wire.kernel.documents import is_document
from gateway.mewbase.wire.writing import wrapped
from gateway.settings.mewbase import BadSubBatches

CONTENT_TYPE: Final = "application/bson"
_PROPERTIES, _DATA = 0x73, 0x75
_BEFORE_CONTENT_TYPE: Final = 6
_HEAD: Final = section(
    _PROPERTIES, listed([NULL] * _BEFORE_CONTENT_TYPE + [symbol(CONTENT_TYPE)])
) + section(_DATA, b"")
_SHORT, _SHORT_HEAD_BYTES, _LONG_HEAD_BYTES = 0xA0, 2, 5

RECORD_HEAD_BYTES: Final = len(_HEAD) + _LONG_HEAD_BYTES
"""Bytes of a record before its event, at most."""


def record_of(event: bytes) -> bytes:
    """Return an event as a record."""
    return _HEAD + sized(_SHORT, event)


def event_of(record: bytes) -> bytes:
    """Return a record as an event.

    A message whose body is one whole document is that event, wherever it comes from. Any other is
    {data: its body}; a record that is no message is a body itself.
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


def records_instead(bad: Unreadable, fate: BadSubBatches) -> list[Record]:
    """Return the records that stand for those of a sub-batch. Raises NoEvents."""
    if fate is BadSubBatches.FAIL:
        raise NoEvents(
            f"at position {bad.offset} {bad.reason}; set mewbase.bad_sub_batches to skip or raw to "
            "go on behind it"
        )
    if fate is BadSubBatches.SKIP or bad.body is None:
        return []
    return [(bad.offset, bad.timestamp_ms, record_of(wrapped(bad.body)))]


def _body_of(record: bytes) -> bytes:
    message = message_of(record)
    if message is None:
        return record
    if isinstance(message.body, bytes):
        return message.body
    if isinstance(message.body, str):
        return message.body.encode("utf-8", "replace")
    return b"" if message.kind is Body.NONE else record
