"""Properties of AMQP 0-9-1, written as sections of AMQP 1.0, mean the same to the reader."""

from dataclasses import replace
from decimal import Decimal
from uuid import UUID

import pytest

from hutch.formats.amqp.message import AmqpMessage, message_of
from hutch.formats.amqp.values import Moment, Value
from hutch.formats.amqp.writing import (
    BasicProperties,
    MessageParts,
    Unpackable,
    annotated,
    pack,
    pack_message,
)
from tests.property.pyspark_hutch.chunk_rig import data, listed, mapped, section

ALL = BasicProperties(
    content_type="text/plain",
    content_encoding="gzip",
    delivery_mode=2,
    priority=255,
    correlation_id="c",
    reply_to="a queue/with signs",
    expiration=0xFFFF_FFFF,
    message_id="m",
    timestamp=1_700_000_000,
    type="t",
    user_id="guest",
    app_id="app",
)


def packed(properties: BasicProperties) -> AmqpMessage:
    return read(pack_message(b"body", properties, exchange="e", routing_key="k"))


def read(written: bytes) -> AmqpMessage:
    message = message_of(written)
    assert message is not None
    return message


def headers(**values: Value) -> AmqpMessage:
    return packed(BasicProperties(headers=values))


def annotation(value: Value) -> object:
    """Write a value as a header among the annotations, and give it as it is read."""
    annotations = headers(**{"x-header": value}).message_annotations
    assert annotations is not None
    return annotations["x-header"]


def test_every_property_has_its_place() -> None:
    message = packed(ALL)

    assert message.header == [True, 255, 0xFFFF_FFFF, True, 0]
    assert message.message_annotations == {
        "x-routing-key": "k",
        "x-exchange": "e",
        "x-basic-type": "t",
    }
    assert message.properties == [
        "m",
        b"guest",
        None,
        None,
        "/queues/a%20queue%2Fwith%20signs",
        "c",
        "text/plain",
        "gzip",
        None,
        Moment(1_700_000_000_000),
        "app",
    ]
    assert message.body == b"body"


def test_nothing_is_written_of_what_was_not_said() -> None:
    written = pack_message(b"", BasicProperties(), exchange="", routing_key="")

    annotations = b"\xc1\x20\x04\xa3\x0dx-routing-key\xa1\x00\xa3\x0ax-exchange\xa1\x00"
    assert written == b"".join(
        (
            section(0x70, listed(b"\x42", b"\x40", b"\x40", b"\x41", b"\x43")),
            section(0x72, annotations),
            data(b""),
        )
    )


def test_headers_are_annotations_or_application_properties_by_their_names() -> None:
    given: dict[str, Value] = {"plain": "a", "x-own": "b", "CC": ["c"], "BCC": ["d"]}
    message = headers(**given)

    assert message.application_properties == {"plain": "a"}
    assert message.message_annotations == {
        "x-routing-key": "k",
        "x-exchange": "e",
        "x-own": "b",
        "x-cc": ["c"],
    }


def test_an_application_property_is_simple() -> None:
    message = headers(list=[1], map={"a": 1}, number=1)

    assert message.application_properties == {"number": 1}


@pytest.mark.parametrize(
    "value",
    [
        *(True, False, 0, -128, 127, -129, 128, -(1 << 63), (1 << 63) - 1, 1.5, "", "ü", "x" * 256),
        *(None, b"", b"\0\xff", b"x" * 256, Moment(0), Moment(-1), Moment(1_700_000_000_123)),
        UUID("12345678-9abc-def0-1234-56789abcdef0"),
    ],
)
def test_a_simple_value_is_read_as_it_was_given(value: Value) -> None:
    message = headers(header=value)

    assert message.application_properties == {"header": value}
    assert type((message.application_properties or {})["header"]) is type(value)


@pytest.mark.parametrize(
    "value",
    [
        *([], {}, [1, ["a", {"b": [True]}]], {"a": {"b": [1, 2.5]}}, ["x" * 200, "y" * 200]),
        *([None, [None]], {"a": None}, [b"a", Moment(5)]),
    ],
)
def test_lists_and_maps_are_read_as_they_were_given(value: Value) -> None:
    assert annotation(value) == value


@pytest.mark.parametrize("size", [253, 254, 255, 256])
def test_a_list_of_any_size_is_read_as_it_was_given(size: int) -> None:
    value: Value = ["x" * (size - 2)]  # its code and size take two bytes

    assert annotation(value) == value


@pytest.mark.parametrize("value", ["a\0", "x" * 4_097, "ü" * 2_049])
def test_a_long_text_or_one_with_a_zero_is_taken_for_bytes(value: str) -> None:
    assert headers(header=value).application_properties == {"header": value.encode()}
    assert headers(header="x" * 4_096).application_properties == {"header": "x" * 4_096}


