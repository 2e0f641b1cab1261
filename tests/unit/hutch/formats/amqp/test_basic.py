"""Records as messages of AMQP 0-9-1, row by row of the module's table, and back."""

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID

import pytest
from pamqp import decode

from hutch.formats.amqp.basic import OCTETS, Routed, basic_of, pack_moment, pack_table
from hutch.formats.amqp.values import Moment, Single, Value
from hutch.formats.amqp.writing import BasicProperties, pack_message
from tests.property.pyspark_hutch.chunk_rig import data, listed, mapped, section, sized, text

IDENTITY = UUID("12345678-9abc-def0-1234-56789abcdef0")
NULL = b"\x40"
LONG = "x" * 256
"""A text that no property of AMQP 0-9-1 holds."""


def sent(properties: BasicProperties, exchange: str = "e", routing_key: str = "k") -> Routed:
    """Return a message after it went through a stream."""
    return basic_of(pack_message(b"body", properties, exchange=exchange, routing_key=routing_key))


def properties_of(*fields: bytes) -> BasicProperties:
    """Return AMQP 1.0's properties, in its order, after they went through a stream."""
    return basic_of(section(0x73, listed(*fields)) + data(b"")).properties


def annotated(**annotations: bytes) -> Routed:
    pairs = {name.replace("_", "-"): value for name, value in annotations.items()}
    return basic_of(section(0x72, mapped(**pairs)) + data(b""))


@pytest.mark.parametrize(
    "properties",
    [
        BasicProperties(delivery_mode=1),
        BasicProperties(delivery_mode=2),
        BasicProperties(delivery_mode=1, priority=0),
        BasicProperties(delivery_mode=1, priority=255),
        BasicProperties(delivery_mode=1, expiration=0),
        BasicProperties(delivery_mode=1, expiration=0xFFFF_FFFF),
        BasicProperties(delivery_mode=1, message_id="m", correlation_id="c"),
        BasicProperties(delivery_mode=1, message_id=f"urn:uuid:{IDENTITY}"),
        BasicProperties(delivery_mode=1, message_id=str(IDENTITY)),
        BasicProperties(delivery_mode=1, message_id="", correlation_id="ü" * 127),
        BasicProperties(delivery_mode=1, reply_to="a queue/with ü"),
        BasicProperties(delivery_mode=1, timestamp=1_700_000_000),
        BasicProperties(delivery_mode=1, type="t", user_id="guest", app_id="app"),
        BasicProperties(delivery_mode=1, content_type="text/plain", content_encoding="gzip"),
    ],
)
def test_a_property_comes_back_as_it_was(properties: BasicProperties) -> None:
    assert sent(properties) == Routed(b"body", properties, "e", "k")


@pytest.mark.parametrize(
    "headers",
    [
        {"text": "a", "yes": True, "number": -5, "large": 1 << 40, "half": 0.5, "none": None},
        {"bytes": b"\0\xff", "moment": Moment(1_700_000_000_000), "long": LONG},
        {"x-list": [1, ["a", None]], "x-table": {"a": {"b": [True]}}, "x-text": "a"},
        {"CC": ["k2", "k3"]},
    ],
)
def test_headers_come_back_as_they_were(headers: Mapping[str, Value]) -> None:
    properties = BasicProperties(delivery_mode=1, headers=headers)

    assert dict(sent(properties).properties.headers) == headers


@pytest.mark.parametrize(
    "headers",
    [{"list": [1]}, {"table": {"a": 1}}, {"BCC": ["k"]}, {"x-exchange": "a"}, {"x-basic-type": 1}],
)
def test_what_the_record_has_no_place_for_does_not_come_back(headers: Mapping[str, Value]) -> None:
    properties = BasicProperties(delivery_mode=1, headers=headers)

    assert sent(properties).properties.headers == {}


@pytest.mark.parametrize(("exchange", "key"), [("e", "k"), ("", "queue"), ("ü", LONG)])
def test_a_message_keeps_where_it_was_published(exchange: str, key: str) -> None:
    found = sent(BasicProperties(), exchange, key)

    assert (found.exchange, found.routing_key) == (exchange, key)


