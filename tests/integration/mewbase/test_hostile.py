"""Clients that break the protocol, or go without a word, beside one that does neither."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import bson

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
    client.publish("channel1", deep(99))
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


def test_65536_subscriptions_of_a_connection_harm_no_other_client(
    server: HutchServer, client: MewbaseClient
) -> None:
    before = server.rss_bytes()
    with MewbaseClient(port_of(server)) as greedy:
        greedy.connect()
        asked = 65_536
        outcomes = {True: 0, False: 0}
        for begin in range(0, asked, 256):
            frames = [
                frame("SUBSCRIBE", {"channel": "channel1", "rID": begin + n, "startPos": 0})
                for n in range(256)
            ]
            greedy.socket.sendall(b"".join(frames))
            for n in range(256):
                answer = greedy.must("SUBRESPONSE")
                assert answer["rID"] == begin + n
                outcomes[answer["ok"]] += 1
            if begin % 4096 == 0:
                client.publish("channel2", {"n": begin})
        assert outcomes == {True: 1_000, False: asked - 1_000}
        client.publish("channel1", {"n": 1})
        greedy.events(1_000)
        assert server.rss_bytes() < before + 64 * MIB
    client.subscribe("channel1", startPos=0)
    assert client.events(1)[0]["event"] == {"n": 1}


def test_a_thousand_open_queries_harm_no_other_client(
    start_mewbase: StartMewbase, tmp_path: Path
) -> None:
    path = tmp_path / "projections.toml"
    path.write_text('[[projections]]\nname = "p"\nchannel = "channel1"\nbinder = "b"\nid = "id"\n')
    server = start_mewbase(
        "--durability",
        "os",
        HUTCH_MEWBASE__PROJECTIONS_FILE=str(path),
        HUTCH_MEWBASE__QUERIES_MAX="1000",
        HUTCH_MEWBASE__WINDOW_BYTES="65536",
        HUTCH_MEWBASE__WINDOW_RESUME_BYTES="0",
    )
    with MewbaseClient(port_of(server)) as client, MewbaseClient(port_of(server)) as greedy:
        client.connect()
        greedy.connect()
        for number in range(200):
            client.publish("channel1", {"id": f"{number:03}", "data": bytes(10_000)})
        before = server.rss_bytes()
        for query in range(1_100):
            greedy.send("QUERY", queryID=query, binder="b", matcher={})
        counts: dict[int, int] = {}
        refused = 0
        while refused < 100 or sum(counts.values()) < 7 * 1_000:
            fields = greedy.must("QUERYRESULT")
            if fields["ok"]:
                counts[fields["queryID"]] = counts.get(fields["queryID"], 0) + 1
            else:
                assert (fields["errCode"], fields["last"]) == (104, True)
                refused += 1
        assert set(counts.values()) == {7}  # 64 KiB of each
        for number in range(200):  # what changes is kept for all of them, once
            client.publish("channel1", {"id": f"{number:03}", "data": bytes(9_000)})
        client.send("QUERY", queryID=1, binder="b", docID="199")
        assert len(client.must("QUERYRESULT")["result"]["data"]) == 9_000
        assert server.rss_bytes() < before + 192 * MIB
        for _ in range(7):
            greedy.send("QUERYACK", queryID=1_000)
            greedy.send("QUERYACK", queryID=999)
        found = [greedy.must("QUERYRESULT") for _ in range(7)]
        assert {fields["queryID"] for fields in found} == {999}
        assert {len(fields["result"]["data"]) for fields in found} == {10_000}
