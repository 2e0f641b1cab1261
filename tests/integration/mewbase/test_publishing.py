"""Events in: cases 17 to 26 of the protocol's conformance."""

from __future__ import annotations

import datetime as dt
import struct
import time

import bson
import pytest
from bson import Binary, Decimal128, Int64, ObjectId
from bson.raw_bson import RawBSONDocument

from gateway.mewbase.link import PUBLISHERS_MAX
from gateway.settings.mewbase import EVENT_BYTES_MAX
from tests.http_client import Api
from tests.integration.administrator import ctl
from tests.integration.mewbase.conftest import StartMewbase, port_of
from tests.integration.server import HutchServer
from tests.mewbase_client import MewbaseClient

STAMP = dt.datetime(2016, 12, 1, tzinfo=dt.UTC)
KINDS = {
    "i32": 1,
    "i64": Int64(1),
    "double": 1.5,
    "text": "größer",
    "bool": True,
    "null": None,
    "document": {"a": {"b": []}},
    "array": [1, "x", {}],
    "binary": Binary(b"\0\1", 0),
    "date": STAMP,
    "id": ObjectId("0123456789abcdef01234567"),
    "decimal": Decimal128("1.10"),
}


def sized(size: int) -> dict[str, bytes]:
    """An event of so many bytes."""
    event = {"data": bytes(size - len(bson.encode({"data": b""})))}
    assert len(bson.encode(event)) == size
    return event


@pytest.mark.parametrize("kind", ["PUB", "PUBLISH", "EMIT"])
def test_case_17_an_event_is_published_by_each_name_of_the_frame(
    client: MewbaseClient, kind: str
) -> None:
    answer = client.ask(kind, channel="channel1", event={"n": 1}, rID=9)
    assert answer == {"rID": 9, "ok": True}
    client.subscribe("channel1", startPos=0)
    assert client.events(1)[0]["event"] == {"n": 1}


@pytest.mark.parametrize("session", [{}, {"sessID": None}, {"sessID": -1}, {"sessID": 5}])
def test_case_18_without_a_transaction_an_event_is_visible_at_once(
    client: MewbaseClient, session: dict[str, object]
) -> None:
    assert client.ask("PUB", channel="channel1", event={}, rID=1, **session)["ok"] is True
    client.subscribe("channel1", startPos=0)
    assert len(client.events(1)) == 1


def test_case_19_a_channel_is_not_made_by_publishing(client: MewbaseClient) -> None:
    for _ in range(2):
        answer = client.ask("PUB", channel="nosuchchannel", event={}, rID=4)
        assert answer == {
            "rID": 4,
            "ok": False,
            "errCode": 3,
            "errMsg": "no such channel nosuchchannel",
        }
    client.publish("channel1", {})


@pytest.mark.parametrize(
    "fields",
    [
        {"channel": "channel1"},
        {"event": {}},
        {"channel": "channel1", "event": [1]},
        {"channel": "channel1", "event": "text"},
        {"channel": 1, "event": {}},
        {"channel": "channel1", "event": {}, "sessID": "x"},
    ],
)
def test_case_20_a_field_that_is_missing_or_wrong_ends_the_connection(
    client: MewbaseClient, other: MewbaseClient, fields: dict[str, object]
) -> None:
    answer = client.ask("PUB", rID=3, **fields)
    assert (answer["rID"], answer["ok"], answer["errCode"]) == (3, False, 104)
    assert answer["errMsg"]
    assert client.is_ended()
    other.subscribe("channel1", startPos=0)
    assert other.is_silent()


def test_case_21_an_event_that_names_no_request_ends_the_connection(
    client: MewbaseClient, other: MewbaseClient
) -> None:
    client.send("PUB", channel="channel1", event={})
    assert client.is_ended()
    other.subscribe("channel1", startPos=0)
    assert other.is_silent()


def test_case_22_an_event_may_be_empty(client: MewbaseClient) -> None:
    client.subscribe("channel1")
    client.send("PUB", channel="channel1", event={}, rID=1)
    got = dict(client.receive() for _ in range(2))
    assert got["RESPONSE"]["ok"] is True
    assert got["RECEV"]["event"] == {}


def test_case_23_many_are_answered_once_each_and_stored_in_order(
    client: MewbaseClient, other: MewbaseClient
) -> None:
    for number in range(100):
        client.send("PUB", channel="channel1", event={"n": number}, rID=number)
    answers = [client.must("RESPONSE") for _ in range(100)]
    assert sorted(each["rID"] for each in answers) == list(range(100))
    assert all(each["ok"] for each in answers)
    assert client.is_silent()

    other.subscribe("channel1", startPos=0)
    assert [each["event"]["n"] for each in other.events(100)] == list(range(100))


