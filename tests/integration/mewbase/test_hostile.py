"""Clients that break the protocol, or go without a word, beside one that does neither."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import bson
import pytest

from tests.client import Client
from tests.integration.administrator import ctl
from tests.integration.mewbase.conftest import StartMewbase, port_of
from tests.integration.server import HutchServer
from tests.mewbase_client import MewbaseClient, frame
from tests.waiting import wait_until

MIB = 1 << 20
SEED = 7


def deep(levels: int) -> dict[str, object]:
    document: dict[str, object] = {}
    for _ in range(levels):
        document = {"a": document}
    return document


def test_case_76_nothing_is_left_of_clients_that_go_without_a_word(server: HutchServer) -> None:
    def counts() -> tuple[int, int]:
        return len(ctl(server, "list_connections")), server.open_file_count()

    with MewbaseClient(port_of(server)) as client:
        client.connect()
        client.publish("channel1", {})
        client.subscribe("channel1", startPos=0)
    wait_until(lambda: counts()[0] == 0)
    before = counts()
    with ExitStack() as stack:
        for _ in range(200):
            each = stack.enter_context(MewbaseClient(port_of(server)))
            each.connect()
            each.subscribe("channel1", startPos=0)
        assert counts()[0] == 200
    wait_until(lambda: counts() <= before)


def test_subscriptions_of_a_connection_are_limited(start_mewbase: StartMewbase) -> None:
    server = start_mewbase(HUTCH_MEWBASE__SUBSCRIPTIONS_MAX="3")
    with MewbaseClient(port_of(server)) as client:
        client.connect()
        numbers = [client.subscribe("channel1") for _ in range(3)]
        client.send("SUBSCRIBE", channel="channel1", rID=1)
        answer = client.must("SUBRESPONSE")
        assert (answer["ok"], answer["errCode"]) == (False, 104)
        assert "mewbase.subscriptions_max" in answer["errMsg"]
        client.ask("SUBCLOSE", subID=numbers[0], rID=1)
        assert client.subscribe("channel1") not in numbers


def test_a_document_that_is_too_deep_ends_the_connection(
    client: MewbaseClient, other: MewbaseClient
) -> None:
    client.publish("channel1", deep(90))
    other.send("PUB", channel="channel1", event=deep(100), rID=1)
    assert other.is_ended()
    client.publish("channel1", {})


def test_a_frame_above_16_mib_ends_the_connection(client: MewbaseClient) -> None:
    with suppress(ConnectionError):
        client.socket.sendall(struct.pack("<i", 16 * MIB + 1) + bytes(MIB))
    assert client.is_ended()


def damaged() -> Iterator[bytes]:
    """Give frames of clients, each with some bytes changed."""
    chance = random.Random(SEED)
    event = {"a": 1, "o": {"x": [1.5, None, True, "größer"]}}
    good = [
        frame("CONNECT", {"version": "0.1", "authInfo": None}),
        frame("PUB", {"channel": "channel2", "event": event, "rID": 1}),
        frame("SUBSCRIBE", {"channel": "channel2", "rID": 2, "matcher": event, "durableID": "d"}),
        frame("ACKEV", {"subID": 0, "pos": 3}),
        frame("UNSUBSCRIBE", {"subID": 0, "rID": 3}),
        frame("QUERY", {"queryID": 1, "binder": "b", "matcher": {}}),
        frame("STARTTX", {"sessID": 1, "rID": 4}),
    ]
    while True:
        data = bytearray(chance.choice(good))
        for _ in range(chance.randrange(3)):
            data[chance.randrange(4, len(data))] = chance.randrange(256)
        yield bytes(data)


@pytest.mark.timeout(120)
def test_damaged_frames_harm_no_other_client(server: HutchServer, client: MewbaseClient) -> None:
    number = client.subscribe("channel1")
    frames = damaged()
    before = server.rss_bytes()
    for turn in range(300):
        with MewbaseClient(port_of(server)) as bad, suppress(OSError):
            bad.socket.sendall(frame("CONNECT", {"version": "0.1", "authInfo": None}))
            bad.socket.sendall(b"".join(next(frames) for _ in range(20)))
            if turn % 3 == 0:
                bad.socket.sendall(next(frames)[:-5])
            bad.socket.recv(100)
        if turn % 50 == 0:
            client.send("PUB", channel="channel1", event={"n": turn}, rID=turn)
            got = dict(client.receive() for _ in range(2))
            assert got["RESPONSE"] == {"rID": turn, "ok": True}
            assert got["RECEV"]["subID"] == number
            assert got["RECEV"]["event"] == {"n": turn}
    assert server.rss_bytes() - before < 50 * MIB
    with MewbaseClient(port_of(server)) as reader:
        reader.connect()
        reader.subscribe("channel2", startPos=0)
        assert isinstance(reader.events(1)[0]["event"], dict)
    server.terminate()


def test_events_that_stream_clients_damaged_are_wrapped(
    server: HutchServer, client: MewbaseClient
) -> None:
    with Client.opened(*server.endpoint, user="mew", password="base") as streams:
        streams.declare(1, "channel1")
        bad = bson.encode({"a": deep(120)})
        streams.publish(1, {1: bad, 2: b"\0Ss"})
        streams.confirmed()
    client.subscribe("channel1", startPos=0)
    assert [each["event"] for each in client.events(2)] == [{"data": bad}, {"data": b"\0Ss"}]
