"""Where a message goes that is published over HTTP, and what is stored of it."""

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from hutch.stream.offsets import FIRST
from tests.client import Client
from tests.http_client import Api
from tests.integration.conftest import managed_server
from tests.integration.server import HutchServer

STREAMS = ("first", "second", "third")


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HutchServer]:
    with managed_server(tmp_path_factory.mktemp("publish"), "--durability", "os") as server:
        yield server


@pytest.fixture
def api(target: HutchServer) -> Iterator[Api]:
    """The API, with empty streams."""
    api = Api(*target.management)
    for name in STREAMS:
        assert api.status("PUT", f"queues/%2F/{name}", {}) == 201
    yield api
    for name in STREAMS:
        assert api.status("DELETE", f"queues/%2F/{name}") == 204


def publish(
    api: Api, key: str, exchange: str = "amq.default", **properties: object
) -> tuple[int, Any]:
    body = {
        "properties": properties,
        "routing_key": key,
        "payload": "m",
        "payload_encoding": "string",
    }
    answer = api.ask("POST", f"exchanges/%2F/{exchange}/publish", body)
    return answer.status, answer.json if answer.status == 200 else answer.json["reason"]


def counts(api: Api) -> list[int]:
    return [api.get(f"queues/%2F/{name}")["messages"] for name in STREAMS]


def stored(target: HutchServer, stream: str, count: int) -> list[bytes]:
    """Return the messages of a stream without what all of them begin and end with."""
    with Client.opened(*target.endpoint) as client:
        client.subscribe(1, stream, FIRST)
        records = client.records(count, subscription_id=1)
    return [record.removesuffix(b"\x00\x53\x75\xa0\x01m") for _, record in records]


def test_a_message_with_very_many_routing_keys_is_refused_at_once(api: Api) -> None:
    keys = [f"{number}" for number in range(100_000)]
    status, reason = publish(api, "first", headers={"CC": keys})
    assert status == 400
    assert "routing keys" in reason
    assert counts(api) == [0, 0, 0]


# The default exchange


def test_the_default_exchange_is_found_by_its_empty_name_too(api: Api) -> None:
    assert publish(api, "first", exchange="") == ROUTED
    assert counts(api) == [1, 0, 0]
    default = api.get("exchanges/%2F/amq.default")
    assert api.get("exchanges/%2F//") == default
    for path in ("exchanges/%2F/{}/bindings/source", "bindings/%2F/e/{}/q/first"):
        assert api.get(path.format("")) == api.get(path.format("amq.default"))
    assert api.status("DELETE", "exchanges/%2F//") == api.status(
        "DELETE", "exchanges/%2F/amq.default"
    )


ROUTED = (200, {"routed": True})
NOWHERE = (200, {"routed": False})


# Copies


def test_copies_go_where_their_routing_keys_lead_each_stream_once(api: Api) -> None:
    assert publish(api, "first", headers={"CC": ["second", "second", "first"]}) == ROUTED
    assert counts(api) == [1, 1, 0]
    assert publish(api, "first", headers={"CC": ["second"], "BCC": ["third"]}) == ROUTED
    assert counts(api) == [2, 2, 1]
    assert publish(api, "nowhere", headers={"BCC": ["third", 5]}) == ROUTED
    assert publish(api, "nowhere", headers={"CC": ["no", "where"]}) == NOWHERE
    assert publish(api, "first", headers={"cc": ["second"]}) == ROUTED, "it is no such header"
    assert counts(api) == [3, 2, 2]


@pytest.mark.parametrize("name", ["CC", "BCC"])
@pytest.mark.parametrize("value", ["second", 5, {}, None])
def test_routing_keys_of_copies_are_a_list(api: Api, name: str, value: object) -> None:
    status, _ = publish(api, "first", headers={name: value})
    assert status == 400
    assert counts(api) == [0, 0, 0]


def test_copies_take_the_right_to_write_to_the_exchange_alone(api: Api) -> None:
    assert api.status("PUT", "users/half", {"password": "p", "tags": "management"}) == 201
    half = api.by("half", "p")
    for write, status, found in (("^first$", 401, [0, 0, 0]), ("^amq.default$", 200, [1, 1, 0])):
        rights = {"configure": "", "write": write, "read": ""}
        assert api.status("PUT", "permissions/%2F/half", rights) in {201, 204}
        assert publish(half, "first", headers={"CC": ["second"]})[0] == status
        assert counts(api) == found
    assert api.status("DELETE", "users/half") == 204


# What is stored, by the bytes that RabbitMQ 4.3 stores

BEGIN = b"\x00\x53\x70\xc0\x06\x05\x42\x40\x40\x41\x43\x00\x53\x72\xc1"
ANNOTATED = b"\xa3\x0dx-routing-key\xa1\x05first\xa3\x0ax-exchange\xa1\x00"
UUID = bytes.fromhex("f81d4fae7dec11d0a76500a0c91e6bf6")
UUID_NAME = "urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6"


