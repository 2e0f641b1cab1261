"""Messages out of records: what another implementation wrote, and what is no message."""

import json
import lzma
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hutch.formats.amqp.message import AmqpMessage, Body, header_of, message_of, properties_of
from hutch.formats.amqp.reading import DEPTH_MAX
from hutch.formats.amqp.values import Moment, Single, Value
from hutch.formats.amqp.writing import BasicProperties, pack_message
from tests.property.pyspark_hutch.chunk_rig import data, listed, mapped, section, text
from tests.waiting import HANG_S

GOLDEN = Path(__file__).parents[4] / "golden" / "amqp"
HEADER = (False, 4, 0, False, 0)
"""What a header's fields are where it does not say."""
PROPERTIES = (
    "id",
    "user_id",
    "address",
    "subject",
    "reply_to",
    "correlation_id",
    "content_type",
    "content_encoding",
    "expiry_time",
    "creation_time",
    "group_id",
    "group_sequence",
    "reply_to_group_id",
)


MADE: dict[str, Callable[[Any], Value]] = {
    "list": lambda items: [value_of_pair(item) for item in items],
    "map": lambda items: {key: value_of_pair(item) for key, item in items},
    "binary": bytes.fromhex,
    "uuid": UUID,
    "timestamp": Moment,
    "float": Single,
}


def value_of_pair(pair: Sequence[Any]) -> Value:
    """Give the value that [type, value] stands for."""
    kind, value = pair
    made: Value = MADE[kind](value) if kind in MADE else value
    return made


def shown(message: AmqpMessage) -> dict[str, object]:
    """Give a message as the generator describes one."""
    header = message.header or []
    fields: dict[str, object] = {
        "header": [
            default if given_value is None else given_value
            for given_value, default in zip(
                [*header, *[None] * (len(HEADER) - len(header))], HEADER, strict=True
            )
        ],
        "kind": message.kind.value,
        "body": message.body,
        "instructions": message.delivery_annotations,
        "annotations": message.message_annotations,
        "properties": message.application_properties,
        **dict(zip(PROPERTIES, message.properties or (), strict=False)),
    }
    if not fields.get("group_sequence"):
        fields["group_sequence"] = None  # Proton writes 0 where none was set
    return {name: value for name, value in fields.items() if value is not None or name == "body"}


def told(line: dict[str, Any]) -> dict[str, object]:
    """Give what the generator put into a message."""
    plain = {"header": line["header"], "kind": line["kind"]}
    pairs = {name: pair for name, pair in line.items() if name not in {"bytes", *plain} and pair}
    return {"body": None} | plain | {name: value_of_pair(pair) for name, pair in pairs.items()}


def lines_of_golden() -> Iterator[str]:
    with lzma.open(GOLDEN / "messages.jsonl.xz", "rt") as file:
        yield from file


def lines_of_proton() -> Iterator[str]:
    python = shutil.which("python3", path="/usr/bin")
    command = [python or "python3", str(GOLDEN / "generate.py"), "--seed", "7", "--count", "10000"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False)
    if "No module named 'proton'" in ran.stderr or python is None:
        pytest.skip("Apache Qpid Proton is not installed (Debian: python3-qpid-proton)")
    assert not ran.returncode, ran.stderr
    yield from ran.stdout.splitlines()


def differences(lines: Iterator[str]) -> tuple[int, list[str]]:
    count = 0
    different = []
    for line in lines:
        count += 1
        described = json.loads(line)
        message = message_of(bytes.fromhex(described["bytes"]))
        if message is None or shown(message) != told(described):
            different.append(line)
    return count, different


def test_messages_that_proton_wrote_are_read() -> None:
    assert differences(lines_of_golden()) == (1500, [])


@pytest.mark.timeout(180)
@pytest.mark.slow
def test_ten_thousand_messages_of_an_installed_proton_are_read() -> None:
    assert differences(lines_of_proton()) == (10_000, [])


