"""A quiet Spark session for a job: what Spark prints by default, a person would have to read."""

import logging
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from pyspark_hutch.datasource import DefaultSource
from pyspark_hutch.jobs.errors import JobFailed, in_one_line
from pyspark_hutch.jobs.java import java_trouble

DEFAULTS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",  # others read no INT96
    "spark.python.unix.domain.socket.enabled": "true",  # a tenth less work for Python
}
STDERR: Final = 2
LOGGER_OF_PLANS: Final = "SQLQueryContextLogger"  # prints, in Python, what it also raises
LOCAL: Final = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
LOGGING: Final = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n
# A query that fails is told by the job itself, in one line.
logger.query.name = org.apache.spark.sql.execution.streaming
logger.query.level = off
logger.sources.name = org.apache.spark.sql.execution.python
logger.sources.level = off
logger.tasks.name = org.apache.spark.scheduler
logger.tasks.level = off
logger.executor.name = org.apache.spark.executor
logger.executor.level = off
logger.writing.name = org.apache.spark.sql.execution.datasources
logger.writing.level = off
logger.aborting.name = org.apache.spark.util.Utils
logger.aborting.level = off
"""
LOGGING_OF_ALL: Final = LOGGING.split("# A query", maxsplit=1)[0].replace("error", "warn")


def is_local(master: str) -> bool:
    """Return whether driver and workers are one process on this machine."""
    return master.startswith("local")


@contextmanager
def session(
    name: str,
    master: str = "local[*]",
    settings: Mapping[str, str] | None = None,
    *,
    py_files: Sequence[str] = (),
    is_verbose: bool = False,
) -> Iterator[SparkSession]:
    """Give a session with quiet settings, and stop it in the end.

    Args:
        name: Of the application.
        master: Where it runs.
        settings: Spark's, which go before those here.
        py_files: What is shipped to the workers, as an archive of this package.
        is_verbose: Whether Spark's warnings and traces are printed.

    Raises:
        JobFailed: There is no Java for it, or Spark does not start.
    """
    trouble = java_trouble()
    if trouble is not None:
        raise JobFailed(trouble)
    before = dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="hutch-spark-") as folder:
        log = Path(folder) / "stderr.log"
        plans = logging.getLogger(LOGGER_OF_PLANS)
        plans.setLevel(logging.ERROR if is_verbose else logging.CRITICAL)
        _prepare(Path(folder), master, is_verbose=is_verbose)
        try:
            with _errors_to(None if is_verbose else log):
                spark = _start(name, master, settings or {}, Path(folder))
            for file in py_files:
                spark.sparkContext.addPyFile(file)
            if py_files:  # Spark finds what is installed, not what is in an archive
                spark.dataSource.register(DefaultSource)
        except Exception as error:
            _restore(before)
            said = f"Spark does not start: {in_one_line(error)}{_last_line(log)}"
            raise JobFailed(said) from error
        try:
            yield spark
        finally:
            spark.stop()
            plans.setLevel(logging.ERROR)
            _restore(before)


def _restore(before: Mapping[str, str]) -> None:
    for name in set(os.environ) - set(before):
        del os.environ[name]
    os.environ.update(before)


def _prepare(folder: Path, master: str, *, is_verbose: bool) -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else workers take any python3
    if is_local(master):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    if "SPARK_CONF_DIR" in os.environ:  # set on purpose
        return
    settings = DEFAULTS | (LOCAL if is_local(master) else {})
    lines = [f"{key} {value}\n" for key, value in settings.items()]
    (folder / "spark-defaults.conf").write_text("".join(lines), encoding="utf-8")
    levels = LOGGING_OF_ALL if is_verbose else LOGGING
    (folder / "log4j2.properties").write_text(levels, encoding="utf-8")
    os.environ["SPARK_CONF_DIR"] = str(folder)


@contextmanager
def _errors_to(log: Path | None) -> Iterator[None]:
    """Give processes that are started here a file for what they print on standard error.

    The JVM and the workers beneath it print what no logger holds back: lines at the start, and
    tracebacks of a worker whose task was ended by another's failure.
    """
    if log is None:
        yield
        return
    sys.stderr.flush()
    kept = os.dup(STDERR)
    with log.open("ab") as file:
        os.dup2(file.fileno(), STDERR)
    try:
        yield
    finally:
        os.dup2(kept, STDERR)
        os.close(kept)


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n") if log.exists() else []
    found = [line.strip() for line in lines if line.strip()]
    return f" ({found[-1]})" if found else ""


def _start(name: str, master: str, settings: Mapping[str, str], folder: Path) -> SparkSession:
    builder = SparkSession.builder.master(master).appName(name)
    given = {"spark.sql.warehouse.dir": str(folder / "warehouse"), **settings}
    for key, value in given.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
