"""Messages of other protocols as RabbitMQ stores them: sections of AMQP 1.0.

    header | message annotations | properties | application properties | data

Source: AMQP 1.0, parts 1 and 3; what RabbitMQ 4.3 stores for its own HTTP API, byte for byte.
"""

import re
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import NoneType
from typing import Any, Final
from urllib.parse import quote
from uuid import UUID

from hutch.formats.amqp.message import message_of
from hutch.formats.amqp.sections import sections
from hutch.formats.amqp.values import Moment, Value

SHORT_MAX: Final = 0xFF
_SMALL_MIN, _SMALL_MAX = -128, 127
_LONG_MIN, _LONG_MAX = -(1 << 63), (1 << 63) - 1
UINT_MAX: Final = (1 << 32) - 1

HEADER, ANNOTATIONS = 0x70, 0x72
_SMALL_MAP: Final = 0xC1
NULL: Final = b"\x40"
_TRUE: Final = b"\x41"
_FALSE: Final = b"\x42"
_ZERO: Final = b"\x43"
_NOTHING: Final = b"\x45"
PERSISTENT: Final = 2
_DEPTH_MAX: Final = 16
_TEXT_MAX: Final = 4096
_UUID: Final = re.compile("urn:uuid:([0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})")

COPIES: Final = "CC"
"""The header that names more routing keys; readers of the message see it."""
BLIND_COPIES: Final = "BCC"
"""Another header with routing keys; the message is stored without it."""


