"""`kill -9` under load: nothing that was confirmed or answered is missing afterwards.

`HUTCH_KILL_ROUNDS` sets how often each server is killed; `HUTCH_TEST_SEED` picks other moments.
"""

from __future__ import annotations

import os
import random
import subprocess
import time
from typing import Final

import pytest

from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from tests.client import Client
from tests.integration.conftest import StartServer
from tests.integration.load import (
    Creating,
    OffsetKeeping,
    Publishing,
    SequenceAsking,
    chunks_of,
    code_of_stream,
    committed_offset,
    last_id,
    record_of,
    records_of,
    stored_offset,
)
from tests.integration.server import HutchServer, serve_command, server_environment
from tests.waiting import HANG_S

ROUNDS: Final = int(os.environ.get("HUTCH_KILL_ROUNDS", "3"))
SEED: Final = int(os.environ.get("HUTCH_TEST_SEED") or "20260101")

# A round is a start, up to half a second of load, and reading everything back.
pytestmark = pytest.mark.timeout(30 + 15 * ROUNDS)


def assert_publisher_is_whole(
    server: HutchServer, stream: str, reference: str, confirmed: set[int], sent: int
) -> None:
    """Every confirmed id is there, in order, once, and nothing that was never sent."""
    with Client.opened(*server.endpoint) as client:
        records = records_of(client, stream)
        assert records == [record_of(i, reference) for i in range(1, len(records) + 1)]
        assert len(records) >= max(confirmed, default=0)
        assert len(records) <= sent
        assert last_id(client, stream, reference) == len(records)


@pytest.mark.parametrize("durability", ["disk", "interval", "os"])
def test_a_named_publisher_finds_every_confirmed_record_once_and_in_order(
    start_server: StartServer, durability: str
) -> None:
    chance = random.Random(SEED)
    server = start_server("--durability", durability)
    with Client.opened(*server.endpoint) as client:
        client.create("orders")
    confirmed: set[int] = set()
    answered, next_offset, sent = -1, 0, 0
    for kills in range(ROUNDS):
        # From the first id that is not known to be confirmed: some of those sent again are
        # stored already, and must not be stored twice.
        first_id = max(confirmed, default=0) + 1
        publishing = Publishing(server.endpoint, "orders", "w", first_id=first_id, seed=kills)
        keeping = OffsetKeeping(server.endpoint, "orders", "app", first=next_offset)
        asking = SequenceAsking(server.endpoint, "orders", "w")
        threads = (publishing, keeping, asking)
        for thread in threads:
            thread.start()
        for thread in threads:
            assert thread.has_begun.wait(HANG_S)
        time.sleep(chance.uniform(0, 0.4))
        server.kill()
        for thread in threads:
            thread.finish()
        sent = max(sent, publishing.next_id - 1)
        assert publishing.confirmed == set(range(first_id, first_id + len(publishing.confirmed)))
        confirmed |= publishing.confirmed
        answered, next_offset = max(answered, keeping.answered), keeping.next_offset

        server.restart()
        assert_publisher_is_whole(server, "orders", "w", confirmed, sent)
        with Client.opened(*server.endpoint) as client:
            assert answered <= stored_offset(client, "orders", "app") < next_offset
            assert asking.answered <= last_id(client, "orders", "w")


def test_large_records_are_whole_in_data_files_that_fill_up(start_server: StartServer) -> None:
    chance = random.Random(SEED)
    filler_bytes = 30_000
    smallest = {"HUTCH_STORE__DATA_FILE_BYTES": str(16 << 20)}
    server = start_server(environment=smallest)
    with Client.opened(*server.endpoint) as client:
        client.create("large")
    confirmed: set[int] = set()
    for kills in range(ROUNDS):
        first_id = max(confirmed, default=0) + 1
        publishing = Publishing(
            server.endpoint, "large", "w", first_id=first_id, seed=kills, filler_bytes=filler_bytes
        )
        publishing.start()
        assert publishing.has_begun.wait(HANG_S)
        time.sleep(chance.uniform(0.1, 0.4))
        server.kill()
        publishing.finish()
        confirmed |= publishing.confirmed
        server.restart()
    with Client.opened(*server.endpoint) as client:
        count = 0
        for chunk in chunks_of(client, "large"):
            for record in chunk.records():
                count += 1
                assert record == record_of(count) + bytes(filler_bytes)
        assert count >= max(confirmed)
        assert last_id(client, "large", "w") == count
    assert count * filler_bytes > 16 << 20, "it did not fill a file"


def test_an_unnamed_publisher_loses_nothing_either(start_server: StartServer) -> None:
    chance = random.Random(SEED)
    server = start_server()
    with Client.opened(*server.endpoint) as client:
        client.create("orders")
    expected: list[set[int]] = []
    for kills in range(ROUNDS):
        publishing = Publishing(server.endpoint, "orders", "", seed=kills)
        publishing.start()
        assert publishing.has_begun.wait(HANG_S)
        time.sleep(chance.uniform(0, 0.3))
        server.kill()
        publishing.finish()
        expected.append(publishing.confirmed)
        server.restart()
    with Client.opened(*server.endpoint) as client:
        ids = [int(record.split(b":")[1]) for record in records_of(client, "orders")]
    # Each round began with id 1 again: cut there, every piece counts up without a hole.
    starts = [index for index, publishing_id in enumerate(ids) if publishing_id == 1]
    pieces = [ids[a:b] for a, b in zip(starts, [*starts[1:], len(ids)], strict=True)]
    assert len(pieces) == ROUNDS
    for piece, confirmed in zip(pieces, expected, strict=True):
        assert piece == list(range(1, len(piece) + 1))
        assert len(piece) >= max(confirmed)


