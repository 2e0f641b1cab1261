"""Messages of MQTT as records of a stream, and back, by the rules of RabbitMQ's containers.

    MQTT 5                     | AMQP 1.0
    payload                    | data, also if it is marked as text; a value or a sequence goes out
                               | as it is: content type message/vnd.rabbitmq.amqp
    QoS 1 and 2                | header: durable
    message expiry interval    | header: ttl
    content type               | content type, if it is ASCII
    correlation data           | correlation id: bytes, or a UUID for `urn:uuid:…`
    response topic             | reply to `/exchanges/amq.topic/KEY`
    topic                      | annotations x-exchange `amq.topic` and x-routing-key
    user properties x-…        | annotations, but for where it was published
    other user properties      | application properties; of equal names the first counts

A routing key is the topic with `.` for `/` and `*` for `+`. A topic that has one of these itself
would not be found again: such a record has the annotation x-mqtt-topic beside the key.

Source: RabbitMQ 4.3, what its topics put into its streams, and give of them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote
from uuid import UUID

from hutch.formats.amqp.basic import EXCHANGE, OCTETS, ROUTING_KEY, body_and_footer
from hutch.formats.amqp.message import AmqpMessage, Body, header_of, message_of, properties_of
from hutch.formats.amqp.values import Moment, Value, text_of
from hutch.formats.amqp.writing import (
    NULL,
    UINT_MAX,
    MessageParts,
    identifier,
    pack,
    section,
    sized,
    symbol,
    text,
)

DEFAULT_EXCHANGE: Final = "amq.topic"

_TOPIC: Final = "x-mqtt-topic"
_PACKED: Final = "message/vnd.rabbitmq.amqp"
_PLACES: Final = frozenset((EXCHANGE, ROUTING_KEY, _TOPIC))
_ADDRESS: Final = f"/exchanges/{DEFAULT_EXCHANGE}/"
_FROM_TOPIC: Final = str.maketrans("/+", ".*")
_TO_TOPIC: Final = str.maketrans(".*", "/+")


@dataclass(frozen=True, slots=True, kw_only=True)
class MqttMessage:
    """A message of MQTT; version 3.1.1 has no properties, and they are left out there.

    Attributes:
        topic: None if that is not known.
        expiry_s: Seconds.
    """

    topic: str | None
    payload: bytes
    is_durable: bool = False
    expiry_s: int | None = None
    content_type: str | None = None
    response_topic: str | None = None
    correlation: bytes | None = None
    user_properties: tuple[tuple[str, str], ...] = ()


def routing_key_of(topic: str) -> str:
    """Return the routing key that stands for a topic."""
    return topic.translate(_FROM_TOPIC)


def topic_of(routing_key: str) -> str:
    """Return the topic that a routing key stands for."""
    return routing_key.translate(_TO_TOPIC)


# ---- to a record -----------------------------------------------------------------------------


def pack_mqtt(message: MqttMessage) -> bytes:
    """Return a message, whose topic is known, as one record. Raises Unpackable."""
    topic = message.topic or ""
    key = routing_key_of(topic)
    annotations = {ROUTING_KEY: text(key), EXCHANGE: text(DEFAULT_EXCHANGE)}
    if topic_of(key) != topic:
        annotations[_TOPIC] = text(topic)
    applications: dict[str, bytes] = {}
    for name, value in message.user_properties:
        if not name.startswith("x-"):
            applications.setdefault(name, text(value))
        elif name.isascii():
            annotations.setdefault(name, text(value))
    parts = MessageParts(
        is_durable=message.is_durable,
        ttl_ms=None if message.expiry_s is None else min(message.expiry_s * 1000, UINT_MAX),
        annotations=annotations,
        properties=_properties(message),
        applications=applications,
    )
    return pack(parts, section(0x75, sized(0xA0, message.payload)))


def _properties(message: MqttMessage) -> list[bytes]:
    kind, data, reply = message.content_type, message.correlation, message.response_topic
    address = None if reply is None else _ADDRESS + quote(routing_key_of(reply), safe="")
    return [
        *(NULL,) * 4,
        NULL if address is None else text(address),
        NULL if data is None else _correlation(data),
        NULL if kind is None or not kind.isascii() else symbol(kind),
    ]


def _correlation(data: bytes) -> bytes:
    """Encode correlation data: a UUID if it is written as one, else bytes."""
    found = identifier(data.decode("ascii", "replace"))
    return found if found[:1] == b"\x98" else sized(0xA0, data)


# ---- from a record ---------------------------------------------------------------------------


def mqtt_of(record: bytes) -> MqttMessage:
    """Return a record as a message of MQTT."""
    message = message_of(record)
    if message is None:
        return MqttMessage(topic=None, payload=record, content_type=OCTETS)
    fields = properties_of(message)
    durable, _, ttl = header_of(message)
    reply = fields.get("reply_to")
    is_packed = message.kind in (Body.VALUE, Body.SEQUENCE)
    payload = body_and_footer(record) if is_packed else message.body or b""
    assert isinstance(payload, bytes)
    return MqttMessage(
        topic=topic_in(message),
        payload=payload,
        is_durable=durable is True,
        expiry_s=None if ttl is None else ttl // 1000,
        content_type=_PACKED if is_packed else text_of(fields.get("content_type")),
        response_topic=topic_of(unquote(reply.removeprefix(_ADDRESS)))
        if isinstance(reply, str) and reply.startswith(_ADDRESS)
        else None,
        correlation=_correlation_of(fields.get("correlation_id")),
        user_properties=tuple(_user_properties(message)),
    )


def topic_in(message: AmqpMessage) -> str | None:
    """Return the topic of a message; None if nothing is known of where it was published."""
    annotations = message.message_annotations or {}
    key = annotations.get(ROUTING_KEY)
    return text_of(annotations.get(_TOPIC, topic_of(key) if isinstance(key, str) else None))


def _correlation_of(value: Value) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    return (f"urn:uuid:{value}" if isinstance(value, UUID) else text_of(value) or "").encode()


def _user_properties(message: AmqpMessage) -> Iterator[tuple[str, str]]:
    """Yield names and values; those that are no text, number or truth are left out."""
    annotations = (message.message_annotations or {}).items()
    given = [pair for pair in annotations if pair[0].startswith("x-") and pair[0] not in _PLACES]
    for name, value in (*given, *(message.application_properties or {}).items()):
        if isinstance(value, Moment):
            yield name, str(value.ms // 1000)
        elif isinstance(value, float):
            yield name, f"{value:.20e}"  # as Erlang writes it
        elif value is None or isinstance(value, str | int):
            yield name, text_of(value) or ""
