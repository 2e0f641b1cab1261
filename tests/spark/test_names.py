"""Names: of modules, which users may have too, and of connections, which administrators see."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import ZipFile

import pytest

from pyspark_hutch.jobs.preparation.java import java_trouble
from tests.integration.administrator import ctl
from tests.integration.server import HutchServer
from tests.spark.conftest import SPARK_SETTINGS, Place, Read
from tests.spark.publishing import bodies_of, publish
from tests.spark.queries import Query, eventually, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JOB = """
import json, sys
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

import gateway, pipeline, store

def work(number):
    import gateway, pipeline, store
    return gateway.step(pipeline.step(store.step(number)))

options, settings = json.loads(sys.argv[1])
builder = SparkSession.builder.master("local[2]").appName("users own")
for name, value in settings.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
frame = spark.read.format("hutch").options(**options).load()
worked = frame.select("offset", udf(work, "bigint")("offset").alias("worked")).orderBy("offset")
print(json.dumps([row.worked for row in worked.collect()]))
spark.stop()
"""
SPARKS_SIDE = ("datasource", "listening", "reading", "streaming", "writing")
USERS_OWN = ("gateway", "store", "pipeline")
JOB_S = 150


def test_a_job_may_have_its_own_packages_gateway_store_and_pipeline(
    place: Place, stream: str, tmp_path: Path
) -> None:
    trouble = java_trouble()
    if trouble is not None:
        pytest.skip(trouble)
    with place.client() as client:
        publish(client, stream, bodies_of(20))
    for name in USERS_OWN:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("def step(number):\n    return number + 1\n")
    with ZipFile(tmp_path / "own.zip", "w") as archive:
        for name in USERS_OWN:
            archive.write(tmp_path / name / "__init__.py", f"{name}/__init__.py")
    (tmp_path / "job.py").write_text(JOB)
    given = json.dumps([place.options | {"stream": stream}, SPARK_SETTINGS])

    done = subprocess.run(
        [sys.executable, "job.py", given],
        cwd=tmp_path,
        env=os.environ
        | {
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_SUBMIT_ARGS": f"--py-files {tmp_path / 'own.zip'} pyspark-shell",
            "SPARK_LOCAL_IP": "127.0.0.1",
        },
        capture_output=True,
        text=True,
        timeout=JOB_S,
        check=False,
    )

    assert done.returncode == 0, done.stderr[-4_000:]
    assert json.loads(done.stdout.splitlines()[-1]) == [number + 3 for number in range(20)]


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
