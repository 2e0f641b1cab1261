"""Starts by time, matchers and windows: cases 33, 34, 39 and 42 to 46 of the conformance."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import Any

import pytest
from bson import Int64

from tests.integration.mewbase.conftest import StartMewbase, port_of
from tests.integration.server import HutchServer
from tests.mewbase_client import MewbaseClient
from tests.waiting import wait_until

LARGE = {"data": bytes(500_000)}
UNTIL_FULL = 9
"""With so many large events a window of 4 MiB is full."""
MIB = 1 << 20


def publish(client: MewbaseClient, *events: dict[str, Any]) -> None:
    for number, event in enumerate(events):
        client.send("PUB", channel="channel1", event=event, rID=number)
    for number in range(len(events)):
        assert client.must("RESPONSE") == {"rID": number, "ok": True}


def pause() -> int:
    """Wait until no event can have this time, and return it, in ms."""
    time.sleep(0.02)
    now_ms = int(time.time() * 1000)
    time.sleep(0.02)
    return now_ms


def found(client: MewbaseClient, count: int) -> list[object]:
    events = [each["event"]["n"] for each in client.events(count)]
    assert client.is_silent()
    return events


def test_case_33_a_start_by_time_is_exact(client: MewbaseClient, other: MewbaseClient) -> None:
    publish(client, *({"n": number} for number in range(3)))
    since_ms = pause()
    publish(client, *({"n": number} for number in range(3, 6)))
    other.subscribe("channel1", startTimestamp=since_ms)
    assert found(other, 3) == [3, 4, 5]
    other.subscribe("channel1", startTimestamp=0)
    assert other.is_silent()


def test_a_start_in_the_future_waits_for_its_time(
    client: MewbaseClient, other: MewbaseClient
) -> None:
    since_s = time.time() + 1
    other.subscribe("channel1", startTimestamp=int(since_s * 1000))
    publish(client, {"n": 0})
    wanted = [1] if time.time() < since_s else [0, 1]  # on a busy machine it may be late
    time.sleep(max(since_s - time.time(), 0) + 0.05)
    publish(client, {"n": 1})
    assert found(other, len(wanted)) == wanted


def test_case_34_both_starts_hold(client: MewbaseClient, other: MewbaseClient) -> None:
    publish(client, {"n": 0}, {"n": 1})
    since_ms = pause()
    publish(client, {"n": 2}, {"n": 3})
    other.subscribe("channel1", startTimestamp=since_ms, startPos=1)
    assert found(other, 2) == [2, 3]
    other.subscribe("channel1", startTimestamp=since_ms, startPos=3)
    assert found(other, 1) == [3]


@pytest.mark.parametrize(
    ("matcher", "wanted"),
    [
        ({"type": "a"}, [0, 3]),
        ({"n": 1}, [1]),
        ({"o": {"x": 1}}, [2]),
        ({}, [0, 1, 2, 3]),
        ({"nosuch": 1}, []),
    ],
)
def test_case_39_a_matcher_lets_equal_events_through(
    client: MewbaseClient, other: MewbaseClient, matcher: dict[str, Any], wanted: list[int]
) -> None:
    client.subscribe("channel1", matcher=matcher)
    events: list[dict[str, Any]] = [
        {"n": 0, "type": "a"},
        {"n": Int64(1)},
        {"n": 2.0, "o": {"x": 1, "y": 2}},
    ]
    publish(other, *events, {"n": 3, "type": "a", "o": True})
    assert found(client, len(wanted)) == wanted
    other.subscribe("channel1", matcher=matcher, startPos=0)
    assert found(other, len(wanted)) == wanted


def test_a_matcher_with_an_operator_is_refused(client: MewbaseClient) -> None:
    client.send("SUBSCRIBE", channel="channel1", rID=1, matcher={"n": {"$gt": 1}})
    answer = client.must("SUBRESPONSE")
    assert (answer["ok"], answer["errCode"]) == (False, 104)
    client.publish("channel1", {})


def test_a_matcher_that_finds_little_lets_others_have_their_turn(
    client: MewbaseClient, other: MewbaseClient
) -> None:
    publish(client, *({"n": number} for number in range(20_000)))
    other.subscribe("channel1", startPos=0, matcher={"n": 19_999})
    client.publish("channel1", {"n": -1})
    assert found(other, 1) == [19_999]


def test_case_42_many_small_events_need_no_acknowledgement(client: MewbaseClient) -> None:
    publish(client, *({"n": number} for number in range(100)))
    client.subscribe("channel1", startPos=0)
    assert found(client, 100) == list(range(100))


def test_case_43_and_case_44_a_full_window_stops_delivery_until_it_is_acknowledged(
    client: MewbaseClient, other: MewbaseClient
) -> None:
    publish(other, *[LARGE] * 30)
    number = client.subscribe("channel1", startPos=0)
    events = client.events(UNTIL_FULL)
    assert client.is_silent(1)

    for place in range(30):
        client.send("ACKEV", subID=number, pos=events[place]["pos"], bytes=500_000)
        if place + 1 == len(events) < 30:
            events += client.events(1)
        elif len(events) < 30 and len(events) - place - 1 <= 4:
            events += client.events(min(30, place + 1 + UNTIL_FULL) - len(events))
    assert [each["pos"] for each in events] == list(range(30))
    assert client.is_silent()


@pytest.mark.parametrize("is_live", [False, True])
@pytest.mark.parametrize("way", ["each", "last", "all"])
def test_case_44_each_way_to_acknowledge_goes_on(
    client: MewbaseClient, other: MewbaseClient, way: str, *, is_live: bool
) -> None:
    if not is_live:
        publish(other, *[LARGE] * 30)
    number = client.subscribe("channel1", startPos=0)
    if is_live:
        publish(other, *[LARGE] * 30)

    events: list[dict[str, Any]] = []
    while len(events) < 30:
        got = client.events(1)
        events += got
        if way == "each":
            client.send("ACKEV", subID=number)
        elif len(events) % UNTIL_FULL == 0:
            assert client.is_silent()
            named = {"pos": got[0]["pos"]} if way == "last" else {}
            client.send("ACKEV", subID=number, **named)
    assert [each["pos"] for each in events] == list(range(30))
    assert client.is_silent()


def test_case_45_a_stalled_subscription_delays_nothing_else(
    client: MewbaseClient, other: MewbaseClient
) -> None:
    publish(other, *[LARGE] * 12)
    client.subscribe("channel1", startPos=0)
    client.events(UNTIL_FULL)
    assert client.is_silent()

    other.subscribe("channel2")
    client.subscribe("channel2")
    client.send("PUB", channel="channel2", event={"n": 1}, rID=5)
    assert dict(client.receive() for _ in range(2)).keys() == {"RESPONSE", "RECEV"}
    assert other.events(1)[0]["event"] == {"n": 1}
    client.send("QUERY", queryID=1, binder="b", matcher={})
    assert client.must("QUERYRESULT")["last"] is True


def test_case_46_an_event_above_half_the_window_is_delivered(start_mewbase: StartMewbase) -> None:
    server = start_mewbase(
        HUTCH_MEWBASE__WINDOW_BYTES=str(MIB), HUTCH_MEWBASE__WINDOW_RESUME_BYTES=str(MIB // 2)
    )
    with MewbaseClient(port_of(server)) as client:
        client.connect()
        client.publish("channel1", {"data": bytes(MIB - 2048)})
        client.publish("channel1", {"n": 1})
        client.subscribe("channel1", startPos=0)
        assert len(client.events(1)[0]["event"]["data"]) == MIB - 2048


def test_clients_that_take_nothing_cost_little_and_get_all_in_the_end(
    server: HutchServer, client: MewbaseClient
) -> None:
    publish(client, *({"n": number, "data": bytes(1000)} for number in range(16_000)))
    with ExitStack() as stack:
        slow = [stack.enter_context(MewbaseClient(port_of(server))) for _ in range(50)]
        before = server.rss_bytes()
        for each in slow:
            each.connect()
            each.send("SUBSCRIBE", channel="channel1", rID=1, startPos=0)
        time.sleep(1)
        client.publish("channel1", {})
        wait_until(lambda: server.rss_bytes() - before < len(slow) * MIB)
        number = slow[7].must("SUBRESPONSE")["subID"]
        for position in range(16_000):
            (event,) = slow[7].events(1)
            assert event["pos"] == position
            if position % 500 == 0:
                slow[7].send("ACKEV", subID=number, pos=position)
