"""A subscription: which records it sends, when it stops, and what it keeps in memory."""

import logging

import bson
import pytest

from gateway.mewbase.events import SECTIONS_MAX, record_of
from gateway.mewbase.subscription import ChannelSubscription
from gateway.settings.mewbase import BadSubBatchRule
from store.errors import SegmentFailed
from tests.chunks import GZIP, Entry, SubBatch
from tests.unit.gateway.log.log_rig import put
from tests.unit.gateway.mewbase.channel_rig import ChannelClient, ChannelRig

BAD = SubBatch(GZIP, 2, 28, b"garbage")
TOO_MANY = b"\0\x53\x75\xa0\x01x" * (SECTIONS_MAX + 1)
"""A message of more sections than are looked into."""


def numbered(*numbers: int) -> list[dict[str, int]]:
    return [{"n": number} for number in numbers]


def store(rig: ChannelRig, *entries: Entry) -> None:
    """Store entries of a stream client in the channel `c`."""
    put(rig.broker.log("c"), list(entries))
    rig.broker.settle("c")


def record(number: int) -> bytes:
    return record_of(bson.encode({"n": number}))


def is_at_rest(subscription: ChannelSubscription) -> bool:
    """Return whether it keeps nothing but its place."""
    return subscription._reader is None and not subscription._records


# What is sent


def test_events_come_in_order_with_their_positions_and_new_ones_as_they_are_stored(
    client: ChannelClient,
) -> None:
    client.publish("c", *numbered(0, 1, 2))
    subscription = client.subscribe("c", startPos=1)

    first = client.caught_up(subscription)
    client.publish("c", {"n": 3})
    second = client.caught_up(subscription)

    assert [(each["pos"], each["event"]["n"]) for each in first] == [(1, 1), (2, 2)]
    assert [(each["pos"], each["event"]["n"]) for each in second] == [(3, 3)]
    details = subscription.details()
    assert (details.number, details.stream.name) == (subscription.number, "c")
    assert (details.consumed, details.offset, details.offset_lag) == (3, 3, 0)


def test_only_events_that_match_are_sent(client: ChannelClient) -> None:
    client.publish("c", *numbered(1, 2, 1))
    subscription = client.subscribe("c", matcher={"n": 1})
    found = client.caught_up(subscription)
    assert [each["pos"] for each in found] == [0, 2]
    assert subscription.details().consumed == 2


