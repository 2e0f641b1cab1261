from collections.abc import Iterator

import pytest

from hutch.client.errors import Refused
from pyspark_hutch.offsets.streams import PartitionStream, streams_of
from pyspark_hutch.options.errors import WrongOption
from pyspark_hutch.options.read_settings import ReadSource
from tests.fake_server import FakeServer
from tests.reading_rig import cluster_of


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as fake:
        fake.super_streams = {"p": ("p-0", "p-1", "p-2"), "q": ("q-0",), "r": ("p-1",), "none": ()}
        yield fake


def test_plain_streams_are_those_named_and_nothing_is_asked(server: FakeServer) -> None:
    found = streams_of(cluster_of(server), ReadSource(streams=("b", "a")))

    assert found == (PartitionStream("b"), PartitionStream("a"))
    assert not server.talks


def test_a_super_stream_is_its_partitions_with_their_indexes(server: FakeServer) -> None:
    found = streams_of(cluster_of(server), ReadSource(super_streams=("p", "q", "none")))

    assert found == (
        PartitionStream("p-0", "p", 0),
        PartitionStream("p-1", "p", 1),
        PartitionStream("p-2", "p", 2),
        PartitionStream("q-0", "q", 0),
    )


def test_assigned_partitions_keep_their_indexes(server: FakeServer) -> None:
    found = streams_of(cluster_of(server), ReadSource(assigned=(("p", (2, 0)), ("q", (0,)))))

    assert found == (
        PartitionStream("p-0", "p", 0),
        PartitionStream("p-2", "p", 2),
        PartitionStream("q-0", "q", 0),
    )


def test_a_partition_that_is_not_there_is_refused(server: FakeServer) -> None:
    with pytest.raises(WrongOption, match=r"assign: super stream 'p' has 3 partitions, no .* 3"):
        streams_of(cluster_of(server), ReadSource(assigned=(("p", (0, 3)),)))


def test_a_partition_of_two_super_streams_is_refused(server: FakeServer) -> None:
    with pytest.raises(WrongOption, match="superStream: stream 'p-1' is a partition of both 'p'"):
        streams_of(cluster_of(server), ReadSource(super_streams=("p", "r")))


def test_a_partition_that_is_bound_twice_is_read_once_and_told_once(
    server: FakeServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.super_streams["twice"] = ("a", "b", "a", "c")
    for _ in range(3):
        assert streams_of(cluster_of(server), ReadSource(super_streams=("twice",))) == (
            PartitionStream("a", "twice", 0),
            PartitionStream("b", "twice", 1),
            PartitionStream("c", "twice", 3),
        )
    found = streams_of(cluster_of(server), ReadSource(assigned=(("twice", (2, 3)),)))

    assert found == (PartitionStream("a", "twice", 2), PartitionStream("c", "twice", 3))
    assert [line.split(",")[0] for line in caplog.messages] == [
        "partition 'a' is bound to super stream 'twice' more than once"
    ]


def test_a_super_stream_that_is_not_there_is_refused(server: FakeServer) -> None:
    with pytest.raises(Refused, match="super stream 'x' does not exist"):
        streams_of(cluster_of(server), ReadSource(super_streams=("x",)))
