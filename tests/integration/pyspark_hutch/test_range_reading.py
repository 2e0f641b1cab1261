"""Ranges of streams read from a real server, through joins, filters, retention and restarts."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hutch.stream import messages as m
from pyspark_hutch.client import range_reader
from pyspark_hutch.client.range_reader import DataLoss
from pyspark_hutch.offsets.streams import PartitionStream
from pyspark_hutch.options.read_settings import Splitting
from pyspark_hutch.planning.splits import StreamRange, plan
from tests.client import Client
from tests.integration.conftest import StartServer, assert_no_traceback, external_endpoint
from tests.integration.server import HutchServer
from tests.reading_rig import cluster_of, range_of, reader_of, records_of
from tests.waiting import HANG_S


@pytest.fixture(scope="module")
def hutch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HutchServer]:
    """A server that no test of this module stops."""
    if external_endpoint() is not None:
        pytest.skip("needs a server of its own")
    with HutchServer(tmp_path_factory.mktemp("ranges") / "data", "--durability", "os") as server:
        yield server
        server.terminate()
        assert_no_traceback(server)


def body_of(offset: int) -> bytes:
    return b"row %d" % offset


def publish(server: HutchServer, stream: str, count: int, *, at_once: int = 50) -> None:
    """Create a stream with so many records, in chunks of a few."""
    with Client.opened(*server.endpoint) as client:
        client.create(stream)
        client.declare(1, stream)
        for first in range(0, count, at_once):
            numbers = range(first, min(first + at_once, count))
            client.publish(1, [(number, body_of(number)) for number in numbers])
            client.confirmed_ids(len(numbers))


def read(server: HutchServer, stream: str, low: int, high: int, **more: object) -> list[int]:
    found = list(records_of(reader_of(server, range_of(server, stream, low, high, **more)), high))
    assert all(body == body_of(offset) for offset, body in found)
    return [offset for offset, _ in found]


def test_any_range_of_joined_chunks_gives_its_records(hutch: HutchServer, stream: str) -> None:
    publish(hutch, stream, 2_000)

    for low, high in ((0, 2_000), (0, 1), (1_999, 2_000), (49, 51), (733, 1_491), (700, 750)):
        assert read(hutch, stream, low, high) == list(range(low, high))


def test_a_deliver_reaches_past_a_range_which_ends_all_the_same(
    hutch: HutchServer, stream: str
) -> None:
    publish(hutch, stream, 1_000, at_once=10)
    wanted = range_of(hutch, stream, 100, 120)

    pieces = [bytes(piece.chunk) for piece in reader_of(hutch, wanted).pieces()]

    ends = [int.from_bytes(p[24:32]) + int.from_bytes(p[4:8]) for p in pieces]
    assert ends[-1] > 120, "small chunks are joined at delivery"
    assert read(hutch, stream, 100, 120) == list(range(100, 120))


def test_splits_of_a_stream_are_read_without_a_gap(hutch: HutchServer, stream: str) -> None:
    publish(hutch, stream, 1_500, at_once=30)
    cluster = cluster_of(hutch)
    whole = StreamRange(PartitionStream(stream), 7, 1_444)
    splits = plan(cluster, cluster.leaders([stream]), [whole], Splitting(partitions_min=9))

    found = [offset for split in splits for offset in read(hutch, stream, split.low, split.high)]

    assert len(splits) == 9
    assert found == list(range(7, 1_444))


# ---- filters -----------------------------------------------------------------------------------


def publish_filtered(server: HutchServer, stream: str, count: int) -> None:
    """Runs of 50 records with the filter values "a", "b" and none in turn."""
    values = ("a", "b", None)
    with Client.opened(*server.endpoint) as client:
        client.create(stream)
        client.declare(1, stream)
        for first in range(0, count, 50):
            value = values[first // 50 % 3]
            entries = [(n, value, body_of(n)) for n in range(first, first + 50)]
            client.publish_filtered(1, entries)
            client.confirmed_ids(50)


def turn_of(offset: int) -> int:
    return offset // 50 % 3


@pytest.mark.parametrize(
    ("filters", "unfiltered", "turns"),
    [
        (("a",), "no", {0}),
        (("b", "a"), "no", {0, 1}),
        (("b",), "yes", {1, 2}),
        (("nothing",), "no", {0, 1, 2}),
    ],
)
def test_a_filter_gives_the_chunks_that_match_and_all_rows_where_none_does(
    hutch: HutchServer,
    stream: str,
    filters: tuple[str, ...],
    unfiltered: str,
    turns: set[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A busy server may need longer for the first chunk than the reader waits for one that matches.
    monkeypatch.setattr(range_reader, "_QUIET_S_MIN", 3.0)
    publish_filtered(hutch, stream, 1_500)
    begun = time.monotonic()

    found = read(hutch, stream, 20, 1_400, filters=filters, match_unfiltered=unfiltered == "yes")

    assert found == [offset for offset in range(20, 1_400) if turn_of(offset) in turns]
    assert time.monotonic() - begun < 60


# ---- loss and recovery -------------------------------------------------------------------------


def test_a_restart_in_the_middle_costs_no_row_and_doubles_none(
    start_server: StartServer, stream: str
) -> None:
    server = start_server()
    publish(server, stream, 3_000, at_once=300)
    reader = reader_of(server, range_of(server, stream, 0, 3_000), planner_retry_interval_ms=200)
    found = []
    for offset, body in records_of(reader, 3_000):
        found.append((offset, body))
        if offset == 250:
            server.restart()

    assert found == [(offset, body_of(offset)) for offset in range(3_000)]


def publish_large(server: HutchServer, stream: str, count: int) -> None:
    """Records of 40 KB, each a chunk."""
    with Client.opened(*server.endpoint) as client:
        client.create(
            stream, {"max-length-bytes": "2000000", "stream-max-segment-size-bytes": "500000"}
        )
        client.declare(1, stream)
        for number in range(count):
            client.publish(1, {number: body_of(number).ljust(40_000)})
            client.confirmed_ids(1)


def first_offset(server: HutchServer, stream: str) -> int:
    cluster = cluster_of(server)
    return cluster.bounds(cluster.leaders([stream]))[stream].first


def test_rows_that_retention_took_are_lost_with_stream_range_and_reason(
    hutch: HutchServer, stream: str
) -> None:
    publish_large(hutch, stream, 200)
    end = time.monotonic() + HANG_S
    while (first := first_offset(hutch, stream)) == 0:
        assert time.monotonic() < end
        time.sleep(0.05)

    with pytest.raises(DataLoss) as caught:
        list(records_of(reader_of(hutch, range_of(hutch, stream, 0, 200)), 200))

    lost = re.search(
        r"stream '(.*)': offsets 0 to (\d+) are lost: .*: retention", str(caught.value)
    )
    assert lost is not None, str(caught.value)
    assert lost[1] == stream
    assert int(lost[2]) + 1 >= first
    lenient = reader_of(hutch, range_of(hutch, stream, 0, 200, fails_on_loss=False))
    found = [offset for offset, _ in records_of(lenient, 200)]
    assert found == list(range(found[0], 200))


def delete(server: HutchServer, stream: str) -> None:
    with Client.opened(*server.endpoint) as client:
        client.must("delete_stream", m.DeleteStream(stream))


def test_a_stream_that_is_deleted_in_the_middle_is_lost_with_its_rest(
    hutch: HutchServer, stream: str
) -> None:
    publish_large(hutch, stream, 40)
    records = records_of(reader_of(hutch, range_of(hutch, stream, 0, 40)), 40)
    next(records)
    delete(hutch, stream)

    with pytest.raises(DataLoss, match=r"offsets \d+ to 39 are lost: the stream does not exist"):
        list(records)


def test_a_stream_that_was_deleted_and_made_again_is_told_by_its_end(
    hutch: HutchServer, stream: str
) -> None:
    publish_large(hutch, stream, 40)
    records = records_of(reader_of(hutch, range_of(hutch, stream, 0, 40)), 40)
    next(records)
    delete(hutch, stream)
    publish(hutch, stream, 3)

    with pytest.raises(DataLoss, match=r"offsets \d+ to 39 are lost: the stream ends at offset 3"):
        list(records)


# ---- many streams, connections, memory ---------------------------------------------------------


def test_a_thousand_streams_are_asked_about_at_once(hutch: HutchServer) -> None:
    streams = [f"many-{number}" for number in range(1_000)]
    with Client.opened(*hutch.endpoint) as client:
        for stream in streams:
            client.send_request("create_stream", m.CreateStream(stream, {}))
        for _ in streams:
            client.receive()
    cluster = cluster_of(hutch)
    begun = time.process_time()

    bounds = cluster.bounds(cluster.leaders(streams))

    assert len(bounds) == 1_000
    assert time.process_time() - begun < 5


RSS = """
import resource, sys, time
from contextlib import closing
from pyspark_hutch.client.cluster import Cluster
from pyspark_hutch.client.pool import Name
from pyspark_hutch.client.range_reader import Range, RangeReader
from pyspark_hutch.options.connection_settings import BrokerSettings
from hutch.client.login import Endpoint

host, port, stream, high = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
place = Endpoint(host, port)
cluster = Cluster(BrokerSettings((place,)), Name("memory"))
cluster.leaders([stream])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
reader = RangeReader(cluster, Range(stream, place, 0, high), 30_000)
size = 0
for number, piece in enumerate(reader.pieces()):
    size += len(piece.chunk)
    if number % 40 == 0:
        time.sleep(0.05)
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(size, grown)
"""


def test_reading_a_large_range_slowly_takes_little_memory(
    hutch: HutchServer, stream: str, tmp_path: Path
) -> None:
    count = 150
    with Client.opened(*hutch.endpoint) as client:
        client.create(stream)
        client.declare(1, stream)
        for number in range(count):
            client.publish(1, {number: bytes(1_000_000)})
        client.confirmed_ids(count, timeout_s=HANG_S)
    script = tmp_path / "read.py"
    script.write_text(RSS)

    done = subprocess.run(
        [sys.executable, str(script), *map(str, hutch.endpoint), stream, str(count)],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=True,
        env={"PYTHONPATH": str(Path(__file__).parents[3])},
    )

    size, grown_kib = map(int, done.stdout.split())
    assert size > 150_000_000
    assert grown_kib < 16 * 1024