def test_what_the_management_api_writes_is_read() -> None:
    properties = BasicProperties(content_type="text/plain", headers={"a": 1, "x-b": "c"})

    message = message_of(pack_message(b"body", properties, exchange="e", routing_key="k"))

    assert message is not None
    assert (message.kind, message.body) == (Body.DATA, b"body")
    assert message.application_properties == {"a": 1}
    assert message.message_annotations == {"x-routing-key": "k", "x-exchange": "e", "x-b": "c"}


def test_data_sections_are_joined() -> None:
    message = message_of(data(b"a") + data(b"b" * 300))

    assert message is not None
    assert (message.kind, message.body) == (Body.DATA, b"a" + b"b" * 300)


def test_a_message_may_have_no_body() -> None:
    message = message_of(section(0x74, mapped(a=text("b"))))

    assert message is not None
    assert (message.kind, message.body) == (Body.NONE, None)


@pytest.mark.parametrize(
    ("fields", "header"),
    [
        ((), (None, None, None)),
        ((b"\x41",), (True, None, None)),
        ((b"\x42", b"\x50\xff", b"\x70\xff\xff\xff\xff"), (False, 255, 0xFFFF_FFFF)),
        ((b"\x40", b"\x40", b"\x43", b"\x41", b"\x43"), (None, None, 0)),
        ((b"\x43", b"\x60\x01\x00", b"\x80\0\0\0\1\0\0\0\0"), (None, None, None)),
        ((text("a"), b"\x54\xff", b"\x54\xff"), (None, None, None)),
    ],
)
def test_a_header_has_what_is_given_and_right(
    fields: tuple[bytes, ...], header: tuple[object, ...]
) -> None:
    message = message_of(section(0x70, listed(*fields)) + data(b""))

    assert message is not None
    assert header_of(message) == header


def test_properties_are_given_by_name_without_those_that_are_null() -> None:
    properties = BasicProperties(
        message_id="m", content_type="text/plain", timestamp=5, user_id="u", app_id="app"
    )
    message = message_of(pack_message(b"", properties, exchange="", routing_key=""))

    assert message is not None
    assert properties_of(message) == {
        "message_id": "m",
        "user_id": b"u",
        "content_type": "text/plain",
        "creation_time": Moment(5_000),
        "group_id": "app",
    }


@pytest.mark.parametrize("section_of_properties", [b"", section(0x73, listed())])
def test_a_message_may_have_no_properties(section_of_properties: bytes) -> None:
    message = message_of(section_of_properties + data(b"a"))

    assert message is not None
    assert properties_of(message) == {}


def test_more_properties_than_there_are_names_are_passed_over() -> None:
    message = message_of(section(0x73, listed(*(b"\x40",) * 13, text("more"))) + data(b"a"))

    assert message is not None
    assert properties_of(message) == {}


@pytest.mark.parametrize("damaged", [0x70, 0x71, 0x72, 0x73, 0x74, 0x78])
def test_a_damaged_section_makes_it_no_message(damaged: int) -> None:
    form = 0xC0 if damaged in {0x70, 0x73} else 0xC1

    assert message_of(section(damaged, bytes((form, 2, 1, 0x3F))) + data(b"a")) is None


def test_what_is_nested_too_deeply_is_no_message() -> None:
    def nested(depth: int) -> bytes:
        raw = b"\x45"
        for _ in range(depth):
            raw = listed(raw)
        return section(0x77, raw)

    assert message_of(nested(DEPTH_MAX)) is not None
    assert message_of(nested(DEPTH_MAX + 1)) is None


@pytest.mark.parametrize("record", [b"", b"\0", b"text", b"\0Su", b'{"a": 1}'])
def test_other_bytes_are_no_message(record: bytes) -> None:
    assert message_of(record) is None


@given(st.binary(max_size=40), st.integers(0, 200), st.integers(0, 255))
def test_no_bytes_are_an_error(tail: bytes, place: int, byte: int) -> None:
    properties = BasicProperties(message_id="m", headers={"a": 1.5, "x-list": [1, "b"]})
    whole = bytearray(pack_message(b"body", properties, exchange="", routing_key="k"))
    whole[place % len(whole)] = byte

    message_of(bytes(whole))
    message_of(bytes(whole[: place % len(whole)]))
    message_of(tail)
