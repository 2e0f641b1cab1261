"""The jobs as `hutch pipeline` runs them: from the arguments of a command line to its exit code.

A job's own module is imported after a check for the packages that it needs. What can be found
without Spark is reported before it is started: faults of the arguments and of the folder of a lake,
and those that a server tells.
"""

import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark_hutch.jobs.errors import WrongArgument
from pyspark_hutch.jobs.output import write_archive
from pyspark_hutch.jobs.preparation.functions import named_function
from pyspark_hutch.jobs.preparation.installed import (
    ARROW,
    DELTA,
    ICEBERG,
    OF_SPARK,
    PLOTS,
    SQLITE,
    require,
)
from pyspark_hutch.jobs.preparation.sources import (
    Pace,
    fate_of,
    local,
    name_of,
    reading,
    table_name,
    writing,
)
from pyspark_hutch.jobs.runs.progress import JobProgress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pyspark_hutch.jobs.lakes import Lake
    from pyspark_hutch.jobs.runs.batches import JobResult
    from pyspark_hutch.jobs.transform import Transform

EXIT_INTERRUPTED: Final = 130
ENDPOINTS: Final = "localhost:5552"
NAMESPACE: Final = "streams"
"""Default namespace and name of Iceberg tables."""

ENDINGS: Final = {
    ".parquet": "parquet",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".csv": "csv",
    ".txt": "text",
}


def _session(
    options: Namespace, ask: Callable[[], None], *packages: str
) -> "AbstractContextManager[SparkSession]":
    """Return a session that starts when it is entered.

    Args:
        options: Of the command.
        ask: Looks for faults, once its packages are known to be there.
        packages: Those of the job, beside Spark's.
    """
    require(*OF_SPARK, *packages)
    ask()
    from pyspark_hutch.jobs.session import session  # noqa: PLC0415

    return session(
        f"hutch pipeline {options.job}",
        options.master,
        dict(options.conf),
        py_files=options.py_files,
        is_verbose=options.verbose,
    )


def _ask(source: dict[str, str] | None = None, targets: Sequence[dict[str, str]] = ()) -> None:
    """Ask the servers for the streams of a read, and for those of writes."""
    from pyspark_hutch.jobs.preparation.questions import ask_for_source, ask_for_target  # noqa: PLC0415

    if source is not None:
        ask_for_source(source)
    for target in targets:
        ask_for_target(target)


def _read_options(options: Namespace) -> dict[str, str]:
    name = "superStream" if options.super_stream else "stream"
    found = {"endpoints": options.endpoints, name: options.stream}
    if options.bad_sub_batches is not None:
        found["badSubBatches"] = options.bad_sub_batches
    found |= dict(options.option)
    reading(found)
    return found


def _write_options(options: Namespace, stream: str, endpoints: str) -> dict[str, str]:
    name = "superStream" if options.to_super_stream else "stream"
    found = {"endpoints": options.to_endpoints or endpoints, name: stream}
    found |= dict(options.to_option)
    writing(found)
    return found


def _code(done: "JobResult") -> int:
    return EXIT_INTERRUPTED if done.is_interrupted else 0


def _tell_left_out(done: "JobResult", read_options: dict[str, str]) -> None:
    if done.left_out and fate_of(read_options) == "skip":
        sys.stderr.write(f"hutch: {done.left_out:,} offsets have no row: bad sub-batches\n")


def _to_lake(options: Namespace) -> int:
    packages = {"delta": (DELTA,), "iceberg": (ICEBERG, SQLITE)}.get(options.format, ())
    read_options = _read_options(options)
    if options.format != "parquet":
        local(options.target)
    if options.table is not None and options.format != "iceberg":
        raise WrongArgument("--table names a table of Iceberg: say --format iceberg")
    table = options.table or f"{NAMESPACE}.{name_of(read_options).replace('.', '_')}"
    if options.format == "iceberg":
        table_name(table)

    def ask() -> None:
        _lake(options.format, options.target, table).check()
        _ask(read_options)

    with _session(options, ask, *packages) as spark:
        from pyspark_hutch.jobs.to_lake import to_lake  # noqa: PLC0415

        lake = _lake(options.format, options.target, table)
        pace = Pace(options.checkpoint, options.continuous)
        columns = options.columns
        progress = JobProgress(sys.stderr)
        done = to_lake(spark, read_options, lake, columns=columns, pace=pace, progress=progress)
    _tell_left_out(done, read_options)
    return _code(done)