def test_a_message_of_another_protocol_was_published_nowhere() -> None:
    found = basic_of(data(b"body"))

    assert found == Routed(b"body", BasicProperties(), "", None)


@pytest.mark.parametrize("value", [b"\x54\x05", NULL, listed()])
def test_a_routing_key_that_is_no_text_is_none(value: bytes) -> None:
    assert annotated(x_routing_key=value).routing_key is None


@pytest.mark.parametrize(
    ("raw", "shown", "headers"),
    [
        (text("m"), "m", {}),
        (text("x" * 255), "x" * 255, {}),
        (text(LONG), None, {"x-message-id": LONG}),
        (text("ü" * 128), None, {"x-message-id": "ü" * 128}),
        (b"\x98" + IDENTITY.bytes, f"urn:uuid:{IDENTITY}", {}),
        (b"\x44", "0", {}),
        (b"\x80" + b"\xff" * 8, str((1 << 64) - 1), {}),
        (sized(0xA0, b"\0\xff"), None, {"x-message-id": b"\0\xff"}),
        (NULL, None, {}),
    ],
)
def test_an_identifier_that_has_no_place_in_its_property_is_a_header(
    raw: bytes, shown: str | None, headers: dict[str, Value]
) -> None:
    message = properties_of(raw)
    correlation = properties_of(*(NULL,) * 5, raw)
    there = dict(zip(["x-correlation-id"], headers.values(), strict=False))

    assert (message.message_id, message.headers) == (shown, headers)
    assert (correlation.correlation_id, correlation.headers) == (shown, there)


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("/queues/a%20b%2Fc", "a b/c"),
        ("/queues/", ""),
        ("/exchanges/e/k", "/exchanges/e/k"),
        ("anything", "anything"),
        (LONG, None),
        (f"/queues/{LONG}", None),
    ],
)
def test_an_answer_goes_to_the_queue_that_an_address_names(address: str, shown: str | None) -> None:
    assert properties_of(*(NULL,) * 4, text(address)).reply_to == shown


@pytest.mark.parametrize(
    ("index", "raw", "name", "shown"),
    [
        (1, sized(0xA0, b"guest"), "user_id", "guest"),
        (1, sized(0xA0, b"\xff"), "user_id", "\ufffd"),
        (1, sized(0xA0, LONG.encode()), "user_id", None),
        (1, text("guest"), "user_id", None),
        (6, sized(0xA3, b"text/plain"), "content_type", "text/plain"),
        (6, text(LONG), "content_type", None),
        (7, sized(0xA3, b"gzip"), "content_encoding", "gzip"),
        (7, text(LONG), "content_encoding", None),
        (9, b"\x83" + (1_999).to_bytes(8), "timestamp", 1),
        (9, b"\x83" + (-1).to_bytes(8, signed=True), "timestamp", -1),
        (9, b"\x54\x05", "timestamp", None),
        (10, text("app"), "app_id", "app"),
        (10, text(LONG), "app_id", None),
        (10, b"\x54\x05", "app_id", None),
    ],
)
def test_a_property_of_another_client_is_taken_where_it_fits(
    index: int, raw: bytes, name: str, shown: object
) -> None:
    found = properties_of(*(NULL,) * index, raw)

    assert getattr(found, name) == shown


@pytest.mark.parametrize("index", [2, 3, 8, 11, 12])
def test_properties_that_amqp_0_9_1_lacks_are_left_out(index: int) -> None:
    assert properties_of(*(NULL,) * index, text("x")) == BasicProperties()


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ((), BasicProperties()),
        ((b"\x41",), BasicProperties(delivery_mode=2)),
        ((b"\x42", NULL, NULL, b"\x41", b"\x43"), BasicProperties(delivery_mode=1)),
        ((NULL, b"\x50\x07"), BasicProperties(priority=7)),
        ((NULL, NULL, b"\x70\0\0\x03\xe8"), BasicProperties(expiration=1_000)),
        ((NULL, text("a"), text("b")), BasicProperties()),
    ],
)
def test_a_header_may_be_cut_anywhere(header: tuple[bytes, ...], expected: BasicProperties) -> None:
    assert basic_of(section(0x70, listed(*header)) + data(b"")).properties == expected


