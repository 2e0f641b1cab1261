"""A message of AMQP 1.0 out of a record, whole.

Source: AMQP 1.0, part 3.2.
"""

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hutch.formats.amqp.reading import VALUE_BYTES_MAX, list_of, map_of, value_of
from hutch.formats.amqp.sections import (
    DATA_SECTION,
    SEQUENCE_SECTION,
    VALUE_SECTION,
    NotAmqp,
    sections,
)
from hutch.formats.amqp.values import Value

_HEADER: Final = 0x70
_DELIVERY_ANNOTATIONS: Final = 0x71
_MESSAGE_ANNOTATIONS: Final = 0x72
_PROPERTIES: Final = 0x73
_APPLICATION_PROPERTIES: Final = 0x74
_FOOTER: Final = 0x78
_SHORT_BINARY: Final = 0xA0
_UBYTE_MAX: Final = 0xFF
_UINT_MAX: Final = (1 << 32) - 1

PROPERTIES: Final = (
    *("message_id", "user_id", "to", "subject", "reply_to", "correlation_id", "content_type"),
    *("content_encoding", "absolute_expiry_time", "creation_time", "group_id", "group_sequence"),
    "reply_to_group_id",
)
"""Names of the properties in AMQP's order."""


class Body(enum.Enum):
    """Kinds of body."""

    NONE = "none"
    DATA = "data"
    VALUE = "value"
    SEQUENCE = "sequence"


@dataclass(frozen=True, slots=True)
class AmqpMessage:
    """A message, taken apart; a section that it does not have is None.

    Attributes:
        header: Fields in AMQP's order; those at the end may be left out.
        properties: The same.
        kind: The kind of the body.
        body: DATA: the bytes of all sections, joined. VALUE: the value. SEQUENCE: the items of all
            sections. NONE: None.
    """

    header: Sequence[Value] | None
    delivery_annotations: dict[str, Value] | None
    message_annotations: dict[str, Value] | None
    properties: Sequence[Value] | None
    application_properties: dict[str, Value] | None
    kind: Body
    body: Value
    footer: dict[str, Value] | None


def header_of(message: AmqpMessage) -> tuple[bool | None, int | None, int | None]:
    """Return durability, priority and time to live; None for one that is not given, or is wrong."""
    durable, priority, ttl = (*(message.header or ()), None, None, None)[:3]
    return (
        durable if isinstance(durable, bool) else None,
        priority if isinstance(priority, int) and 0 <= priority <= _UBYTE_MAX else None,
        ttl if isinstance(ttl, int) and 0 <= ttl <= _UINT_MAX else None,
    )


def properties_of(message: AmqpMessage) -> dict[str, Value]:
    """Return the properties of a message by name, without those that it does not have."""
    given = zip(PROPERTIES, message.properties or (), strict=False)
    return {name: value for name, value in given if value is not None}


def message_of(record: bytes) -> AmqpMessage | None:
    """Take a record apart.

    Returns:
        The message. None if the record is no message of AMQP 1.0, or if a section other than data
        is damaged, nested more than 32 deep or longer than 1 MiB.
    """
    try:
        return _message_of(record)
    except NotAmqp:
        return None


def _message_of(record: bytes) -> AmqpMessage:
    parts: dict[int, list[bytes]] = {}
    for code, start, end in sections(record, 0, len(record)):
        parts.setdefault(code, []).append(record[start:end])
    if not parts:
        raise NotAmqp
    kind, body = _body_of(parts)
    return AmqpMessage(
        _list(parts, _HEADER),
        _map(parts, _DELIVERY_ANNOTATIONS),
        _map(parts, _MESSAGE_ANNOTATIONS),
        _list(parts, _PROPERTIES),
        _map(parts, _APPLICATION_PROPERTIES),
        kind,
        body,
        _map(parts, _FOOTER),
    )


def _list(parts: dict[int, list[bytes]], code: int) -> list[Value] | None:
    return list_of(parts[code][0]) if code in parts else None


def _map(parts: dict[int, list[bytes]], code: int) -> dict[str, Value] | None:
    return map_of(parts[code][0]) if code in parts else None


def _body_of(parts: dict[int, list[bytes]]) -> tuple[Body, Value]:
    if data := parts.get(DATA_SECTION):
        return Body.DATA, data_of(data)
    if values := parts.get(VALUE_SECTION):
        return Body.VALUE, value_of(values[0])
    if sequences := parts.get(SEQUENCE_SECTION):
        return Body.SEQUENCE, items_of(sequences)
    return Body.NONE, None


def data_of(data: Sequence[bytes]) -> bytes:
    """Join the bytes of data sections; each begins with its constructor and size."""
    return b"".join(raw[2 if raw[0] == _SHORT_BINARY else 5 :] for raw in data)


def items_of(sequences: Sequence[bytes]) -> list[Value]:
    """Join the items of sequence sections. Raises NotAmqp."""
    if sum(map(len, sequences)) > VALUE_BYTES_MAX:
        raise NotAmqp
    return [item for raw in sequences for item in list_of(raw)]
