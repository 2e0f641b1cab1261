"""What a command waits for when its connection ends: it is not left waiting, with what it holds."""

from contextlib import AsyncExitStack

import pytest

from gateway.broker import yielding as slices
from gateway.broker.hosts.super_streams import partitions_of
from gateway.pending import Abandoned
from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from tests.property.gateway.conversations import frame_of
from tests.unit.gateway.server.conftest import opened
from tests.unit.gateway.server.connection_rig import Client, Server

PARTITIONS = tuple(f"x-{number}" for number in range(20))
DELETION = frame_of("delete_super_stream", m.DeleteSuperStream("x"))


@pytest.fixture(autouse=True)
def short_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command has its next turn after every eight things that it names."""
    monkeypatch.setattr(slices, "_TURN_S", -1.0)
    monkeypatch.setattr(slices.Slice.__init__, "__defaults__", (8,))


def create(client: Client) -> None:
    keys = tuple(map(str, range(len(PARTITIONS))))
    client.send(frame_of("create_super_stream", m.CreateSuperStream("x", PARTITIONS, keys, {})))
    assert codes(client) == [ResponseCode.OK]


def hand_in(client: Client, frame: bytes) -> None:
    """Let the server read a frame, and nothing else happen yet."""
    owner = client.edge.owner
    assert owner is not None
    owner.place()[: len(frame)] = frame
    owner.received(len(frame))


def codes(client: Client) -> list[int]:
    return [each.message.code for each in client.received() if each.is_response]  # type: ignore[attr-defined]


def test_a_deletion_whose_connection_ends_while_rights_are_looked_at_keeps_nobody_waiting(
    server: Server, client: Client
) -> None:
    create(client)
    leaving, waiting = opened(server), opened(server)
    hand_in(leaving, DELETION)
    hand_in(waiting, DELETION)
    assert len(server.broker.virtual_host.exchanges.locks) == 1

    leaving.edge.abort()
    server.loop.run_all()

    assert codes(waiting) == [ResponseCode.OK]
    assert len(server.broker.virtual_host.exchanges.locks) == 0
    assert server.broker.streams.names() == ["s"]


def test_a_command_that_comes_to_wait_when_its_connection_is_over_ends_there(
    server: Server, client: Client
) -> None:
    """Here it waits for another's turn first, and looks at rights when it has got it."""
    create(client)
    exchanges = server.broker.virtual_host.exchanges
    held = AsyncExitStack()
    server.broker.store_rig.run(held.enter_async_context(exchanges.locks.hold("x")))
    leaving = opened(server)
    hand_in(leaving, DELETION)

    leaving.edge.abort()
    server.broker.store_rig.run(held.aclose())
    server.loop.run_all()

    assert len(exchanges.locks) == 0
    assert list(partitions_of(server.broker.virtual_host, "x")) == list(PARTITIONS)


@pytest.mark.parametrize("delay_ms", [0, 5_000])
def test_every_wait_of_a_connection_ends_with_it(
    server: Server, client: Client, delay_ms: int
) -> None:
    waits = [client.connection.wait(delay_ms) for _ in range(3)]

    client.edge.abort()
    assert not any(each.is_settled for each in waits), "not in the middle of what ended it"
    server.loop.run_all()

    for each in [*waits, client.connection.wait(delay_ms)]:
        with pytest.raises(Abandoned):
            each.result()


def test_a_wait_that_is_over_before_its_connection_is_not_abandoned(client: Client) -> None:
    wait = client.connection.wait(5_000)

    client.loop.pass_time(5.1)
    wait.result()
    client.edge.abort()
    client.loop.run_all()


def test_a_login_that_is_being_refused_when_its_client_leaves_is_in_no_log_as_a_failure(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    client = server.connect()
    client.send(frame_of("peer_properties", m.PeerProperties({})))
    client.send(frame_of("sasl_handshake", m.SaslHandshake()))
    client.send(frame_of("sasl_authenticate", m.SaslAuthenticate("PLAIN", b"\0guest\0wrong")))
    assert "login refused" in caplog.text

    client.edge.abort()
    server.loop.run_all()

    assert not client.connection._timers._waits
    assert [each for each in caplog.records if each.levelname == "ERROR"] == []
