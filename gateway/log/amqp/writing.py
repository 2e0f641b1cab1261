"""A message as RabbitMQ stores what AMQP 0-9-1 clients publish: sections of AMQP 1.0.

    header | message annotations | properties | application properties | data

Source: AMQP 1.0, parts 1 and 3; what RabbitMQ 4.3 stores for its own HTTP API, byte for byte.
"""

import re
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias
from urllib.parse import quote

_SHORT_MAX: Final = 0xFF
_SMALL_MIN, _SMALL_MAX = -128, 127
_LONG_MIN, _LONG_MAX = -(1 << 63), (1 << 63) - 1
_UINT_MAX: Final = (1 << 32) - 1

NULL: Final = b"\x40"
_TRUE: Final = b"\x41"
_FALSE: Final = b"\x42"
_ZERO: Final = b"\x43"
_NOTHING: Final = b"\x45"
_PERSISTENT: Final = 2
_DEPTH_MAX: Final = 16
_UUID: Final = re.compile("urn:uuid:([0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})")

COPIES: Final = "CC"
"""The header that names more routing keys; readers of the message see it."""
BLIND_COPIES: Final = "BCC"
"""The same, but it is left out of the message."""

Value: TypeAlias = "str | int | float | bool | list[Value] | dict[str, Value]"


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
    annotations, applications = _headers(properties.headers)
    begin: list[tuple[bytes, bytes]] = [
        (symbol("x-routing-key"), text(routing_key)),
        (symbol("x-exchange"), text(exchange)),
    ]
    if properties.type is not None:
        begin.append((symbol("x-basic-type"), text(properties.type)))
    sections = [
        section(0x70, listed(_header(properties))),
        section(0x72, _map(begin + annotations)),
    ]
    described = _properties(properties)
    if described:
        sections.append(section(0x73, listed(described)))
    if applications:
        sections.append(section(0x74, _map(applications)))
    return b"".join([*sections, section(0x75, sized(0xA0, payload))])


def _headers(
    headers: Mapping[str, Value],
) -> tuple[list[tuple[bytes, bytes]], list[tuple[bytes, bytes]]]:
    """Return the annotations and the application properties that headers become."""
    annotations: list[tuple[bytes, bytes]] = []
    applications: list[tuple[bytes, bytes]] = []
    for name in sorted(headers):
        value = headers[name]
        if name == COPIES:
            annotations.append((symbol("x-cc"), _value(value)))
        elif name.startswith("x-"):
            annotations.append((symbol(name), _value(value)))
        # Application properties hold simple values only.
        elif name != BLIND_COPIES and not isinstance(value, (list, dict)):
            applications.append((text(name), _value(value)))
    return annotations, applications


def section(code: int, content: bytes) -> bytes:
    """Return a section of a message."""
    return bytes((0x00, 0x53, code)) + content


def _header(properties: BasicProperties) -> list[bytes]:
    priority, ttl = properties.priority, properties.expiration
    if priority is not None and not 0 <= priority <= _SHORT_MAX:
        raise Unpackable(f"priority {priority} is not from 0 to {_SHORT_MAX}")
    if ttl is not None and ttl < 0:
        raise Unpackable(f"invalid expiration {ttl}: it is negative")
    return [
        _TRUE if properties.delivery_mode == _PERSISTENT else _FALSE,
        NULL if priority is None else bytes((0x50, priority)),
        NULL if ttl is None else b"\x70" + (ttl & _UINT_MAX).to_bytes(4, "big"),
        _TRUE,
        _ZERO,
    ]


def _properties(properties: BasicProperties) -> list[bytes]:
    def optional(value: str | None) -> bytes:
        return NULL if value is None else text(value)

    reply_to, user_id, timestamp = properties.reply_to, properties.user_id, properties.timestamp
    fields = [
        _identifier(properties.message_id),
        NULL if user_id is None else sized(0xA0, _raw(user_id)),
        NULL,
        NULL,
        NULL if reply_to is None else text("/queues/" + quote(reply_to, safe="")),
        _identifier(properties.correlation_id),
        NULL if properties.content_type is None else symbol(properties.content_type),
        NULL if properties.content_encoding is None else symbol(properties.content_encoding),
        NULL,
        NULL if timestamp is None else b"\x83" + _long(timestamp * 1000),
        optional(properties.app_id),
    ]
    while fields and fields[-1] == NULL:
        fields.pop()
    return fields


def _identifier(value: str | None) -> bytes:
    """Encode an identifier: a text, or a UUID if the text is written as one."""
    if value is None:
        return NULL
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
    if len(raw) <= _SHORT_MAX:
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
    match value:
        case bool():
            return bytes((0x56, value))
        case int() if _SMALL_MIN <= value <= _SMALL_MAX:
            return b"\x55" + value.to_bytes(1, "big", signed=True)
        case int():
            return b"\x81" + _long(value)
        case float():
            return struct.pack(">Bd", 0x82, value)
        case str():
            return text(value)
    raise Unpackable("null_not_allowed")


def listed(items: list[bytes]) -> bytes:
    """Encode a list of encoded values."""
    if not items:
        return _NOTHING
    return _compound(0xC0, b"".join(items), len(items))


def _map(pairs: Iterable[tuple[bytes, bytes]]) -> bytes:
    parts = [part for pair in pairs for part in pair]
    return _compound(0xC1, b"".join(parts), len(parts))


def _compound(code: int, content: bytes, count: int) -> bytes:
    if len(content) < _SHORT_MAX and count <= _SHORT_MAX:
        return bytes((code, len(content) + 1, count)) + content
    size = len(content) + 4
    return bytes((code + 0x10,)) + size.to_bytes(4, "big") + count.to_bytes(4, "big") + content
