from collections.abc import Iterator

import pytest

from hutch.client.login import Endpoint
from pyspark_hutch.client.range_reader import DataLoss
from pyspark_hutch.columns import WantedColumns
from pyspark_hutch.decoding.faults import DamagedChunk
from pyspark_hutch.offsets.streams import PartitionStream
from pyspark_hutch.options.places import Point, PointKind, Where
from pyspark_hutch.options.read_settings import Filter, ReadSettings, ReadSource
from pyspark_hutch.planning.splits import Split
from pyspark_hutch.split_task import rows_of
from tests.fake_server import FakeServer, chunk, chunks
from tests.reading_rig import cluster_of, settings_of

COLUMNS = ("stream", "super_stream", "partition", "offset", "body")


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as fake:
        fake.streams["p-3"] = chunks(*[7] * 100)
        yield fake


def rows(server: FakeServer, low: int, high: int, **more: object) -> Iterator[dict[str, object]]:
    settings = ReadSettings(
        connection=settings_of(server),
        source=ReadSource(super_streams=("p",)),
        starting=Where("startingOffsets", Point(PointKind.EARLIEST)),
        ending=None,
        **more,  # type: ignore[arg-type]  # as a test says
    )
    place = PartitionStream("p-3", "p", 3)
    split = Split(place, Endpoint(server.host, server.port), low, high)
    wanted = WantedColumns(COLUMNS, "p-3", "p", 3, body_format="raw", variant=False, app_columns=())
    for batch in rows_of(cluster_of(server), split, settings, wanted):
        yield from batch.to_pylist()


def test_a_split_gives_its_rows_with_where_they_are_from(server: FakeServer) -> None:
    found = list(rows(server, 5, 690))

    assert found[0] == {
        "stream": "p-3",
        "super_stream": "p",
        "partition": 3,
        "offset": 5,
        "body": b"5".ljust(10),
    }
    assert [row["offset"] for row in found] == list(range(5, 690))


def test_a_lost_connection_doubles_no_row(server: FakeServer) -> None:
    good = server.handlers["credit"]

    def cuts(talk: object, asked: object) -> None:
        good(talk, asked)  # type: ignore[arg-type]
        if server.count("credit") in {5, 30, 31}:
            server.cut()

    server.handlers["credit"] = cuts

    assert [row["offset"] for row in rows(server, 0, 700)] == list(range(700))


def test_rows_that_are_left_early_leave_no_subscription(server: FakeServer) -> None:
    server.streams["p-3"] = chunks(*[20_000] * 5, body_bytes=5)
    found = rows(server, 0, 100_000)
    next(found)
    assert server.talks[0].readings

    found.close()  # type: ignore[attr-defined]

    assert not server.talks[0].readings


def test_rows_that_are_gone_are_an_error_or_left_out_as_the_options_say(
    server: FakeServer,
) -> None:
    server.streams["p-3"] = chunks(*[7] * 10, first=70)

    with pytest.raises(DataLoss, match="stream 'p-3': offsets 10 to 69 are lost"):
        list(rows(server, 10, 100))
    found = rows(server, 10, 100, fail_on_data_loss=False)
    assert [row["offset"] for row in found] == list(range(70, 100))


def test_a_filter_goes_to_the_server_and_its_rows_come(server: FakeServer) -> None:
    others = chunks(*[7] * 9, first=7, value="y")
    server.streams["p-3"] = [*chunks(7, value="x"), *others, *chunks(7, first=70, value="x")]

    found = [row["offset"] for row in rows(server, 3, 77, filter=Filter(("x",)))]

    assert found == [*range(3, 7), *range(70, 77)]


def test_a_damaged_chunk_names_stream_and_offset(server: FakeServer) -> None:
    server.streams["p-3"] = [*chunks(7), chunk(7, [b"x"], crc=5)]

    with pytest.raises(DamagedChunk, match="stream 'p-3' is damaged at offset 7"):
        list(rows(server, 0, 8))