def test_a_message_of_too_many_sections_is_passed_over_and_told_of(
    rig: ChannelRig, client: ChannelClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    store(rig, record(0), TOO_MANY, record(2))
    subscription = client.subscribe("c")

    found = client.caught_up(subscription)

    assert [each["pos"] for each in found] == [0, 2]
    assert rig.reading.passed_over.count == 1
    (line,) = (each for each in caplog.messages if each.startswith("events are passed over"))
    assert "channel=c events=1 first=1" in line


# The window


def test_nothing_is_sent_above_the_window_until_enough_is_acknowledged(rig: ChannelRig) -> None:
    client = ChannelRig(rig.broker, window_bytes=1024, window_resume_bytes=0).guest()
    client.publish("c", *({"n": number, "data": bytes(600)} for number in range(5)))
    subscription = client.subscribe("c")

    assert [each["n"] for each in client.events(2)] == [0, 1]
    assert not subscription.wants_more()
    assert is_at_rest(subscription)
    client.send("ACKEV", subID=subscription.number, pos=0)
    assert not subscription.wants_more()
    assert client.sent() == []
    client.send("ACKEV", subID=subscription.number)
    assert [each["n"] for each in client.events(2)] == [2, 3]


def test_an_acknowledgement_without_a_position_is_of_all_that_was_sent(
    client: ChannelClient,
) -> None:
    client.publish("c", *numbered(0, 1))
    subscription = client.subscribe("c")
    client.events(2)
    room = client.link.host.settings.window_bytes
    assert subscription.details().window < room

    client.send("ACKEV", subID=subscription.number)

    assert subscription.details().window == room


def test_an_acknowledgement_without_a_position_is_of_the_oldest_of_a_durable_one(
    rig: ChannelRig, client: ChannelClient
) -> None:
    client.publish("c", *numbered(0, 1, 2))
    subscription = client.subscribe("c", durableID="d")
    client.events(3)
    client.send("ACKEV", subID=subscription.number)
    client.send("SUBCLOSE", subID=subscription.number, rID=1)

    other = rig.guest()
    other.subscribe("c", durableID="d")

    assert other.events(2) == numbered(1, 2)


def test_what_is_acknowledged_after_the_end_moves_no_place(client: ChannelClient) -> None:
    client.publish("c", *numbered(0, 1))
    subscription = client.subscribe("c", durableID="d")
    client.events(2)
    durable = subscription.durable
    assert durable is not None
    client.send("SUBCLOSE", subID=subscription.number, rID=1)

    subscription.acknowledge(1)
    subscription.close()

    assert durable.place == 0
    assert not subscription.wants_more()
    assert subscription.next(bytearray()) is None


# Sub-batches that cannot be opened


@pytest.mark.parametrize("rule", BadSubBatchRule)
def test_a_bad_sub_batch_has_the_fate_that_the_settings_say(
    rig: ChannelRig, rule: BadSubBatchRule, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    store(rig, record(0), BAD, record(3))
    client = ChannelRig(rig.broker, bad_sub_batches=rule).guest()
    subscription = client.subscribe("c")

    found = client.sent_until(
        lambda: client.ports.is_stopped or subscription.details().offset_lag == 0
    )

    sent = {each["pos"]: each["event"] for each in found}
    assert client.ports.is_stopped == (rule is BadSubBatchRule.FAIL)
    expected = {0: {"n": 0}, 1: {"data": BAD.body}, 3: {"n": 3}}
    left_out = {
        BadSubBatchRule.FAIL: (1, 3),
        BadSubBatchRule.SKIP: (1,),
        BadSubBatchRule.RAW: (),
    }[rule]
    assert sent == {pos: event for pos, event in expected.items() if pos not in left_out}
    (line,) = (each for each in caplog.messages if "cannot be delivered" in each)
    assert "channel=c from=1 to=2" in line
    assert line.endswith(f"bad_sub_batches={rule.value}")


def test_a_durable_one_has_its_place_behind_what_it_left_out(
    rig: ChannelRig, client: ChannelClient
) -> None:
    store(rig, BAD)
    subscription = client.subscribe("c", durableID="d")
    client.caught_up(subscription)
    durable = subscription.durable
    assert durable is not None
    assert durable.place == 2


# Its end


def test_a_channel_that_fails_ends_the_connection(rig: ChannelRig, client: ChannelClient) -> None:
    client.publish("c", {"n": 0})
    client.subscribe("c")
    client.events(1)

    rig.broker.log("c").fail(SegmentFailed("for the test"))

    client.sent_until(lambda: client.ports.is_stopped)
    assert client.link.is_closed


def test_a_channel_that_cannot_be_opened_for_reading_ends_the_connection(
    rig: ChannelRig, client: ChannelClient, caplog: pytest.LogCaptureFixture
) -> None:
    client.publish("c", *numbered(0, 1))
    rig.broker.lose_segment("c")
    client.subscribe("c", startPos=1)

    client.sent_until(lambda: client.ports.is_stopped)

    assert any(each.startswith("channel cannot be read channel=c") for each in caplog.messages)
    assert client.link.is_closed


def test_one_that_ends_while_its_reader_is_found_lets_it_go(client: ChannelClient) -> None:
    client.publish("c", *numbered(0, 1))
    subscription = client.subscribe("c", startPos=1)  # which has to be looked for
    client.ports.sources.clear()
    assert subscription.next(bytearray()) is None
    assert subscription._is_opening

    subscription.close()
    client.broker.loop.run_until(lambda: not subscription._is_opening)

    assert is_at_rest(subscription)
    assert client.ports.sources == []


# Memory


def test_records_are_let_go_when_the_client_takes_nothing_for_a_while(rig: ChannelRig) -> None:
    client = rig.guest()
    store(rig, *(record_of(bson.encode({"data": bytes(50_000)})) for _ in range(6)))
    subscription = client.subscribe("c")
    client.ports.sources.clear()
    scratch = bytearray()
    subscription.next(scratch)
    client.broker.loop.run_until(lambda: subscription in client.ports.sources)
    piece = subscription.next(scratch)
    assert piece is not None
    assert not is_at_rest(subscription)
    ((_, let_go),) = client.ports.time_limits.items()
    client.ports.sources.clear()

    let_go()

    assert is_at_rest(subscription)
    assert client.ports.sources == [subscription], "and it goes on when the client takes more"
    client.ports.send(piece.head)
    found = client.caught_up(subscription)
    assert [each["pos"] for each in found] == list(range(6))
