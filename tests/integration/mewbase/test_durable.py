"""Durable subscriptions: cases 47 to 55 of the protocol's conformance."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from tests.client import Client
from tests.integration.administrator import ctl
from tests.integration.mewbase.conftest import StartMewbase, port_of
from tests.integration.server import HutchServer
from tests.mewbase_client import MewbaseClient
from tests.waiting import wait_until

D = {"durableID": "d"}


def publish(client: MewbaseClient, count: int, begin: int = 0, **more: object) -> None:
    for number in range(begin, begin + count):
        client.publish("channel1", {"n": number, **more})


@contextmanager
def connected(server: HutchServer) -> Iterator[MewbaseClient]:
    with MewbaseClient(port_of(server)) as client:
        client.connect()
        yield client


def first_of(client: MewbaseClient, **fields: Any) -> int:  # noqa: ANN401  # any values of BSON
    """Subscribe; return the number of the first event that comes."""
    client.subscribe("channel1", **fields)
    return int(client.events(1)[0]["event"]["n"])


def read_half(client: MewbaseClient) -> int:
    """Publish 100 events, read them, acknowledge the first 50; return the subscription."""
    publish(client, 100)
    number = client.subscribe("channel1", startPos=0, **D)
    events = client.events(100)
    for each in events[:50]:
        client.send("ACKEV", subID=number, pos=each["pos"], bytes=1)
    return number


def stored_offset(server: HutchServer) -> int:
    """Ask as a client of streams for the stored offset of the subscription."""
    with Client.opened(*server.endpoint, user="mew", password="base") as streams:
        query = m.QueryOffset(reference="d", stream="channel1")
        return streams.ask(m.StoredOffset, "query_offset", query).offset


def test_case_47_a_closed_subscription_goes_on_where_it_was(client: MewbaseClient) -> None:
    number = read_half(client)
    assert client.ask("SUBCLOSE", subID=number, rID=1)["ok"] is True
    assert first_of(client, startPos=0, **D) == 50


@pytest.mark.parametrize("way", ["dropped", "stopped", "killed"])
def test_case_48_it_goes_on_after_a_connection_or_a_server_is_gone(
    server: HutchServer, way: str
) -> None:
    with connected(server) as client:
        read_half(client)
        client.ask("UNSUBSCRIBE", subID=99, rID=1)  # all acknowledgements are taken
        if way == "killed":
            time.sleep(1)
            server.kill()
    if way == "stopped":
        server.terminate()
    if way != "dropped":
        server.start()
    with connected(server) as client:
        client.subscribe("channel1", startPos=0, **D)
        events = client.events(50)
        assert [each["event"]["n"] for each in events] == list(range(50, 100))
        assert [each["pos"] for each in events] == list(range(50, 100))
        assert client.is_silent()


def test_case_49_events_that_were_not_acknowledged_come_again_with_the_same_positions(
    server: HutchServer,
) -> None:
    with connected(server) as client:
        publish(client, 3)
        client.subscribe("channel1", startPos=0, **D)
        delivered = client.events(3)
    with connected(server) as client:
        client.subscribe("channel1", startPos=0, **D)
        again = client.events(3)
    for each in (*delivered, *again):
        del each["subID"]
    assert again == delivered


def test_case_50_a_subscription_that_is_ended_is_forgotten(client: MewbaseClient) -> None:
    number = read_half(client)
    assert client.ask("UNSUBSCRIBE", subID=number, rID=1)["ok"] is True
    number = client.subscribe("channel1", startPos=0, **D)
    assert client.events(100)[0]["event"] == {"n": 0}
    assert client.ask("UNSUBSCRIBE", subID=number, rID=1)["ok"] is True
    client.subscribe("channel1", **D)
    assert client.is_silent()


def test_case_51_where_it_began_is_kept_before_any_acknowledgement(server: HutchServer) -> None:
    with connected(server) as client:
        publish(client, 2)
        client.subscribe("channel1", **D)
    server.restart()
    with connected(server) as client:
        publish(client, 3, 2)
        client.subscribe("channel1", **D)
        assert [each["event"]["n"] for each in client.events(3)] == [2, 3, 4]
        assert client.is_silent()


def test_case_52_the_place_never_goes_back_and_never_past_what_was_sent(
    client: MewbaseClient,
) -> None:
    publish(client, 20)
    number = client.subscribe("channel1", startPos=0, **D)
    client.events(20)
    client.send("ACKEV", subID=number, pos=10)
    client.send("ACKEV", subID=number, pos=5)
    client.ask("SUBCLOSE", subID=number, rID=1)
    number = client.subscribe("channel1", **D)
    assert client.events(9)[0]["pos"] == 11
    client.send("ACKEV", subID=number, pos=10**9)
    client.ask("SUBCLOSE", subID=number, rID=1)
    publish(client, 1, 20)
    assert first_of(client, **D) == 20


def test_case_53_a_name_on_another_channel_is_another_subscription(client: MewbaseClient) -> None:
    for channel in ("channel1", "channel2"):
        for _ in range(3):
            client.publish(channel, {})
    one = client.subscribe("channel1", startPos=0, **D)
    client.events(3)
    client.send("ACKEV", subID=one, pos=1)
    client.ask("SUBCLOSE", subID=one, rID=1)
    client.subscribe("channel2", startPos=0, **D)
    assert client.events(3)[0]["pos"] == 0
    client.subscribe("channel1", startPos=0, **D)
    assert client.events(1)[0]["pos"] == 2


def test_case_54_the_later_connection_gets_the_events(
    client: MewbaseClient, other: MewbaseClient
) -> None:
    publish(client, 5)
    number = client.subscribe("channel1", startPos=0, **D)
    client.events(5)
    client.send("ACKEV", subID=number, pos=1)
    assert client.ask("UNSUBSCRIBE", subID=99, rID=1)["errCode"] == 105

    later = other.subscribe("channel1", **D)
    publish(client, 2, 5)
    assert [each["pos"] for each in other.events(5)] == [2, 3, 4, 5, 6]
    assert client.is_silent()
    other.send("ACKEV", subID=later, pos=6)
    assert other.ask("SUBCLOSE", subID=later, rID=1)["ok"] is True
    client.send("ACKEV", subID=number, pos=4)  # of no account any more
    assert client.ask("SUBCLOSE", subID=number, rID=1)["ok"] is True
    client.subscribe("channel1", **D)
    assert client.is_silent()


@pytest.mark.parametrize("kind", ["SUBCLOSE", "UNSUBSCRIBE"])
def test_the_earlier_connection_cannot_touch_the_place_of_the_later_one(
    client: MewbaseClient, other: MewbaseClient, kind: str
) -> None:
    publish(client, 5)
    earlier = client.subscribe("channel1", startPos=0, **D)
    client.events(5)
    later = other.subscribe("channel1", **D)
    other.events(5)

    assert client.ask(kind, subID=earlier, rID=1)["ok"] is True
    other.send("ACKEV", subID=later, pos=2)
    other.ask("SUBCLOSE", subID=later, rID=1)
    assert first_of(other, startPos=0, **D) == 3


def test_case_55_events_that_do_not_match_move_the_place_too(server: HutchServer) -> None:
    with connected(server) as client:
        publish(client, 3, type="a")
        publish(client, 200, 3, type="b")
        matcher = {"type": "a"}
        number = client.subscribe("channel1", startPos=0, matcher=matcher, **D)
        for each in client.events(3):
            client.send("ACKEV", subID=number, pos=each["pos"])
        client.ask("SUBCLOSE", subID=number, rID=1)
        assert stored_offset(server) == 202
        client.subscribe("channel1", matcher=matcher, **D)
        assert client.is_silent()
        publish(client, 1, 203, type="a")
        assert client.events(1)[0]["event"]["n"] == 203


def test_events_that_do_not_match_move_the_place_of_one_that_acknowledges_nothing(
    server: HutchServer,
) -> None:
    with connected(server) as client:
        client.subscribe("channel1", matcher={"type": "a"}, **D)
        for count in (1, 5):
            begin = 0 if count == 1 else 1
            publish(client, count, begin, type="b")
            wait_until(lambda: stored_offset(server) == begin + count - 1)  # noqa: B023
        server.kill()
    server.restart()
    with connected(server) as client:
        client.subscribe("channel1", **D)
        assert client.is_silent()


def test_the_place_is_a_stored_offset_that_stream_clients_see(
    server: HutchServer, client: MewbaseClient
) -> None:
    number = read_half(client)
    client.ask("SUBCLOSE", subID=number, rID=1)
    assert stored_offset(server) == 49


def test_it_goes_on_at_the_oldest_event_where_retention_removed_its_place(
    server: HutchServer,
) -> None:
    with connected(server) as client:
        number = read_half(client)
        client.ask("SUBCLOSE", subID=number, rID=1)
        ctl(server, "truncate_stream", "channel1", "--before-offset", "80")
    server.restart()
    with connected(server) as client:
        assert first_of(client, **D) == 80


def add_reader(server: HutchServer, user: str) -> None:
    """Make a user that may read channel1."""
    ctl(server, "add_user", user, stdin=b"secret\n")
    ctl(server, "set_permissions", user, "", "", "channel1")


@contextmanager
def connected_as(server: HutchServer, user: str) -> Iterator[MewbaseClient]:
    with MewbaseClient(port_of(server)) as client:
        client.connect(authInfo={"username": user, "password": "secret"})
        yield client


def refusal(client: MewbaseClient, **fields: object) -> tuple[int, str]:
    """Subscribe, and be refused; return the error."""
    client.send("SUBSCRIBE", channel="channel1", rID=2, **fields)
    answer = client.must("SUBRESPONSE")
    assert answer["ok"] is False, answer
    return answer["errCode"], answer["errMsg"]


@pytest.mark.parametrize("way", ["ended", "user deleted"])
def test_a_name_is_of_the_user_that_began_it(
    server: HutchServer, client: MewbaseClient, way: str
) -> None:
    for user in ("owner", "stranger"):
        add_reader(server, user)
    with connected_as(server, "owner") as owner, connected_as(server, "stranger") as stranger:
        publish(client, 3)
        number = owner.subscribe("channel1", startPos=0, **D)
        owner.events(3)
        owner.send("ACKEV", subID=number, pos=0)
        told = (2, "the durable subscription 'd' belongs to another user")
        assert refusal(stranger, startPos=0, **D) == told
        publish(client, 1, 3)
        assert owner.events(1)[0]["pos"] == 3, "nobody has taken it"
        owner.ask("SUBCLOSE", subID=number, rID=1)
        assert refusal(stranger, **D) == told
        number = owner.subscribe("channel1", **D)
        assert owner.events(3)[0]["pos"] == 1
        if way == "ended":
            assert owner.ask("UNSUBSCRIBE", subID=number, rID=1)["ok"] is True
        else:
            ctl(server, "delete_user", "owner")
        stranger.subscribe("channel1", startPos=2, **D)
        assert stranger.events(1)[0]["pos"] == (2 if way == "ended" else 1)
        if way == "user deleted":
            add_reader(server, "owner")
            with connected_as(server, "owner") as again:
                assert refusal(again, **D) == told, "another one of that name has begun it"


def test_one_that_is_connected_is_not_forgotten_for_other_names(
    start_mewbase: StartMewbase,
) -> None:
    server = start_mewbase("--durability", "os", HUTCH_STREAMS__OFFSET_REFERENCES_MAX="3")
    with connected(server) as client, connected(server) as other:
        publish(other, 3)
        client.subscribe("channel1", startPos=0, **D)
        client.events(3)
        for each in range(10):
            number = other.subscribe("channel1", durableID=f"d{each}")
            assert other.ask("SUBCLOSE", subID=number, rID=1)["ok"] is True
    with connected(server) as client, connected(server) as other:
        client.subscribe("channel1", **D)
        assert [each["pos"] for each in client.events(3)] == [0, 1, 2]
        for in_use in ("a", "b"):
            other.subscribe("channel1", durableID=in_use)
        code, reason = refusal(other, durableID="c")
        assert code == 100
        assert "streams.offset_references_max" in reason
        with Client.opened(*server.endpoint, user="mew", password="base") as streams:
            streams.send_request("store_offset", m.StoreOffset("consumer", "channel1", 1))
            query = m.QueryOffset(reference="consumer", stream="channel1")
            assert streams.code_of("query_offset", query) == ResponseCode.NO_OFFSET


@pytest.mark.parametrize("name", ["", "x" * 256])
def test_a_name_has_1_to_255_bytes(client: MewbaseClient, name: str) -> None:
    client.send("SUBSCRIBE", channel="channel1", rID=1, durableID=name)
    assert client.must("SUBRESPONSE")["errCode"] == 104
    client.subscribe("channel1", durableID="x" * 255)


def test_a_deleted_channel_takes_its_subscriptions_along(
    server: HutchServer, client: MewbaseClient
) -> None:
    number = read_half(client)
    client.ask("SUBCLOSE", subID=number, rID=1)
    ctl(server, "delete_stream", "channel1")
    server.restart()  # the channel is made anew
    with connected(server) as again:
        publish(again, 1)
        assert first_of(again, startPos=0, **D) == 0


def test_one_that_goes_on_leaves_out_what_is_before_its_time(client: MewbaseClient) -> None:
    later = int(time.time() * 1000) + 3_600_000
    number = client.subscribe("channel1", startTimestamp=later, **D)
    client.ask("SUBCLOSE", subID=number, rID=1)
    publish(client, 2)
    number = client.subscribe("channel1", startTimestamp=later, **D)
    assert client.is_silent()
    client.ask("SUBCLOSE", subID=number, rID=1)
    publish(client, 1, begin=2)
    assert first_of(client, **D) == 2, "without a time all holds that is not done with"


def test_acknowledgements_without_a_position_are_of_one_event_each_which_is_said_once(
    server: HutchServer, client: MewbaseClient
) -> None:
    publish(client, 10, d=bytes(500_000))
    number = client.subscribe("channel1", startPos=0, **D)
    client.events(9)  # which fill the window
    for _ in range(3):
        client.send("ACKEV", subID=number)
    client.ask("SUBCLOSE", subID=number, rID=1)
    assert first_of(client, **D) == 3
    line = "acknowledgements without pos are of one event each channel=channel1 subscription='d'"
    assert server.logs.count(line) == 1
