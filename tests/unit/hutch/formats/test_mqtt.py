"""Messages of MQTT as records, row by row of the module's table, and back."""

from typing import Any
from uuid import UUID

import pytest

from hutch.formats.amqp.message import AmqpMessage, Body, message_of
from hutch.formats.amqp.values import Moment
from hutch.formats.amqp.writing import BasicProperties, Unpackable, pack_message
from hutch.formats.mqtt import (
    MqttMessage,
    mqtt_of,
    pack_mqtt,
    routing_key_of,
    topic_in,
    topic_of,
)
from tests.property.pyspark_hutch.chunk_rig import data, listed, mapped, section, sized, text

IDENTITY = UUID("12345678-9abc-def0-1234-56789abcdef0")
NULL = b"\x40"


def message(**given: Any) -> MqttMessage:  # noqa: ANN401  # of each field
    return MqttMessage(**{"topic": "t", "payload": b"body"} | given)


def stored(**given: Any) -> AmqpMessage:  # noqa: ANN401  # of each field
    found = message_of(pack_mqtt(message(**given)))
    assert found is not None
    return found


def properties_of(*fields: bytes) -> MqttMessage:
    return mqtt_of(section(0x73, listed(*fields)) + data(b""))


@pytest.mark.parametrize(
    ("topic", "key"),
    [
        ("a/b/c", "a.b.c"),
        ("a+b", "a*b"),
        ("/", "."),
        ("a//b/", "a..b."),
        ("ü", "ü"),
        ("", ""),
    ],
)
def test_a_topic_is_a_routing_key_in_another_writing(topic: str, key: str) -> None:
    assert routing_key_of(topic) == key
    assert topic_of(key) == topic
    assert stored(topic=topic).message_annotations == {
        "x-routing-key": key,
        "x-exchange": "amq.topic",
    }


@pytest.mark.parametrize("topic", ["a.b", "a*b", "a.b/c", "/.+*"])
def test_a_topic_with_the_signs_of_a_key_is_found_again(topic: str) -> None:
    found = stored(topic=topic)

    assert (found.message_annotations or {})["x-mqtt-topic"] == topic
    assert topic_in(found) == topic


FIELDS = [
    {},
    {"payload": b""},
    {"payload": bytes(300)},
    {"is_durable": True},
    {"expiry_s": 0},
    {"expiry_s": 4_294_967},
    {"content_type": "text/plain"},
    {"content_type": ""},
    {"response_topic": "answers/ü 7/+"},
    {"correlation": b"\0\xff"},
    {"correlation": b""},
    {"correlation": bytes(300)},
    {"correlation": f"urn:uuid:{IDENTITY}".encode()},
    {"correlation": str(IDENTITY).encode()},
    {"user_properties": (("a", "1"), ("b", "ü" * 300), ("c", ""))},
    {"user_properties": (("x-a", "1"), ("b", "2"))},
    {"topic": "a.b/c"},
]


@pytest.mark.parametrize("given", FIELDS, ids=str)
def test_a_message_comes_back_as_it_was(given: dict[str, Any]) -> None:
    assert mqtt_of(pack_mqtt(message(**given))) == message(**given)


def test_each_part_of_a_message_has_its_place() -> None:
    found = stored(
        is_durable=True,
        expiry_s=5,
        content_type="text/plain",
        response_topic="a/b c",
        correlation=b"c",
        user_properties=(("plain", "1"), ("x-own", "2")),
    )

    assert (found.header or [])[:3] == [True, None, 5_000]
    assert (found.kind, found.body) == (Body.DATA, b"body")
    assert found.properties == [
        *(None,) * 4,
        "/exchanges/amq.topic/a.b%20c",
        b"c",
        "text/plain",
    ]
    assert found.application_properties == {"plain": "1"}
    assert found.message_annotations == {
        "x-routing-key": "t",
        "x-exchange": "amq.topic",
        "x-own": "2",
    }


def test_correlation_data_that_names_a_uuid_is_one() -> None:
    found = stored(correlation=f"urn:uuid:{IDENTITY}".encode())

    assert (found.properties or [])[5] == IDENTITY


@pytest.mark.parametrize(("expiry_s", "ttl_ms"), [(1, 1_000), (0xFFFF_FFFF, 0xFFFF_FFFF)])
def test_an_expiry_ends_with_the_longest_that_there_is(expiry_s: int, ttl_ms: int) -> None:
    assert (stored(expiry_s=expiry_s).header or [])[2] == ttl_ms


def test_a_content_type_that_is_no_ascii_is_left_out() -> None:
    assert stored(content_type="tëxt").properties is None


def test_of_equal_names_the_first_counts() -> None:
    pairs = (("a", "1"), ("a", "2"), ("x-b", "3"), ("x-b", "4"), ("x-routing-key", "5"))
    found = stored(user_properties=pairs)

    assert found.application_properties == {"a": "1"}
    assert found.message_annotations == {
        "x-routing-key": "t",
        "x-exchange": "amq.topic",
        "x-b": "3",
    }


def test_a_name_of_an_annotation_that_is_no_ascii_is_left_out() -> None:
    assert "x-ü" not in (stored(user_properties=(("x-ü", "1"),)).message_annotations or {})


@pytest.mark.parametrize("given", [{"topic": "\ud800"}, {"user_properties": (("a", "\ud800"),)}])
def test_half_a_character_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(Unpackable, match="a text is not Unicode"):
        pack_mqtt(message(**given))