def nested(depth: int) -> Value:
    value: Value = 1
    for _ in range(depth):
        value = [value]
    return value


def test_headers_nest_sixteen_deep_and_no_deeper() -> None:
    assert annotation(nested(16)) == nested(16)

    with pytest.raises(Unpackable, match="nested too deeply"):
        annotation(nested(17))


def test_an_identifier_that_names_a_uuid_is_one() -> None:
    uuid = "12345678-9abc-def0-1234-56789ABCDEF0"
    message = packed(BasicProperties(message_id=f"urn:uuid:{uuid}", correlation_id=uuid))

    assert message.properties is not None
    assert message.properties[0] == UUID(uuid)
    assert message.properties[5] == uuid


def test_an_expiration_keeps_its_lowest_32_bits() -> None:
    assert packed(BasicProperties(expiration=0x1_0000_0005)).header == [False, None, 5, True, 0]


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        (BasicProperties(priority=256), "priority 256 is not from 0 to 255"),
        (BasicProperties(priority=-1), "priority -1 is not from 0 to 255"),
        (BasicProperties(expiration=-1), "invalid expiration -1: it is negative"),
        (BasicProperties(headers={"a": 1 << 63}), "more than 64 bits"),
        (BasicProperties(headers={"a": -(1 << 63) - 1}), "more than 64 bits"),
        (BasicProperties(timestamp=1 << 62), "more than 64 bits"),
        (BasicProperties(headers={"a": "\ud800"}), "a text is not Unicode"),
        (BasicProperties(headers={"a": Decimal(1)}), "a header is a Decimal"),
        (BasicProperties(message_id="\ud800"), "a text is not Unicode"),
    ],
)
def test_what_has_no_place_in_a_message_is_refused(
    properties: BasicProperties, reason: str
) -> None:
    with pytest.raises(Unpackable, match=reason):
        packed(properties)


def test_a_large_body_takes_the_long_form() -> None:
    for size in (255, 256):
        body = bytes(size)
        written = pack_message(body, BasicProperties(), exchange="", routing_key="")

        assert written.endswith(data(body))
        assert read(written).body == body


def test_properties_end_with_the_last_that_was_said() -> None:
    written = pack_message(b"", BasicProperties(message_id="m"), exchange="", routing_key="")

    assert section(0x73, listed(b"\xa1\x01m")) in written
    assert section(0x74, mapped()) not in written


# ---- parts and annotations -------------------------------------------------------------------


def test_parts_that_are_empty_are_left_out() -> None:
    written = pack(MessageParts(is_durable=True), data(b"body"))

    header = section(0x70, listed(b"\x41", b"\x40", b"\x40", b"\x41", b"\x43"))
    assert written == header + data(b"body")


FACTS = {"x-bridge-route": "r", "x-bridge-reason": "too large"}
PLAIN = pack_message(b"body", BasicProperties(message_id="m"), exchange="e", routing_key="k")
LONG = pack_message(b"", BasicProperties(headers={"x-a": "a" * 300}), exchange="", routing_key="k")
HEADER_ONLY = section(0x70, listed(b"\x41"))


@pytest.mark.parametrize(
    "record",
    [
        PLAIN,
        LONG,
        data(b"body"),
        HEADER_ONLY + data(b"body"),
        HEADER_ONLY + section(0x71, mapped(a=b"\x41")) + data(b"body"),
        section(0x72, mapped(), is_long=True) + data(b"body"),
        section(0x72, b"\xd1\0\0\0\x04\0\0\0\0") + section(0x77, listed(b"\x41")),
        section(0x73, listed(b"\xa1\x01m")) + section(0x76, listed(b"\x41")),
    ],
)
def test_a_message_gets_more_annotations_and_stays_as_it_was(record: bytes) -> None:
    before, after = read(record), read(annotated(record, FACTS))

    assert after == replace(
        before, message_annotations={**(before.message_annotations or {}), **FACTS}
    )


DAMAGED = section(0x72, b"\xd1\0\0\0\x04\xff\xff\xff\xff") + data(b"body")


@pytest.mark.parametrize("record", [b"", b"plain", b"\0", data(b"body")[:-1], bytes(300), DAMAGED])
def test_a_record_that_is_no_message_becomes_the_body_of_one(record: bytes) -> None:
    message = read(annotated(record, FACTS))

    assert message.message_annotations == FACTS
    assert (message.header or [])[0] is True
    assert message.body == record


def test_headers_do_not_say_where_a_message_was_published() -> None:
    properties = BasicProperties(
        type="t", headers={"x-exchange": "a", "x-routing-key": "b", "x-basic-type": "c"}
    )

    annotations = packed(properties).message_annotations

    assert annotations == {"x-routing-key": "k", "x-exchange": "e", "x-basic-type": "t"}
