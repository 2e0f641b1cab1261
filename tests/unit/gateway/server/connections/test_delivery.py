"""The deliveries of a connection: as far as credit and room go, and in turn."""

from hutch.stream import messages as m
from hutch.stream.offsets import FIRST
from tests.chunks import delivery_of
from tests.property.gateway.conversations import frame_of
from tests.unit.gateway.server.conftest import opened
from tests.unit.gateway.server.connection_rig import (
    AT_ONCE_S,
    Client,
    Server,
    declare,
    names,
    publish,
)


def test_chunks_are_sent_while_there_is_credit_and_room(client: Client) -> None:
    declare(client)
    for number in range(3):
        client.send(publish((number, bytes(70_000))))
    client.frames()
    client.edge.room = 100_000

    client.send(frame_of("subscribe", m.Subscribe(1, "s", FIRST, 2, {})))
    assert names(client) == ["subscribe", "deliver"]
    client.edge.reads(1 << 30)
    client.loop.run_all()
    assert names(client) == ["deliver"]
    client.send(frame_of("credit", m.Credit(1, 5)))
    assert names(client) == ["deliver"]


def test_a_first_chunk_is_not_sent_with_the_answer_that_goes_before_it(client: Client) -> None:
    """A client that reads both at once has a consumer's message before the consumer."""
    declare(client)
    client.send(publish((1, b"a")))
    client.frames()

    client.feed(frame_of("subscribe", m.Subscribe(1, "s", FIRST, 9, {})))
    client.loop.run_all()
    assert names(client) == ["subscribe"]

    client.loop.pass_time(AT_ONCE_S)
    assert names(client) == ["deliver"]


def test_a_subscription_that_ends_before_its_first_chunk_gets_none(client: Client) -> None:
    declare(client)
    client.send(publish((1, b"a")))
    client.frames()

    client.feed(frame_of("subscribe", m.Subscribe(1, "s", FIRST, 9, {})))
    client.feed(frame_of("unsubscribe", m.Unsubscribe(1)))
    client.loop.pass_time(AT_ONCE_S)

    assert names(client) == ["subscribe", "unsubscribe"]


def test_subscriptions_take_turns(client: Client) -> None:
    declare(client)
    for number in range(4):
        client.send(publish((number, bytes(70_000))))
    client.frames()

    client.feed(
        frame_of("subscribe", m.Subscribe(1, "s", FIRST, 9, {}))
        + frame_of("subscribe", m.Subscribe(2, "s", FIRST, 9, {}))
    )
    client.loop.pass_time(AT_ONCE_S)

    delivered = [delivery_of(each) for each in client.received() if each.command.key == 8]
    assert [each.subscription_id for each in delivered] == [1, 2] * 4 or [
        each.subscription_id for each in delivered
    ] == [1, *[1, 2] * 3, 2]


def test_one_connections_deliveries_leave_turns_to_the_others(server: Server) -> None:
    reader, other = opened(server), opened(server)
    declare(other)
    for number in range(40):
        other.send(publish((number, bytes(70_000))))
    other.frames()

    reader.feed(frame_of("subscribe", m.Subscribe(1, "s", FIRST, 100, {})))
    server.loop.run_all()
    server.loop.now_s += AT_ONCE_S
    frames_a_turn: list[int] = []
    while sum(frames_a_turn) < 41:  # the answer is one of them
        server.loop.turn()
        frames_a_turn.append(len(reader.frames()))

    assert max(frames_a_turn) <= 9
