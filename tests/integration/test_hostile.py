"""Clients that break the protocol: only an answer or a close comes of it, and for them alone.

Each does its worst beside a well-behaved neighbour whose traffic must go on, and the
server's memory is watched.
"""

from __future__ import annotations

import contextlib
import random
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from hutch.stream import messages as m
from hutch.stream.codec import encode_request
from hutch.stream.codes import ResponseCode
from hutch.stream.offsets import FIRST
from tests.client import Client, ClosedByServer, PeerGone
from tests.integration.conftest import assert_no_traceback, external_endpoint
from tests.integration.damage import VALID_FRAMES, damage
from tests.integration.neighbour import Neighbour, refuse_logins
from tests.integration.server import HutchServer
from tests.waiting import HANG_S

STEP_S: Final = 1.5
CLOSE_S: Final = 1.0
FRAME_MAX: Final = 1 << 20
# What ends a connection in answer to broken bytes.
CLOSED: Final = (PeerGone, ClosedByServer)


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HutchServer]:
    """One server for all of this; it gives up on silent strangers sooner than by default."""
    if external_endpoint() is not None:
        pytest.skip("needs a server whose memory can be watched")
    settings = {
        "HUTCH_STREAM__HANDSHAKE_STEP_TIMEOUT_MS": str(int(STEP_S * 1000)),
        "HUTCH_STREAM__CLOSE_TIMEOUT_MS": str(int(CLOSE_S * 1000)),
        "HUTCH_STREAM__REFUSAL_DELAY_MS": "300",
    }
    data = tmp_path_factory.mktemp("hostile") / "data"
    with HutchServer(data, environment=settings) as server:
        with Client.opened(*server.endpoint) as client:
            client.create("orders")
            client.declare(1, "orders")
            client.publish(1, {1: b"first"})
            client.confirmed()
        refuse_logins(server)
        yield server
        server.terminate()
        assert_no_traceback(server)


def ends(client: Client, within_s: float = HANG_S) -> int | None:
    """Wait for the end of the connection; the code of the Close frame, None for a bare FIN."""
    try:
        while True:
            client.receive(within_s)
    except ClosedByServer as closed:
        client.wait_until_gone(within_s)
        return closed.code
    except PeerGone:
        return None


def test_random_bytes_from_strangers_are_cut_off(target: HutchServer) -> None:
    chance = random.Random(1)
    with Neighbour(target):
        for size in [1, 3, 4, 5, 8, 13, 64, 500, 5_000, 50_000] * 10:
            with Client(*target.endpoint) as client:
                try:
                    client.send(chance.randbytes(size))
                    client.socket.shutdown(socket.SHUT_WR)
                    client.wait_until_gone(HANG_S)
                except ConnectionError:
                    pass


def test_random_frames_from_strangers_are_cut_off(target: HutchServer) -> None:
    chance = random.Random(2)
    with Neighbour(target):
        for _ in range(100):
            with Client(*target.endpoint) as client:
                client.send_frame(chance.randbytes(chance.randint(0, 60)))
                assert ends(client) is None


def test_random_frames_after_open_are_answered_or_end_the_connection(
    target: HutchServer,
) -> None:
    chance = random.Random(3)
    commands = [*range(0x20), 0x8014, 0x8016, 0x801A, 0xFFFF]
    with Neighbour(target):
        for number in range(150):
            with Client.opened(*target.endpoint) as client:
                key = chance.choice(commands)
                version = chance.choice((1, 1, 1, 2, 0, 7))
                body = chance.randbytes(chance.randint(0, 40))
                client.send_frame(struct.pack(">HH", key, version) + body)
                # Whatever came of it, what follows is answered or the connection is over.
                try:
                    code = client.code_of("stream_stats", m.StreamStats("orders"))
                    assert code == ResponseCode.OK, number
                except (*CLOSED, BrokenPipeError, ConnectionResetError):
                    pass


def test_damaged_requests_are_answered_or_end_the_connection(target: HutchServer) -> None:
    chance = random.Random(4)
    with Neighbour(target):
        for _ in range(200):
            frame = bytearray(chance.choice(VALID_FRAMES))
            for _ in range(chance.randint(1, 3)):
                damage(frame, chance)
            with Client.opened(*target.endpoint) as client:
                client.declare(1, "orders", "damaged")
                client.subscribe(1, "orders", FIRST, credit=1)
                client.send_frame(bytes(frame))
                with contextlib.suppress(*CLOSED, ConnectionError):
                    # A Close that survived the damage is answered, and nothing after it.
                    client.request("stream_stats", m.StreamStats("orders"))


