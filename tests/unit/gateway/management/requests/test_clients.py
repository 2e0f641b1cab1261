"""Requests on clients: who is connected, what they do with streams, and how they are ended."""

from typing import Any

import pytest

from gateway.management.errors import NotFound, WrongRequest
from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from hutch.stream.offsets import FIRST
from tests.unit.gateway.broker.access.access_rig import Client
from tests.unit.gateway.management.requests.administration_rig import Rig
from tests.unit.gateway.stream.link_rig import LinkRig

HOST = {"virtual_host": "/"}
SINGLE = {"single-active-consumer": "true", "name": "group"}


@pytest.fixture
def rig(rig: Rig) -> Rig:
    for name in ("s", "other"):
        rig.ask("add_stream", {"name": name})
    return rig


def subscribe(client: LinkRig, number: int, stream: str = "s", **properties: str) -> None:
    message = m.Subscribe(number, stream, FIRST, 10, properties)
    assert client.code("subscribe", message) == ResponseCode.OK


def answer_update(client: LinkRig) -> None:
    """Let a client say that it is the active consumer of its group."""
    (asked,) = [each for each in client.received() if each.command.name == "consumer_update"]
    reply = m.ConsumerUpdateReply(ResponseCode.OK, FIRST)
    client.answer("consumer_update", reply, asked.correlation_id)


def connected(rig: Rig, *peers: str, user: str = "guest") -> list[Client]:
    clients = [Client(user, peer=peer, client_properties={"product": "x"}) for peer in peers]
    for client in clients:
        rig.broker.connections.add(client)
    return clients


def test_connections_are_listed_in_the_order_in_which_they_came(rig: Rig) -> None:
    connected(rig, "127.0.0.1:2", "127.0.0.1:1")
    connected(rig, "127.0.0.1:3", user="app")

    shown = rig.ask("list_connections")

    assert shown[0] == {
        "number": shown[0]["number"],
        "name": "127.0.0.1:2 -> 127.0.0.1:5552",
        "peer": "127.0.0.1:2",
        "user": "guest",
        "virtual_host": "/",
        "client_properties": {"product": "x"},
    }
    assert [one["peer"][-1] for one in shown] == ["2", "1", "3"]
    assert [one["user"] for one in rig.ask("list_connections", {"user": "app"})] == ["app"]


def test_a_connection_to_end_has_to_be_named(rig: Rig) -> None:
    (client,) = connected(rig, "127.0.0.1:1")

    with pytest.raises(WrongRequest, match="say which: a peer, a number, a user or a virtual host"):
        rig.ask("close_connections", {"reason": "any"})

    assert client.events == []


@pytest.mark.parametrize(
    ("named", "ended"),
    [
        ({"peer": "127.0.0.1:2"}, [1]),
        ({"user": "guest"}, [0, 1]),
        ({"virtual_host": "/"}, [0, 1]),
        ({"user": "none"}, []),
        ({"user": "guest", "peer": "127.0.0.1:1"}, [0]),
    ],
)
def test_the_connections_that_fit_all_that_is_named_are_ended(
    rig: Rig, named: dict[str, Any], ended: list[int]
) -> None:
    clients = connected(rig, "127.0.0.1:1", "127.0.0.1:2")

    assert rig.ask("close_connections", {**named, "reason": "enough"}) == {"closed": len(ended)}

    for number, client in enumerate(clients):
        assert client.events == (["ended: enough"] if number in ended else [])


def test_a_connection_is_ended_by_the_number_that_the_list_has(rig: Rig) -> None:
    first, second = connected(rig, "127.0.0.1:1", "127.0.0.1:2")
    number = rig.ask("list_connections")[1]["number"]

    assert rig.ask("close_connections", {"number": number}) == {"closed": 1}

    assert (first.events, second.events) == ([], ["ended: closed by an administrator"])


def test_one_connection_that_is_not_there_is_not_found(rig: Rig) -> None:
    connected(rig, "127.0.0.1:1")

    with pytest.raises(NotFound, match=r"there is no such connection: '127\.0\.0\.1:9'"):
        rig.ask("close_connections", {"peer": "127.0.0.1:9"})
    with pytest.raises(NotFound, match="there is no such connection: 99"):
        rig.ask("close_connections", {"number": 99})


def test_publishers_are_listed_with_what_they_have_published(rig: Rig) -> None:
    client = rig.broker.link()
    client.declare(3, "s", "ref")
    client.publish(3, (1, b"a"), (2, b"b"))
    rig.broker.settle("s")

    (shown,) = rig.ask("list_publishers", HOST)

    assert shown == {
        "connection_number": rig.ask("list_connections")[0]["number"],
        "publisher_id": 3,
        "stream": "s",
        "reference": "ref",
        "messages_published": 2,
        "messages_confirmed": 2,
        "messages_errored": 0,
    }


def test_consumers_are_listed_with_how_far_they_are(rig: Rig) -> None:
    client = rig.broker.link()
    client.declare(1, "s")
    client.publish(1, (1, b"a"), (2, b"b"), (3, b"c"))
    rig.broker.settle("s")
    subscribe(client, 7, name="reader")

    (before,) = rig.ask("list_consumers", HOST)
    client.deliver(7)
    (after,) = rig.ask("list_consumers", HOST)

    assert before == {
        "connection_number": rig.ask("list_connections")[0]["number"],
        "subscription_id": 7,
        "stream": "s",
        "messages_consumed": 0,
        "offset": 0,
        "offset_lag": before["offset_lag"],
        "credits": 10,
        "active": True,
        "activity_status": "up",
        "properties": {"name": "reader"},
    }
    changed = {"messages_consumed": 3, "offset": 2, "offset_lag": 0, "credits": 9}
    assert after == before | changed


def test_a_group_is_listed_with_its_consumers_of_which_one_is_active(rig: Rig) -> None:
    clients = [rig.broker.link(), rig.broker.link()]
    for number, client in enumerate(clients):
        subscribe(client, number, **SINGLE)
    answer_update(clients[0])
    subscribe(clients[0], 7, name="group")  # reads alone
    subscribe(clients[0], 8, "other", **SINGLE)

    groups = rig.ask("list_groups", HOST)
    asked = {**HOST, "stream": "s", "reference": "group"}
    consumers = rig.ask("list_group_consumers", asked)

    assert sorted((one["stream"], one["reference"], one["consumers"]) for one in groups) == [
        ("other", "group", 1),
        ("s", "group", 2),
    ]
    name = "127.0.0.1:50000 -> 127.0.0.1:5552"
    assert consumers == [
        {"subscription_id": number, "connection_name": name, "is_active": number == 0}
        for number in (0, 1)
    ]


def test_a_group_that_is_not_there_is_not_found(rig: Rig) -> None:
    subscribe(rig.broker.link(), 1, **SINGLE)

    with pytest.raises(NotFound, match="stream 's' has no group 'none'"):
        rig.ask("list_group_consumers", {**HOST, "stream": "s", "reference": "none"})
    with pytest.raises(NotFound, match="stream 'other' has no group 'group'"):
        rig.ask("list_group_consumers", {**HOST, "stream": "other", "reference": "group"})
    with pytest.raises(NotFound, match="there is no stream 'none'"):
        rig.ask("list_group_consumers", {**HOST, "stream": "none", "reference": "group"})
