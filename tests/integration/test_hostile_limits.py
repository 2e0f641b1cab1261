"""The limits of the wire on a running server, beside a neighbour who must not notice.

Numbers are of the checklist; the states and sizes themselves are gone through without sockets in
`tests/unit/gateway/server/test_size_fields.py` and `test_strangers.py`.
"""

from __future__ import annotations

import contextlib
import gzip
import random
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from hutch.client.login import Login
from hutch.stream import messages as m
from hutch.stream.codec import encode_reply, encode_request
from hutch.stream.codes import ResponseCode
from hutch.stream.offsets import FIRST
from tests.chunks import Entry, SubBatch
from tests.client import Client, ClosedByServer, PeerGone
from tests.integration.administrator import ctl
from tests.integration.conftest import assert_no_traceback, external_endpoint
from tests.integration.neighbour import MIB, Neighbour
from tests.integration.server import HutchServer
from tests.waiting import HANG_S

STEP_S: Final = 3.0
SOON_S: Final = STEP_S / 2
"""Far above what an answer takes, also on a busy machine, and below the limit of a step."""
STRANGERS: Final = 300
STRANGER_BYTES_MAX: Final = 64 * 1024


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HutchServer]:
    """One server for all of this; it gives up on silent strangers sooner than by default."""
    if external_endpoint() is not None:
        pytest.skip("needs a server whose memory and files can be watched")
    settings = {"HUTCH_STREAM__HANDSHAKE_STEP_TIMEOUT_MS": str(int(STEP_S * 1000))}
    data = tmp_path_factory.mktemp("limits") / "data"
    arguments = ("--durability", "os", "--log-level", "debug")
    with HutchServer(data, *arguments, environment=settings) as server:
        with Client.opened(*server.endpoint) as client:
            client.create("orders")
        yield server
        server.terminate()
        assert_no_traceback(server)


def test_strangers_who_send_half_a_frame_and_stop_hold_little_and_not_for_long(
    target: HutchServer,
) -> None:
    """No unauthenticated peer holds more than 64 KiB, or one step longer than its limit."""
    before = target.open_file_count()
    half = struct.pack(">IHH", 8192, 0x11, 1) + bytes(4096)
    with Neighbour(target, growth_bytes_max=STRANGERS * STRANGER_BYTES_MAX) as neighbour:
        started = time.monotonic()
        strangers = [Client(*target.endpoint) for _ in range(STRANGERS)]
        for stranger in strangers:
            stranger.send(half)
        last = time.monotonic()
        for stranger in strangers:
            stranger.wait_until_gone(HANG_S)
        assert time.monotonic() - started > STEP_S * 0.9
        assert time.monotonic() - last < 10 * STEP_S
        for stranger in strangers:
            stranger.disconnect()
        deadline = time.monotonic() + HANG_S
        while target.open_file_count() > before + 4:
            assert time.monotonic() < deadline, "their sockets are still open"
            time.sleep(0.05)
    assert neighbour.growth_bytes < STRANGERS * 24 * 1024, "it is much less, in fact"


def test_strangers_who_ask_all_the_time_and_read_nothing_are_dropped_as_well(
    target: HutchServer,
) -> None:
    request = encode_request("peer_properties", m.PeerProperties({}), correlation_id=1)
    with Neighbour(target, growth_bytes_max=20 * STRANGER_BYTES_MAX + 4 * MIB):
        strangers = [Client(*target.endpoint, receive_buffer_bytes=4096) for _ in range(20)]
        deadline = time.monotonic() + 10 * STEP_S
        while strangers:
            assert time.monotonic() < deadline, f"{len(strangers)} are still there"
            strangers = [each for each in strangers if goes_on(each, request * 50)]
            time.sleep(0.05)


def goes_on(client: Client, data: bytes) -> bool:
    """Send as much as the server takes; False if it has ended the connection."""
    client.socket.settimeout(0)
    try:
        with contextlib.suppress(BlockingIOError):
            client.socket.send(data)
    except ConnectionError:
        client.disconnect()
        return False
    return True


@pytest.mark.parametrize("size", [0, 1, 3, 8193, 0x7FFFFFFF, 0xFFFFFFFF])
def test_25_a_size_that_lies_ends_a_stranger_before_the_limit_of_its_step(
    target: HutchServer, size: int
) -> None:
    took_s = []
    for _ in range(3):  # the best of three: other processes use the machine too
        with Client(*target.endpoint) as client:
            started = time.monotonic()
            client.send(struct.pack(">I", size) + bytes(min(size, 8)))
            with pytest.raises(PeerGone):
                client.receive_frame()
            took_s.append(time.monotonic() - started)
    assert min(took_s) < SOON_S


