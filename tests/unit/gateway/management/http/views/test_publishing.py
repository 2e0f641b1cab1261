"""Messages that are published over HTTP: what is refused in them, as by RabbitMQ."""

from collections.abc import Coroutine, Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any, TypeVar

import pytest

from gateway.management.administration import OWNER
from gateway.management.errors import WrongRequest
from gateway.management.http.answers import ApiRefusal
from gateway.management.http.bodies import QUICK_BYTES_MAX
from gateway.management.http.call import ApiCall, ServerFacts
from gateway.management.http.routes import ApiMethod
from gateway.management.http.views.publishing import HEADERS_MAX, publish
from gateway.pending import Pending
from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from hutch.stream.offsets import FIRST
from tests.unit.gateway.management.requests.administration_rig import Rig
from tests.unit.gateway.stream.link_rig import Broker

T = TypeVar("T")


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    broker = Broker(tmp_path)
    made = Rig(broker)
    made.ask("add_stream", {"name": "s"})
    yield made
    broker.close()


async def published(
    rig: Rig,
    properties: object,
    raw_body: bytes = b"",
    exchange: str = "amq.default",
    **changed: str,
) -> bytes:
    """Publish a message to the stream; return the answer's body."""

    async def awaits(coroutine: Coroutine[Pending[Any], None, T]) -> T:
        return rig.broker.store_rig.run(coroutine)

    body = {
        "routing_key": "s",
        "properties": properties,
        "payload": "body",
        "payload_encoding": "string",
        **changed,
    }
    facts = ServerFacts("rabbit@localhost", list)
    path = {"virtual_host": "/", "exchange": exchange}
    call = ApiCall(rig.administration, OWNER, facts, awaits, path, {}, body, raw_body)
    answer = await ApiMethod(publish)(call)
    return bytes(answer.body)


def records(rig: Rig) -> int:
    count: int = rig.ask("status_of_stream", {"name": "s"})["offset"] + 1
    return count


def stored(rig: Rig, **properties: str) -> bytes:
    """Return the first of the stream that a client with these properties gets."""
    client = rig.broker.link()
    subscribed = client.code("subscribe", m.Subscribe(1, "s", FIRST, 9, properties))
    assert subscribed == ResponseCode.OK
    found: list[bytes] = []

    def has_come() -> bool:
        found.extend(b"".join(one.chunk.records()) for one in client.deliver(1))
        return bool(found)

    rig.broker.loop.run_until(has_come)
    return found[0]


@pytest.mark.parametrize("raw_body", [b"", bytes(QUICK_BYTES_MAX + 1)], ids=["quick", "in thread"])
@pytest.mark.parametrize(
    "value", [None, [None], [[1, None]], {"a": None}, {"a": [{"b": None}]}, ["a", {"b": {}}, None]]
)
@pytest.mark.parametrize("name", ["plain", "x-own", "CC"])
async def test_a_null_in_headers_is_refused_however_deep_it_is(
    rig: Rig, name: str, value: object, raw_body: bytes
) -> None:
    if name == "CC" and not isinstance(value, list):
        value = [value]

    with pytest.raises(WrongRequest, match=r"^null_not_allowed$"):
        await published(rig, {"headers": {"first": "a", name: value}}, raw_body)

    assert records(rig) == 0


@pytest.mark.parametrize("headers", [{}, [], {"a": 1, "x-b": [[], {"c": False}], "d": ""}])
async def test_headers_without_a_null_are_published(rig: Rig, headers: object) -> None:
    assert await published(rig, {"headers": headers}) == b'{"routed":true}'

    assert records(rig) == 1


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        ({"headers": None}, "headers are not an object"),
        ({"headers": {str(number): 1 for number in range(HEADERS_MAX + 1)}}, "headers at most"),
        ({"message_id": None}, "not_string message_id"),
        ({"message_id": 1}, "not_string message_id"),
        ({"priority": None}, "not_int priority"),
        ({"priority": True}, "not_int priority"),
        ({"priority": 256}, "priority 256 is not from 0 to 255"),
        ({"expiration": 5}, "not_string expiration"),
        ({"expiration": "-5"}, "invalid expiration"),
        ({"user_id": "another"}, "user_id is not the user who publishes"),
        ({"headers": {"CC": "k"}}, "header CC is no list of routing keys"),
        ({"headers": {"x-stream-filter-value": 1}}, "x-stream-filter-value is not text"),
        ({"expiration": "1" * 12}, "invalid expiration"),
        ({"expiration": "\u0663"}, "invalid expiration"),
    ],
)
async def test_a_property_of_a_wrong_kind_is_refused(
    rig: Rig, properties: object, reason: str
) -> None:
    with pytest.raises(WrongRequest, match=reason):
        await published(rig, properties)

    assert records(rig) == 0


async def test_an_exchange_that_is_not_there_is_told_as_by_rabbitmq(rig: Rig) -> None:
    with pytest.raises(ApiRefusal, match=r"^exchange_not_found$") as refused:
        await published(rig, {}, exchange="none")

    assert refused.value.answer.status_code == HTTPStatus.NOT_FOUND


@pytest.mark.parametrize(
    ("encoding", "payload", "body"),
    [
        ("string", "\u20ac", "\u20ac".encode()),
        ("string", "", b""),
        ("base64", "AP8=", b"\x00\xff"),
    ],
)
async def test_a_payload_is_stored_as_its_encoding_says(
    rig: Rig, encoding: str, payload: str, body: bytes
) -> None:
    await published(rig, {}, payload=payload, payload_encoding=encoding)

    assert stored(rig).endswith(bytes((0, 0x53, 0x75, 0xA0, len(body))) + body)


@pytest.mark.parametrize(
    ("encoding", "payload", "reason"),
    [
        ("string", "\ud800", "the payload is not Unicode text"),
        ("base64", "AP8", "not_base64"),
        ("base64", "AP!8=", "not_base64"),
        ("base64", "\u20ac", "not_base64"),
        ("hex", "00", "unsupported_encoding 'hex'"),
    ],
)
async def test_a_payload_that_is_not_of_its_encoding_is_refused(
    rig: Rig, encoding: str, payload: str, reason: str
) -> None:
    with pytest.raises(WrongRequest, match=f"^{reason}$"):
        await published(rig, {}, payload=payload, payload_encoding=encoding)

    assert records(rig) == 0


async def test_a_message_with_a_filter_value_comes_to_those_that_filter_by_it(rig: Rig) -> None:
    for value in ("red", "blue"):
        headers = {"x-stream-filter-value": value}
        await published(rig, {"headers": headers}, payload=f"is {value}")

    alone = stored(rig, **{"filter.0": "blue"})
    assert alone.endswith(b"is blue")
    assert b"is red" not in alone
    assert b"is red" in stored(rig)


@pytest.mark.parametrize("expiration", ["0", "9" * 11])
async def test_an_expiration_is_a_number_as_a_text(rig: Rig, expiration: str) -> None:
    assert await published(rig, {"expiration": expiration}) == b'{"routed":true}'
