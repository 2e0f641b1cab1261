"""CREATECHANNEL and PUB: what is made, what is stored, and what becomes of all else."""

from typing import Any

import bson
import pytest

from gateway.broker.service import ScarceResource
from gateway.mewbase.wire.errors import Code
from hutch.formats.chunk import OFFSETS_END
from hutch.stream import messages as m
from store.errors import SegmentFailed
from tests.unit.gateway.mewbase.channel_rig import ChannelClient, ChannelRig

DONE = {"rID": 1, "ok": True}
LARGE = {"data": bytes(1_000_000)}
"""Eight of them are as much as may be under way."""


def pub(client: ChannelClient, channel: str = "c", **fields: object) -> dict[str, Any]:
    return client.ask("PUB", **{"channel": channel, "event": {"n": 1}, "rID": 1} | fields)


def failed(answer: dict[str, Any]) -> tuple[int, str]:
    assert answer["ok"] is False
    assert answer["rID"] == 1
    return answer["errCode"], answer["errMsg"]


def stored(client: ChannelClient, channel: str = "c") -> int:
    client.broker.settle(channel)
    return client.broker.log(channel).committed_next_offset


# Channels


def test_a_channel_is_made_once_and_stays_as_it_is(client: ChannelClient) -> None:
    for existed in (False, True):
        answer = client.ask("CREATECHANNEL", name="new", rID=1)
        assert answer == {**DONE, "exists": existed}
        client.publish("new", {})
    assert stored(client, "new") == 2


@pytest.mark.parametrize("name", ["amq.new", "", "x" * 256])
def test_a_name_that_no_stream_may_have_makes_no_channel(client: ChannelClient, name: str) -> None:
    answer = client.ask("CREATECHANNEL", name=name, rID=1)
    code, reason = failed(answer)
    assert (code, answer["exists"]) == (Code.BAD_REQUEST, False)
    assert reason.startswith("CREATECHANNEL: ")
    assert name not in client.broker.streams
    assert not client.ports.is_finished


def test_a_channel_is_made_by_a_user_that_may_configure_it(rig: ChannelRig) -> None:
    rig.allow("app", write=".*", read=".*")
    client = rig.client()
    client.ask("CONNECT", version="0.1", username="app", password="guest")

    code, reason = failed(client.ask("CREATECHANNEL", name="new", rID=1))

    assert (int(code), reason) == (Code.NOT_AUTHORISED, "no configure on 'new'")
    assert "new" not in rig.broker.streams


# Events


def test_an_event_is_answered_when_it_is_stored(client: ChannelClient) -> None:
    client.publish("c", {"n": 1})  # the first one makes the publisher
    client.hand_in("PUB", channel="c", event={"n": 2}, rID=9)
    assert client.taken() == []

    assert stored(client) == 2
    assert client.taken() == [("RESPONSE", {"rID": 9, "ok": True})]


def test_an_event_above_the_most_is_not_stored(rig: ChannelRig) -> None:
    client = ChannelRig(rig.broker, event_bytes_max=1024).guest()
    size = 1024 - len(bson.encode({"data": b""}))
    assert pub(client, event={"data": bytes(size)}) == DONE

    code, reason = failed(pub(client, event={"data": bytes(size + 1)}))

    assert (code, "1025 bytes, and 1024 are the most" in reason) == (Code.NOT_STORED, True)
    assert stored(client) == 1


def test_without_room_on_the_disk_no_event_is_taken(rig: ChannelRig, client: ChannelClient) -> None:
    client.publish("c", {})
    service = rig.broker.service
    service.set_alarm(ScarceResource.DISK)
    assert failed(pub(client)) == (Code.NOT_STORED, "the disk has no room: its alarm is set")
    service.clear_alarm(ScarceResource.DISK)
    assert pub(client) == DONE
    assert stored(client) == 2


def test_events_wait_for_room_and_keep_their_order(client: ChannelClient) -> None:
    client.publish("c", {})
    for number in range(9):
        client.hand_in("PUB", channel="c", event={"n": number, **LARGE}, rID=number)
    assert client.ports.open_commands == 1, "the last one waits"
    assert client.taken() == []

    client.finish()

    assert stored(client) == 10
    assert [fields for _, fields in client.taken()] == [
        {"rID": number, "ok": True} for number in range(9)
    ]
    client.subscribe("c", startPos=1)
    assert [each["n"] for each in client.events(5)] == [0, 1, 2, 3, 4]


def test_a_channel_that_is_gone_is_said_not_to_be_there(client: ChannelClient) -> None:
    client.publish("c", {})
    client.broker.link().tell("delete_stream", m.DeleteStream("c"))
    assert failed(pub(client)) == (Code.NO_CHANNEL, "no such channel c")
    client.broker.store_rig.run(client.broker.streams.create("c", {}))
    assert pub(client) == DONE


def test_a_user_needs_the_right_to_write(rig: ChannelRig) -> None:
    rig.broker.store_rig.run(rig.broker.streams.create("d", {}))
    rig.allow("app", write="^c$")
    client = rig.client()
    client.ask("CONNECT", version="0.1", authInfo={"username": "app", "password": "guest"})

    assert pub(client) == DONE
    assert failed(pub(client, "d")) == (Code.NOT_AUTHORISED, "no write on 'd'")

    rig.allow("app", write="^d$")
    assert failed(pub(client)) == (Code.NOT_AUTHORISED, "no write on 'c'")
    assert pub(client, "d") == DONE


def test_a_channel_that_can_only_be_read_takes_nothing(
    rig: ChannelRig, client: ChannelClient
) -> None:
    other = rig.guest()
    other.publish("c", {})
    rig.broker.log("c").read_only = SegmentFailed("it is damaged")
    for each in (client, other):  # one has no publisher yet
        assert failed(pub(each)) == (Code.NOT_STORED, "it is damaged")
    assert stored(client) == 1


def test_a_channel_without_positions_left_takes_nothing(
    rig: ChannelRig, client: ChannelClient
) -> None:
    log = rig.broker.log("c")
    log.committed_next_offset = OFFSETS_END - 1
    rig.guest().publish("c", {})
    log.committed_next_offset = OFFSETS_END
    assert failed(pub(client)) == (Code.NOT_STORED, "channel c has no positions left")
    assert not client.link.publishers


def test_a_publisher_whose_log_has_failed_is_made_anew(
    rig: ChannelRig, client: ChannelClient
) -> None:
    client.publish("c", {})
    first = client.link.publishers["c"]
    rig.broker.log("c").fail(SegmentFailed("for the test"))
    assert first.has_failed

    assert pub(client) == DONE, "the log was opened again"

    assert client.link.publishers["c"] is not first
    assert stored(client) == 2


def test_an_event_of_a_transaction_is_stored_by_its_commit(client: ChannelClient) -> None:
    client.publish("c", {})
    assert client.ask("STARTTX", sessID=4, rID=1) == DONE
    assert pub(client, sessID=4) == DONE
    assert stored(client) == 1
    assert pub(client, sessID=5) == DONE
    assert stored(client) == 2
    assert client.ask("COMMITTX", sessID=4, rID=1) == DONE
    assert stored(client) == 3


def test_a_client_that_goes_while_its_event_waits_has_nothing_stored(
    client: ChannelClient,
) -> None:
    client.publish("c", {})
    for number in range(9):
        client.hand_in("PUB", channel="c", event=LARGE, rID=number)
    assert client.ports.open_commands == 1

    client.front.lost()
    client.finish()

    assert stored(client) == 9, "the last one came too late"
