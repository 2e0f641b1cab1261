"""Clients that do not read, or never finish what they send: bounded memory, nobody disturbed."""

from __future__ import annotations

import contextlib
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from hutch.stream import messages as m
from hutch.stream.codec import encode_request
from hutch.stream.offsets import FIRST
from tests.client import Client
from tests.integration.conftest import assert_no_traceback, external_endpoint
from tests.integration.load import committed_offset, stored_offset
from tests.integration.neighbour import MIB, Neighbour
from tests.integration.server import HutchServer
from tests.waiting import HANG_S, wait_until

# The kernel's buffers on both sides take some MiB before the server notices anything.
SMALL_BUFFER: Final = 4096
RECORDS: Final = 60_000
RECORD_BYTES: Final = 2_000


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HutchServer]:
    """A server with a stream of 120 MB."""
    if external_endpoint() is not None:
        pytest.skip("needs a server whose memory can be watched")
    data = tmp_path_factory.mktemp("slow") / "data"
    with HutchServer(data, "--durability", "os") as server:
        with Client.opened(*server.endpoint) as client:
            client.create("big")
            client.declare(1, "big")
            for first in range(0, RECORDS, 500):
                client.publish(1, [(i, bytes(RECORD_BYTES)) for i in range(first, first + 500)])
                client.confirmed_ids(500)
        yield server
        server.terminate()
        assert_no_traceback(server)


def opened_with_small_buffer(server: HutchServer) -> Client:
    """A connection whose receiving side fills up soon."""
    client = Client(*server.endpoint, receive_buffer_bytes=SMALL_BUFFER)
    client.handshake()
    return client


def test_readers_that_never_read_cost_little(target: HutchServer) -> None:
    with Neighbour(target, growth_bytes_max=8 * MIB) as neighbour:
        readers = [opened_with_small_buffer(target) for _ in range(10)]
        for reader in readers:
            reader.send_request("subscribe", m.Subscribe(1, "big", FIRST, 60_000, {}))
        time.sleep(1.5)
        assert neighbour.is_alive()
        for reader in readers:
            reader.disconnect()


def test_a_reader_that_was_slow_gets_everything_once_it_reads(target: HutchServer) -> None:
    # The allocator's own growth with the first large deliveries is some 8 MiB.
    with (
        Neighbour(target, growth_bytes_max=16 * MIB),
        opened_with_small_buffer(target) as reader,
    ):
        reader.subscribe(1, "big", FIRST, credit=60_000)
        time.sleep(0.5)
        expected = 0
        while expected < RECORDS:
            chunk = reader.delivery().chunk
            assert chunk.chunk_id == expected
            expected += chunk.record_count
        assert expected == RECORDS


def send_until_stuck(client: Client, data: bytes, times: int) -> int:
    """Send it again and again until the server takes no more; how often it went out whole."""
    client.socket.settimeout(0.5)
    for sent in range(times):
        try:
            client.socket.sendall(data)
        except TimeoutError:
            client.socket.settimeout(client.timeout_s)
            return sent
    raise AssertionError(f"the server took all of {times * len(data) >> 20} MiB")


def test_a_publisher_that_never_reads_its_confirms_is_not_read_for_ever(
    target: HutchServer,
) -> None:
    with (
        Neighbour(target, growth_bytes_max=8 * MIB),
        opened_with_small_buffer(target) as client,
    ):
        client.create("unread-confirms")
        client.declare(1, "unread-confirms")
        # Ids are all that a confirm holds: small records make the most of them.
        entries = b"".join(struct.pack(">QI", i, 0) for i in range(1_000))
        frame = encode_request("publish", m.KernelBody(struct.pack(">BI", 1, 1_000) + entries))
        sent = send_until_stuck(client, frame, 40_000)
        assert sent >= 1, "it was served at first"
        time.sleep(0.5)
        # A slow reader is not cut off: as soon as it reads, all of it comes.
        assert len(client.confirmed_ids(sent * 1_000)) == sent * 1_000


def test_requests_whose_answers_are_never_read_are_not_served_for_ever(
    target: HutchServer,
) -> None:
    with (
        Neighbour(target, growth_bytes_max=8 * MIB),
        opened_with_small_buffer(target) as client,
    ):
        request = encode_request("metadata", m.Metadata(("big",) * 20), correlation_id=1)
        assert send_until_stuck(client, request * 500, 3_000) >= 1