def test_annotations_and_application_properties_are_headers() -> None:
    record = b"".join(
        (
            section(0x72, mapped(**{"x-a": text("1"), "other": text("2"), "x-cc": listed()})),
            section(0x74, mapped(a=text("3"), **{"x-a": text("4"), LONG: text("5")})),
            data(b""),
        )
    )

    assert basic_of(record).properties.headers == {"x-a": "4", "CC": [], "a": "3"}


def test_a_type_is_an_annotation() -> None:
    assert annotated(x_basic_type=text("t")).properties == BasicProperties(type="t")
    assert annotated(x_basic_type=text(LONG)).properties == BasicProperties()


@pytest.mark.parametrize(
    "body",
    [
        section(0x77, text("a value")),
        section(0x77, listed(text("a"), NULL)),
        section(0x76, listed(text("a"))) + section(0x76, listed()),
        section(0x77, NULL) + section(0x78, mapped(a=text("footer"))),
    ],
)
def test_values_and_sequences_go_as_their_sections(body: bytes) -> None:
    found = basic_of(section(0x73, listed(text("m"))) + body)

    assert found.body == body
    assert found.properties == BasicProperties(message_id="m", type="amqp-1.0")


def test_data_sections_are_one_body() -> None:
    assert basic_of(data(b"a") + data(b"b" * 300)).body == b"a" + b"b" * 300


def test_a_message_without_a_body_has_an_empty_one() -> None:
    assert basic_of(section(0x73, listed())).body == b""


@pytest.mark.parametrize(
    "record",
    [
        *(b"", b"plain", b'{"a": 1}', data(b"body")[:-1], b"\0Su"),
        section(0x72, b"\xc1\x02\x01\x3f") + data(b"body"),
    ],
)
def test_a_record_that_is_no_message_goes_as_its_bytes(record: bytes) -> None:
    expected = Routed(record, BasicProperties(content_type=OCTETS), "", None)

    assert basic_of(record) == expected


# ---- headers as bytes ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "read"),
    [
        (None, None),
        (True, True),
        (0, 0),
        (-5, -5),
        ((1 << 63) - 1, (1 << 63) - 1),
        (-(1 << 63), -(1 << 63)),
        (0.1, 0.1),
        (Single(0.5), 0.5),
        ("ü" * 300, "ü" * 300),
        (b"\0\xff", bytearray(b"\0\xff")),
        (Moment(1_700_000_000_999), datetime.fromtimestamp(1_700_000_000, UTC)),
        ([1, ["a", None]], [1, ["a", None]]),
        ({"a": {"b": [0.5]}}, {"a": {"b": [0.5]}}),
        (IDENTITY, str(IDENTITY)),
        (Decimal("1.50"), "1.50"),
    ],
)
def test_a_table_of_headers_is_read_by_another_library_as_it_was(
    value: Value, read: object
) -> None:
    written = pack_table({"first": "a", "value": value, "": 1})

    assert decode.field_table(written) == (len(written), {"first": "a", "value": read, "": 1})


def test_an_empty_table_has_a_size() -> None:
    assert pack_table({}) == bytes(4)


def test_a_name_of_256_bytes_has_no_place() -> None:
    pack_table({"x" * 255: 1})

    with pytest.raises(ValueError, match="256"):
        pack_table({"x" * 256: 1})


@pytest.mark.parametrize(
    ("seconds", "raw"),
    [(0, bytes(8)), (1, bytes(7) + b"\1"), (-1, b"\xff" * 8), (1 << 40, b"\0\0\1" + bytes(5))],
)
def test_a_time_is_eight_bytes(seconds: int, raw: bytes) -> None:
    assert pack_moment(seconds) == raw
