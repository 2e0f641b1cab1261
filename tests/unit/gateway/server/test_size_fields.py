"""Checklist 25: size fields that lie, in every state of a connection.

What cannot be a frame ends the connection at once: with code 13 or 14 once it is open, without a
word before. Nothing is allocated for what was only announced.
"""

import tracemalloc

import pytest

from hutch.stream import messages as m
from tests.client import plain
from tests.property.gateway.conversations import frame_of
from tests.unit.gateway.server.connection_rig import MIB, Client, Server

STEPS = (
    frame_of("peer_properties", m.PeerProperties({})),
    frame_of("sasl_handshake", m.SaslHandshake()),
    frame_of("sasl_authenticate", plain("guest", "guest")),
    frame_of("tune", m.Tune(0, 0)),
    frame_of("open", m.Open("/")),
)
STATES = ("connected", "identified", "authenticating", "tuning", "tuned", "open")
STRANGER_MAX = 8192
MEMORY_MAX = 16 * 1024
CLOSE_13 = bytes.fromhex("0016 0001 00000001 000d 000d") + b"unknown frame"
CLOSE_14 = bytes.fromhex("0016 0001 00000001 000e 000f") + b"frame too large"

each_state = pytest.mark.parametrize("state", STATES)


def brought_to(server: Server, state: str) -> Client:
    client = server.connect()
    for step in STEPS[: STATES.index(state)]:
        client.send(step)
    client.frames()
    assert not client.is_over()
    return client


def limit_of(state: str) -> int:
    return MIB if state == "open" else STRANGER_MAX


@each_state
@pytest.mark.parametrize("size", [0, 1, 3])
def test_a_frame_too_small_for_its_head_ends_the_connection(
    server: Server, state: str, size: int
) -> None:
    client = brought_to(server, state)

    client.send(size.to_bytes(4) + bytes(size))

    if state == "open":
        assert client.frames() == [CLOSE_13]
    else:
        assert (client.frames(), client.is_over()) == ([], True)
    assert not client.edge.is_aborted


@each_state
@pytest.mark.parametrize("size", [None, 0x7FFFFFFF, 0xFFFFFFFF], ids=["limit + 1", "2 G", "4 G"])
def test_a_size_above_the_limit_is_refused_before_anything_is_kept(
    server: Server, state: str, size: int | None
) -> None:
    client = brought_to(server, state)
    announced = (size or limit_of(state) + 1).to_bytes(4)
    brought_to(server, state).send(announced)  # what runs for the first time takes memory, too
    tracemalloc.start()
    try:
        client.send(announced)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    if state == "open":
        assert client.frames() == [CLOSE_14]
    else:
        assert (client.frames(), client.is_over()) == ([], True)
    assert peak_bytes < MEMORY_MAX
    assert not client.edge.is_aborted


@each_state
@pytest.mark.parametrize("below", [0, 1], ids=["limit", "limit - 1"])
def test_a_size_within_the_limit_is_waited_for_and_takes_no_memory_by_itself(
    server: Server, state: str, below: int
) -> None:
    client = brought_to(server, state)
    tracemalloc.start()
    try:
        client.send((limit_of(state) - below).to_bytes(4))
        kept_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert (client.frames(), client.is_over(), client.is_read()) == ([], False, True)
    # An open connection reads a large frame to a place of its own, which begins with 64 KiB.
    assert kept_bytes < (MEMORY_MAX if state != "open" else MEMORY_MAX + 64 * 1024)


@each_state
def test_half_a_frame_of_the_largest_size_keeps_no_more_than_was_sent(
    server: Server, state: str
) -> None:
    client = brought_to(server, state)
    sent = limit_of(state).to_bytes(4) + bytes(limit_of(state) // 2)
    tracemalloc.start()
    try:
        client.send(sent)
        kept_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert not client.is_over()
    assert kept_bytes < 2 * len(sent) + MEMORY_MAX
