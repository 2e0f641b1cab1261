"""Templates: what each field is of a message, and what is said of one that is missing or wrong."""

import pytest

from gateway.bridge.templates import Missing, Template
from hutch.formats.amqp.writing import BasicProperties, pack_message
from hutch.formats.mqtt import MqttMessage, pack_mqtt
from tests.property.pyspark_hutch.chunk_rig import data, listed, section, text

PLACE = {"stream": "orders", "offset": "7"}
BASIC = pack_message(
    b"body",
    BasicProperties(
        content_type="text/plain",
        message_id="m",
        correlation_id="c",
        app_id="app",
        headers={"customer": "Ann", "count": 3, "is_new": True, "x-own": "y", "empty": ""},
    ),
    exchange="sales",
    routing_key="eu.new",
)
TOPIC = pack_mqtt(
    MqttMessage(topic="devices/7//state", payload=b"", user_properties=(("unit", "C"),))
)
SUBJECT = section(0x73, listed(b"\x40", b"\x40", b"\x40", text("of the day"))) + data(b"")


@pytest.mark.parametrize(
    ("template", "record", "filled"),
    [
        ("plain", BASIC, "plain"),
        ("", BASIC, ""),
        ("{routing_key}", BASIC, "eu.new"),
        ("{exchange}", BASIC, "sales"),
        ("{topic}", BASIC, "eu/new"),
        ("{topic[1]}", BASIC, "new"),
        ("{message_id}", BASIC, "m"),
        ("{correlation_id}", BASIC, "c"),
        ("{content_type}", BASIC, "text/plain"),
        ("{app_id}", BASIC, "app"),
        ("{subject}", SUBJECT, "of the day"),
        ("{header.customer}", BASIC, "Ann"),
        ("{header.count}", BASIC, "3"),
        ("{header.is_new}", BASIC, "true"),
        ("{header.x-own}", BASIC, "y"),
        ("{header.empty}", BASIC, ""),
        ("{stream}", BASIC, "orders"),
        ("{offset}", BASIC, "7"),
        ("{routing_key}", TOPIC, "devices.7..state"),
        ("{exchange}", TOPIC, "amq.topic"),
        ("{topic}", TOPIC, "devices/7//state"),
        ("{topic[0]}", TOPIC, "devices"),
        ("{topic[3]}", TOPIC, "state"),
        ("{header.unit}", TOPIC, "C"),
        ("a/{topic[1]}/b/{offset}", TOPIC, "a/7/b/7"),
        ("{stream}-{offset}", b"no AMQP", "orders-7"),
    ],
)
def test_a_field_is_what_the_message_has(template: str, record: bytes, filled: str) -> None:
    assert Template(template).of(record, PLACE) == filled


@pytest.mark.parametrize(
    ("field", "record"),
    [
        ("subject", BASIC),
        ("header.other", BASIC),
        ("topic[2]", BASIC),
        ("message_id", TOPIC),
        ("topic[2]", TOPIC),  # an empty level
        ("topic[4]", TOPIC),
        ("stream", BASIC),
        ("offset", BASIC),
        ("routing_key", SUBJECT),
        ("exchange", SUBJECT),
        ("topic", SUBJECT),
        ("topic[0]", SUBJECT),
        ("routing_key", b"no AMQP"),
        ("header.a", b"no AMQP"),
        ("offset", b"no AMQP"),
    ],
)
def test_a_field_that_a_message_lacks_is_named_and_no_empty_text(field: str, record: bytes) -> None:
    template = Template(f"a.{{{field}}}")

    with pytest.raises(Missing) as caught:
        template.of(record, {})

    assert str(caught.value) == f"it has no {field}, which 'a.{{{field}}}' needs"


@pytest.mark.parametrize("text", ["{", "}", "a}b", "{routing_key", "routing_key}", "{{topic}}"])
def test_a_brace_that_is_alone_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a brace is alone in"):
        Template(text)


@pytest.mark.parametrize(
    ("field", "meant"),
    [
        ("routing-key", "; did you mean routing_key?"),
        ("mesage_id", "; did you mean message_id?"),
        ("topics", "; did you mean topic"),
        ("Exchange", "; did you mean exchange?"),
        ("zzz", " (routing_key"),
        ("", " (routing_key"),
        ("header.", "; did you mean header.NAME"),
        ("topic[]", "; did you mean topic"),
        ("topic[-1]", "; did you mean topic"),
    ],
)
def test_a_field_that_there_is_not_is_told_with_those_that_there_are(
    field: str, meant: str
) -> None:
    with pytest.raises(ValueError, match="there is no field") as caught:
        Template(f"a/{{{field}}}")

    assert str(caught.value).startswith(f"there is no field {{{field}}}{meant}")
    assert "routing_key, exchange, topic, topic[0], message_id" in str(caught.value)
