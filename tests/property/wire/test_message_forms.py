"""Records as messages of queues and topics: no bytes are an error, and both ways lose nothing."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hutch.formats.amqp.basic import basic_of
from hutch.formats.amqp.message import message_of
from hutch.formats.amqp.values import Moment, Value
from hutch.formats.amqp.writing import BasicProperties, annotated, pack_message
from hutch.formats.mqtt import MqttMessage, mqtt_of, pack_mqtt
from tests.property.pyspark_hutch.chunk_rig import compound, data, section, sized, text

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
"""A text that RabbitMQ takes for one in a header."""
LEVELS = st.text(st.characters(codec="utf-8", exclude_characters=".*"), max_size=20)
"""A topic that is found again by its routing key alone."""
SHORT = st.text(max_size=60)
"""A text that AMQP 0-9-1 has room for, whatever its letters."""
NAMES = st.text(st.characters(codec="ascii"), max_size=10).filter(
    lambda name: name not in {"CC", "BCC"} and not name.startswith("x-")
)
UINTS = st.integers(0, (1 << 32) - 1)

# ---- any record ------------------------------------------------------------------------------

SIMPLE = st.one_of(
    st.sampled_from([b"\x40", b"\x41", b"\x42", b"\x43", b"\x44", b"\x45"]),
    st.binary(min_size=1, max_size=1).map(lambda raw: b"\x50" + raw),
    st.binary(min_size=4, max_size=4).map(lambda raw: b"\x70" + raw),
    st.binary(min_size=4, max_size=4).map(lambda raw: b"\x74" + raw),
    st.binary(min_size=8, max_size=8).map(lambda raw: b"\x80" + raw),
    st.binary(min_size=8, max_size=8).map(lambda raw: b"\x81" + raw),
    st.binary(min_size=8, max_size=8).map(lambda raw: b"\x82" + raw),
    st.binary(min_size=8, max_size=8).map(lambda raw: b"\x83" + raw),
    st.binary(min_size=16, max_size=16).map(lambda raw: b"\x98" + raw),
    st.binary(max_size=300).map(lambda raw: sized(0xA0, raw)),
    st.binary(max_size=300).map(lambda raw: sized(0xA1, raw)),
    st.binary(max_size=300).map(lambda raw: sized(0xA3, raw)),
)
VALUES = st.recursive(
    SIMPLE,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(lambda items: compound(0xC0, items)),
        st.lists(st.tuples(inner, inner), max_size=3).map(
            lambda pairs: compound(0xC1, [each for pair in pairs for each in pair])
        ),
    ),
    max_leaves=8,
)
KEYS = st.sampled_from(
    ["x-routing-key", "x-exchange", "x-basic-type", "x-cc", "x-mqtt-topic", "x-a", "a", "x" * 300]
)
LISTS = st.lists(VALUES, max_size=14).map(lambda items: compound(0xC0, items))
MAPS = st.lists(st.tuples(KEYS.map(text) | SIMPLE, VALUES), max_size=5).map(
    lambda pairs: compound(0xC1, [each for pair in pairs for each in pair])
)
BODIES = st.one_of(
    st.just(b""),
    st.lists(st.binary(max_size=300).map(data), max_size=3).map(b"".join),
    VALUES.map(lambda value: section(0x77, value)),
    st.lists(LISTS.map(lambda items: section(0x76, items)), max_size=2).map(b"".join),
)


@st.composite
def messages(draw: st.DrawFn) -> bytes:
    """Draw a message whose fields have any types."""
    found = []
    for code, form in ((0x70, LISTS), (0x71, MAPS), (0x72, MAPS), (0x73, LISTS), (0x74, MAPS)):
        if draw(st.booleans()):
            found.append(section(code, draw(form), is_long=draw(st.booleans())))
    return b"".join((*found, draw(BODIES)))


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Draw a message with a byte that is another one, or without its end."""
    whole = bytearray(draw(messages())) or bytearray(1)
    place = draw(st.integers(0, len(whole) - 1))
    if draw(st.booleans()):
        return bytes(whole[:place])
    whole[place] = draw(st.integers(0, 255))
    return bytes(whole)


RECORDS = st.one_of(st.binary(max_size=60), messages(), damaged())


