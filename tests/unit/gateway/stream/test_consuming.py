"""Subscriptions: credit, frames of both versions, and when there is something to send."""

import pytest

from gateway.stream.consuming import CreditSubscription
from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from hutch.stream.offsets import FIRST, NEXT, OffsetSpec
from tests.chunks import SubBatch
from tests.unit.gateway.stream.link_rig import LinkRig

BATCH = SubBatch.of([b"x", b"y"])  # a chunk with one goes alone, so that chunks can be counted


def publish_chunks(client: LinkRig, count: int) -> None:
    """Publish chunks that are never joined."""
    if 0 not in client.link.publishers:
        client.declare(0, "s")
    for number in range(count):
        client.publish(0, (number, BATCH))
        client.broker.settle("s")


def subscribe(
    client: LinkRig, credit: int, *, subscription_id: int = 1, offset: OffsetSpec = FIRST
) -> None:
    request = m.Subscribe(subscription_id, "s", offset, credit, {})
    assert client.code("subscribe", request) == ResponseCode.OK


def delivered_ids(client: LinkRig, subscription_id: int = 1) -> list[int]:
    return [each.chunk.chunk_id for each in client.deliver(subscription_id)]


def test_a_chunk_costs_one_credit(client: LinkRig) -> None:
    publish_chunks(client, 5)
    subscribe(client, 2)

    assert delivered_ids(client) == [0, 2]
    client.tell("credit", m.Credit(1, 1))
    assert delivered_ids(client) == [4]
    client.tell("credit", m.Credit(1, 100))
    assert delivered_ids(client) == [6, 8]


def test_without_credit_nothing_is_delivered_and_nothing_is_lost(client: LinkRig) -> None:
    publish_chunks(client, 2)
    subscribe(client, 0)
    assert delivered_ids(client) == []

    client.tell("credit", m.Credit(1, 2))

    assert delivered_ids(client) == [0, 2]


def test_credit_may_be_taken_back(client: LinkRig) -> None:
    publish_chunks(client, 3)
    subscribe(client, 2)
    client.tell("credit", m.Credit(1, -3))
    assert delivered_ids(client) == []

    client.tell("credit", m.Credit(1, 1))
    assert delivered_ids(client) == []
    client.tell("credit", m.Credit(1, 1))

    assert delivered_ids(client) == [0]


def test_a_joined_chunk_costs_one_credit(client: LinkRig) -> None:
    client.declare(0, "s")
    for number in range(3):
        client.publish(0, (number, b"small"))
        client.broker.settle("s")
    subscribe(client, 1)

    (delivery,) = client.deliver(1)

    assert delivery.chunk.records() == [b"small"] * 3


def test_the_first_version_has_no_committed_chunk_id(client: LinkRig) -> None:
    publish_chunks(client, 2)
    subscribe(client, 1)

    (delivery,) = client.deliver(1)

    assert (delivery.subscription_id, delivery.committed_chunk_id) == (1, None)


def test_the_second_version_says_how_far_the_stream_is_committed(client: LinkRig) -> None:
    client.session.deliver_version = 2
    publish_chunks(client, 3)
    subscribe(client, 2)

    deliveries = client.deliver(1)

    assert [each.committed_chunk_id for each in deliveries] == [4, 4]
    assert [each.chunk.chunk_id for each in deliveries] == [0, 2]