def test_a_flood_of_requests_leaves_the_others_their_turn(target: HutchServer) -> None:
    request = encode_request("metadata", m.Metadata(("big",) * 20), correlation_id=1)
    # A MiB of them, as much as the server may read from one connection at a time, eight times.
    flood = request * (MIB // len(request))
    with Neighbour(target):
        clients = [Client.opened(*target.endpoint) for _ in range(8)]
        for client in clients:
            client.socket.settimeout(0)
            with contextlib.suppress(BlockingIOError):
                client.socket.send(flood)
        time.sleep(1.0)
        for client in clients:
            client.disconnect()


def test_a_query_sees_the_store_before_it_behind_thousands_of_others(
    target: HutchServer,
) -> None:
    count = 9_000
    with Neighbour(target, growth_bytes_max=64 * MIB), Client.opened(*target.endpoint) as client:
        stores = (
            encode_request("store_offset", m.StoreOffset(f"app-{i}", "big", i))
            for i in range(count)
        )
        query = encode_request(
            "query_offset", m.QueryOffset(f"app-{count - 1}", "big"), correlation_id=77
        )
        client.send(b"".join(stores) + query)
        assert client.answer_to(77, timeout_s=HANG_S) == m.StoredOffset(1, count - 1)
        for i in range(0, count, 1_000):
            assert stored_offset(client, "big", f"app-{i}") == i


def test_frames_that_are_never_finished_cost_no_more_than_was_sent(target: HutchServer) -> None:
    count, sent_bytes = 40, 256 * 1024
    with Neighbour(target, growth_bytes_max=count * sent_bytes * 2 + 4 * MIB):
        clients = [Client.opened(*target.endpoint) for _ in range(count)]
        for client in clients:
            client.send(struct.pack(">IHH", 1 << 20, 2, 1) + bytes(sent_bytes))
        time.sleep(0.5)
        for client in clients:
            client.disconnect()


def test_a_frame_that_comes_a_byte_at_a_time_is_served_when_it_is_whole(
    target: HutchServer,
) -> None:
    with Neighbour(target), Client.opened(*target.endpoint) as client:
        before = committed_offset(client, "big")
        request = encode_request("stream_stats", m.StreamStats("big"), correlation_id=77)
        for byte in request:
            client.send(bytes([byte]))
        answer = client.answer_to(77)
        assert isinstance(answer, m.StreamStatsReply)
        assert answer.statistics["committed_offset"] == before


def test_a_reader_without_credit_gets_nothing_and_costs_nothing(target: HutchServer) -> None:
    with Neighbour(target, growth_bytes_max=4 * MIB), Client.opened(*target.endpoint) as client:
        for subscription_id in range(50):
            client.subscribe(subscription_id, "big", FIRST, credit=0)
        assert client.is_silent(0.5)
        client.credit(7, 1)
        assert client.delivery().subscription_id == 7
        assert client.is_silent(0.3)


def test_readers_that_never_read_do_not_keep_the_space_of_a_deleted_stream(
    tmp_path: Path,
) -> None:
    if external_endpoint() is not None:
        pytest.skip("needs a server whose files can be watched")
    soon = {"HUTCH_STREAM__DELETED_FILE_TIMEOUT_MS": "1000"}
    with HutchServer(tmp_path / "data", "--durability", "os", environment=soon) as server:

        def deleted() -> int:
            files = Path(f"/proc/{server.pid}/fd").iterdir()
            return sum("(deleted)" in str(each.readlink()) for each in files if each.is_symlink())

        with Client.opened(*server.endpoint) as client:
            client.create("s")
            client.declare(1, "s")
            for first in range(0, 8_000, 500):
                client.publish(1, [(i, bytes(RECORD_BYTES)) for i in range(first, first + 500)])
                client.confirmed_ids(500)
            readers = [opened_with_small_buffer(server) for _ in range(3)]
            for reader in readers:
                reader.send_request("subscribe", m.Subscribe(1, "s", FIRST, 60_000, {}))
            time.sleep(0.5)
            client.must("delete_stream", m.DeleteStream("s"))
            wait_until(lambda: deleted() == 1)
            wait_until(lambda: deleted() == 0)
        for reader in readers:
            reader.disconnect()
        server.terminate()
        assert_no_traceback(server)