def test_streams_stay_created_and_deleted(start_server: StartServer) -> None:
    chance = random.Random(SEED)
    server = start_server()
    alive: set[str] = set()
    deleted: set[str] = set()
    next_number = 0
    for _ in range(ROUNDS):
        creating = Creating(server.endpoint, "made", first=next_number)
        creating.start()
        assert creating.has_begun.wait(HANG_S)
        time.sleep(chance.uniform(0, 0.3))
        server.kill()
        creating.finish()
        next_number = creating.next_number
        alive |= creating.alive
        deleted |= creating.deleted
        server.restart()
        with Client.opened(*server.endpoint) as client:
            for stream in alive:
                assert code_of_stream(client, stream) == ResponseCode.OK, stream
            for stream in deleted:
                gone = ResponseCode.STREAM_DOES_NOT_EXIST
                assert code_of_stream(client, stream) == gone, stream
            if creating.unsure:
                assert code_of_stream(client, creating.unsure) in (1, 2)
    with Client.opened(*server.endpoint) as client:
        for stream in sorted(alive)[-20:]:
            assert committed_offset(client, stream) == -1
            client.declare(1, stream)
            client.publish(1, {1: b"still usable"})
            client.confirmed()
            client.must("delete_publisher", m.DeletePublisher(1))


def test_a_record_in_each_of_many_streams_is_there_after_a_kill(start_server: StartServer) -> None:
    server = start_server()
    streams = [f"slow-{number}" for number in range(200)]
    with Client.opened(*server.endpoint) as client:
        for publisher_id, stream in enumerate(streams):
            client.create(stream)
            client.declare(publisher_id, stream, "w")
        for publishing_id in (1, 2):
            for publisher_id, stream in enumerate(streams):
                client.publish(publisher_id, {publishing_id: record_of(publishing_id, stream)})
            for _ in streams:
                assert client.confirmed()[1] == (publishing_id,)
    server.kill()
    server.restart()
    with Client.opened(*server.endpoint) as client:
        for stream in streams:
            assert records_of(client, stream) == [record_of(i, stream) for i in (1, 2)]
            assert last_id(client, stream, "w") == 2


def test_a_server_killed_while_it_recovers_recovers_the_next_time(
    start_server: StartServer,
) -> None:
    chance = random.Random(SEED)
    server = start_server()
    with Client.opened(*server.endpoint) as client:
        client.create("orders")
    publishing = Publishing(server.endpoint, "orders", "w")
    publishing.start()
    assert publishing.has_begun.wait(HANG_S)
    time.sleep(0.3)
    server.kill()
    publishing.finish()
    # Starting takes some tenths of a second, most of it before the store is opened.
    for _ in range(ROUNDS * 2):
        starting = subprocess.Popen(
            serve_command(server.data_dir, "--port", "0"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=server_environment(),
        )
        time.sleep(chance.uniform(0.1, 0.6))
        starting.kill()
        starting.wait(HANG_S)
    server.restart()
    sent = publishing.next_id - 1
    assert_publisher_is_whole(server, "orders", "w", publishing.confirmed, sent)


def test_the_epoch_rises_with_each_kill_and_not_with_a_clean_stop(
    start_server: StartServer,
) -> None:
    server = start_server()
    with Client.opened(*server.endpoint) as client:
        client.create("orders")
    for publishing_id, end in enumerate((server.kill, server.terminate, server.kill), start=1):
        with Client.opened(*server.endpoint) as client:
            client.declare(1, "orders", "w")
            client.publish(1, {publishing_id: b"x"})
            client.confirmed()
        end()
        server.restart()
    with Client.opened(*server.endpoint) as client:
        client.declare(1, "orders", "w")
        client.publish(1, {4: b"x"})
        client.confirmed()
        # By record: small chunks of one epoch may come joined.
        chunks = list(chunks_of(client, "orders"))
        epochs = [chunk.epoch for chunk in chunks for _ in range(chunk.record_count)]
    assert epochs == [1, 2, 2, 3]


def test_a_consumer_never_saw_what_is_gone(start_server: StartServer) -> None:
    """What a reader was given stays, at its offset, even if its publisher has no confirm yet."""
    chance = random.Random(SEED)
    server = start_server("--durability", "os")
    with Client.opened(*server.endpoint) as client:
        client.create("orders")
    for kills in range(ROUNDS):
        seen: dict[int, bytes] = {}
        with Client.opened(*server.endpoint) as reader:
            publishing = Publishing(
                server.endpoint, "orders", "", first_id=kills * 10**9 + 1, seed=kills
            )
            publishing.start()
            reader.subscribe(1, "orders", credit=1_000)
            deadline = time.monotonic() + chance.uniform(0.05, 0.3)
            while time.monotonic() < deadline:
                chunk = reader.delivery().chunk
                reader.credit(1, 1)
                seen.update(enumerate(chunk.records(), start=chunk.chunk_id))
            server.kill()
            publishing.finish()
        server.restart()
        with Client.opened(*server.endpoint) as client:
            records = dict(enumerate(records_of(client, "orders")))
        assert seen
        assert seen.items() <= records.items()
