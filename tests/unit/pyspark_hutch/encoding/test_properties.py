"""The properties section, read by the codec of another client."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from rstream.amqp import amqp_decoder

from hutch.formats.amqp.writing import BasicProperties, pack_message
from pyspark_hutch.encoding.errors import BadColumn
from pyspark_hutch.encoding.messages import messages_of
from tests.unit.pyspark_hutch.encoding.batches import PROPERTIES, batch, encoded

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MOMENT = EPOCH + timedelta(milliseconds=1_700_000_000_123)
SOME_UUID = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"
FIELDS: dict[str, tuple[Any, Any]] = {
    "message_id": ("id", b"id"),
    "user_id": (b"\x00\xff", b"\x00\xff"),
    "to": ("ü" * 200, ("ü" * 200).encode()),
    "subject": ("", b""),
    "reply_to": ("/queues/q", b"/queues/q"),
    "correlation_id": ("c", b"c"),
    "content_type": ("text/plain", b"text/plain"),
    "content_encoding": ("gzip", b"gzip"),
    "absolute_expiry_time": (MOMENT, 1_700_000_000_123),
    "creation_time": (EPOCH, 0),
    "group_id": ("g" * 255, b"g" * 255),
    "group_sequence": (4_294_967_295, 4_294_967_295),
    "reply_to_group_id": ("r" * 256, b"r" * 256),
}
"""For each field a value, and what the other codec reads."""


def found(*structs: dict[str, Any] | None) -> list[dict[str, Any] | None]:
    """Encode properties and read them; without those that are null."""
    messages = encoded(batch(body=[b"body"] * len(structs), properties=structs))
    read = [amqp_decoder(message) for message in messages]
    assert [message.body for message in read] == [b"body"] * len(structs)
    return [
        None
        if message.properties is None
        else {k: v for k, v in message.properties._asdict().items() if v is not None}
        for message in read
    ]


@pytest.mark.parametrize("name", FIELDS)
def test_a_field_alone_is_read_as_it_was(name: str) -> None:
    given, read = FIELDS[name]

    assert found({name: given}) == [{name: read}]


def test_all_fields_together_are_read_as_they_were() -> None:
    everything = {name: given for name, (given, _) in FIELDS.items()}

    assert found(everything, None, everything) == [
        {name: read for name, (_, read) in FIELDS.items()},
        None,
        {name: read for name, (_, read) in FIELDS.items()},
    ]


def test_rows_with_different_fields_do_not_mix() -> None:
    rows = [{name: given} for name, (given, _) in FIELDS.items()]

    assert found(*rows, {}, *reversed(rows)) == [
        *[{name: read} for name, (_, read) in FIELDS.items()],
        None,
        *[{name: read} for name, (_, read) in reversed(FIELDS.items())],
    ]


def test_properties_that_are_null_or_hold_nothing_are_no_section() -> None:
    assert encoded(batch(body=[b"a"] * 2, properties=[None, {"to": None}])) == encoded(
        batch(body=[b"a"] * 2)
    )


def test_what_lies_under_a_null_struct_is_not_written() -> None:
    hidden = pa.StructArray.from_arrays(
        [pa.array(["hidden", "b"]), pa.array(["uuid", None])],
        names=["message_id", "message_id_type"],
        mask=pa.array([True, False]),
    )
    rows = pa.RecordBatch.from_arrays([pa.array([b"", b""]), hidden], names=["body", "properties"])

    first, second = (amqp_decoder(message).properties for message in encoded(rows))

    assert first is None
    assert second.message_id == b"b"


def test_a_struct_of_a_few_fields_is_taken_in_any_order() -> None:
    kind = pa.struct([("group_id", pa.large_string()), ("user_id", pa.string())])
    rows = batch({"properties": kind}, body=[b""], properties=[{"group_id": "g", "user_id": "u"}])

    read = amqp_decoder(encoded(rows)[0]).properties

    assert (read.group_id, read.user_id) == (b"g", b"u")


def test_the_section_is_what_the_server_itself_writes() -> None:
    ours = encoded(
        batch(
            body=[b"b"],
            properties=[
                {
                    "message_id": "m",
                    "user_id": b"u",
                    "correlation_id": SOME_UUID,
                    "correlation_id_type": "uuid",
                    "content_type": "a/b",
                    "creation_time": EPOCH + timedelta(seconds=5),
                    "group_id": "app",
                }
            ],
        )
    )[0]
    theirs = pack_message(
        b"b",
        BasicProperties(
            message_id="m",
            user_id="u",
            correlation_id=f"urn:uuid:{SOME_UUID}",
            content_type="a/b",
            timestamp=5,
            app_id="app",
        ),
        exchange="",
        routing_key="",
    )

    assert ours == theirs[theirs.index(b"\x00\x53\x73") :]


@pytest.mark.parametrize("name", ["message_id", "correlation_id"])
def test_an_identifier_has_the_type_that_is_said(name: str) -> None:
    given = [
        ("text", None, b"text"),
        ("text", "string", b"text"),
        ("0", "ulong", 0),
        ("18446744073709551615", "ulong", 2**64 - 1),
        (SOME_UUID, "uuid", UUID(SOME_UUID)),
        (f"urn:uuid:{SOME_UUID.upper()}", "uuid", UUID(SOME_UUID)),
        ("AP8=", "binary", b"\x00\xff"),
        ("", "binary", b""),
        ("q6ur" * 100, "binary", b"\xab" * 300),
    ]
    rows = [{name: text, f"{name}_type": kind, "to": "t"} for text, kind, _ in given]

    assert [row and row[name] for row in found(*rows)] == [read for _, _, read in given]


def test_an_identifier_that_is_null_is_null_whatever_its_type_says() -> None:
    rows = [{"message_id_type": kind, "to": "t"} for kind in ("uuid", "string", "other", None)]

    assert found(*rows, {"message_id": "7", "message_id_type": "ulong"}) == [
        *[{"to": b"t"}] * 4,
        {"message_id": 7},
    ]


@pytest.mark.parametrize(
    ("text", "kind", "reason"),
    [
        ("x", "ulong", "'x' is no ulong"),
        ("-1", "ulong", "'-1' is no ulong"),
        ("1_0", "ulong", "'1_0' is no ulong"),
        ("18446744073709551616", "ulong", "is no ulong"),
        ("f81d4fae", "uuid", "'f81d4fae' is no uuid"),
        ("AP8", "binary", "'AP8' is no binary"),
        ("A*8=", "binary", r"'A\*8=' is no binary"),
        ("x", "guid", "'guid' is no type of identifiers: string, ulong, uuid, binary"),
    ],
)
def test_an_identifier_that_is_not_what_it_says_is_refused(
    text: str, kind: str, reason: str
) -> None:
    rows = batch(body=[b""], properties=[{"message_id": text, "message_id_type": kind}])

    with pytest.raises(BadColumn, match=f"^column 'properties.message_id(_type)?': .*{reason}"):
        messages_of(rows)


@pytest.mark.parametrize("number", [-1, 2**32])
def test_a_group_sequence_that_has_no_place_is_refused(number: int) -> None:
    rows = batch(body=[b""] * 2, properties=[None, {"group_sequence": number}])

    with pytest.raises(BadColumn, match=f"'properties.group_sequence': {number} is not from 0"):
        messages_of(rows)


def test_a_symbol_that_is_not_ascii_is_refused() -> None:
    rows = batch(body=[b""] * 2, properties=[None, {"content_type": "täxt"}])

    with pytest.raises(BadColumn, match=r"'properties\.content_type': 'täxt' has letters"):
        messages_of(rows)


@pytest.mark.parametrize(
    ("unit", "value", "millis"),
    [("s", 5, 5_000), ("ms", 7, 7), ("us", 1_999, 1), ("us", -1, -1), ("ns", 5_000_001, 5)],
)
def test_a_time_is_rounded_down_to_milliseconds(unit: str, value: int, millis: int) -> None:
    kind = pa.struct([("creation_time", pa.timestamp(unit, "UTC"))])
    times = pa.array([value], pa.timestamp(unit, "UTC"))
    struct = pa.StructArray.from_arrays([times], fields=list(kind))
    rows = pa.RecordBatch.from_arrays([pa.array([b""]), struct], names=["body", "properties"])

    message = encoded(rows)[0]

    assert b"\x83" + millis.to_bytes(8, signed=True) in message


def test_every_field_of_the_table_has_its_place_in_the_section() -> None:
    fields = {field.name for field in PROPERTIES if not field.name.endswith("_id_type")}

    assert fields == set(FIELDS)
