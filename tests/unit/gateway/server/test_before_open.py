"""Every command in every state before Open: a stranger gets through the handshake, or nowhere."""

import pytest

from gateway.pending import Pending
from hutch.stream import messages as m
from hutch.stream.commands import COMMANDS, Command, State
from tests.client import plain
from tests.property.gateway.conversations import frame_of
from tests.unit.gateway.server.connection_rig import Client, Server

STEPS = {
    State.CONNECTED: b"",
    State.IDENTIFIED: frame_of("peer_properties", m.PeerProperties({})),
    State.AUTHENTICATING: frame_of("sasl_handshake", m.SaslHandshake()),
    State.TUNING: frame_of("sasl_authenticate", plain("guest", "guest")),
    State.TUNED: frame_of("tune", m.Tune(0, 0)),
}
"""What leads into each state from the one before it."""

# What may be said, by key, and goes on; all else ends the connection.
GOES_ON = {
    State.CONNECTED: {0x11, 0x17},
    State.IDENTIFIED: {0x11, 0x12, 0x17},
    State.AUTHENTICATING: {0x12, 0x13, 0x17},
    State.TUNING: {0x14, 0x15, 0x17},
    State.TUNED: {0x14, 0x15, 0x17},
}
ANSWERED_ALL_THE_SAME = {0x11, 0x12, 0x13}
"""Steps of the handshake at the wrong moment: the answer, then the end, as from RabbitMQ."""

WELL_FORMED = {
    0x11: frame_of("peer_properties", m.PeerProperties({}))[8:],
    0x12: frame_of("sasl_handshake", m.SaslHandshake())[8:],
    0x13: frame_of("sasl_authenticate", plain("guest", "guest"))[8:],
    0x14: frame_of("tune", m.Tune(0, 0))[8:],
    0x15: frame_of("open", m.Open("/"))[8:],
    0x16: frame_of("close", m.Close(1, ""))[8:],
    0x17: b"",
    0x0D: frame_of("create_stream", m.CreateStream("s", {}))[8:],
    0x0F: frame_of("metadata", m.Metadata(("s",)))[8:],
}


def in_state(server: Server, state: State) -> Client:
    client = server.connect()
    for reached, frame in STEPS.items():
        client.send(frame)
        if reached is state:
            break
    client.frames()
    assert client.link.session.state is state
    return client


def test_the_matrix_is_of_all_commands() -> None:
    assert [row.key for row in COMMANDS] == list(range(1, 32))


@pytest.mark.parametrize("row", COMMANDS, ids=lambda row: row.name)
@pytest.mark.parametrize("state", STEPS, ids=lambda state: state.name)
def test_a_stranger_gets_nowhere_but_through_the_handshake(
    server: Server, state: State, row: Command
) -> None:
    client = in_state(server, state)
    body = row.key.to_bytes(2) + b"\0\1" + WELL_FORMED.get(row.key, bytes(24))

    client.send(len(body).to_bytes(4) + body)

    answers = [frame[:2] for frame in client.frames()]
    goes_on = row.key in GOES_ON[state]
    assert client.is_over() is not goes_on
    answer = (row.key | 0x8000).to_bytes(2)
    if row.key in ANSWERED_ALL_THE_SAME or (goes_on and row.key == 0x15):
        assert answers[:1] == [answer]
        assert answers[1:] == ([b"\0\x14"] if goes_on and row.key == 0x13 else [])
    else:
        assert answers == []
    # Nothing was done, whoever that was.
    assert server.broker.streams.names() == []
    assert len(server.broker.connections) == int(goes_on and row.key == 0x15)


@pytest.mark.parametrize("state", STEPS, ids=lambda state: state.name)
@pytest.mark.parametrize("key", [0, 0x20, 0x7FFF, 0x8001, 0x8016, 0xFFFF])
def test_what_is_no_command_gets_nowhere_either(server: Server, state: State, key: int) -> None:
    client = in_state(server, state)

    client.send(b"\0\0\0\x0c" + key.to_bytes(2) + b"\0\1" + bytes(8))

    assert client.is_over()
    assert client.frames() == []


@pytest.mark.parametrize("state", STEPS, ids=lambda state: state.name)
def test_a_large_frame_gets_nowhere_and_is_not_waited_for(server: Server, state: State) -> None:
    client = in_state(server, state)

    client.send((8193).to_bytes(4))

    assert client.is_over()
    assert client.frames() == []


def test_what_comes_while_a_password_is_checked_stays_outside(server: Server) -> None:
    """A stranger who waits for an answer makes the server hold no more than 64 KiB."""
    server.broker.passwords._run_in_thread = lambda _function: Pending()
    client = in_state(server, State.AUTHENTICATING)

    flood = frame_of("sasl_authenticate", plain("guest", "wrong")) + bytes(1 << 20)
    assert client.feed(flood) <= 64 * 1024

    server.loop.pass_time(10)
    assert client.is_over(), "a step of the handshake has its time limit, whatever it waits for"
