import time
from collections.abc import Iterator

import pytest

from hutch.client.login import Endpoint
from hutch.stream import messages as m
from hutch.stream.codec import Decoded
from hutch.stream.offsets import OffsetType
from pyspark_hutch.client.cluster import Bounds
from pyspark_hutch.offsets.points import offsets_of, refuse_beyond
from pyspark_hutch.options.errors import WrongOption
from pyspark_hutch.options.places import Point, PointKind, Where
from pyspark_hutch.options.read_settings import Unmatched
from tests.fake_server import FakeServer, Talk
from tests.reading_rig import cluster_of

HELD = {"a": Bounds(10, 100), "b": Bounds(0, 0)}


class Clocked(FakeServer):
    """Remembers the times that it was asked for; each row is as old as its offset says."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[int] = []
        self.found = 50
        self.handlers["resolve_offset_spec"] = self._at_time

    def _at_time(self, talk: Talk, asked: Decoded) -> None:
        assert isinstance(asked.message, m.ResolveOffsetSpec)
        assert asked.message.offset.type is OffsetType.TIMESTAMP
        self.asked.append(asked.message.offset.value)
        talk.reply(asked, m.ResolvedOffset(1, self.found))


@pytest.fixture
def server() -> Iterator[Clocked]:
    with Clocked() as fake:
        yield fake


def found(
    server: FakeServer, *points: tuple[str, Point], unmatched: Unmatched = "error"
) -> dict[str, int]:
    leaders = {stream: Endpoint(server.host, server.port) for stream, _ in points}
    held = {stream: HELD[stream] for stream in leaders}
    where = Where("startingTimestamp", by_stream=points)
    return offsets_of(cluster_of(server), leaders, held, where, unmatched)


@pytest.mark.parametrize(
    ("point", "offsets"),
    [
        (Point(PointKind.EARLIEST), [10, 0]),
        (Point(PointKind.LATEST), [100, 0]),
        (Point(PointKind.OFFSET, 55), [55, 55]),
        (Point(PointKind.ROWS_BACK, 30), [70, 0]),
        (Point(PointKind.ROWS_BACK, 1_000), [10, 0]),
    ],
)
def test_a_point_without_a_time_is_found_without_a_question(
    server: Clocked, point: Point, offsets: list[int]
) -> None:
    assert list(found(server, ("a", point), ("b", point)).values()) == offsets
    assert not server.talks


def test_a_time_is_the_first_chunk_that_is_not_older(server: Clocked) -> None:
    assert found(server, ("a", Point(PointKind.TIMESTAMP, 1_234))) == {"a": 50}
    assert server.asked == [1_234]


def test_a_time_that_no_row_has_reached_is_an_error_or_the_end(server: Clocked) -> None:
    server.found = 100
    point = ("a", Point(PointKind.TIMESTAMP, 1_234))

    with pytest.raises(WrongOption, match="startingTimestamp=1234: stream 'a' has no row of this"):
        found(server, point)
    assert found(server, point, unmatched="latest") == {"a": 100}


def test_rows_that_came_after_the_query_began_are_not_skipped(server: Clocked) -> None:
    server.found = 130  # published meanwhile, up to 140

    assert found(server, ("a", Point(PointKind.TIMESTAMP, 5)), unmatched="latest") == {"a": 100}


def test_a_span_back_is_counted_from_now_and_never_an_error(server: Clocked) -> None:
    server.found = 100

    assert found(server, ("a", Point(PointKind.MS_BACK, 60_000))) == {"a": 100}
    assert abs(server.asked[0] - (time.time() * 1000 - 60_000)) < 30_000


def test_a_span_longer_than_time_itself_is_the_beginning(server: Clocked) -> None:
    server.found = 10

    assert found(server, ("a", Point(PointKind.MS_BACK, 1 << 70))) == {"a": 10}
    assert server.asked == [0]


def test_points_must_name_the_streams_that_are_read(server: Clocked) -> None:
    leaders = dict.fromkeys("ab", Endpoint(server.host, server.port))
    where = Where("startingOffsets", by_stream=(("a", Point(PointKind.EARLIEST)),))

    with pytest.raises(WrongOption, match=r"startingOffsets: .* misses 'b'"):
        offsets_of(cluster_of(server), leaders, HELD, where, "error")


def test_an_offset_of_a_stream_that_was_made_again_since_is_refused(server: Clocked) -> None:
    leaders = {"a": Endpoint(server.host, server.port)}

    def at(incarnation: str | None) -> dict[str, int]:
        point = Point(PointKind.OFFSET, 50, incarnation)
        where = Where("startingOffsets", by_stream=(("a", point),))
        return offsets_of(cluster_of(server), leaders, {"a": Bounds(10, 100, 7)}, where, "error")

    assert at("7") == at(None) == {"a": 50}
    with pytest.raises(WrongOption, match="stream 'a' was deleted and made again since its offset"):
        at("6")


def test_an_offset_beyond_the_end_is_refused() -> None:
    where = Where("startingOffsets", Point(PointKind.OFFSET, 101))

    refuse_beyond(HELD, {"a": 100, "b": 0}, where)
    with pytest.raises(WrongOption, match="offset 101 of stream 'a' is beyond its end, 100"):
        refuse_beyond(HELD, {"a": 101, "b": 0}, where)
