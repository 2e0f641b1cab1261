"""Records of a stream as messages of AMQP 0-9-1, by the rules of RabbitMQ's message containers.

    AMQP 1.0                                | AMQP 0-9-1
    data                                    | body
    a value, or sequences                   | body: the section as it is; type `amqp-1.0`
    header: durable, priority, ttl          | delivery mode, priority, expiration
    message id, correlation id              | the same; a UUID as `urn:uuid:…`, a number as its
                                            | digits, bytes and long texts in a header
    reply to `/queues/NAME`                 | reply to
    group id, creation time                 | app id, timestamp in seconds
    annotation x-basic-type                 | type
    annotation x-cc                         | header CC
    other annotations that begin with x-    | headers
    application properties                  | headers
    no message of AMQP 1.0                  | body; content type application/octet-stream

Source: RabbitMQ 4.3, what its queues give of records in its streams.
"""

import struct
from collections.abc import Callable, Iterator, Mapping
from types import NoneType
from typing import Any, Final, NamedTuple
from urllib.parse import unquote
from uuid import UUID

from hutch.formats.amqp.message import AmqpMessage, Body, header_of, message_of, properties_of
from hutch.formats.amqp.sections import SEQUENCE_SECTION, VALUE_SECTION, sections
from hutch.formats.amqp.values import Moment, Single, Value, text_of
from hutch.formats.amqp.writing import COPIES, PERSISTENT, SHORT_MAX, BasicProperties

OCTETS: Final = "application/octet-stream"
EXCHANGE, ROUTING_KEY = "x-exchange", "x-routing-key"

_PACKED: Final = "amqp-1.0"
_QUEUES: Final = "/queues/"
_TYPE: Final = "x-basic-type"
_INTERNAL: Final = frozenset((_TYPE, EXCHANGE, ROUTING_KEY))
_LONG: Final = (1 << 64) - 1


class Routed(NamedTuple):
    """A message and where its publisher sent it.

    Attributes:
        body: Its bytes.
        properties: Of AMQP 0-9-1.
        exchange: Empty if that is not known.
        routing_key: None if that is not known.
    """

    body: bytes
    properties: BasicProperties
    exchange: str
    routing_key: str | None


def basic_of(record: bytes) -> Routed:
    """Return a record as a message of AMQP 0-9-1."""
    message = message_of(record)
    if message is None:
        return Routed(record, BasicProperties(content_type=OCTETS), "", None)
    annotations = message.message_annotations or {}
    is_packed = message.kind in (Body.VALUE, Body.SEQUENCE)
    body = body_and_footer(record) if is_packed else message.body or b""
    key = annotations.get(ROUTING_KEY)
    return Routed(
        body if isinstance(body, bytes) else b"",
        _properties(message, _PACKED if is_packed else text_of(annotations.get(_TYPE))),
        text_of(annotations.get(EXCHANGE)) or "",
        key if isinstance(key, str) else None,
    )


def body_and_footer(record: bytes) -> bytes:
    """Return the sections from the body on, as they are."""
    begin = 0
    for code, _, end in sections(record, 0, len(record)):
        if code in (VALUE_SECTION, SEQUENCE_SECTION):
            break
        begin = end
    return record[begin:]


def _properties(message: AmqpMessage, kind: str | None) -> BasicProperties:
    fields = properties_of(message)
    durable, priority, ttl = header_of(message)
    headers: dict[str, Value] = dict(_headers(message))
    made, user = fields.get("creation_time"), fields.get("user_id")
    return BasicProperties(
        content_type=_short(text_of(fields.get("content_type"))),
        content_encoding=_short(text_of(fields.get("content_encoding"))),
        delivery_mode=None if durable is None else PERSISTENT if durable else 1,
        priority=priority,
        correlation_id=_identifier(fields.get("correlation_id"), "x-correlation-id", headers),
        reply_to=_short(_queue_of(fields.get("reply_to"))),
        expiration=ttl,
        message_id=_identifier(fields.get("message_id"), "x-message-id", headers),
        timestamp=made.ms // 1000 if isinstance(made, Moment) else None,
        type=_short(kind),
        user_id=_short(user.decode("utf-8", "replace")) if isinstance(user, bytes) else None,
        app_id=_short(fields.get("group_id")),
        headers=headers,
    )


def _headers(message: AmqpMessage) -> Iterator[tuple[str, Value]]:
    for name, value in (message.message_annotations or {}).items():
        if name == "x-cc":
            yield COPIES, value
        elif name.startswith("x-") and name not in _INTERNAL and _short(name) is not None:
            yield name, value
    for name, value in (message.application_properties or {}).items():
        if _short(name) is not None:
            yield name, value


def _identifier(value: Value, header: str, headers: dict[str, Value]) -> str | None:
    """Return an identifier; one that has no place in its property becomes a header."""
    match value:
        case None:
            return None
        case UUID():
            return f"urn:uuid:{value}"
        case int():
            return str(value)
        case str() if _short(value) is not None:
            return value
    headers[header] = value
    return None


def _queue_of(address: Value) -> Value:
    """Return the queue that an address names; other addresses as they are."""
    if isinstance(address, str) and address.startswith(_QUEUES):
        return unquote(address.removeprefix(_QUEUES))
    return address


def _short(value: Value) -> str | None:
    """Return a text that fits into 255 bytes; None for other values."""
    return value if isinstance(value, str) and len(value.encode()) <= SHORT_MAX else None


# ---- headers as bytes ------------------------------------------------------------------------


def pack_table(headers: Mapping[str, Value]) -> bytes:
    """Return headers as a table; numbers keep their value, whole ones always with 64 bits.

    Source: AMQP 0-9-1, 4.2.5.5, with the types that RabbitMQ uses.
    """
    parts: list[bytes] = []
    for name, value in headers.items():
        raw = name.encode()
        parts += (bytes((len(raw),)), raw, _field(value))
    return _sized(b"".join(parts))


def pack_moment(seconds: int) -> bytes:
    """Return a time, as seconds since 1970."""
    return (seconds & _LONG).to_bytes(8, "big")


def _field(value: Value) -> bytes:
    encode = _FIELDS.get(type(value))
    return b"S" + _sized((text_of(value) or "").encode()) if encode is None else encode(value)


def _sized(raw: bytes) -> bytes:
    return len(raw).to_bytes(4, "big") + raw


_FIELDS: Final[dict[type, Callable[[Any], bytes]]] = {
    NoneType: lambda _: b"V",
    bool: lambda value: b"t" + bytes((value,)),
    int: lambda value: b"l" + (value & _LONG).to_bytes(8, "big"),
    float: lambda value: struct.pack(">cd", b"d", value),
    Single: lambda value: struct.pack(">cf", b"f", value),
    Moment: lambda value: b"T" + pack_moment(value.ms // 1000),
    bytes: lambda value: b"x" + _sized(value),
    list: lambda value: b"A" + _sized(b"".join(map(_field, value))),
    dict: lambda value: b"F" + pack_table(value),
}
"""Values that are not sent as text."""
