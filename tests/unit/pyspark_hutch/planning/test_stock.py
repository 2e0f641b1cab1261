from collections.abc import Iterator

import pytest

from hutch.client.login import Endpoint
from pyspark_hutch.planning.stock import KEPT_S, RowSizes
from tests.fake_server import FakeServer, chunks
from tests.reading_rig import cluster_of


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as fake:
        fake.streams = {
            "small": chunks(10, body_bytes=16),
            "large": chunks(10, body_bytes=996),
        }
        yield fake


def sizes_at(server: FakeServer, now: list[float]) -> RowSizes:
    return RowSizes(cluster_of(server, planner_retries=0), lambda: now[0])


def test_rows_are_as_large_as_those_of_the_chunk_at_hand(server: FakeServer) -> None:
    leaders = dict.fromkeys(server.streams, Endpoint(server.host, server.port))

    found = sizes_at(server, [0.0]).look(leaders, {"small": 0, "large": 9})

    assert found == {"small": 20.0, "large": 1_000.0}
    assert len(server.talks) == 1
    assert not server.talks[0].readings


def test_an_estimate_is_made_anew_after_a_while(server: FakeServer) -> None:
    leaders = {"small": Endpoint(server.host, server.port)}
    now = [0.0]
    sizes = sizes_at(server, now)
    sizes.look(leaders, {"small": 0})
    server.streams["small"] = chunks(10, body_bytes=96)

    assert sizes.look(leaders, {"small": 0}) == {"small": 20.0}
    now[0] += KEPT_S
    assert sizes.look(leaders, {"small": 0}) == {"small": 100.0}


def test_a_look_that_fails_ends_no_query(
    server: FakeServer, caplog: pytest.LogCaptureFixture
) -> None:
    leaders = {"small": Endpoint(server.host, server.port)}
    server.go()

    assert sizes_at(server, [0.0]).look(leaders, {"small": 0}) == {"small": 100.0}
    assert "the size of rows is not known" in caplog.text
