"""Names: of modules, which users may have too, and of connections, which administrators see."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.integration.administrator import ctl
from tests.integration.server import HutchServer
from tests.spark.conftest import Place, Read
from tests.spark.publishing import bodies_of, publish
from tests.spark.queries import Query, eventually, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPARKS_SIDE = ("datasource", "listener", "batch_reads", "stream_reads", "writes")


@pytest.mark.parametrize(
    ("modules", "unwanted"),
    [
        ("pyspark_hutch", "asyncio gateway hutch pyarrow pydantic pyspark starlette store uvloop"),
        (
            " ".join(f"pyspark_hutch.{name}" for name in SPARKS_SIDE),
            "gateway hutch.mewbase pandas pydantic starlette store typing_extensions uvloop",
        ),
    ],
    ids=["package", "format"],
)
def test_loading_the_source_loads_nothing_of_the_server(modules: str, unwanted: str) -> None:
    code = (
        "import importlib, sys\n"
        f"for name in {modules.split()!r}: importlib.import_module(name)\n"
        f"print([name for name in {unwanted.split()!r} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )

    assert done.stdout.strip() == "[]"


# ---- connections -----------------------------------------------------------------------------


@pytest.fixture
def server(tmp_path: Path) -> Iterator[HutchServer]:
    with HutchServer(tmp_path / "data") as started:
        yield started


@pytest.fixture
def own(server: HutchServer) -> Place:
    return Place("hutch", server.host, server.port)


def names_of(server: HutchServer) -> list[str]:
    """The names of the connections of Spark, as `hutch ctl` lists them."""
    listed = ctl(server, "list_stream_connections", "client_properties")
    names = [dict(one["client_properties"]).get("connection_name", "") for one in listed]
    return [name for name in names if name != "tests"]


def test_connections_are_named_for_application_query_and_task_and_do_not_stay(
    server: HutchServer, own: Place, stream: str, read: Read
) -> None:
    with own.client() as client:
        publish(client, stream, bodies_of(500), at_once=50)
    options = {"stream": stream, "minPartitions": 4, "pool.idleTimeoutMs": 2_000}

    for _ in range(2):
        read(own, "offset bigint", **options).collect()
    names = names_of(server)

    tasks = [name for name in names if "planner" not in name]
    for name in tasks:
        assert re.fullmatch(r"tests/execution \d+/task \d+\.\d+\.\d+ pid \d+", name), names
    workers = [name.rpartition(" ")[2] for name in tasks]
    assert len(workers) == len(set(workers)) > 0
    eventually(lambda: not names_of(server))


def test_connections_of_a_streaming_query_have_its_id(
    spark: SparkSession, server: HutchServer, own: Place, stream: str, tmp_path: Path
) -> None:
    with own.client() as client:
        publish(client, stream, bodies_of(50))
    options = {"stream": stream, "startingOffsets": "earliest", "connectionName": "nightly"}
    query = Query(spark, own, tmp_path, **options, **{"client.team": "data"})
    with query.running() as running:
        eventually(lambda: rows_of(running) == 50)
        names = names_of(server)
        (properties, *_) = ctl(server, "list_stream_connections", "client_properties")

    wanted = rf"nightly/query {str(running.id)[:8]}/task \d+\.\d+\.\d+ pid \d+"
    assert any(re.fullmatch(wanted, name) for name in names), names
    assert any(re.fullmatch(r"nightly/planner pid \d+", name) for name in names), names
    assert dict(properties["client_properties"])["team"] == "data"