class Unpackable(ValueError):
    """A property or header that has no place in a message; the text names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BasicProperties:
    """Properties as AMQP 0-9-1 has them; None if one was not given.

    Attributes:
        expiration: Milliseconds.
        timestamp: Seconds since 1970.
    """

    content_type: str | None = None
    content_encoding: str | None = None
    headers: Mapping[str, Value] = field(default_factory=dict)
    delivery_mode: int | None = None
    priority: int | None = None
    correlation_id: str | None = None
    reply_to: str | None = None
    expiration: int | None = None
    message_id: str | None = None
    timestamp: int | None = None
    type: str | None = None
    user_id: str | None = None
    app_id: str | None = None


def pack_message(
    payload: bytes, properties: BasicProperties, *, exchange: str, routing_key: str
) -> bytes:
    """Return a message as one record of a stream. Raises Unpackable."""
    parts = MessageParts(
        is_durable=properties.delivery_mode == PERSISTENT,
        priority=properties.priority,
        ttl_ms=properties.expiration,
        annotations={"x-routing-key": text(routing_key), "x-exchange": text(exchange)},
        properties=_properties(properties),
    )
    if properties.type is not None:
        parts.annotations["x-basic-type"] = text(properties.type)
    for name in sorted(properties.headers):
        value = properties.headers[name]
        if name == COPIES:
            parts.annotations["x-cc"] = _value(value)
        elif name.startswith("x-"):
            # A header does not say where the message was published.
            parts.annotations.setdefault(name, _value(value))
        # Application properties hold simple values only.
        elif name != BLIND_COPIES and not isinstance(value, (list, dict)):
            parts.applications[name] = _value(value)
    return pack(parts, section(0x75, sized(0xA0, payload)))


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageParts:
    """Parts of a message before its body.

    Attributes:
        annotations: Encoded values, by names that become symbols.
        properties: Encoded fields in AMQP's order; NULL for one that was not given.
        applications: Encoded values, by names that become texts.
    """

    is_durable: bool
    priority: int | None = None
    ttl_ms: int | None = None
    annotations: dict[str, bytes] = field(default_factory=dict)
    properties: Sequence[bytes] = ()
    applications: dict[str, bytes] = field(default_factory=dict)


def pack(parts: MessageParts, body: bytes) -> bytes:
    """Return a message of its parts and an encoded body; empty ones are left out."""
    properties = list(parts.properties)
    while properties and properties[-1] == NULL:
        properties.pop()
    found = [section(HEADER, listed(_header(parts)))]
    if parts.annotations:
        pairs = ((symbol(name), value) for name, value in parts.annotations.items())
        found.append(section(ANNOTATIONS, _map(pairs)))
    if properties:
        found.append(section(0x73, listed(properties)))
    if parts.applications:
        pairs = ((text(name), value) for name, value in parts.applications.items())
        found.append(section(0x74, _map(pairs)))
    return b"".join((*found, body))


def section(code: int, content: bytes) -> bytes:
    """Return a section of a message."""
    return bytes((0x00, 0x53, code)) + content


def _header(parts: MessageParts) -> list[bytes]:
    priority, ttl = parts.priority, parts.ttl_ms
    if priority is not None and not 0 <= priority <= SHORT_MAX:
        raise Unpackable(f"priority {priority} is not from 0 to {SHORT_MAX}")
    if ttl is not None and ttl < 0:
        raise Unpackable(f"invalid expiration {ttl}: it is negative")
    return [
        _TRUE if parts.is_durable else _FALSE,
        NULL if priority is None else bytes((0x50, priority)),
        NULL if ttl is None else b"\x70" + (ttl & UINT_MAX).to_bytes(4, "big"),
        _TRUE,
        _ZERO,
    ]


def _properties(properties: BasicProperties) -> list[bytes]:
    reply_to, user_id, timestamp = properties.reply_to, properties.user_id, properties.timestamp
    return [
        NULL if properties.message_id is None else identifier(properties.message_id),
        NULL if user_id is None else sized(0xA0, _raw(user_id)),
        NULL,
        NULL,
        NULL if reply_to is None else text("/queues/" + quote(reply_to, safe="")),
        NULL if properties.correlation_id is None else identifier(properties.correlation_id),
        NULL if properties.content_type is None else symbol(properties.content_type),
        NULL if properties.content_encoding is None else symbol(properties.content_encoding),
        NULL,
        NULL if timestamp is None else b"\x83" + _long(timestamp * 1000),
        NULL if properties.app_id is None else text(properties.app_id),
    ]


def identifier(value: str) -> bytes:
    """Encode an identifier: a text, or a UUID if the text is written as one."""
    found = _UUID.fullmatch(value)
    return text(value) if found is None else b"\x98" + bytes.fromhex(found[1].replace("-", ""))


def text(value: str) -> bytes:
    """Encode a text."""
    return sized(0xA1, _raw(value))


def symbol(value: str) -> bytes:
    """Encode a symbol."""
    return sized(0xA3, _raw(value))


def _raw(value: str) -> bytes:
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise Unpackable("a text is not Unicode") from None


def sized(code: int, raw: bytes) -> bytes:
    """Encode with the code of the short form; that of the long form is 16 higher."""
    if len(raw) <= SHORT_MAX:
        return bytes((code, len(raw))) + raw
    return bytes((code + 0x10,)) + len(raw).to_bytes(4, "big") + raw


def _long(value: int) -> bytes:
    if not _LONG_MIN <= value <= _LONG_MAX:
        raise Unpackable("a number has more than 64 bits")
    return value.to_bytes(8, "big", signed=True)


def _value(value: Value, depth: int = 0) -> bytes:
    if depth > _DEPTH_MAX:
        raise Unpackable("headers are nested too deeply")
    if isinstance(value, list):
        return listed([_value(item, depth + 1) for item in value])
    if isinstance(value, dict):
        return _map((symbol(name), _value(item, depth + 1)) for name, item in value.items())
    return _simple(value)


def _simple(value: object) -> bytes:
    encode = _SIMPLE.get(type(value))
    if encode is None:
        raise Unpackable(f"a header is a {type(value).__name__}")
    return encode(value)


def _whole(value: int) -> bytes:
    if _SMALL_MIN <= value <= _SMALL_MAX:
        return b"\x55" + value.to_bytes(1, "big", signed=True)
    return b"\x81" + _long(value)


def _header_text(value: str) -> bytes:
    """Encode a text; RabbitMQ takes one that is long, or has a zero in it, for bytes."""
    raw = _raw(value)
    return sized(0xA1 if len(raw) <= _TEXT_MAX and b"\0" not in raw else 0xA0, raw)


_SIMPLE: Final[dict[type, Callable[[Any], bytes]]] = {
    NoneType: lambda _: NULL,
    bool: lambda value: bytes((0x56, value)),
    int: _whole,
    float: lambda value: struct.pack(">Bd", 0x82, value),
    str: _header_text,
    bytes: lambda value: sized(0xA0, value),
    Moment: lambda value: b"\x83" + _long(value.ms),
    UUID: lambda value: b"\x98" + value.bytes,
}


def listed(items: list[bytes]) -> bytes:
    """Encode a list of encoded values."""
    if not items:
        return _NOTHING
    return _compound(0xC0, b"".join(items), len(items))


def _map(pairs: Iterable[tuple[bytes, bytes]]) -> bytes:
    parts = [part for pair in pairs for part in pair]
    return _compound(0xC1, b"".join(parts), len(parts))


def _compound(code: int, content: bytes, count: int) -> bytes:
    if len(content) < SHORT_MAX and count <= SHORT_MAX:
        return bytes((code, len(content) + 1, count)) + content
    size = len(content) + 4
    return bytes((code + 0x10,)) + size.to_bytes(4, "big") + count.to_bytes(4, "big") + content


def annotated(record: bytes, facts: Mapping[str, str]) -> bytes:
    """Return a record with more annotations; one that is no message becomes the body of one."""
    if message_of(record) is None:
        parts = MessageParts(
            is_durable=True, annotations={name: text(value) for name, value in facts.items()}
        )
        return pack(parts, section(0x75, sized(0xA0, record)))
    more = b"".join(symbol(name) + text(value) for name, value in facts.items())
    head, count, begin = 0, 0, 0
    for code, start, end in sections(record, 0, len(record)):
        if code == ANNOTATIONS:
            width = 1 if record[start] == _SMALL_MAP else 4
            count = int.from_bytes(record[start + 1 + width : start + 1 + 2 * width], "big")
            more = record[start + 1 + 2 * width : end] + more
            begin = end
            break
        if code == HEADER:
            head = begin = end
    size = (len(more) + 4).to_bytes(4, "big")
    items = (count + 2 * len(facts)).to_bytes(4, "big")
    return record[:head] + section(ANNOTATIONS, b"\xd1" + size + items + more) + record[begin:]
