"""A quiet Spark session for a job: Spark's default output would bury the job's own lines."""

import logging
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from pyspark_hutch.datasource import DefaultSource
from pyspark_hutch.jobs.errors import JobFailed, in_one_line
from pyspark_hutch.jobs.preparation.installed import java_trouble

DEFAULTS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.executor.heartbeatInterval": "2s",  # tells how many rows a task has read
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",  # others read no INT96
    "spark.python.unix.domain.socket.enabled": "true",  # a tenth less work for Python
}
LOCAL: Final = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
STDERR: Final = 2
LOGGER_OF_PLANS: Final = "SQLQueryContextLogger"  # prints, in Python, what it also raises
NO_JVM: Final = "JAVA_GATEWAY_EXITED"
LOGGING: Final = """\
rootLogger.level = {level}
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{{HH:mm:ss}} %p %c{{1}}: %m%n
"""
_ERROR: Final = re.compile(r"^\S+ ERROR \S+: (\S.*)$", re.MULTILINE)


@contextmanager
def session(
    name: str,
    master: str = "local[*]",
    settings: Mapping[str, str] | None = None,
    *,
    py_files: Sequence[str] = (),
    is_verbose: bool = False,
) -> Iterator[SparkSession]:
    """Yield a session with quiet settings, and stop it in the end.

    Args:
        name: Of the application.
        master: Where it runs.
        settings: Spark's, which go before those here.
        py_files: Files for the workers, as the archive of `hutch pipeline zip`.
        is_verbose: Whether Spark's warnings and traces are printed.

    Raises:
        JobFailed: There is no Java for it, or Spark does not start.
    """
    trouble = java_trouble()
    if trouble is not None:
        raise JobFailed(trouble)
    plans = logging.getLogger(LOGGER_OF_PLANS)
    plans.setLevel(logging.ERROR if is_verbose else logging.CRITICAL)
    logging.getLogger().addFilter(_is_told)
    with tempfile.TemporaryDirectory(prefix="hutch-spark-") as made, _environment_kept():
        folder = Path(made)
        log = folder / "stderr.log"
        _prepare(folder, is_local=master.startswith("local"), is_verbose=is_verbose)
        builder = SparkSession.builder.master(master).appName(name)
        warehouse = {"spark.sql.warehouse.dir": str(folder / "warehouse")}
        for key, value in {**warehouse, **(settings or {})}.items():
            builder = builder.config(key, value)
        try:
            with _errors_to(None if is_verbose else log):
                spark = builder.getOrCreate()
            for file in py_files:
                spark.sparkContext.addPyFile(file)
            # By itself Spark finds folders of packages, not an archive or an editable installation.
            spark.dataSource.register(DefaultSource)
        except Exception as error:
            raise JobFailed(f"Spark does not start: {_cause(error, log)}") from error
        try:
            yield spark
        finally:
            with suppress(Py4JError):  # whose connection a second Ctrl-C has ended
                spark.stop()
            plans.setLevel(logging.ERROR)
            logging.getLogger().removeFilter(_is_told)


@contextmanager
def _environment_kept() -> Iterator[None]:
    before = dict(os.environ)
    try:
        yield
    finally:
        for name in set(os.environ) - set(before):
            del os.environ[name]
        os.environ.update(before)


def _prepare(folder: Path, *, is_local: bool, is_verbose: bool) -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else workers take any python3
    if is_local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    if "SPARK_CONF_DIR" in os.environ:  # set on purpose
        return
    settings = DEFAULTS | (LOCAL if is_local else {})
    lines = [f"{key} {value}\n" for key, value in settings.items()]
    (folder / "spark-defaults.conf").write_text("".join(lines), encoding="utf-8")
    levels = LOGGING.format(level="warn" if is_verbose else "error")
    (folder / "log4j2.properties").write_text(levels, encoding="utf-8")
    os.environ["SPARK_CONF_DIR"] = str(folder)


@contextmanager
def _errors_to(log: Path | None) -> Iterator[None]:
    """Redirect the standard error of processes that are started here to a file.

    The JVM and the workers beneath it print lines that no logger holds back: some at the start, and
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


def _cause(error: Exception, log: Path) -> str:
    """Return why Spark does not start: by its log, or by the JVM's words if that did not start."""
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    logged = _ERROR.search(text)
    if logged is not None:
        return logged[1]
    said = [line for line in text.splitlines() if line and not line.startswith("WARNING")]
    return said[0] if said and NO_JVM in str(error) else in_one_line(error)


def _is_told(record: logging.LogRecord) -> bool:
    """Return False for the traceback that py4j logs where a second Ctrl-C ends a call of it."""
    return not record.getMessage().startswith("KeyboardInterrupt")