@pytest.mark.parametrize(
    ("properties", "annotations", "rest"),
    [
        ({"headers": {"CC": ["second"]}}, b"\xa3\x04x-cc\xc0\x09\x01\xa1\x06second", b""),
        ({"headers": {"BCC": ["second"]}}, b"", b""),
        ({"headers": {"CC": []}}, b"\xa3\x04x-cc\x45", b""),
        ({"headers": {"x-death": []}}, b"\xa3\x07x-death\x45", b""),
        ({"headers": {"x-l": [[], {}]}}, b"\xa3\x03x-l\xc0\x05\x02\x45\xc1\x01\x00", b""),
        ({"message_id": UUID_NAME}, b"", b"\x00\x53\x73\xc0\x12\x01\x98" + UUID),
        (
            {"correlation_id": f"urn:uuid:{UUID_NAME[9:].upper()}"},
            b"",
            b"\x00\x53\x73\xc0\x17\x06\x40\x40\x40\x40\x40\x98" + UUID,
        ),
        ({"message_id": "urn:uuid:z"}, b"", b"\x00\x53\x73\xc0\x0d\x01\xa1\x0aurn:uuid:z"),
    ],
)
def test_a_message_is_stored_as_rabbitmq_stores_it(
    api: Api, target: HutchServer, properties: dict[str, Any], annotations: bytes, rest: bytes
) -> None:
    assert publish(api, "first", **properties) == ROUTED
    (found,) = stored(target, "first", 1)
    content = ANNOTATED + annotations
    count = 6 if annotations else 4
    assert found == BEGIN + bytes((len(content) + 1, count)) + content + rest


# Alternate exchanges


@contextlib.contextmanager
def exchanges(api: Api, **alternates: object) -> Iterator[None]:
    """Direct exchanges, each with the name of its alternate exchange."""
    for name, alternate in alternates.items():
        arguments = {} if alternate is None else {"alternate-exchange": alternate}
        body = {"type": "direct", "arguments": arguments}
        assert api.status("PUT", f"exchanges/%2F/{name}", body) == 201
    try:
        yield
    finally:
        for name in alternates:
            assert api.status("DELETE", f"exchanges/%2F/{name}") == 204


def bind(api: Api, exchange: str, stream: str, key: str) -> None:
    body = {"routing_key": key}
    assert api.status("POST", f"bindings/%2F/e/{exchange}/q/{stream}", body) == 201


def test_what_an_exchange_cannot_route_goes_by_its_alternate_one(
    api: Api, target: HutchServer
) -> None:
    with exchanges(api, front="middle", middle="back", back="front", lost="gone", default=""):
        bind(api, "front", "first", "a")
        bind(api, "back", "second", "a")
        bind(api, "back", "second", "b")
        assert publish(api, "a", "front") == ROUTED
        assert counts(api) == [1, 0, 0], "what the exchange routes goes nowhere else"
        assert publish(api, "b", "front") == ROUTED
        assert counts(api) == [1, 1, 0]
        assert publish(api, "c", "front") == NOWHERE, "round in a circle"
        assert publish(api, "a", "lost") == NOWHERE
        assert publish(api, "third", "default") == NOWHERE, "the default one is no alternate one"
        assert counts(api) == [1, 1, 0]
        with Client.opened(*target.endpoint) as client:
            answer = client.ask(m.StreamsReply, "route", m.Route("b", "front"))
            assert (answer.code, answer.streams) == (ResponseCode.OK, ("second",))


def test_a_policy_gives_an_alternate_exchange_to_those_that_name_none(api: Api) -> None:
    with exchanges(api, plain=None, own="nowhere", fallback=None):
        bind(api, "fallback", "first", "a")
        body = {
            "pattern": "^(plain|own)$",
            "apply-to": "exchanges",
            "definition": {"alternate-exchange": "fallback"},
        }
        assert publish(api, "a", "plain") == NOWHERE
        assert api.status("PUT", "policies/%2F/alternates", body) == 201
        assert publish(api, "a", "plain") == ROUTED
        assert publish(api, "a", "own") == NOWHERE, "its argument counts"
        wrongs: tuple[object, ...] = 5, None, []
        for wrong in wrongs:
            definition = {"alternate-exchange": wrong}
            assert api.status("PUT", "policies/%2F/x", {**body, "definition": definition}) == 400
        assert api.status("PUT", "policies/%2F/alternates", {**body, "apply-to": "queues"}) == 204
        assert publish(api, "a", "plain") == NOWHERE
        assert api.status("DELETE", "policies/%2F/alternates") == 204


def test_an_alternate_exchange_takes_rights_on_both_when_it_is_named(api: Api) -> None:
    assert api.status("PUT", "users/maker", {"password": "p", "tags": "management"}) == 201
    maker = api.by("maker", "p")
    body = {"type": "direct", "arguments": {"alternate-exchange": "amq.topic"}}
    for read, write, status in (
        ("", "", 401),
        ("^made$", "", 401),
        ("", "^amq.topic$", 401),
        ("^made$", "^amq.topic$", 201),
        ("", "", 204),  # it is there
    ):
        rights = {"configure": "^made$", "write": write, "read": read}
        assert api.status("PUT", "permissions/%2F/maker", rights) in {201, 204}
        assert maker.status("PUT", "exchanges/%2F/made", body) == status, rights
    wrong = {"type": "direct", "arguments": {"alternate-exchange": 5}}
    assert api.status("PUT", "exchanges/%2F/wrong", wrong) == 400
    assert api.status("DELETE", "exchanges/%2F/made") == 204
    assert api.status("DELETE", "users/maker") == 204