@pytest.mark.parametrize("size", [0, 1, 3, MIB + 1, 0x7FFFFFFF, 0xFFFFFFFF])
def test_25_a_size_that_lies_ends_an_open_connection_with_its_code_as_soon(
    target: HutchServer, size: int
) -> None:
    code = ResponseCode.UNKNOWN_FRAME if size < 4 else ResponseCode.FRAME_TOO_LARGE
    took_s = []
    for _ in range(3):
        with Client.opened(*target.endpoint) as client:
            started = time.monotonic()
            client.send(struct.pack(">I", size) + bytes(min(size, 8)))
            with pytest.raises(ClosedByServer) as closed:
                client.receive()
            took_s.append(time.monotonic() - started)
            assert closed.value.code == code
    assert min(took_s) < SOON_S


def test_26_ten_thousand_requests_in_one_piece_are_answered_in_order(target: HutchServer) -> None:
    count = 10_000
    requests = b"".join(
        encode_request("stream_stats", m.StreamStats("orders"), correlation_id=number)
        for number in range(count)
    )
    with Neighbour(target), Client.opened(*target.endpoint) as client:
        client.socket.setblocking(True)  # noqa: FBT003  # the standard library's signature
        client.socket.settimeout(HANG_S)
        client.send(requests)
        assert [client.receive(20).correlation_id for _ in range(count)] == list(range(count))


ODD_NAMES: Final = [
    *("__proto__", "../../escape", "%2e%2e%2fescape", "a/b/escape", "..", "\\escape", "~escape"),
    *("nul\0escape", "\x1b[31mescape", "escape\u202e", "\udcff\udcfeescape", "é" * 100),
    *("escape" + "x" * 249, "escape" + "x" * 250, "escape" + "x" * 32_761),
]


