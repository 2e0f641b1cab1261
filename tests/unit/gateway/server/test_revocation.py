"""What was taken away is gone at once, also in the middle of a stream that is being read."""

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from gateway.pending import start
from hutch.stream import messages as m
from hutch.stream.offsets import FIRST
from tests.property.gateway.conversations import frame_of
from tests.unit.gateway.server.connection_rig import Client, Server, names, publish

Take = Callable[[Server], Coroutine[Any, None, None]]


def reading_and_writing(client: Client) -> None:
    client.send(frame_of("declare_publisher", m.DeclarePublisher(0, "", "s")))
    client.send(frame_of("subscribe", m.Subscribe(0, "s", FIRST, 1_000, {})))
    client.send(publish((1, b"before")))
    assert set(names(client)) >= {"publish_confirm", "deliver"}


@pytest.mark.parametrize(
    ("take", "is_over"),
    [
        (lambda server: server.broker.access.delete_user("guest"), True),
        (lambda server: server.broker.virtual_hosts.delete("/"), True),
        (lambda server: server.broker.access.delete_permission("guest", "/"), False),
    ],
    ids=["user", "virtual host", "permissions"],
)
def test_nothing_is_delivered_any_more(
    server: Server, client: Client, take: Take, *, is_over: bool
) -> None:
    reading_and_writing(client)
    began_s = server.loop.now_s

    taken = start(take(server))
    server.loop.run_all()

    taken.result()
    assert server.loop.now_s == began_s, "within the same turns, without waiting for anything"
    assert names(client) == ["metadata_update"]
    assert client.is_over() is is_over
    assert not client.edge.is_aborted, "a FIN, not a reset"
    assert not client.link.subscriptions
    assert not client.link.publishers
    if not is_over:
        client.send(publish((2, b"after")))
        assert names(client) == ["publish_error"]


def test_what_is_queued_for_a_slow_reader_does_not_keep_it_alive(
    server: Server, client: Client
) -> None:
    """The connection ends when the queue is sent, or when its time is up."""
    reading_and_writing(client)
    client.edge.room = 0
    client.send(publish((2, bytes(100_000))))

    taken = start(server.broker.access.delete_user("guest"))
    server.loop.run_all()
    taken.result()

    assert not client.is_over()
    assert not client.edge.is_reading
    server.loop.pass_time(1)
    assert client.is_over()
    assert len(server.broker.connections) == 0
