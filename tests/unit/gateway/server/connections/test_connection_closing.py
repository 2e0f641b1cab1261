"""How a connection ends: the peer's Close, the server's, and none at all."""

import pytest

from gateway.server.front import OVER
from hutch.stream import messages as m
from hutch.stream.offsets import FIRST
from tests.property.gateway.conversations import frame_of
from tests.unit.gateway.server.connection_rig import Client, Server, declare, names, publish
from tests.unit.gateway.server.connections.test_connection import (
    CLOSE_13,
    CLOSE_ANSWER,
    METADATA,
    UNKNOWN_FRAME,
)


def test_after_the_servers_close_nothing_but_the_answer_counts(client: Client) -> None:
    client.send(UNKNOWN_FRAME + METADATA)
    assert client.frames() == [CLOSE_13]

    client.send(METADATA + frame_of("close", m.Close(1, "me too")) + publish((1, b"x")))
    assert client.frames() == []
    assert not client.is_over()
    client.send(CLOSE_ANSWER)

    assert client.is_over()
    assert not client.edge.is_aborted


@pytest.mark.parametrize("cut", range(1, len(CLOSE_ANSWER)))
def test_the_answer_to_close_is_recognised_in_two_pieces(client: Client, cut: int) -> None:
    client.send(UNKNOWN_FRAME + METADATA[:6])
    client.send(METADATA[6:] + CLOSE_ANSWER[:cut])
    client.send(CLOSE_ANSWER[cut:])

    assert client.is_over()


def test_a_close_that_is_not_answered_ends_the_connection_after_ten_seconds(
    client: Client,
) -> None:
    client.send(UNKNOWN_FRAME)

    client.loop.pass_time(9.9)
    assert not client.is_over()
    client.loop.pass_time(0.2)

    assert client.is_over()


def test_nothing_is_delivered_or_confirmed_after_the_servers_close(client: Client) -> None:
    declare(client)
    client.send(frame_of("subscribe", m.Subscribe(1, "s", FIRST, 10, {})))
    client.frames()

    client.feed(publish((1, b"x")) + UNKNOWN_FRAME)
    client.loop.run_all()

    assert client.frames() == [CLOSE_13]
    assert client.server.broker.log("s").committed_next_offset == 1, "stored all the same"


@pytest.mark.parametrize("left", range(1, 8))
def test_what_follows_a_wrong_frame_is_not_judged_even_if_it_comes_in_pieces(
    client: Client, left: int
) -> None:
    client.send(UNKNOWN_FRAME + b"\xff\xff\xff\xff\0\0\0\0"[:left])
    client.send(b"")

    assert client.frames() == [CLOSE_13]
    assert not client.is_over()


def test_the_clients_close_is_answered_and_ends_the_connection(client: Client) -> None:
    client.send(frame_of("close", m.Close(1, "bye")) + METADATA)

    assert names(client) == ["close"]
    assert client.is_over()


def test_what_was_asked_before_close_is_answered_first(client: Client) -> None:
    client.send(METADATA + frame_of("close", m.Close(1, "bye")))

    assert names(client) == ["metadata", "close"]


def test_a_wrong_frame_before_open_ends_the_connection_without_a_word(server: Server) -> None:
    client = server.connect()

    client.send(UNKNOWN_FRAME)

    assert (client.frames(), client.is_over(), client.edge.is_aborted) == ([], True, False)


def test_what_came_is_held_no_longer_than_the_connection(client: Client) -> None:
    declare(client)
    client.feed(publish((1, bytes(600_000)))[:-1])
    assert client.connection.inbox.kept_bytes() > 500_000

    delivery = client.connection._delivery
    client.connection.abort()
    # It may end in the middle of a call of what it refers to, which compiled code does not count.
    assert client.connection._delivery is delivery
    client.loop.run_all()

    assert client.connection.inbox.kept_bytes() == 0
    assert client.connection.front is OVER
