"""What all streams together have on its way to a store that is slow."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest

from gateway.server.connections.shared import InFlight
from hutch.stream import messages as m
from store.errors import StoreError
from tests.chunks import publish_body
from tests.conformance.harness import Loop
from tests.conformance.model import Model
from tests.conformance.model_store import ModelStore
from tests.property.gateway.conversations import frame_of
from tests.unit.gateway.server.conftest import MakeServer, opened
from tests.unit.gateway.server.connection_rig import MIB, Client, Server

T = TypeVar("T")

STREAMS = ("s", "t", "u", "v")
ENTRY_BYTES = 600_000


class SlowStore(ModelStore):
    """Tells of nothing that was done while it is held."""

    def __init__(self, loop: Loop, model: Model) -> None:
        super().__init__(loop, model)
        self.is_held = False
        self._untold: list[Callable[[], object]] = []

    def call(
        self,
        done: Callable[[T | StoreError], object],
        operation: Callable[..., T],
        *arguments: object,
    ) -> None:
        def tell(result: T | StoreError) -> None:
            if self.is_held:
                self._untold.append(lambda: done(result))
            else:
                done(result)

        super().call(tell, operation, *arguments)

    def let_go(self, count: int) -> None:
        """Call back with the first `count` results."""
        told, self._untold = self._untold[:count], self._untold[count:]
        for tell in told:
            tell()


@pytest.fixture
def server(make_server: MakeServer) -> Server:
    def open_store(loop: Loop, _: Path) -> SlowStore:
        return SlowStore(loop, Model())

    made = make_server(open_store=open_store)
    made.shared = replace(made.shared, in_flight=InFlight(4 * MIB))
    return made


def slow(server: Server) -> SlowStore:
    store = server.broker.store_rig.store
    assert isinstance(store, SlowStore)
    return store


def publisher(server: Server) -> Client:
    """A client that publishes to every stream, each with its index as the publisher's id."""
    client = opened(server)
    for publisher_id, stream in enumerate(STREAMS):
        client.send(frame_of("create_stream", m.CreateStream(stream, {})))
        client.send(frame_of("declare_publisher", m.DeclarePublisher(publisher_id, "", stream)))
    client.frames()
    return client


def publish_in_turn(client: Client, count: int) -> int:
    """Publish to one stream after the other while the client is read; gives how many were."""
    for number in range(count):
        body = b"\0\2\0\1" + publish_body(number % len(STREAMS), ((number, bytes(ENTRY_BYTES)),))
        client.loop.run_all()
        if not client.is_read():
            return number
        client.feed(len(body).to_bytes(4) + body)
    return count


def in_flight_bytes(server: Server) -> int:
    return sum(server.broker.log(stream).in_flight_bytes for stream in STREAMS)


def test_many_streams_cannot_have_more_on_their_way_than_all_may(server: Server) -> None:
    client = publisher(server)
    slow(server).is_held = True

    published = publish_in_turn(client, 60)

    assert 4 * MIB < in_flight_bytes(server) < 6 * MIB
    assert 6 < published < 20
    server.loop.pass_time(1)
    assert not client.is_read()


def test_reading_goes_on_when_no_more_than_half_of_it_is_on_its_way(server: Server) -> None:
    client = publisher(server)
    slow(server).is_held = True
    published = publish_in_turn(client, 60)

    for _ in range(published):
        server.loop.pass_time(1)
        assert client.is_read() == (in_flight_bytes(server) <= 2 * MIB)
        slow(server).let_go(1)
    slow(server).is_held = False
    slow(server).let_go(100)
    server.loop.pass_time(1)

    confirmed = [each.message for each in client.received()]
    ids = [number for each in confirmed for number in getattr(each, "publishing_ids", ())]
    assert sorted(ids) == list(range(published))
    assert server.loop.timer_count == 0


def test_what_was_stored_since_it_was_counted_does_not_count(server: Server) -> None:
    client = publisher(server)

    assert publish_in_turn(client, 40) == 40
    assert client.is_read()
