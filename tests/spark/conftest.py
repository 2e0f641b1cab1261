"""One Spark session for all tests, a Hutch beside it, and a RabbitMQ for those that compare.

Driver and workers run outside the repository, on the packages of an environment that has the built
wheel (`make test-spark` makes it).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from compat.broker.fixture import rabbitmq
from compat.broker.running import RunningBroker
from pyspark_hutch.jobs.preparation.installed import java_trouble
from tests.client import Client
from tests.integration.server import HutchServer
from tests.spark_cluster.standalone import java_variables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.readwriter import DataFrameReader

__all__ = ["rabbitmq"]

HERE = Path(__file__).parent
JAVA_MIN = 17
LIMIT_S = 180
"""For a test; the first has the start of Spark in it, which takes a minute on a busy machine."""

SPARK_SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.executor.heartbeatInterval": "1s",
    "spark.python.worker.faulthandler.enabled": "true",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    # The usual one starts a process for each look at a link: two dozen of them in every batch.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing."
        "FileSystemBasedCheckpointFileManager"
    ),
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def pytest_configure() -> None:
    os.environ.update(java_variables())  # also for what tests start


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE not in item.path.parents:
            continue
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(LIMIT_S))
        if isinstance(item, pytest.Function) and "rabbitmq" in item.fixturenames:
            item.add_marker(pytest.mark.rabbitmq)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Give the session; `local[2,2]`, since only this form lets a task fail and be tried again."""
    trouble = java_trouble()
    if trouble is not None:
        pytest.skip(trouble)
    from pyspark.sql import SparkSession

    folder = tmp_path_factory.mktemp("spark")
    before = Path.cwd()
    os.chdir(folder)
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    builder = SparkSession.builder.master("local[2,2]").appName("tests")
    for name, value in SPARK_SETTINGS.items():
        builder = builder.config(name, value)
    session = builder.config("spark.sql.warehouse.dir", str(folder / "warehouse")).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
    os.chdir(before)


@pytest.fixture(scope="session")
def hutch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HutchServer]:
    """Give a server that no test stops; each test takes streams of its own."""
    data = tmp_path_factory.mktemp("hutch") / "data"
    with HutchServer(data, "--durability", "os") as server:
        yield server


class Place:
    """A server as a test sees it, and the options that lead Spark to it.

    Attributes:
        product: `hutch` or `rabbitmq`.
    """

    def __init__(self, product: str, host: str, port: int) -> None:
        self.product = product
        self.host = host
        self.port = port

    @property
    def options(self) -> dict[str, str]:
        """The options that every read and write needs."""
        return {"endpoints": f"{self.host}:{self.port}", "advertised": "ignore"}

    def client(self) -> Client:
        """Return a client that is logged in."""
        return Client.opened(self.host, self.port)


@pytest.fixture
def place(hutch: HutchServer) -> Place:
    """Give the Hutch of all tests."""
    return Place("hutch", hutch.host, hutch.port)


@pytest.fixture(params=["hutch", pytest.param("rabbitmq", marks=pytest.mark.rabbitmq)])
def either(request: pytest.FixtureRequest) -> Place:
    """Give first Hutch, then RabbitMQ: what a test finds must be the same."""
    if request.param == "hutch":
        server: HutchServer = request.getfixturevalue("hutch")
        return Place("hutch", server.host, server.port)
    broker: RunningBroker = request.getfixturevalue("rabbitmq")
    return Place("rabbitmq", broker.host, broker.ports.stream)


@pytest.fixture
def stream(request: pytest.FixtureRequest) -> str:
    """Give a name that no other test has."""
    return f"{request.node.name[:80]}-{os.urandom(4).hex()}"


Read = Callable[..., "DataFrame"]


@pytest.fixture
def read(spark: SparkSession) -> Read:
    """Load a data frame: `read(place, stream="orders", startingOffsets="earliest")`."""

    def load(server: Place, schema: str | None = None, **options: object) -> DataFrame:
        reader: DataFrameReader = spark.read.format("hutch").options(**server.options)
        if schema is not None:
            reader = reader.schema(schema)
        return reader.options(**{name: str(value) for name, value in options.items()}).load()

    return load