# ---- what others have stored -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("annotations", "topic"),
    [
        ({"x-routing-key": text("a.b")}, "a/b"),
        ({"x-routing-key": text("a*b")}, "a+b"),
        ({"x-routing-key": text("")}, ""),
        ({"x-routing-key": text("a.b"), "x-mqtt-topic": text("a.b")}, "a.b"),
        ({"x-routing-key": b"\x54\x05"}, None),
        ({}, None),
    ],
)
def test_a_topic_is_made_of_the_routing_key(
    annotations: dict[str, bytes], topic: str | None
) -> None:
    assert mqtt_of(section(0x72, mapped(**annotations)) + data(b"")).topic == topic


def test_a_message_of_a_queue_has_what_both_protocols_have() -> None:
    properties = BasicProperties(
        content_type="text/plain",
        delivery_mode=2,
        expiration=2_999,
        correlation_id="c",
        reply_to="q",
        priority=5,
        headers={"a": "1", "x-b": 2, "n": None, "half": 0.5, "yes": True, "x-list": [1]},
    )

    found = mqtt_of(pack_message(b"body", properties, exchange="e", routing_key="a.b"))

    assert found == MqttMessage(
        topic="a/b",
        payload=b"body",
        is_durable=True,
        expiry_s=2,
        content_type="text/plain",
        correlation=b"c",
        user_properties=(
            *(("x-b", "2"), ("a", "1"), ("half", "5.00000000000000000000e-01")),
            *(("n", ""), ("yes", "true")),
        ),
    )


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (text("a"), "a"),
        (b"\x54\x05", "5"),
        (b"\x41", "true"),
        (b"\x82\x3f\xe0\0\0\0\0\0\0", "5.00000000000000000000e-01"),
        (b"\x83" + (1_999).to_bytes(8), "1"),
        (NULL, ""),
        (sized(0xA0, b"a"), None),
        (listed(), None),
        (b"\x98" + IDENTITY.bytes, None),
    ],
)
def test_a_user_property_is_text(raw: bytes, value: str | None) -> None:
    found = mqtt_of(section(0x74, mapped(a=raw)) + data(b""))

    assert found.user_properties == (() if value is None else (("a", value),))


def test_annotations_of_the_topic_and_of_others_are_no_user_properties() -> None:
    record = section(0x72, mapped(**{"x-mqtt-topic": text("a"), "other": text("b")})) + data(b"")

    assert mqtt_of(record).user_properties == ()


@pytest.mark.parametrize(
    ("raw", "correlation"),
    [
        (text("c"), b"c"),
        (sized(0xA0, b"\xff"), b"\xff"),
        (b"\x98" + IDENTITY.bytes, f"urn:uuid:{IDENTITY}".encode()),
        (b"\x80" + (7).to_bytes(8), b"7"),
        (NULL, None),
    ],
)
def test_correlation_data_is_bytes(raw: bytes, correlation: bytes | None) -> None:
    assert properties_of(*(NULL,) * 5, raw).correlation == correlation


@pytest.mark.parametrize(
    ("address", "topic"),
    [
        ("/exchanges/amq.topic/a.b%20c", "a/b c"),
        ("/exchanges/amq.topic/", ""),
        ("/exchanges/other/a", None),
        ("/queues/q", None),
        ("q", None),
    ],
)
def test_an_answer_goes_to_the_topic_that_an_address_names(address: str, topic: str | None) -> None:
    assert properties_of(*(NULL,) * 4, text(address)).response_topic == topic


@pytest.mark.parametrize(
    ("body", "payload"),
    [
        (data(b"a") + data(b"b"), b"ab"),
        (data(b""), b""),
        (section(0x73, listed()), b""),
    ],
)
def test_data_is_the_payload(body: bytes, payload: bytes) -> None:
    found = mqtt_of(body)

    assert (found.payload, found.content_type) == (payload, None)


@pytest.mark.parametrize(
    "body",
    [
        section(0x77, text("ü")),
        section(0x77, sized(0xA0, b"\xff")),
        section(0x77, NULL),
        section(0x77, mapped(a=listed(b"\x41"))) + section(0x78, mapped(b=NULL)),
        section(0x76, listed(text("a"))) + section(0x76, listed(NULL)),
    ],
)
def test_values_and_sequences_go_as_their_sections(body: bytes) -> None:
    found = mqtt_of(section(0x73, listed(*(NULL,) * 6, text("text/plain"))) + body)

    assert (found.payload, found.content_type) == (body, "message/vnd.rabbitmq.amqp")


@pytest.mark.parametrize(
    ("header", "is_durable", "expiry_s"),
    [
        ((), False, None),
        ((b"\x41",), True, None),
        ((NULL, NULL, b"\x70\0\0\x07\xcf"), False, 1),
        ((b"\x54\x01", NULL, text("a")), False, None),
    ],
)
def test_a_header_may_be_cut_anywhere(
    header: tuple[bytes, ...],
    is_durable: bool,  # noqa: FBT001  # of the table
    expiry_s: int | None,
) -> None:
    found = mqtt_of(section(0x70, listed(*header)) + data(b""))

    assert (found.is_durable, found.expiry_s) == (is_durable, expiry_s)


@pytest.mark.parametrize("record", [b"", b"plain", data(b"body")[:-1]])
def test_a_record_that_is_no_message_goes_as_its_bytes(record: bytes) -> None:
    expected = MqttMessage(topic=None, payload=record, content_type="application/octet-stream")

    assert mqtt_of(record) == expected


def test_a_time_among_the_properties_is_no_error() -> None:
    found = mqtt_of(section(0x74, mapped(at=b"\x83" + bytes(8))) + data(b""))

    assert found.user_properties == (("at", str(Moment(0).ms)),)
