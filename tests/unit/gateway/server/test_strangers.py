"""Nobody who has not logged in holds more than 64 KiB, or one step of the handshake for 10 s."""

import logging
import tracemalloc

import pytest

from gateway.settings.model import StreamSettings
from hutch.stream import messages as m
from tests.client import plain
from tests.property.gateway.conversations import frame_of
from tests.unit.gateway.server.connection_rig import Client, Server
from tests.unit.gateway.server.test_size_fields import STATES, STEPS

HELD_BYTES_MAX = 64 * 1024
STEP_S = 10.0


def held_by(server: Server, *frames: bytes) -> int:
    """What a connection costs that sends this, on average over some."""
    count = 20
    server.connect().send(b"".join(frames))  # what is made once is made now
    tracemalloc.start()
    try:
        clients = [server.connect() for _ in range(count)]
        for client in clients:
            client.send(b"".join(frames))
        held_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return held_bytes // count


def properties_of_one_frame() -> bytes:
    """As many properties as a stranger's frame holds, each with a key of its own."""
    pairs: dict[str, str] = {}
    size = 12
    for number in range(2_000):
        key = chr(0x100 + number)  # two bytes, and a string that costs more than one of ASCII
        size += 2 + len(key.encode()) + 2
        if size > 8192:
            break
        pairs[key] = ""
    return frame_of("peer_properties", m.PeerProperties(pairs))


HALF = (8192).to_bytes(4) + bytes.fromhex("0011 0001") + bytes(4096 - 4)
MANY = properties_of_one_frame()
WIDE = frame_of("peer_properties", m.PeerProperties({"k": "😀" + "a" * 8_000}))
LONG_NAME = frame_of("sasl_authenticate", m.SaslAuthenticate("PLAIN", b"\0" + b"u" * 8_000))


@pytest.mark.parametrize(
    "frames",
    [
        (HALF,),
        (MANY,),
        (WIDE,),
        (MANY, STEPS[1], HALF),
        (STEPS[0], STEPS[1], LONG_NAME),
        (STEPS[0], STEPS[1], frame_of("sasl_authenticate", plain("guest", "no")), HALF, HALF),
    ],
    ids=["half a frame", "properties", "wide text", "both", "a long name", "refused, more behind"],
)
def test_whatever_a_stranger_sends_it_holds_less_than_64_kib(
    server: Server, frames: tuple[bytes, ...]
) -> None:
    assert len(MANY) > 8_000
    assert held_by(server, *frames) < HELD_BYTES_MAX


def test_by_default_strangers_have_the_limits_of_these_tests() -> None:
    stream = StreamSettings()

    assert stream.initial_frame_bytes_max == 8192
    assert stream.handshake_step_timeout_ms == STEP_S * 1000


@pytest.mark.parametrize("state", STATES[:-1])
def test_repeating_what_a_step_allows_does_not_make_it_longer(server: Server, state: str) -> None:
    client = server.connect()
    for step in STEPS[: STATES.index(state)]:
        client.send(step)
    repeated = repeated_in(state)
    waited_s = 0.0
    while not client.is_over() and waited_s < 3 * STEP_S:
        client.send(repeated)
        client.loop.pass_time(0.5)
        waited_s += 0.5

    assert waited_s <= STEP_S + 0.5


def repeated_in(state: str) -> bytes:
    """What may be said again and again without ending a step."""
    return {
        "identified": STEPS[0],
        "authenticating": STEPS[1],
        "tuned": STEPS[3],
    }.get(state, frame_of("heartbeat", m.Heartbeat()))


def test_going_back_and_forth_between_steps_is_no_way_to_stay(server: Server) -> None:
    client = server.connect()
    waited_s = 0.0
    while not client.is_over() and waited_s < 3 * STEP_S:
        client.send(STEPS[0] + STEPS[1] + STEPS[0])
        client.loop.pass_time(0.5)
        waited_s += 0.5

    assert waited_s <= STEP_S + 0.5


def test_who_leaves_before_the_first_byte_is_a_debug_line(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """Load balancers look whether a port is open, every few seconds and for ever."""
    with caplog.at_level(logging.DEBUG, "gateway"):
        server.connect().edge.abort()

    assert [record.levelno for record in caplog.records] == [logging.DEBUG]
    assert "before its first byte" in caplog.text


def test_who_leaves_later_is_no_such_line(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    client: Client = server.connect()
    client.send(STEPS[0])
    with caplog.at_level(logging.DEBUG, "gateway"):
        client.edge.abort()

    assert "before its first byte" not in caplog.text