def test_the_connection_is_woken_after_the_reply_and_not_before(
    client: LinkRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.ports.frames.clear()
    frames_when_woken: list[int] = []

    def wake(_subscription: CreditSubscription) -> None:
        frames_when_woken.append(len(client.ports.frames))

    monkeypatch.setattr(client.ports, "wake", wake)

    client.tell("subscribe", m.Subscribe(1, "s", FIRST, 1, {}))

    assert frames_when_woken == [1]


def test_a_commit_wakes_the_connection_once_there_is_credit(client: LinkRig) -> None:
    subscribe(client, 1)
    assert delivered_ids(client) == []
    client.ports.woken.clear()

    publish_chunks(client, 1)
    assert client.ports.woken == [client.link.subscriptions[1]]
    assert delivered_ids(client) == [0]
    assert delivered_ids(client) == []
    client.ports.woken.clear()
    publish_chunks(client, 1)

    assert client.ports.woken == []
    client.tell("credit", m.Credit(1, 1))
    assert client.ports.woken == [client.link.subscriptions[1]]
    assert delivered_ids(client) == [2]


def test_credit_beside_some_that_is_left_wakes_nothing(client: LinkRig) -> None:
    subscribe(client, 2)
    assert delivered_ids(client) == []
    client.ports.woken.clear()

    client.tell("credit", m.Credit(1, 1))

    assert client.ports.woken == []
    publish_chunks(client, 3)
    assert delivered_ids(client) == [0, 2, 4]


def test_subscriptions_have_their_own_credit_and_place(client: LinkRig) -> None:
    publish_chunks(client, 3)
    subscribe(client, 1)
    subscribe(client, 5, subscription_id=2)
    subscribe(client, 5, subscription_id=3, offset=NEXT)

    assert delivered_ids(client, 2) == [0, 2, 4]
    assert delivered_ids(client, 3) == []
    assert delivered_ids(client, 1) == [0]
    publish_chunks(client, 1)
    assert delivered_ids(client, 3) == [6]


def test_after_unsubscribing_nothing_is_delivered_or_woken(client: LinkRig) -> None:
    subscribe(client, 5)
    subscription = client.link.subscriptions[1]
    assert delivered_ids(client) == []
    client.tell("unsubscribe", m.Unsubscribe(1))
    client.ports.woken.clear()

    publish_chunks(client, 1)

    assert client.ports.woken == []
    assert subscription.next(bytearray(1 << 20)) is None


def test_a_subscription_of_a_stream_that_is_deleted_is_gone(client: LinkRig) -> None:
    publish_chunks(client, 1)
    subscribe(client, 5)
    subscription = client.link.subscriptions[1]

    client.broker.link().tell("delete_stream", m.DeleteStream("s"))

    assert client.link.subscriptions == {}
    assert subscription.next(bytearray(1 << 20)) is None
    assert client.take("metadata_update") == [
        m.MetadataUpdate(ResponseCode.STREAM_NOT_AVAILABLE, "s")
    ]


def test_a_subscription_that_ends_while_it_looks_on_asks_for_no_other_turn(
    client: LinkRig,
) -> None:
    client.declare(0, "s")
    for number in range(40):
        client.publish_filtered(0, (number, "other", bytes(33_000)))
        client.broker.settle("s")
    message = m.Subscribe(1, "s", FIRST, 5, {"filter.0": "wanted"})
    assert client.code("subscribe", message) == ResponseCode.OK
    subscription = client.link.subscriptions[1]
    client.broker.loop.run_until(
        lambda: subscription.next(bytearray(1 << 20)) is None and subscription.is_sifting
    )

    client.tell("unsubscribe", m.Unsubscribe(1))

    assert subscription.next(bytearray(1 << 20)) is None
    assert not subscription.is_sifting


@pytest.mark.parametrize("version", [1, 2])
def test_a_region_of_a_file_follows_the_head_of_its_frame(client: LinkRig, version: int) -> None:
    client.ports.takes_regions = True
    client.declare(0, "s")
    client.publish(0, (1, bytes(100_000)))
    client.broker.settle("s")
    subscribe(client, 1)

    client.session.deliver_version = version
    frame = client.link.subscriptions[1].next(bytearray(1 << 20))

    assert frame is not None
    assert frame.region is not None
    head_bytes = 4 + (5 if version == 1 else 13)
    assert len(frame.head) == head_bytes
    assert int.from_bytes(frame.head[:4]) == head_bytes - 4 + frame.region.size
    frame.region.release()
