"""Events out: cases 27 to 32, 35 to 38, 40 and 41 of the protocol's conformance."""

from __future__ import annotations

import threading
import time

import pytest

from tests.mewbase_client import ALL_NULL, MewbaseClient


def publish_some(client: MewbaseClient, count: int, begin: int = 0) -> None:
    for number in range(begin, begin + count):
        client.publish("channel1", {"n": number})


def numbers(events: list[dict[str, dict[str, int]]]) -> list[int]:
    return [each["event"]["n"] for each in events]


def test_case_27_an_event_is_delivered_after_the_answer_to_subscribe(
    client: MewbaseClient,
) -> None:
    before_ms = time.time() * 1000 // 1
    number = client.subscribe("channel1")
    client.send("PUB", channel="channel1", event={"n": 1}, rID=1)
    got = dict(client.receive() for _ in range(2))["RECEV"]
    assert (got["subID"], got["pos"], got["event"]) == (number, 0, {"n": 1})
    assert got["timestamp"] >= before_ms


def test_case_28_a_subscription_from_0_has_all_and_goes_on(
    client: MewbaseClient, other: MewbaseClient
) -> None:
    publish_some(client, 10)
    other.subscribe("channel1", startPos=0)
    events = other.events(10)
    publish_some(client, 1, 10)
    events += other.events(1)

    assert numbers(events) == list(range(11))
    assert [each["pos"] for each in events] == sorted({each["pos"] for each in events})
    assert other.is_silent()


def assert_only_new_events_come(
    client: MewbaseClient, other: MewbaseClient, **fields: object
) -> None:
    publish_some(client, 5)
    other.subscribe("channel1", **fields)
    assert other.is_silent()
    publish_some(client, 1, 5)
    assert numbers(other.events(1)) == [5]


@pytest.mark.parametrize("fields", [{}, {"matcher": {}}, {"startPos": None}])
def test_case_29_without_a_start_only_new_events_come(
    client: MewbaseClient, other: MewbaseClient, fields: dict[str, object]
) -> None:
    assert_only_new_events_come(client, other, **fields)


def test_case_30_fields_that_say_nothing_are_as_fields_that_are_not_there(
    client: MewbaseClient, other: MewbaseClient
) -> None:
    assert_only_new_events_come(client, other, **ALL_NULL)


def test_what_was_published_before_on_the_same_connection_is_not_new(
    client: MewbaseClient,
) -> None:
    for number in range(5):
        client.send("PUB", channel="channel1", event={"n": number}, rID=number)
    client.send("SUBSCRIBE", channel="channel1", rID=9)
    assert sorted(client.receive()[0] for _ in range(6)) == ["RESPONSE"] * 5 + ["SUBRESPONSE"]
    assert client.is_silent()


def test_case_31_a_start_is_the_first_event_that_comes(
    client: MewbaseClient, other: MewbaseClient
) -> None:
    publish_some(client, 6)
    other.subscribe("channel1", startPos=0)
    fourth = other.events(6)[3]
    client.subscribe("channel1", startPos=fourth["pos"])
    first = client.events(3)[0]
    assert (first["pos"], first["timestamp"]) == (fourth["pos"], fourth["timestamp"])
    assert first["event"] == {"n": 3}


def test_case_32_a_start_may_be_the_end_and_not_behind_it(client: MewbaseClient) -> None:
    client.subscribe("channel1", startPos=0)
    for start, code in ((1, 106), (10**12, 106), (-2, 104)):
        client.send("SUBSCRIBE", channel="channel1", rID=5, startPos=start)
        answer = client.must("SUBRESPONSE")
        assert (answer["rID"], answer["ok"], answer["errCode"]) == (5, False, code)
        assert answer["errMsg"]
        assert "subID" not in answer
    client.send("PUB", channel="channel1", event={"n": 1}, rID=1)
    assert dict(client.receive() for _ in range(2))["RECEV"]["event"] == {"n": 1}