@given(RECORDS)
def test_no_record_is_an_error(record: bytes) -> None:
    basic = basic_of(record)
    topic = mqtt_of(record)

    assert isinstance(basic.body, bytes)
    assert isinstance(topic.payload, bytes)
    assert all(type(part) is str for pair in topic.user_properties for part in pair)


@given(RECORDS)
def test_a_record_with_more_annotations_is_a_message_with_the_same_body(record: bytes) -> None:
    before = message_of(record)

    after = message_of(annotated(record, {"x-bridge-route": "r"}))

    assert after is not None
    assert (after.message_annotations or {})["x-bridge-route"] == "r"
    if before is None:
        assert after.body == record
    else:
        assert repr((after.kind, after.body)) == repr((before.kind, before.body))  # nan is not nan
        assert repr(after.properties) == repr(before.properties)


@given(RECORDS)
def test_what_goes_out_as_a_message_of_a_queue_has_properties_that_fit(record: bytes) -> None:
    found = basic_of(record).properties

    given = (found.content_type, found.correlation_id, found.reply_to, found.message_id)
    more = (found.content_encoding, found.type, found.user_id, found.app_id, *found.headers)
    assert all(len(each.encode()) <= 255 for each in (*given, *more) if each is not None)


# ---- both ways -------------------------------------------------------------------------------

HEADERS: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.floats(allow_nan=False),
    TEXTS,
    st.binary(max_size=300),
    st.integers(-(1 << 62), 1 << 62).map(Moment),
)
NESTED: st.SearchStrategy[Value] = st.recursive(
    HEADERS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3)
)


@st.composite
def basic_properties(draw: st.DrawFn) -> BasicProperties:
    def maybe(strategy: st.SearchStrategy[Any]) -> Any:  # noqa: ANN401  # of each field
        return draw(st.none() | strategy)

    own = draw(st.dictionaries(NAMES.map(lambda name: f"x-own-{name}"), NESTED, max_size=3))
    return BasicProperties(
        headers=draw(st.dictionaries(NAMES, HEADERS, max_size=4)) | own,
        delivery_mode=draw(st.sampled_from((1, 2))),
        priority=maybe(st.integers(0, 255)),
        expiration=maybe(UINTS),
        timestamp=maybe(st.integers(-(1 << 40), 1 << 40)),
        **{
            name: maybe(SHORT)
            for name in ("content_type", "content_encoding", "correlation_id", "reply_to")
        },
        **{name: maybe(SHORT) for name in ("message_id", "type", "user_id", "app_id")},
    )


@given(st.binary(max_size=300), basic_properties(), SHORT, SHORT)
def test_a_message_of_a_queue_comes_back_as_it_was(
    body: bytes, properties: BasicProperties, exchange: str, key: str
) -> None:
    record = pack_message(body, properties, exchange=exchange, routing_key=key)

    assert basic_of(record) == (body, properties, exchange, key)


@st.composite
def mqtt_messages(draw: st.DrawFn) -> MqttMessage:
    names = draw(st.lists(NAMES, max_size=4, unique=True))
    return MqttMessage(
        topic=draw(TEXTS),
        payload=draw(st.binary(max_size=300)),
        is_durable=draw(st.booleans()),
        expiry_s=draw(st.none() | st.integers(0, ((1 << 32) - 1) // 1000)),
        content_type=draw(st.none() | st.text(st.characters(codec="ascii"), max_size=20)),
        response_topic=draw(st.none() | LEVELS),
        correlation=draw(st.none() | st.binary(max_size=300)),
        user_properties=tuple((name, draw(TEXTS)) for name in names),
    )


@given(mqtt_messages())
def test_a_message_of_a_topic_comes_back_as_it_was(message: MqttMessage) -> None:
    assert mqtt_of(pack_mqtt(message)) == message


@given(mqtt_messages())
def test_what_queues_and_topics_both_have_goes_from_one_to_the_other(
    message: MqttMessage,
) -> None:
    there = basic_of(pack_mqtt(message))
    record = pack_message(
        there.body,
        there.properties,
        exchange=there.exchange,
        routing_key=there.routing_key or "",
    )
    back = mqtt_of(record)

    assert back.topic == message.topic
    assert (back.is_durable, back.expiry_s) == (message.is_durable, message.expiry_s)
    assert back.content_type == message.content_type
    assert dict(back.user_properties) == dict(message.user_properties)
    assert back.payload == message.payload