def test_case_24_the_largest_event_is_stored_and_a_larger_one_is_refused(
    client: MewbaseClient,
) -> None:
    client.subscribe("channel1")
    for size in (EVENT_BYTES_MAX + 1, 8 << 20):
        answer = client.ask("PUB", channel="channel1", event=sized(size), rID=1)
        assert (answer["ok"], answer["errCode"]) == (False, 4)
        assert str(size) in answer["errMsg"]
    client.send("PUB", channel="channel1", event=sized(EVENT_BYTES_MAX), rID=2)
    got = dict(client.receive() for _ in range(2))
    assert got["RESPONSE"] == {"rID": 2, "ok": True}
    assert got["RECEV"]["event"] == sized(EVENT_BYTES_MAX)


def test_case_25_an_event_comes_back_byte_for_byte(client: MewbaseClient) -> None:
    twice = b"\x10a\0\1\0\0\0\x10a\0\2\0\0\0"
    events = [bson.encode(KINDS), struct.pack("<i", len(twice) + 5) + twice + b"\0"]
    client.subscribe("channel1")
    for event in events:
        raw = RawBSONDocument(event)
        client.send("PUB", channel="channel1", event=raw, rID=1)
        found = [(client.receive()[0], client.raw) for _ in range(2)]
        assert dict(found)["RECEV"].endswith(b"\x03event\0" + event + b"\0\0")


def test_case_26_an_event_that_was_answered_survives_a_kill(server: HutchServer) -> None:
    seen: list[tuple[int, int, object]] = []
    for _ in range(2):
        with MewbaseClient(port_of(server)) as client:
            client.connect()
            if not seen:
                client.publish("channel1", {"n": 1})
            client.subscribe("channel1", startPos=0)
            (got,) = client.events(1)
            seen.append((got["pos"], got["timestamp"], got["event"]))
        server.restart()

    assert seen[0] == seen[1]
    assert seen[0][0] == 0
    assert abs(seen[0][1] - time.time() * 1000) < 60_000


def test_the_size_of_events_can_be_limited(start_mewbase: StartMewbase) -> None:
    server = start_mewbase(HUTCH_MEWBASE__EVENT_BYTES_MAX="2000")
    with MewbaseClient(port_of(server)) as client:
        client.connect()
        client.publish("channel1", {})
        answer = client.ask("PUB", channel="channel1", event=sized(2001), rID=1)
        assert answer["errCode"] == 4


def test_an_event_is_refused_while_the_disk_alarm_is_set(
    server: HutchServer, client: MewbaseClient
) -> None:
    client.publish("channel1", {})
    ctl(server, "set_alarm", "disk")
    answer = client.ask("PUB", channel="channel1", event={}, rID=1)
    assert (answer["ok"], answer["errCode"]) == (False, 4)
    ctl(server, "clear_alarm", "disk")
    client.publish("channel1", {})


def test_a_user_without_the_right_is_refused(server: HutchServer, port: int) -> None:
    ctl(server, "add_user", "reader", stdin=b"secret\n")
    ctl(server, "set_permissions", "reader", "", "", "channel1")
    with MewbaseClient(port) as client:
        client.connect(authInfo={"username": "reader", "password": "secret"})
        for channel in ("channel1", "nosuchchannel"):
            answer = client.ask("PUB", channel=channel, event={}, rID=1)
            assert (answer["ok"], answer["errCode"]) == (False, 2)
        client.subscribe("channel1")
        client.send("SUBSCRIBE", channel="channel2", rID=1)
        assert client.must("SUBRESPONSE")["errCode"] == 2
        ctl(server, "clear_permissions", "reader")
        assert client.is_ended()  # the protocol has no word for a channel that is gone


def test_a_channel_that_is_deleted_is_missed_by_the_next_event(
    server: HutchServer, client: MewbaseClient, other: MewbaseClient
) -> None:
    client.publish("channel1", {})
    other.subscribe("channel1")
    ctl(server, "delete_stream", "channel1")
    assert other.is_ended()
    assert client.ask("PUB", channel="channel1", event={}, rID=1)["errCode"] == 3


def test_of_many_channels_only_some_keep_a_publisher(
    server: HutchServer, client: MewbaseClient, other: MewbaseClient
) -> None:
    channels = [f"many{number}" for number in range(PUBLISHERS_MAX + 40)]
    for channel in channels:
        assert client.ask("CREATECHANNEL", name=channel, rID=1)["ok"] is True
        client.publish(channel, {"n": 1})
    publishers = Api(*server.management, user=("mew", "base")).get("stream/publishers/%2F")
    assert len(publishers) == PUBLISHERS_MAX
    client.publish(channels[0], {"n": 2})
    other.subscribe(channels[0], startPos=0)
    assert [each["event"] for each in other.events(2)] == [{"n": 1}, {"n": 2}]
    ctl(server, "delete_stream", channels[0])
    assert client.ask("PUB", channel=channels[0], event={}, rID=1)["errCode"] == 3
