"""A publisher's answers: each event's own, in order, whether it was stored or lost."""

from gateway.mewbase.publishing import ChannelPublisher
from gateway.mewbase.wire.errors import Code
from store.errors import SegmentFailed
from tests.unit.gateway.mewbase.channel_rig import ChannelClient, ChannelRig

LOST = "the event could not be stored in channel c"


def publisher_of(client: ChannelClient) -> ChannelPublisher:
    client.publish("c", {})
    return client.link.publishers["c"]


def counts(publisher: ChannelPublisher) -> tuple[int, int, int]:
    details = publisher.details(3)
    assert (details.number, details.reference, details.stream.name) == (3, "", "c")
    return details.published, details.confirmed, details.errored


def test_stored_events_are_answered_in_order_and_together(client: ChannelClient) -> None:
    publisher = publisher_of(client)
    for number in (5, 4, 6):
        publisher.put(b"\x05\0\0\0\0", number)
    assert counts(publisher) == (4, 1, 0)
    assert [count for count, _ in client.ports.intakes] == [1, 1, 1, 1]

    client.broker.settle("c")

    assert counts(publisher) == (4, 4, 0)
    assert len(client.ports.frames) == 1
    assert [fields for _, fields in client.taken()] == [
        {"rID": number, "ok": True} for number in (5, 4, 6)
    ]
    assert client.ports.settled_count == 4


def test_lost_events_are_answered_each_with_the_reason(client: ChannelClient) -> None:
    publisher = publisher_of(client)
    for number in (7, 8):
        publisher.put(b"\x05\0\0\0\0", number)

    client.broker.log("c").fail(SegmentFailed("for the test"))
    client.broker.loop.run_until(lambda: counts(publisher)[2] == 2)

    assert publisher.has_failed
    assert counts(publisher) == (3, 1, 2)
    answers = [fields for kind, fields in client.taken() if kind == "RESPONSE"]
    assert answers == [
        {"rID": number, "ok": False, "errCode": Code.NOT_STORED, "errMsg": LOST}
        for number in (7, 8)
    ]
    assert client.ports.settled_count == 3


def test_a_client_of_the_page_is_told_the_number_of_an_error_as_text(rig: ChannelRig) -> None:
    client = rig.client()
    client.ask("CONNECT", version="0.1", username="guest", password="guest")
    publisher = publisher_of(client)
    publisher.put(b"\x05\0\0\0\0", 7)

    client.broker.log("c").fail(SegmentFailed("for the test"))
    client.broker.loop.run_until(lambda: counts(publisher)[2] == 1)

    (answer,) = (fields for kind, fields in client.taken() if kind == "RESPONSE")
    assert answer["errCode"] == str(int(Code.NOT_STORED))


def test_room_is_told_of_at_once_or_when_half_of_all_is_stored(client: ChannelClient) -> None:
    publisher = publisher_of(client)
    told: list[str] = []
    publisher.when_room(lambda: told.append("at once"))
    assert told == ["at once"]

    event = (5_000_000).to_bytes(4, "little")
    large = event + bytes(900_000)
    for number in range(6):
        publisher.put(large, number)
    publisher.when_room(lambda: told.append("later"))
    assert told == ["at once"]
    client.broker.settle("c")
    assert told == ["at once", "later"]
