from collections.abc import Iterator

import pytest

from hutch.client.errors import Refused, ServerGone
from pyspark_hutch.client.cluster import Bounds
from pyspark_hutch.options.places import Point, PointKind, Where
from pyspark_hutch.options.read_settings import ReadSettings, ReadSource
from pyspark_hutch.planning.tails import LIST_S, LOOK_S, Tails
from tests.fake_server import FakeServer, chunks
from tests.reading_rig import cluster_of, settings_of


class Clock:
    """A clock that a test moves on."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as fake:
        fake.streams = {"a": chunks(3), "b": chunks(4)}
        yield fake


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def tails(server: FakeServer, clock: Clock) -> Tails:
    starting = Where("startingOffsets", Point(PointKind.LATEST))
    settings = ReadSettings(
        connection=settings_of(server),
        source=ReadSource(streams=("a", "b")),
        starting=starting,
        ending=None,
    )
    return Tails(cluster_of(server, planner_retries=0), settings, clock)


def test_an_answer_of_a_moment_ago_will_do_unless_a_fresh_one_is_wanted(
    server: FakeServer, clock: Clock, tails: Tails
) -> None:
    assert tails.look() == {"a": Bounds(0, 3), "b": Bounds(0, 4)}
    server.streams["a"] = chunks(9)

    clock.now += LOOK_S * 0.9
    assert tails.look()["a"] == Bounds(0, 3)
    assert tails.look(is_fresh=True)["a"] == Bounds(0, 9)


def test_an_error_is_not_forgotten_before_the_next_look(
    server: FakeServer, clock: Clock, tails: Tails
) -> None:
    tails.look()
    server.go()
    clock.now += LOOK_S
    for _ in range(3):
        with pytest.raises(ServerGone):
            tails.look()

    server.is_away = False
    clock.now += LOOK_S
    assert tails.look()["a"] == Bounds(0, 3)


def test_a_stream_that_goes_between_two_looks_is_left_out(
    server: FakeServer, clock: Clock, tails: Tails
) -> None:
    tails.look(known=())
    del server.streams["b"]
    clock.now += LOOK_S

    assert tails.look(known=()) == {"a": Bounds(0, 3)}
    assert list(tails.found.leaders) == ["a"]


def test_a_stream_that_comes_back_is_found_when_streams_are_listed_again(
    server: FakeServer, clock: Clock, tails: Tails
) -> None:
    tails.look()
    held = server.streams.pop("b")
    clock.now += LOOK_S
    tails.look()
    server.streams["b"] = held
    clock.now += LIST_S

    assert tails.look()["b"] == Bounds(0, 4)


def test_a_stream_that_never_was_is_refused_unless_the_query_knows_it(
    server: FakeServer, tails: Tails
) -> None:
    del server.streams["b"]

    with pytest.raises(Refused, match="stream 'b' does not exist"):
        tails.look(is_fresh=True, known=("a",))
    assert tails.look(is_fresh=True, known=("b",)) == {"a": Bounds(0, 3)}