def _lake(kind: str, target: str, table: str) -> "Lake":
    if kind == "parquet":
        from pyspark_hutch.jobs.lakes import ParquetLake  # noqa: PLC0415

        return ParquetLake(target)
    if kind == "delta":
        from pyspark_hutch.jobs.lake_delta import DeltaLake  # noqa: PLC0415

        return DeltaLake(target)
    from pyspark_hutch.jobs.lake_iceberg import IcebergLake  # noqa: PLC0415

    return IcebergLake(target, table)


def _from_files(options: Namespace) -> int:
    kind = options.format or ENDINGS.get(Path(options.files.removesuffix(".gz")).suffix)
    if kind is None:
        raise WrongArgument(f"{options.files}: the name does not tell the format; add --format")
    write_options = _write_options(options, options.stream, ENDPOINTS)
    with _session(options, partial(_ask, targets=[write_options])) as spark:
        from pyspark_hutch.jobs.from_files import InputFiles, from_files  # noqa: PLC0415

        files = InputFiles(
            options.files, kind, dict(options.read_option), options.body, options.key
        )
        pace = Pace(options.checkpoint)
        done = from_files(spark, files, write_options, pace=pace, progress=JobProgress(sys.stderr))
    return _code(done)


def _copy(options: Namespace) -> int:
    read_options = _read_options(options)
    write_options = _write_options(options, options.target, options.endpoints)
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))  # where the workers look for a module, too
    transform = _transform(options)

    def ask() -> None:
        from pyspark_hutch.jobs.to_stream import CopyTarget  # noqa: PLC0415

        target = CopyTarget(write_options, options.bad_rows)
        target.refuse_source(read_options)
        _ask(read_options, [*filter(None, (write_options, target.dead_letters))])

    with _session(options, ask) as spark:
        from pyspark_hutch.jobs.to_stream import CopyTarget, copy  # noqa: PLC0415

        target = CopyTarget(write_options, options.bad_rows)
        pace = Pace(options.checkpoint, options.continuous)
        progress = JobProgress(sys.stderr)
        done = copy(spark, read_options, target, transform, pace=pace, progress=progress)
    if done.bad:
        became = "were left out" if options.bad_rows == "drop" else f"went to {options.bad_rows}"
        sys.stderr.write(f"hutch: {done.bad:,} bad rows {became}\n")
    _tell_left_out(done, read_options)
    return _code(done)


def _transform(options: Namespace) -> "Transform":
    if options.batches and options.function is None:
        raise WrongArgument("--batches needs a function: add --with")
    function = None if options.function is None else named_function(options.function)
    if function is not None:
        function.load()
    require(ARROW)
    from pyspark_hutch.jobs.transform import Transform  # noqa: PLC0415

    return Transform(function, is_json=options.json, takes_batches=options.batches)


def _report(options: Namespace) -> int:
    read_options = _read_options(options)
    with _session(options, partial(_ask, read_options), PLOTS) as spark:
        from pyspark_hutch.jobs.report import report  # noqa: PLC0415

        file, progress = Path(options.file), JobProgress(sys.stderr)
        done = report(spark, read_options, file, key=options.key, progress=progress)
    sys.stdout.write(f"{options.file}\n")
    _tell_left_out(done, read_options)
    return _code(done)


def _zip(options: Namespace) -> int:
    count = write_archive(Path(options.file))
    sys.stdout.write(f"{options.file}: {count} modules\n")
    return 0


RUN: Final[dict[str, Callable[[Namespace], int]]] = {
    "to-lake": _to_lake,
    "from-files": _from_files,
    "copy": _copy,
    "report": _report,
    "zip": _zip,
}
"""Runs a job, by its name; raises JobError."""
