"""Records of streams as clients of AMQP 1.0 may write them, every kind of value among them."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

from hutch.formats.amqp.writing import NULL, listed, section, sized, symbol, text

ID: Final = UUID("123e4567-e89b-12d3-a456-426614174000")
MS: Final = 1_767_323_045_678
DATA: Final = section(0x75, sized(0xA0, b"body"))
FIELDS: Final = (
    *("message_id", "user_id", "to", "subject", "reply_to", "correlation_id", "content_type"),
    *("content_encoding", "absolute_expiry_time", "creation_time", "group_id", "group_sequence"),
    "reply_to_group_id",
)
KINDS: Final[Mapping[str, bytes]] = {
    "null": NULL,
    "true": b"\x41",
    "false": b"\x42",
    "boolean": b"\x56\x01",
    "ubyte": b"\x50\xff",
    "ushort": b"\x60\xff\xff",
    "uint": b"\x70\xff\xff\xff\xff",
    "small uint": b"\x52\x07",
    "uint 0": b"\x43",
    "ulong": b"\x80\x7f\xff\xff\xff\xff\xff\xff\xff",
    "small ulong": b"\x53\x07",
    "ulong 0": b"\x44",
    "byte": b"\x51\xff",
    "short": b"\x61\x80\x00",
    "int": b"\x71\x80\x00\x00\x00",
    "small int": b"\x54\xff",
    "long": b"\x81\x80\x00\x00\x00\x00\x00\x00\x00",
    "small long": b"\x55\xff",
    "float": struct.pack(">Bf", 0x72, 0.1),
    "double": struct.pack(">Bd", 0x82, 0.1),
    "large double": struct.pack(">Bd", 0x82, 1e300),
    "timestamp": struct.pack(">Bq", 0x83, MS),
    "binary": sized(0xA0, b"\x00\xff"),
    "string": text("größe 🐇"),
    "long string": text("t" * 5_000),
    "symbol": symbol("symbol"),
}
"""Values of every kind that RabbitMQ gives to a consumer of AMQP 0-9-1."""
NESTED: Final[Mapping[str, bytes]] = {
    "list": listed([text("one"), b"\x54\x02", NULL, b"\x41", listed([symbol("three")])]),
    "empty list": listed([]),
    "map": b"\xc1\x0d\x04" + text("k") + text("v") + symbol("n") + b"\xc1\x01\x00",
}


def mapped(pairs: Sequence[tuple[bytes, bytes]]) -> bytes:
    """Encode a map of encoded keys and values."""
    content = b"".join(key + value for key, value in pairs)
    return b"\xd1" + struct.pack(">II", len(content) + 4, 2 * len(pairs)) + content


def with_annotations(values: Mapping[str, bytes], body: bytes = DATA) -> bytes:
    """Return a record with message annotations."""
    return section(0x72, mapped([(symbol(name), value) for name, value in values.items()])) + body


def with_applications(values: Mapping[str, bytes]) -> bytes:
    """Return a record with application properties."""
    return section(0x74, mapped([(text(name), value) for name, value in values.items()])) + DATA


def with_fields(body: bytes = DATA, **values: bytes) -> bytes:
    """Return a record with properties."""
    return section(0x73, listed([values.get(name, NULL) for name in FIELDS])) + body


def with_header(*values: bytes) -> bytes:
    """Return a record with the first fields of a header."""
    return section(0x70, listed(list(values))) + DATA


RECORDS: Final[Mapping[str, bytes]] = {
    "data": DATA,
    "nothing in data": section(0x75, sized(0xA0, b"")),
    "long data": section(0x75, sized(0xA0, bytes(range(256)) * 2_000)),
    "data twice": DATA + section(0x75, sized(0xA0, b" and more")),
    "durable": with_header(b"\x41"),
    "not durable": with_header(b"\x42"),
    "empty header": with_header(),
    "priority": with_header(b"\x41", b"\x50\x07"),
    "time to live": with_header(b"\x41", NULL, b"\x70\x00\x0f\x42\x40"),
    "message id: text": with_fields(message_id=text("some id")),
    "message id: 255 bytes": with_fields(message_id=text(255 * "i")),
    "message id: 256 bytes": with_fields(message_id=text(256 * "i")),
    "message id: bytes": with_fields(message_id=sized(0xA0, b"\x00\xff")),
    "message id: UUID": with_fields(message_id=b"\x98" + ID.bytes),
    "message id: number": with_fields(message_id=KINDS["ulong"]),
    "correlation id: text": with_fields(correlation_id=text("some id")),
    "correlation id: 256 bytes": with_fields(correlation_id=text(256 * "i")),
    "correlation id: bytes": with_fields(correlation_id=sized(0xA0, b"\x00\xff")),
    "correlation id: UUID": with_fields(correlation_id=b"\x98" + ID.bytes),
    "correlation id: number": with_fields(correlation_id=KINDS["small ulong"]),
    "user": with_fields(user_id=sized(0xA0, b"guest")),
    "reply to a queue": with_fields(reply_to=text("/queues/r%C3%A9plies%20to%2Fme")),
    "reply to an exchange": with_fields(reply_to=text("/exchanges/amq.topic/some.key")),
    "reply to, version 1": with_fields(reply_to=text("/queue/replies")),
    "reply to a name": with_fields(reply_to=text("replies")),
    "reply to, 300 bytes": with_fields(reply_to=text("/queues/" + 300 * "q")),
    "content type": with_fields(content_type=symbol("text/plain")),
    "content encoding": with_fields(content_encoding=symbol("gzip")),
    "creation time": with_fields(creation_time=struct.pack(">Bq", 0x83, MS)),
    "group": with_fields(group_id=text("group"), group_sequence=b"\x52\x07"),
    "group, 300 bytes": with_fields(group_id=text(300 * "g")),
    "what AMQP 0-9-1 lacks": with_fields(
        to=text("/queues/to"),
        subject=text("subject"),
        absolute_expiry_time=struct.pack(">Bq", 0x83, MS),
        reply_to_group_id=text("group"),
    ),
    "annotations: kinds": with_annotations({f"x-{name}": raw for name, raw in KINDS.items()}),
    "annotations: nested": with_annotations({f"x-{name}": raw for name, raw in NESTED.items()}),
    "annotations: type": with_annotations({"x-basic-type": text("kind")}),
    "annotations: CC": with_annotations({"x-cc": listed([text("one"), text("two")])}),
    "annotations: where it was published": with_annotations(
        {"x-exchange": text("amq.topic"), "x-routing-key": text("some.key")}
    ),
    "annotations: x-opt-": with_annotations({"x-opt-some": text("value")}),
    "applications: kinds": with_applications(KINDS),
    "applications: long name": with_applications({255 * "n": text("at"), 256 * "n": text("above")}),
    "applications: order": with_applications({"b": text("1"), "a": text("2"), "B": text("3")}),
    "value: text": section(0x77, text("größe 🐇")),
    "value: bytes": section(0x77, sized(0xA0, b"\x00\xff")),
    "value: number": section(0x77, KINDS["int"]),
    "value: null": section(0x77, NULL),
    "value: map": section(0x77, NESTED["map"]),
    "sequence": section(0x76, NESTED["list"]),
    "two sequences": section(0x76, NESTED["list"]) + section(0x76, listed([text("more")])),
    "value with a footer": section(0x77, text("text")) + section(0x78, mapped([])),
}
UNDELIVERED: Final[Mapping[str, bytes]] = {
    "annotations: without x-": with_annotations({"other": text("value")}),
    "data with a footer": DATA + section(0x78, mapped([(symbol("f"), text("v"))])),
    "delivery annotations": section(0x71, mapped([(symbol("d"), text("v"))])) + DATA,
    "applications: UUID": with_applications({"some": b"\x98" + ID.bytes}),
    "applications: char": with_applications({"some": b"\x73\x00\x00\x00\x61"}),
}
"""Records at which RabbitMQ closes the connection of a consumer of AMQP 0-9-1."""
NO_MESSAGE: Final = b"\x01\x02no message of AMQP 1.0"
