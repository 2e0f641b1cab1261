from collections.abc import Iterator

import pytest

from hutch.client.errors import Refused
from pyspark_hutch.options.errors import WrongOption
from pyspark_hutch.options.places import Point, PointKind, Where
from pyspark_hutch.options.read_settings import ReadSettings, ReadSource, Splitting
from pyspark_hutch.planning.batch import plan_batch
from tests.fake_server import FakeServer, chunks
from tests.reading_rig import cluster_of, settings_of


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as fake:
        fake.streams = {"a": chunks(*[10] * 10), "b": [], "c": chunks(5, first=30)}
        yield fake


def planned(
    server: FakeServer, start: Point, end: Point, *streams: str, parts: int | None = None
) -> list[tuple[str, int, int]]:
    settings = ReadSettings(
        connection=settings_of(server),
        source=ReadSource(streams=streams),
        starting=Where("startingOffsets", start),
        ending=Where("endingOffsets", end),
        splitting=Splitting(partitions_min=parts),
    )
    splits = plan_batch(cluster_of(server), settings)
    return [(split.place.stream, split.low, split.high) for split in splits]


EARLIEST, LATEST = Point(PointKind.EARLIEST), Point(PointKind.LATEST)


def test_all_there_is_is_planned_without_empty_streams(server: FakeServer) -> None:
    assert planned(server, EARLIEST, LATEST, "a", "b", "c") == [("a", 0, 100), ("c", 30, 35)]


def test_a_range_is_cut_at_chunks(server: FakeServer) -> None:
    start, end = Point(PointKind.OFFSET, 15), Point(PointKind.OFFSET, 65)

    assert planned(server, start, end, "a", parts=2) == [("a", 15, 40), ("a", 40, 65)]


@pytest.mark.parametrize(
    ("start", "end", "words"),
    [
        (Point(PointKind.OFFSET, 101), LATEST, "startingOffsets: offset 101 of stream 'a' is bey"),
        (EARLIEST, Point(PointKind.OFFSET, 101), "endingOffsets: offset 101 of stream 'a' is bey"),
    ],
)
def test_offsets_beyond_the_end_are_refused(
    server: FakeServer, start: Point, end: Point, words: str
) -> None:
    with pytest.raises(WrongOption, match=words):
        planned(server, start, end, "a")


def test_a_stream_that_does_not_exist_is_refused(server: FakeServer) -> None:
    with pytest.raises(Refused, match="stream 'none' does not exist"):
        planned(server, EARLIEST, LATEST, "a", "none")
