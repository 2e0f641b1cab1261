"""Columns that come from the sections of messages."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from rstream import AMQPMessage, Header, Properties

from hutch.formats.amqp.reading import VALUE_BYTES_MAX, map_of
from hutch.formats.amqp.values import Value
from pyspark_hutch.columns import WantedColumns
from pyspark_hutch.decoding import sections
from pyspark_hutch.decoding.fields import Walked, walk
from tests.property.pyspark_hutch.chunk_rig import (
    batches_of,
    chunk_of,
    data,
    listed,
    mapped,
    rows_of,
    section,
    sized,
    text,
)

ID = UUID("01234567-89ab-cdef-0123-456789abcdef")
NAMES = ("header", "properties", "application_properties", "message_annotations")
MAPS = {0x71: "delivery_annotations", 0x72: "message_annotations", 0x74: "application_properties"}
MAPS |= {0x78: "footer"}
NOTHING_SAID = dict.fromkeys(("durable", "priority", "ttl", "first_acquirer", "delivery_count"))


@pytest.fixture(params=["one by one", "together"], autouse=True)
def decoded(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The two ways in which sections are decoded, which must agree."""
    monkeypatch.setattr(sections, "_FEW", 0 if request.param == "together" else 1 << 30)
    way: str = request.param
    return way


def column(message: bytes, name: str) -> Any:  # noqa: ANN401  # what the column's type has
    return rows_of([chunk_of(message)], WantedColumns((name,)))[0][name]


def test_a_header_has_its_fields() -> None:
    fields = listed(b"\x41", b"\x50\x09", b"\x70\0\0\1\0", b"\x42", b"\x43")

    assert column(section(0x70, fields) + data(b""), "header") == {
        "durable": True,
        "priority": 9,
        "ttl": 256,
        "first_acquirer": False,
        "delivery_count": 0,
    }


def test_fields_that_are_left_out_are_null() -> None:
    assert column(section(0x70, b"\x45") + data(b""), "header") == NOTHING_SAID
    assert column(section(0x70, listed(b"\x41")), "header") == NOTHING_SAID | {"durable": True}
    assert column(data(b""), "header") is None


def test_a_field_out_of_range_or_of_another_type_is_null() -> None:
    fields = listed(text("no"), b"\x80" + b"\xff" * 8, b"\x80" + b"\xff" * 8, b"\x40", text("7"))

    assert column(section(0x70, fields), "header") == NOTHING_SAID | {"delivery_count": 7}


def test_fields_beyond_the_last_are_left_out() -> None:
    assert column(section(0x70, listed(*[b"\x41"] * 9)), "header")["first_acquirer"] is True
    assert column(section(0x73, listed(*[text("x")] * 20)), "properties")["to"] == "x"


def test_properties_have_their_fields() -> None:
    fields = listed(
        text("id"),
        sized(0xA0, b"guest"),
        text("to"),
        text("subject"),
        text("reply"),
        b"\x98" + ID.bytes,
        sized(0xA3, b"text/plain"),
        sized(0xA3, b"gzip"),
        b"\x83" + (1000).to_bytes(8),
        b"\x83" + (2000).to_bytes(8),
        text("group"),
        b"\x70\xff\xff\xff\xff",
        text("reply group"),
    )

    assert column(section(0x73, fields), "properties") == {
        "message_id": "id",
        "message_id_type": "string",
        "user_id": b"guest",
        "to": "to",
        "subject": "subject",
        "reply_to": "reply",
        "correlation_id": str(ID),
        "correlation_id_type": "uuid",
        "content_type": "text/plain",
        "content_encoding": "gzip",
        "absolute_expiry_time": datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC),
        "creation_time": datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC),
        "group_id": "group",
        "group_sequence": 4294967295,
        "reply_to_group_id": "reply group",
    }


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"\x80" + b"\xff" * 8, ("18446744073709551615", "ulong")),
        (b"\x53\x05", ("5", "ulong")),
        (b"\x98" + ID.bytes, (str(ID), "uuid")),
        (sized(0xA0, b"\x00\xff"), ("AP8=", "binary")),
        (text("5"), ("5", "string")),
        (b"\x40", (None, None)),
        (b"\x41", ("true", None)),
    ],
)
def test_an_id_says_what_it_was(raw: bytes, said: tuple[str | None, str | None]) -> None:
    found = column(section(0x73, listed(raw)), "properties")

    assert (found["message_id"], found["message_id_type"]) == said


@pytest.mark.parametrize(("code", "name"), MAPS.items())
def test_maps_are_texts(code: int, name: str) -> None:
    content = mapped(a=text("b"), n=b"\x54\x05", t=b"\x41", u=b"\x40", b=sized(0xA0, b"\0"))
    message = section(code, content)

    found = dict(column(message, name))

    assert found == {"a": "b", "n": "5", "t": "true", "u": None, "b": "AA=="}
    assert all(column(message, other) is None for other in MAPS.values() if other != name)


def test_a_map_with_a_key_twice_has_the_last() -> None:
    raw = sized(0xC1, b"\x04" + (text("a") + b"\x41") + (text("a") + b"\x42"))

    assert column(section(0x74, raw), "application_properties") == [("a", "false")]


@pytest.mark.parametrize(("code", "name"), MAPS.items())
def test_maps_are_variants_if_so_wanted(code: int, name: str) -> None:
    plain, null = data(b"x"), section(code, mapped(n=b"\x54\x05"))
    wanted = WantedColumns((name,), variant=True)

    batch = batches_of([chunk_of(plain, null, plain)], wanted)[0]

    value = {"value": b"\x02\x01\x00\x00\x02\x0c\x05", "metadata": b"\x01\x01\x00\x01n"}
    assert batch.column(0).to_pylist() == [None, value, None]
    fields = [batch.column(0).field(index) for index in range(2)]
    assert all(field.null_count == 0 for field in fields)