def test_27_odd_names_are_names_after_a_restart_too_and_nothing_on_the_disk_is_called_so(
    tmp_path: Path,
) -> None:
    if external_endpoint() is not None:
        pytest.skip("needs a server of its own")
    around = tmp_path / "around"
    with HutchServer(around / "deep" / "data") as server:
        with Client.opened(*server.endpoint) as client:
            taken = [name for name in ODD_NAMES if use(client, name)]
        assert len(taken) >= len(ODD_NAMES) - 2, "no name is refused but for its size"
        server.terminate()
        server.start()
        with Client.opened(*server.endpoint) as client:
            for name in taken:
                assert client.code_of("stream_stats", m.StreamStats(name)) == ResponseCode.OK, name
        server.terminate()
        assert_no_traceback(server)
        paths = [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")]
    assert not [path for path in paths if "escape" in path or "proto" in path or "é" in path]
    outside = [path for path in around.iterdir() if path.name != "deep"]
    assert outside == []


def use(client: Client, name: str) -> bool:
    """Create a stream of that name, and use it as a reference; False if it may not be."""
    code = client.code_of("create_stream", m.CreateStream(name, {}))
    if code != ResponseCode.OK:
        assert code == ResponseCode.PRECONDITION_FAILED, name
        return False
    reference = name[:100]
    client.declare(1, name, reference)
    client.publish(1, {1: b"x"})
    assert client.confirmed() == (1, (1,))
    client.send_request("store_offset", m.StoreOffset(reference, name, 5))
    assert client.request("query_offset", m.QueryOffset(reference, name)) == m.StoredOffset(1, 5)
    client.must("delete_publisher", m.DeletePublisher(1))
    return True


def test_28_a_bomb_is_stored_and_delivered_as_it_is_and_never_goes_off(
    target: HutchServer,
) -> None:
    """64 MiB of nothing in 64 KiB, within another of its kind: the server unpacks neither."""
    inner = gzip.compress(bytes(64 * MIB - 4), 9)
    assert len(inner) * 900 < 64 * MIB
    bomb = SubBatch(1, 1, 64 * MIB, gzip.compress((len(inner)).to_bytes(4) + inner, 9))
    with Neighbour(target), Client.opened(*target.endpoint) as client:
        client.create("bombs")
        client.declare(1, "bombs")
        for number in range(20):
            client.publish(1, [(number, bomb)])
        assert len(client.confirmed_ids(20)) == 20
        client.subscribe(1, "bombs", FIRST, credit=20)
        found: list[Entry] = []
        while len(found) < 20:
            found += client.delivery().chunk.entries()
        assert found == [bomb] * 20


def test_60_long_names_and_a_nest_of_repetitions_keep_nobody_waiting(target: HutchServer) -> None:
    nest = r"(?i)(.{0,9}\w{0,9}){15}z"
    ctl(target, "add_user", "nested", "--password-hash", "sha256", stdin=b"secret\n")
    ctl(target, "set_permissions", "nested", nest, nest, nest)
    chance = random.Random(60)
    with Client.opened(*target.endpoint, user="nested", password="secret") as client:
        for size in (60_000, 69):
            count = MIB // (size + 2) - 2
            names = tuple("".join(chance.choices("ab", k=size)) for _ in range(count))
            with Neighbour(target, growth_bytes_max=64 * MIB):
                answer = client.request("metadata", m.Metadata(names), timeout_s=HANG_S)
            assert isinstance(answer, m.MetadataReply)
            assert {each.code for each in answer.streams} == {ResponseCode.ACCESS_REFUSED}


def test_31_256_publishers_and_subscriptions_are_served_and_one_more_is_refused(
    target: HutchServer,
) -> None:
    with Neighbour(target), Client.opened(*target.endpoint) as client:
        client.create("many")
        for number in range(256):
            client.declare(number, "many")
            client.subscribe(number, "many", FIRST, credit=1)
        one_more = (
            ("declare_publisher", m.DeclarePublisher(0, "", "many")),
            ("subscribe", m.Subscribe(0, "many", FIRST, 1, {})),
        )
        for name, message in one_more:
            assert client.code_of(name, message) == ResponseCode.PRECONDITION_FAILED
        client.publish(255, {7: b"x"})
        assert client.confirmed() == (255, (7,))
        assert {client.delivery().subscription_id for _ in range(256)} == set(range(256))


@pytest.mark.parametrize("is_answer", [False, True], ids=["0x0014", "0x8014"])
@pytest.mark.parametrize(("frame_bytes_max", "limit"), [(0, MIB), (5_000, 5_000), (2**31, MIB)])
def test_33_tune_is_taken_in_both_forms_and_the_smaller_limit_counts(
    target: HutchServer, frame_bytes_max: int, limit: int, *, is_answer: bool
) -> None:
    tune = m.Tune(frame_bytes_max, 0)
    with Client(*target.endpoint) as client:
        client.authenticate(Login())
        client.send(encode_reply("tune", None, tune) if is_answer else encode_request("tune", tune))
        client.must("open", m.Open("/"))
        client.send(struct.pack(">I", limit + 1))
        with pytest.raises(ClosedByServer) as closed:
            client.receive()
    assert closed.value.code == ResponseCode.FRAME_TOO_LARGE


def test_33_a_heartbeat_of_0_is_none_and_silence_ends_the_others_in_time(
    target: HutchServer,
) -> None:
    interval_s = 2
    with Client.opened(*target.endpoint) as silent, Client(*target.endpoint) as client:
        client.authenticate(Login())
        last_byte = time.monotonic()
        client.tune_and_open(heartbeat_s=interval_s)
        begun = time.monotonic()
        client.wait_until_gone(HANG_S)
        gone = time.monotonic()
        # Two looks in a row, an interval apart, that found nothing new: as RabbitMQ does it.
        assert (gone - last_byte) / interval_s > 2
        assert gone - begun < 10 * interval_s
        assert silent.is_silent(0.2)
        assert silent.code_of("stream_stats", m.StreamStats("orders")) == ResponseCode.OK


def test_who_only_looks_whether_the_port_is_open_is_a_debug_line_and_no_warning(
    target: HutchServer,
) -> None:
    before = len(target.stderr)
    addresses = []
    for _ in range(3):
        with socket.create_connection(target.endpoint) as looking:
            host, port = looking.getsockname()
            addresses.append(f"{host}:{port}")
    deadline = time.monotonic() + HANG_S
    while target.stderr.count("before its first byte", before) < 3:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    lines = [line for line in target.stderr[before:].splitlines() if "first byte" in line]
    assert len(lines) == 3
    assert all(sum(address in line for line in lines) == 1 for address in addresses)
    assert not any("WARN" in line.upper() for line in lines)
