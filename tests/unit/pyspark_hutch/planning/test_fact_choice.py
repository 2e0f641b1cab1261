from collections.abc import Iterator

import pytest

from pyspark_hutch.options.errors import WrongOption
from pyspark_hutch.options.places import Point, PointKind, Where
from pyspark_hutch.options.read_settings import ReadSettings, ReadSource, Splitting
from pyspark_hutch.planning.fact_choice import facts_of
from pyspark_hutch.planning.stock import StockFacts
from tests.fake_server import FakeServer
from tests.reading_rig import cluster_of, settings_of

START = Where("startingOffsets", Point(PointKind.EARLIEST))


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as fake:
        yield fake


def settings(server: FakeServer, source: ReadSource, **more: object) -> ReadSettings:
    return ReadSettings(
        connection=settings_of(server),
        source=source,
        starting=START,
        ending=None,
        **more,  # type: ignore[arg-type]  # as a test says
    )


def test_a_server_without_commands_for_pipelines_is_asked_as_every_other(
    server: FakeServer,
) -> None:
    found = facts_of(cluster_of(server), settings(server, ReadSource(streams=("a",))))

    assert isinstance(found, StockFacts)


@pytest.mark.parametrize(
    ("source", "more", "words"),
    [
        (
            ReadSource(pattern="^a"),
            {},
            "streamPattern: {} does not list streams, which needs Hutch; name them by ",
        ),
        (
            ReadSource(streams=("a",)),
            {"splitting": Splitting(bytes_max=5)},
            "maxBytesPerPartition: {} does not tell sizes, which needs Hutch; take ",
        ),
        (
            ReadSource(streams=("a",)),
            {"describes_streams": True},
            "metadata: {} does not describe streams, which needs Hutch",
        ),
    ],
)
def test_what_needs_hutch_is_refused_elsewhere_with_the_option_and_the_server(
    server: FakeServer, source: ReadSource, more: dict[str, object], words: str
) -> None:
    with pytest.raises(WrongOption) as caught:
        facts_of(cluster_of(server), settings(server, source, **more))

    told = words.format(f"{server.host}:{server.port} (fake)")
    assert str(caught.value).startswith(f"option {told}")