def test_variants_of_messages_that_have_none_are_null() -> None:
    batch = batches_of([chunk_of(data(b"x"))], WantedColumns(("footer",), variant=True))[0]

    assert batch.column(0).to_pylist() == [None]
    assert batch.column(0).field(0).null_count == 0


def test_a_section_that_is_damaged_within_is_null_and_the_rest_as_it_is() -> None:
    damaged = section(0x74, b"\xc1\x02\x02\x41") + section(0x73, listed(text("id"))) + data(b"x")
    wanted = WantedColumns(("body", "body_type", "application_properties", "properties", "tenant"),
                    app_columns=(("tenant", pa.string()),))  # fmt: skip

    row = rows_of([chunk_of(damaged)], wanted)[0]

    assert (row["body"], row["body_type"]) == (b"x", "data")
    assert row["application_properties"] is row["tenant"] is None
    assert row["properties"]["message_id"] == "id"


def test_a_section_larger_than_may_be_decoded_is_null() -> None:
    most = VALUE_BYTES_MAX - 9 - 3 - 5
    fitting, large = (section(0x74, mapped(a=text("x" * size))) for size in (most, most + 1))
    assert len(fitting) == VALUE_BYTES_MAX + 3

    assert len(column(fitting, "application_properties")[0][1]) == most
    assert column(large, "application_properties") is None


def test_raw_messages_have_no_sections() -> None:
    row = rows_of([chunk_of(section(0x74, mapped(a=text("b"))) + b"x")], WantedColumns(NAMES))[0]

    assert set(row.values()) == {None}


def test_application_properties_become_typed_columns() -> None:
    typed = (
        ("tenant", pa.string()),
        ("user_id", pa.int64()),
        ("score", pa.float64()),
        ("count", pa.int32()),
        ("other", pa.bool_()),
    )
    content = mapped(
        tenant=text("a"), user_id=b"\x53\x07", score=text("1.5"), count=b"\x81" + b"\x7f" * 8
    )
    wanted = WantedColumns(("score", "offset", "user_id"), app_columns=typed)
    chunk = chunk_of(data(b"x"), section(0x74, content) + data(b"y"))

    rows = rows_of([chunk], wanted)

    assert list(rows[0]) == ["score", "offset", "user_id", "tenant", "count", "other"]
    assert set(rows[0].values()) == {0, None}
    assert rows[1] == {
        "score": 1.5,
        "offset": 1,
        "user_id": 7,
        "tenant": "a",
        "count": None,
        "other": None,
    }


def test_a_typed_column_may_have_the_name_of_another_column() -> None:
    wanted = WantedColumns(("properties",), app_columns=(("properties", pa.string()),))

    assert rows_of([chunk_of(section(0x74, mapped(properties=text("p"))))], wanted) == [
        {"properties": "p"}
    ]


def test_sections_that_repeat_are_decoded_once_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[bytes] = []

    def count(raw: bytes) -> dict[str, Value]:
        calls.append(raw)
        return map_of(raw)

    def count_all(raws: Sequence[bytes]) -> Walked:
        calls.extend(raws)
        return walk(raws)

    monkeypatch.setattr(sections, "map_of", count)
    monkeypatch.setattr(sections, "walk", count_all)
    messages = [section(0x74, mapped(n=text(str(n % 3)))) + data(b"x") for n in range(3000)]

    rows = rows_of([chunk_of(*messages)], WantedColumns(("application_properties",)))

    assert [row["application_properties"] for row in rows] == [
        [("n", str(n % 3))] for n in range(3000)
    ]
    assert len(calls) == 3


def test_sections_that_all_differ_are_each_with_their_row() -> None:
    messages = [
        data(b"x") if n % 7 == 0 else section(0x74, mapped(n=text(str(n)))) for n in range(5000)
    ]

    rows = rows_of([chunk_of(*messages)], WantedColumns(("application_properties",)))

    expected = [None if n % 7 == 0 else [("n", str(n))] for n in range(5000)]
    assert [row["application_properties"] for row in rows] == expected


@pytest.mark.parametrize("value", [None, {"k": [1, "ü"]}])
def test_what_a_client_sends_is_read(value: object) -> None:
    message = AMQPMessage(
        body=None if value else b"hello",
        value=value,
        header=Header(durable=True, priority=3, ttl=5, first_acquirer=False, delivery_count=1),
        properties=Properties(message_id=7, user_id=b"me", subject="s", group_sequence=4),
        application_properties={"n": 12, "f": 2.5, "id": ID, "t": "ü", b"raw": b"\0"},
        message_annotations={"x-a": "b"},
    )
    names = (*NAMES, "body", "body_type")

    row = rows_of([chunk_of(bytes(message))], WantedColumns(names))[0]

    body = (b'{"k":[1,"\xc3\xbc"]}', "amqp-value") if value else (b"hello", "data")
    assert (row["body"], row["body_type"]) == body
    assert tuple(row["header"].values()) == (True, 3, 5, False, 1)
    assert (row["properties"]["message_id"], row["properties"]["subject"]) == ("7", "s")
    assert (row["properties"]["user_id"], row["properties"]["group_sequence"]) == (b"me", 4)
    expected = {"n": "12", "f": "2.5", "id": str(ID), "t": "ü", "raw": "AA=="}
    assert dict(row["application_properties"]) == expected
    assert row["message_annotations"] == [("x-a", "b")]