def test_case_35_a_channel_that_does_not_exist_cannot_be_read(client: MewbaseClient) -> None:
    client.send("SUBSCRIBE", channel="nosuchchannel", rID=6)
    assert client.must("SUBRESPONSE") == {
        "rID": 6,
        "ok": False,
        "errCode": 3,
        "errMsg": "no such channel nosuchchannel",
    }
    client.publish("channel1", {})


def test_case_36_a_field_that_is_missing_ends_the_connection(port: int) -> None:
    for fields in ({"channel": "channel1"}, {"rID": 1}, {"channel": 5, "rID": 1}):
        with MewbaseClient(port) as client:
            client.connect()
            client.send("SUBSCRIBE", **fields)
            if "rID" in fields:
                assert client.must("SUBRESPONSE")["errCode"] == 104
            assert client.is_ended()


def test_case_37_each_subscription_gets_each_event(
    client: MewbaseClient, other: MewbaseClient
) -> None:
    ids = {client.subscribe("channel1"), client.subscribe("channel1")}
    assert len(ids) == 2
    other.subscribe("channel1")
    other.send("PUB", channel="channel1", event={"n": 1}, rID=1)
    assert {each["subID"] for each in client.events(2)} == ids
    assert "RECEV" in dict(other.receive() for _ in range(2))
    assert client.is_silent()


def test_case_38_all_subscribers_see_the_same_order(port: int) -> None:
    def publish(publisher: int) -> None:
        with MewbaseClient(port) as client:
            client.connect()
            for number in range(100):
                client.publish("channel1", {"from": publisher, "n": number})

    with MewbaseClient(port) as first, MewbaseClient(port) as second:
        first.connect()
        first.subscribe("channel1", startPos=0)
        threads = [threading.Thread(target=publish, args=(each,)) for each in range(4)]
        for thread in threads:
            thread.start()
        second.connect()
        second.subscribe("channel1", startPos=0)
        seen = [
            [(each["pos"], each["event"]["from"], each["event"]["n"]) for each in one.events(400)]
            for one in (first, second)
        ]
        for thread in threads:
            thread.join()

    assert seen[0] == seen[1]
    for publisher in range(4):
        assert [n for _, by, n in seen[0] if by == publisher] == list(range(100))


def test_case_40_a_closed_subscription_gets_nothing_more(client: MewbaseClient) -> None:
    closed, open_one = client.subscribe("channel1"), client.subscribe("channel1")
    assert client.ask("SUBCLOSE", subID=closed, rID=3) == {"rID": 3, "ok": True}
    client.send("PUB", channel="channel1", event={}, rID=1)
    assert dict(client.receive() for _ in range(2))["RECEV"]["subID"] == open_one
    assert client.is_silent()
    answer = client.ask("SUBCLOSE", subID=closed, rID=4)
    assert (answer["ok"], answer["errCode"], answer["rID"]) == (False, 105, 4)


def test_case_41_an_unknown_subscription_is_refused_or_ignored(client: MewbaseClient) -> None:
    answer = client.ask("UNSUBSCRIBE", subID=77, rID=1)
    assert (answer["ok"], answer["errCode"]) == (False, 105)
    client.send("ACKEV", subID=77)
    client.send("ACKEV", subID=77, pos=1, bytes=10)
    assert client.is_silent()
    client.publish("channel1", {})


def test_a_subscription_that_is_forgotten_gets_nothing_more(client: MewbaseClient) -> None:
    number = client.subscribe("channel1")
    assert client.ask("UNSUBSCRIBE", subID=number, rID=3)["ok"] is True
    client.publish("channel1", {})
    assert client.is_silent()


def test_queries_are_refused(client: MewbaseClient) -> None:
    wrongs: list[tuple[dict[str, object], int]]
    wrongs = [({"binder": "b", "matcher": {}}, 103), ({}, 104), ({"binder": 1}, 104)]
    for wrong, code in wrongs:
        client.send("QUERY", queryID=3, **wrong)
        answer = client.must("QUERYRESULT")
        assert (answer["queryID"], answer["ok"], answer["errCode"]) == (3, False, code)
        assert (answer["result"], answer["last"]) == (None, True)
    client.send("QUERYACK", queryID=3)
    client.send("QUERY", binder="b", matcher={})
    assert client.is_ended()
