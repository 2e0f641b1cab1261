from collections.abc import Iterator

import pytest

from pyspark_hutch.offsets.streams import PartitionStream
from pyspark_hutch.options.errors import WrongOption
from pyspark_hutch.options.read_settings import Splitting
from pyspark_hutch.planning.splits import StreamRange, counts_of, cut, even_cuts, plan
from tests.fake_server import FakeServer, chunks
from tests.reading_rig import cluster_of


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as fake:
        yield fake


def planned(
    server: FakeServer, splitting: Splitting, *ranges: tuple[str, int, int]
) -> list[tuple[str, int, int]]:
    cluster = cluster_of(server)
    leaders = cluster.leaders([stream for stream, _, _ in ranges])
    wanted = [StreamRange(PartitionStream(stream), low, high) for stream, low, high in ranges]
    found = plan(cluster, leaders, wanted, splitting)
    return [(split.place.stream, split.low, split.high) for split in found]


def test_each_stream_is_a_split_unless_more_are_asked_for() -> None:
    assert counts_of([10, 1, 500], Splitting()) == [1, 1, 1]
    assert counts_of([10, 1, 500], Splitting(partitions_min=3)) == [1, 1, 1]


def test_more_splits_go_where_more_rows_are() -> None:
    assert counts_of([100, 300], Splitting(partitions_min=4)) == [1, 3]
    assert counts_of([1, 1_000], Splitting(partitions_min=10)) == [1, 10]


def test_rows_of_a_split_have_a_limit() -> None:
    assert counts_of([100, 101, 5], Splitting(records_max=50)) == [2, 3, 1]
    assert counts_of([100], Splitting(records_max=50, partitions_min=7)) == [7]


def test_no_split_is_empty() -> None:
    assert counts_of([3], Splitting(partitions_min=100)) == [3]


def test_even_cuts_lie_between_the_ends() -> None:
    assert even_cuts(10, 20, 1) == []
    assert even_cuts(10, 20, 2) == [15]
    assert even_cuts(0, 10, 3) == [3, 6]


def test_a_range_is_cut_at_the_borders_inside_it_each_once() -> None:
    assert cut(10, 20, [15, 10, 20, 5, 25, 15, 12]) == [(10, 12), (12, 15), (15, 20)]
    assert cut(10, 20, []) == [(10, 20)]


def test_splits_end_where_chunks_begin(server: FakeServer) -> None:
    server.streams["s"] = chunks(7, 7, 7, 7)

    assert planned(server, Splitting(partitions_min=4), ("s", 0, 28)) == [
        ("s", 0, 7),
        ("s", 7, 14),
        ("s", 14, 21),
        ("s", 21, 28),
    ]
    assert planned(server, Splitting(partitions_min=2), ("s", 3, 26)) == [
        ("s", 3, 14),
        ("s", 14, 26),
    ]


def test_a_chunk_is_never_in_two_splits(server: FakeServer) -> None:
    server.streams["s"] = chunks(100)

    assert planned(server, Splitting(partitions_min=8), ("s", 0, 100)) == [("s", 0, 100)]


def test_empty_ranges_give_no_split_and_ask_nothing(server: FakeServer) -> None:
    server.streams["s"] = chunks(10)

    assert planned(server, Splitting(partitions_min=8), ("s", 5, 5), ("s", 7, 3)) == []
    assert server.count("resolve_offset_spec") == 0


def test_borders_of_many_streams_are_asked_for_at_once(server: FakeServer) -> None:
    server.streams = {f"s{number}": chunks(2, 2) for number in range(1_000)}

    found = planned(
        server, Splitting(partitions_min=2_000), *((stream, 0, 4) for stream in server.streams)
    )

    assert len(found) == 2_000
    assert server.reads < 120


def test_more_tasks_than_a_batch_can_have_are_refused_by_name(server: FakeServer) -> None:
    server.streams["s"] = chunks(10)

    with pytest.raises(WrongOption, match="option maxRecordsPerPartition=1: makes 100,002 tasks"):
        planned(server, Splitting(records_max=1), ("s", 0, 100_002))
