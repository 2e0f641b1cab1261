"""Records go while they are written and read, and while the server is killed.

`HUTCH_REMOVED_UNITS` sets how many units go under the readers, `HUTCH_KILL_ROUNDS` how often the
server is killed.
"""

from __future__ import annotations

import os
import random
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from hutch.stream.offsets import FIRST
from tests.client import Client
from tests.integration.conftest import StartServer
from tests.integration.load import Publishing, last_id, record_of
from tests.integration.server import Endpoint, HutchServer
from tests.waiting import HANG_S

UNITS: Final = int(os.environ.get("HUTCH_REMOVED_UNITS", "4000"))
ROUNDS: Final = int(os.environ.get("HUTCH_KILL_ROUNDS", "3"))
SEED: Final = int(os.environ.get("HUTCH_TEST_SEED") or "20260101")
READERS: Final = 32
UNIT_BYTES: Final = 1_024

EACH_SECOND: Final = {"HUTCH_STREAMS__RETENTION_INTERVAL_S": "1"}

pytestmark = pytest.mark.timeout(60 + 15 * ROUNDS + UNITS // 100)


def statistics(client: Client, stream: str) -> tuple[int, int]:
    """The first chunk's offset and the last record's."""
    answer = client.ask(m.StreamStatsReply, "stream_stats", m.StreamStats(stream))
    return answer.statistics["first_chunk_id"], answer.statistics["committed_offset"]


def bytes_of(directory: Path) -> int:
    size = 0
    for path in directory.iterdir():
        with suppress(FileNotFoundError):  # removed since it was listed
            size += path.stat().st_size
    return size


@dataclass(slots=True)
class Progress:
    """How far the publisher is."""

    confirmed_offset: int = 0


class Reading(threading.Thread):
    """Reads a stream from its oldest chunk on, never faster than one chunk at a time.

    It asks for the next chunk when the publisher is `lag` records ahead, or has written all.
    """

    def __init__(self, endpoint: Endpoint, stream: str, progress: Progress, *, lag: int) -> None:
        super().__init__(daemon=True)
        self.endpoint = endpoint
        self.stream = stream
        self.progress = progress
        self.lag = lag
        self.has_begun = threading.Event()
        # How often the next chunk was not the one after the last: it was gone.
        self.jumps = 0
        self.next_offset = 0
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            with Client.opened(*self.endpoint) as client:
                self.read(client)
        except BaseException as error:
            self.error = error
            raise

    def read(self, client: Client) -> None:
        client.subscribe(1, self.stream, FIRST, credit=1)
        while self.next_offset <= UNITS:
            chunk = client.delivery().chunk
            self.has_begun.set()
            assert chunk.chunk_id >= self.next_offset, "an offset that was there already"
            self.jumps += chunk.chunk_id > self.next_offset
            for offset, record in enumerate(chunk.records(), chunk.chunk_id):
                assert record[:8] == offset.to_bytes(8), "another record's offset"
            self.next_offset = chunk.chunk_id + chunk.record_count
            while self.progress.confirmed_offset < min(chunk.chunk_id + self.lag, UNITS):
                time.sleep(0.002)
            client.credit(1, 1)


def test_readers_at_the_head_go_on_with_what_is_left(start_server: StartServer) -> None:
    server = start_server("--durability", "os")
    stream = "racing"
    with Client.opened(*server.endpoint) as client:
        limits = {"max-length-bytes": "20000", "stream-max-segment-size-bytes": str(UNIT_BYTES)}
        client.create(stream, limits)
        client.declare(1, stream)
        publish(client, 0)
        progress = Progress()
        # The stream keeps about 20 records: half of the readers are always further behind.
        readings = [
            Reading(server.endpoint, stream, progress, lag=3 * number) for number in range(READERS)
        ]
        for reading in readings:
            reading.start()
        for reading in readings:
            assert reading.has_begun.wait(HANG_S)
        for number in range(1, UNITS + 1):
            publish(client, number)
            progress.confirmed_offset = number
        for reading in readings:
            reading.join(HANG_S)
        first, last = statistics(client, stream)
    assert last == UNITS
    assert first > UNITS - 100, "next to all was removed"
    assert [reading.error for reading in readings] == [None] * READERS
    assert [reading.next_offset for reading in readings] == [UNITS + 1] * READERS
    assert sum(reading.jumps > 0 for reading in readings) > READERS // 2


def publish(client: Client, number: int) -> None:
    """Store one record that names its offset, in a unit of its own."""
    client.publish(1, {number: number.to_bytes(8) + bytes(UNIT_BYTES)})
    client.confirmed_ids(1)


def test_no_offset_comes_twice_and_no_publisher_is_forgotten_when_the_server_is_killed(
    start_server: StartServer,
) -> None:
    chance = random.Random(SEED)
    server = start_server("--durability", "os", environment=EACH_SECOND)
    limits = {"max-length-bytes": "200000", "stream-max-segment-size-bytes": "20000"}
    with Client.opened(*server.endpoint) as client:
        client.create("orders", limits)
        client.declare(1, "orders", "early")
        client.publish(1, {7: b"early"})
        client.confirmed_ids(1)
    confirmed: set[int] = set()
    first = 0
    for kills in range(ROUNDS):
        publishing = Publishing(
            server.endpoint, "orders", "w", first_id=max(confirmed, default=0) + 1, seed=kills
        )
        publishing.start()
        assert publishing.has_begun.wait(HANG_S)
        time.sleep(chance.uniform(0.1, 0.6))
        server.kill()
        publishing.finish()
        confirmed |= publishing.confirmed
        server.restart()
        first = assert_whole(server, first, max(confirmed))
    assert first > 0, "nothing was removed"


def assert_whole(server: HutchServer, first_before: int, confirmed: int) -> int:
    """What is left is a run of records without a hole that ends behind what was confirmed."""
    with Client.opened(*server.endpoint) as client:
        first, last = statistics(client, "orders")
        assert first >= first_before
        assert last >= confirmed
        assert last_id(client, "orders", "w") == last
        assert last_id(client, "orders", "early") == 7
        client.subscribe(1, "orders", FIRST, credit=10_000)
        expected = None
        while expected is None or expected <= last:
            chunk = client.delivery().chunk
            assert expected is None or chunk.chunk_id == expected
            # Offset 0 is the early publisher's; ids begin with 1.
            for offset, record in enumerate(chunk.records(), chunk.chunk_id):
                assert record == (record_of(offset) if offset else b"early")
            expected = chunk.chunk_id + chunk.record_count
        return first


def test_age_is_kept_by_the_timer_and_files_go(start_server: StartServer) -> None:
    server = start_server("--durability", "os", environment=EACH_SECOND)
    limits = {"max-age": "2s", "stream-max-segment-size-bytes": "1000000"}
    record = bytes(500_000)
    with Client.opened(*server.endpoint) as client:
        client.create("aged", limits)
        client.declare(1, "aged")
        for number in range(40):
            client.publish(1, {number: record})
            client.confirmed_ids(1)
        files = server.data_dir / "data"
        assert bytes_of(files) > 19_000_000
        deadline = time.monotonic() + HANG_S
        while (found := statistics(client, "aged"))[0] < 38:
            assert time.monotonic() < deadline, f"nobody writes, and too little goes: {found}"
            time.sleep(0.1)
        assert found == (38, 39)
        client.publish(1, {40: record, 41: record})
        client.confirmed_ids(2)
        while bytes_of(files) > 8_000_000:
            assert time.monotonic() < deadline, "the files stay"
            client.publish(1, {42: record})
            client.confirmed_ids(1)
            time.sleep(0.5)
        assert client.code_of("delete_stream", m.DeleteStream("aged")) == ResponseCode.OK
