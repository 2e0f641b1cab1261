"""Messages that are published over HTTP: what is refused in them, as by RabbitMQ."""

from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from gateway.management.administration import OWNER
from gateway.management.errors import WrongRequest
from gateway.management.http.bodies import QUICK_BYTES_MAX
from gateway.management.http.call import ApiCall, ServerFacts
from gateway.management.http.routes import ApiMethod
from gateway.management.http.views.publishing import HEADERS_MAX, publish
from gateway.pending import Pending
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


async def published(rig: Rig, properties: object, raw_body: bytes = b"") -> bytes:
    """Publish a message to the stream; return the answer's body."""

    async def awaits(coroutine: Coroutine[Pending[Any], None, T]) -> T:
        return rig.broker.store_rig.run(coroutine)

    body = {
        "routing_key": "s",
        "properties": properties,
        "payload": "body",
        "payload_encoding": "string",
    }
    facts = ServerFacts("rabbit@localhost", list)
    path = {"virtual_host": "/", "exchange": "amq.default"}
    call = ApiCall(rig.administration, OWNER, facts, awaits, path, {}, body, raw_body)
    answer = await ApiMethod(publish)(call)
    return bytes(answer.body)


def records(rig: Rig) -> int:
    count: int = rig.ask("status_of_stream", {"name": "s"})["offset"] + 1
    return count


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
    ],
)
async def test_a_property_of_a_wrong_kind_is_refused(
    rig: Rig, properties: object, reason: str
) -> None:
    with pytest.raises(WrongRequest, match=reason):
        await published(rig, properties)

    assert records(rig) == 0
