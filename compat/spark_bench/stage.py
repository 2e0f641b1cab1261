"""Things that all works share: a Spark session, the servers, and data made when first needed."""

import os
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from compat.bench.connection import Address, Connection
from compat.bench.servers import Server
from compat.spark_bench.errors import SparkBenchError
from compat.spark_bench.rows import Rows
from compat.spark_bench.scale import Scale
from pyspark_hutch.client.cluster import Cluster
from pyspark_hutch.client.pool import Name
from pyspark_hutch.columns import DEFAULT
from pyspark_hutch.jobs.preparation.installed import java_trouble
from pyspark_hutch.options.write_rules import write_settings
from pyspark_hutch.sink.publishing_ids import TaskIdentity
from pyspark_hutch.sink.targets import prepare
from pyspark_hutch.sink.task import write_rows

CORES: Final = 2
SETTINGS: Final = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "4g",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": str(CORES),
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


class Stage:
    """Everything that runs during the benchmark.

    Attributes:
        spark: The session of all works.
        scale: How many rows there are.
        folder: For Parquet files.
    """

    def __init__(self, folder: Path, scale: Scale) -> None:
        """Begin a session, with `folder` as its working directory.

        Raises:
            SparkBenchError: There is no Java.
        """
        trouble = java_trouble()
        if trouble is not None:
            raise SparkBenchError(trouble)
        self.scale = scale
        self.folder = folder
        self._written: set[Path] = set()
        self._loaded: dict[tuple[str, str], Server] = {}
        # Workers look into the working directory before their environment.
        os.chdir(folder)
        os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
        builder = SparkSession.builder.master(f"local[{CORES}]").appName("bench-spark")
        own = {"spark.driver.extraJavaOptions": scale.java_options} if scale.java_options else {}
        for name, value in (SETTINGS | own).items():
            builder = builder.config(name, value)
        self.spark = builder.config("spark.sql.warehouse.dir", f"{folder}/tables").getOrCreate()
        # Tasks that the end of a query cuts off are no errors; those that fail raise.
        self.spark.sparkContext.setLogLevel("OFF")

    @property
    def jvm(self) -> int:
        """The process id of Spark's Java."""
        java = getattr(self.spark.sparkContext._gateway, "proc")  # noqa: B009, SLF001
        pid: int = java.pid
        return pid

    def stop(self) -> None:
        """End the session; Java ends with this process."""
        with suppress(Exception):  # an interrupt may have taken an answer from py4j
            self.spark.stop()

    # ---- streams -----------------------------------------------------------------------------

    def stream(self, server: Server, rows: Rows, columns: Sequence[str]) -> DataFrame:
        """Return a read of rows from a server, with a task for each core."""
        key = (server.name, rows.name)
        if key not in self._loaded:
            load(server.address, rows, self.scale.count(rows))
            self._loaded[key] = server
        reader = self.spark.read.format("hutch").options(**options_of(server.address))
        reader = reader.option("stream", rows.name).option("minPartitions", CORES)
        names = ",".join(name for name in columns if name not in DEFAULT)
        if names:
            reader = reader.option("metadataFields", names)
        return reader.schema(reader.load().select(*columns).schema).load()

    def new_stream(self, server: Server, name: str) -> dict[str, str]:
        """Make a stream, empty even if it was there; return the options that write to it."""
        with Connection(server.address) as connection:
            connection.delete_if_there(name)
            connection.create(name)
        return options_of(server.address) | {"stream": name}

    def drop_stream(self, server: Server, name: str) -> None:
        """Delete a stream."""
        with Connection(server.address) as connection:
            connection.delete(name)

    def forget(self, server: Server) -> None:
        """Delete what was loaded into a server."""
        for key in [key for key, place in self._loaded.items() if place is server]:
            del self._loaded[key]
            self.drop_stream(server, key[1])

    # ---- files -------------------------------------------------------------------------------

    def parquet(self, server: Server, rows: Rows, columns: Sequence[str]) -> DataFrame:
        """Return a scan of the same rows in Parquet, which Spark has written itself."""
        path = self.folder / f"{rows.name}-{len(columns)}.parquet"
        if path not in self._written:
            self.stream(server, rows, columns).write.parquet(str(path))
            self._written.add(path)
        return self.spark.read.parquet(str(path))

    def new_folder(self, name: str) -> Path:
        """Return a folder that does not exist."""
        path = self.folder / name
        shutil.rmtree(path, ignore_errors=True)
        return path


def options_of(address: Address) -> dict[str, str]:
    """Return the options that lead to a server."""
    return {"endpoints": f"{address.host}:{address.port}", "advertised": "ignore"}


def load(address: Address, rows: Rows, count: int) -> None:
    """Publish rows to a stream of their own, by the sink as its tasks do, but without Spark."""
    with Connection(address) as connection:
        connection.delete_if_there(rows.name)
    options = options_of(address) | {"stream": rows.name, "createStream": "true"}
    settings = write_settings(options | dict(rows.write_options), is_streaming=False)
    cluster = Cluster(settings.connection, Name("bench-spark"))
    targets = prepare(cluster, settings)
    written = write_rows(cluster, settings, targets, TaskIdentity(0), rows.batches(count))
    if written.rows != count:
        raise SparkBenchError(f"{written.rows} of {count} rows were loaded into {rows.name}")
