"""A cluster of two workers and a Hutch beside it, for the whole run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pyspark_hutch.jobs.preparation.installed import java_trouble
from tests.integration.server import HutchServer
from tests.spark_cluster.standalone import Cluster, environment, settings_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def need_java() -> None:
    """Skip where there is no Java for Spark."""
    trouble = java_trouble()
    if trouble is not None:
        pytest.skip(trouble)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Give a master and two workers."""
    need_java()
    with Cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def hutch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HutchServer]:
    """Give a server that no test stops; each test takes streams of its own."""
    data = tmp_path_factory.mktemp("hutch") / "data"
    with HutchServer(data, "--durability", "os") as server:
        yield server


@contextmanager
def driver(master: str, name: str, folder: Path) -> Iterator[SparkSession]:
    """Give a session on a master, with a folder outside the repository to work in."""
    from pyspark.sql import SparkSession

    before = Path.cwd()
    os.chdir(folder)
    os.environ |= environment()
    builder = SparkSession.builder.master(master).appName(name)
    for key, value in settings_of().items():
        builder = builder.config(key, value)
    session = builder.config("spark.sql.warehouse.dir", str(folder / "tables")).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()
        os.chdir(before)