@pytest.mark.parametrize(
    "opening",
    [
        bytes.fromhex("00002001"),  # a size of 8,193
        bytes.fromhex("ffffffff"),
        bytes.fromhex("00000000"),
        bytes.fromhex("00000003 000000"),
    ],
    ids=["8193", "4 GiB", "size 0", "size 3"],
)
def test_what_is_no_opening_is_cut_off_at_once_without_a_word(
    shared_server: HutchServer, opening: bytes
) -> None:
    with Neighbour(shared_server), Client(*shared_server.endpoint) as client:
        started = time.monotonic()
        client.send(opening)
        with pytest.raises(PeerGone):
            client.receive_frame()
        # Before the usual limit of a handshake's step, 10 s: it was the bytes, not the silence.
        assert time.monotonic() - started < 8


def test_a_first_frame_of_8192_bytes_is_taken(target: HutchServer) -> None:
    empty = encode_request("peer_properties", m.PeerProperties({"k": ""}), correlation_id=1)
    filler = "x" * (8192 + 4 - len(empty))
    with Client(*target.endpoint) as client:
        assert client.code_of("peer_properties", m.PeerProperties({"k": filler})) == 1


@pytest.mark.parametrize("size", [FRAME_MAX + 1, 0x7FFFFFFF, 0xFFFFFFFF])
def test_an_announced_frame_above_the_limit_is_refused_before_it_is_sent(
    target: HutchServer, size: int
) -> None:
    with Neighbour(target, growth_bytes_max=8 << 20), Client.opened(*target.endpoint) as client:
        client.send(struct.pack(">I", size))
        assert ends(client) == ResponseCode.FRAME_TOO_LARGE


def test_a_frame_of_just_the_limit_is_taken(target: HutchServer) -> None:
    with Client.opened(*target.endpoint) as client:
        client.declare(1, "orders")
        # Size: key, version, publisher id, count, publishing id, record's size.
        client.publish(1, {1: bytes(FRAME_MAX - 4 - 5 - 12)})
        assert client.confirmed() == (1, (1,))


@pytest.mark.parametrize(
    "frame",
    [
        bytes.fromhex("0099 0001"),
        bytes.fromhex("0000 0001"),
        bytes.fromhex("0002 0003 00 00000000"),
        bytes.fromhex("0001 0002 00000001 01 0000 0006 6f7264657273"),
        bytes.fromhex("0001 0001 00000001 01 ffff 0006 6f7264657273"),
        bytes.fromhex("0001 0001 00000001 01 0000 0006 6f7264657273 00"),
        bytes.fromhex("0003 0001 01 00000000"),
        bytes.fromhex("80ff 0001 00000001 0001"),
        bytes.fromhex("0007 0001 00000001 01 0006 6f7264657273 0009 000a"),
        bytes.fromhex("00"),
        b"",
    ],
    ids=[
        "unknown key",
        "key 0",
        "publish version 3",
        "declare version 2",
        "null reference",
        "trailing byte",
        "a server's command",
        "unknown response",
        "offset type 9",
        "one byte",
        "empty frame",
    ],
)
def test_a_frame_that_is_none_closes_the_connection_with_code_13(
    target: HutchServer, frame: bytes
) -> None:
    with Neighbour(target), Client.opened(*target.endpoint) as client:
        client.send_frame(frame)
        assert ends(client) == ResponseCode.UNKNOWN_FRAME


@pytest.mark.parametrize("cut", [1, 5, 9, 16])
def test_a_publish_cut_short_ends_the_connection_and_nobody_elses(
    target: HutchServer, cut: int
) -> None:
    with Neighbour(target), Client.opened(*target.endpoint) as client:
        client.declare(1, "orders")
        frame = encode_request(
            "publish", m.KernelBody(b"\1" + struct.pack(">IQI", 1, 1, 5) + b"12345")
        )
        client.send_frame(frame[4:-cut])
        assert ends(client) in (None, ResponseCode.UNKNOWN_FRAME)


def test_counts_that_lie_are_not_believed(target: HutchServer) -> None:
    with Neighbour(target), Client.opened(*target.endpoint) as client:
        client.declare(1, "orders")
        for count in (0, 2, 2**32 - 1):
            entry = struct.pack(">BIQI", 1, count, 7, 2) + b"ab"
            client.send_request("publish", m.KernelBody(entry))
            assert client.confirmed() == (1, (7,))


def test_a_connection_that_stays_silent_is_dropped_in_every_step(target: HutchServer) -> None:
    with Neighbour(target):
        for steps in range(4):
            with Client(*target.endpoint) as client:
                client_steps(client, steps)
                started = time.monotonic()
                assert ends(client) is None
                assert STEP_S * 0.5 < time.monotonic() - started < STEP_S + 10, steps


def client_steps(client: Client, count: int) -> None:
    """Go as many steps into the handshake."""
    if count >= 1:
        client.request("peer_properties", m.PeerProperties({}))
    if count >= 2:
        client.request("sasl_handshake", m.SaslHandshake())
    if count >= 3:
        client.must("sasl_authenticate", m.SaslAuthenticate("PLAIN", b"\0guest\0guest"))
        client.next_of("tune")


def test_a_frame_that_drips_in_does_not_hold_the_handshake_open(target: HutchServer) -> None:
    frame = encode_request(
        "peer_properties", m.PeerProperties({"k": "x" * 4_000}), correlation_id=1
    )
    with Neighbour(target), Client(*target.endpoint) as client:
        started = time.monotonic()
        with pytest.raises((ConnectionError, PeerGone)):
            drip(client, frame)
        assert time.monotonic() - started < STEP_S + 10


def drip(client: Client, data: bytes) -> None:
    """Send a byte every 20 ms; raises as soon as the server has had enough."""
    for byte in data:
        client.send(bytes([byte]))
        with contextlib.suppress(TimeoutError):
            client.receive_frame(0.02)


def test_a_server_that_sent_close_does_not_wait_for_ever(target: HutchServer) -> None:
    with Client.opened(*target.endpoint) as client:
        client.send_frame(b"\x00\x99\x00\x01")
        client.receive_frame()
        started = time.monotonic()
        client.wait_until_gone(HANG_S)
        assert time.monotonic() - started < CLOSE_S + 10


def test_a_peer_that_stopped_answering_heartbeats_is_dropped(target: HutchServer) -> None:
    with Neighbour(target), Client(*target.endpoint) as client:
        client.handshake(heartbeat_s=1)
        started = time.monotonic()
        client.wait_until_gone(HANG_S)
        assert 1.5 < time.monotonic() - started < 20


def test_half_closed_and_reset_connections_leave_nothing_behind(target: HutchServer) -> None:
    with Neighbour(target):
        before = target.open_file_count()
        for number in range(60):
            with Client.opened(*target.endpoint) as client:
                client.declare(1, "orders", f"w{number}")
                client.subscribe(1, "orders", FIRST)
                if number % 2:
                    client.send(b"\0\0\1\0partial")
                    client.socket.shutdown(socket.SHUT_WR)
                    client.wait_until_gone(HANG_S)
                else:
                    linger = struct.pack("ii", 1, 0)  # close sends RST
                    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        wait_for_files(target, before)


def wait_for_files(server: HutchServer, count: int, within_s: float = HANG_S) -> None:
    """Wait until the server holds no more files open than that, with a little slack."""
    deadline = time.monotonic() + within_s
    while server.open_file_count() > count + 3:
        assert time.monotonic() < deadline, f"{server.open_file_count()} files open, {count} before"
        time.sleep(0.05)


def test_many_connections_cost_little_and_leave_nothing_behind(target: HutchServer) -> None:
    count = 400
    with Neighbour(target, growth_bytes_max=count * 16 * 1024 + (2 << 20)):
        before = target.open_file_count()
        clients = [Client.opened(*target.endpoint) for _ in range(count)]
        try:
            assert target.open_file_count() >= before + count
            for client in clients:
                assert client.code_of("stream_stats", m.StreamStats("orders")) == ResponseCode.OK
        finally:
            for client in clients:
                client.disconnect()
        wait_for_files(target, before)


def test_a_wrong_password_again_and_again_costs_only_its_sender_time(
    target: HutchServer,
) -> None:
    with Neighbour(target), contextlib.ExitStack() as stack:
        clients = []
        started = time.monotonic()
        for _ in range(30):
            client = stack.enter_context(Client(*target.endpoint))
            clients.append(client)
            client_steps(client, 2)
            client.send_request("sasl_authenticate", m.SaslAuthenticate("PLAIN", b"\0guest\0no"))
        for client in clients:
            assert client.receive().message == m.SaslAuthenticateReply(8, b"")
            client.wait_until_gone()
            client.disconnect()
        assert 0.25 < time.monotonic() - started < 0.25 * len(clients), "they wait side by side"


def test_the_data_directory_holds_no_name_that_a_client_chose(target: HutchServer) -> None:
    names = ["../../etc/passwd", "a/b", "nul\0byte", "x" * 1_000, "..", "ünïcode", "new\nline"]
    with Neighbour(target), Client.opened(*target.endpoint) as client:
        for name in names:
            code = client.code_of("create_stream", m.CreateStream(name, {}))
            assert code in (ResponseCode.OK, ResponseCode.PRECONDITION_FAILED), name
        files = [path.name for path in Path(target.data_dir).rglob("*")]
        assert not any(part in file for file in files for part in ("passwd", "xxx", "code", "line"))
