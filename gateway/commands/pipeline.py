"""`hutch pipeline`: jobs around streams that run on Spark.

What they are made of is in `pyspark_hutch`, which is imported when a job is chosen: the server does
without it.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gateway.broker.definitions.report import visible
from gateway.commands import pipeline_help as texts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pyspark_hutch.jobs.batches import Done
    from pyspark_hutch.jobs.progress import Progress
    from pyspark_hutch.jobs.sources import Pace

EXIT_FAILED: Final = 1
EXIT_USAGE: Final = 2
EXIT_INTERRUPTED: Final = 130

ENDPOINTS: Final = "localhost:5552"


@dataclass(frozen=True)
class _Job:
    summary: str
    description: str
    examples: str
    add: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


def add_arguments(parser: argparse.ArgumentParser, given: Sequence[str]) -> None:
    """Add all jobs; only the one that is given is described in full."""
    parser.description = texts.DESCRIPTION
    width = max(map(len, JOBS)) + 2
    lines = [f"  {name:{width}}{job.summary}" for name, job in JOBS.items()]
    parser.epilog = "jobs:\n" + "\n".join(lines) + "\n\n" + texts.EXIT_CODES
    jobs = parser.add_subparsers(dest="job", metavar="JOB", required=True)
    for name, job in JOBS.items():
        if name not in given:
            jobs.add_parser(name)
            continue
        subparser = jobs.add_parser(
            name,
            description=job.description,
            epilog=job.examples,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        subparser.set_defaults(parser=subparser)
        job.add(subparser)


def run(options: argparse.Namespace) -> int:
    """Run a job; return the exit code."""
    if find_spec("pyspark_hutch") is None:
        return _complain("this installation has no package pyspark_hutch", EXIT_FAILED)
    from pyspark_hutch.jobs.errors import JobError, WrongArgument  # noqa: PLC0415  # see above

    try:
        return JOBS[options.job].run(options)
    except WrongArgument as error:
        return _complain(str(error), EXIT_USAGE)
    except JobError as error:
        return _complain(str(error), EXIT_FAILED)


def _complain(line: str, code: int) -> int:
    sys.stderr.write(f"hutch: {visible(line)}\n")
    return code


# ------------------------------------------------------------------------------------ arguments


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"{text!r}: write NAME=VALUE")
    return name, value


def _add_pairs(parser: argparse._ArgumentGroup, flag: str, what: str) -> None:
    parser.add_argument(
        flag, metavar="NAME=VALUE", type=_pair, action="append", default=[], help=what
    )


def _add_spark(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("Spark")
    group.add_argument(
        "--master",
        metavar="URL",
        default="local[*]",
        help="where it runs: local[N] on N cores of this machine, spark://host:7077 on a cluster "
        "(default: local[*], all cores)",
    )
    _add_pairs(group, "--conf", "a setting of Spark, as spark.driver.memory=4g; can be repeated")
    group.add_argument(
        "--py-files",
        metavar="FILE",
        action="append",
        default=[],
        help="ship to the workers, as the archive that `hutch pipeline zip` writes",
    )
    group.add_argument("--verbose", action="store_true", help="show Spark's warnings and traces")


def _add_source(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("reading")
    group.add_argument(
        "--endpoints",
        metavar="HOST:PORT",
        default=ENDPOINTS,
        help=f"the server, or several with commas between them (default: {ENDPOINTS})",
    )
    group.add_argument("--super-stream", action="store_true", help="what is read is a super stream")
    _add_pairs(
        group,
        "--option",
        "an option of the data source, as startingOffsets=latest or passwordFile=FILE; can be "
        "repeated",
    )


def _add_pace(parser: argparse.ArgumentParser, default: str, *, is_needed: bool = False) -> None:
    parser.add_argument(
        "--checkpoint",
        metavar="DIR",
        required=is_needed,
        help=f"folder in which the job notes how far it has come ({default})",
    )


def _add_continuous(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--continuous",
        action="store_true",
        help="go on until Ctrl-C (default: end when all rows that there were are done)",
    )


def _add_to_lake(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("stream", metavar="STREAM", help="what to read")
    parser.add_argument("target", metavar="DIR", help="folder to write to, made if it is missing")
    parser.add_argument(
        "--format", choices=("parquet", "delta", "iceberg"), default="parquet", help="what to write"
    )
    parser.add_argument(
        "--table",
        metavar="NAMESPACE.NAME",
        help="of Iceberg: the table in the warehouse DIR (default: streams.STREAM)",
    )
    parser.add_argument(
        "--columns",
        metavar="SCHEMA",
        help='columns to write, as "offset bigint, timestamp timestamp, body binary" (default: '
        "seven, and those that --option includeProperties=true and the like add)",
    )
    _add_pace(parser, "default: in DIR/_checkpoints")
    _add_continuous(parser)
    _add_source(parser)
    _add_spark(parser)


def _add_target(parser: argparse.ArgumentParser, default: str) -> None:
    group = parser.add_argument_group("writing")
    group.add_argument(
        "--to-endpoints", metavar="HOST:PORT", help=f"the server to write to (default: {default})"
    )
    group.add_argument(
        "--to-super-stream", action="store_true", help="what is written is a super stream"
    )
    _add_pairs(
        group,
        "--to-option",
        "an option of the write, as createStream=true or compression=gzip; can be repeated",
    )


def _add_from_files(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", metavar="PATH", help="file, folder or pattern")
    parser.add_argument("stream", metavar="STREAM", help="what to write")
    parser.add_argument(
        "--format",
        choices=("parquet", "json", "csv", "text"),
        help="what the files are (default: by the end of PATH); json has an object on each line, "
        "text is lines, each of them a body as it stands",
    )
    parser.add_argument(
        "--body",
        metavar="COLUMN",
        help="column with the body (default: `body`, or if there is none, all columns as JSON)",
    )
    parser.add_argument("--key", metavar="COLUMN", help="column with the routing key")
    parser.add_argument(
        "--read-option",
        metavar="NAME=VALUE",
        type=_pair,
        action="append",
        default=[],
        help="an option of Spark's for reading the files, as sep=; for CSV; can be repeated",
    )
    _add_pace(parser, "default: none, all files are published again")
    _add_target(parser, ENDPOINTS)
    _add_spark(parser)


def _add_copy(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("stream", metavar="FROM", help="what to read")
    parser.add_argument("target", metavar="TO", help="what to write")
    parser.add_argument(
        "--with",
        dest="function",
        metavar="FUNCTION",
        help="what each row goes through: module:function or file.py:function",
    )
    parser.add_argument(
        "--batches",
        action="store_true",
        help="the function takes and gives a pyarrow.RecordBatch, not a row",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="bodies are JSON, and the function gets and gives them as values; what is not JSON "
        "is a bad row",
    )
    parser.add_argument(
        "--bad-rows",
        metavar="fail|drop|STREAM",
        default="fail",
        help="what becomes of rows that are not JSON or whose function fails: end the job "
        "(default), leave them out, or publish them to a stream, with the reason",
    )
    _add_pace(parser, "needed", is_needed=True)
    _add_continuous(parser)
    _add_source(parser)
    _add_target(parser, "that of --endpoints")
    _add_spark(parser)


def _add_report(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("stream", metavar="STREAM", help="what to read")
    parser.add_argument("file", metavar="FILE.html", help="the page to write")
    parser.add_argument(
        "--key",
        metavar="SQL",
        help="count rows by this, as \"get_json_object(string(body), '$.user')\" or "
        "\"application_properties['tenant']\"",
    )
    _add_source(parser)
    _add_spark(parser)


def _add_zip(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE.zip", help="the archive to write")


# -------------------------------------------------------------------------------------- running


def _session(options: argparse.Namespace, *packages: str) -> "AbstractContextManager[SparkSession]":
    """Return a session that is started when it is entered, once what it needs is there."""
    from pyspark_hutch.jobs.extras import OF_SPARK, require  # noqa: PLC0415

    require(*OF_SPARK, *packages)
    from pyspark_hutch.jobs.session import session  # noqa: PLC0415

    return session(
        f"hutch pipeline {options.job}",
        options.master,
        dict(options.conf),
        py_files=options.py_files,
        is_verbose=options.verbose,
    )


def _read_options(options: argparse.Namespace) -> dict[str, str]:
    from pyspark_hutch.jobs.sources import reading  # noqa: PLC0415

    name = "superStream" if options.super_stream else "stream"
    found = {"endpoints": options.endpoints, name: options.stream, **dict(options.option)}
    reading(found)  # what is wrong is said before Spark is started
    return found


def _write_options(options: argparse.Namespace, stream: str, endpoints: str) -> dict[str, str]:
    from pyspark_hutch.jobs.sources import writing  # noqa: PLC0415

    name = "superStream" if options.to_super_stream else "stream"
    found = {"endpoints": options.to_endpoints or endpoints, name: stream}
    found |= dict(options.to_option)
    writing(found)
    return found


def _progress() -> "Progress":
    from pyspark_hutch.jobs.progress import Progress  # noqa: PLC0415

    return Progress(sys.stderr)


def _pace(options: argparse.Namespace) -> "Pace":
    from pyspark_hutch.jobs.sources import Pace  # noqa: PLC0415

    return Pace(options.checkpoint, getattr(options, "continuous", False))


def _code(done: "Done") -> int:
    return EXIT_INTERRUPTED if done.is_interrupted else 0


def _to_lake(options: argparse.Namespace) -> int:
    from pyspark_hutch.jobs.extras import DELTA, ICEBERG, SQLITE  # noqa: PLC0415
    from pyspark_hutch.jobs.sources import local, name_of  # noqa: PLC0415

    packages = {"delta": (DELTA,), "iceberg": (ICEBERG, SQLITE)}.get(options.format, ())
    read_options = _read_options(options)
    if options.format != "parquet":
        local(options.target)
    with _session(options, *packages) as spark:
        from pyspark_hutch.jobs.to_lake import to_lake  # noqa: PLC0415

        lake: Any
        if options.format == "parquet":
            from pyspark_hutch.jobs.lakes import ParquetLake  # noqa: PLC0415

            lake = ParquetLake(options.target)
        elif options.format == "delta":
            from pyspark_hutch.jobs.lake_delta import DeltaLake  # noqa: PLC0415

            lake = DeltaLake(options.target)
        else:
            from pyspark_hutch.jobs.lake_iceberg import NAMESPACE, IcebergLake  # noqa: PLC0415

            name = name_of(read_options).replace(".", "_")
            lake = IcebergLake(options.target, options.table or f"{NAMESPACE}.{name}")
        done = to_lake(
            spark,
            read_options,
            lake,
            columns=options.columns,
            pace=_pace(options),
            progress=_progress(),
        )
    return _code(done)


_ENDINGS: Final = {
    ".parquet": "parquet",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".csv": "csv",
    ".txt": "text",
}


def _from_files(options: argparse.Namespace) -> int:
    from pyspark_hutch.jobs.errors import WrongArgument  # noqa: PLC0415

    named = Path(options.files.removesuffix(".gz")).suffix
    found = options.format or _ENDINGS.get(named)
    if found is None:
        raise WrongArgument(f"{options.files}: its end does not tell what it is; say --format")
    write_options = _write_options(options, options.stream, ENDPOINTS)
    with _session(options) as spark:
        from pyspark_hutch.jobs.from_files import Files, from_files  # noqa: PLC0415

        files = Files(options.files, found, dict(options.read_option), options.body, options.key)
        done = from_files(spark, files, write_options, pace=_pace(options), progress=_progress())
    return _code(done)


def _copy(options: argparse.Namespace) -> int:
    read_options = _read_options(options)
    write_options = _write_options(options, options.target, options.endpoints)
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))  # where the workers look for a module, too
    transform = _transform(options)
    with _session(options) as spark:
        from pyspark_hutch.jobs.copying import Target, copy  # noqa: PLC0415

        done = copy(
            spark,
            read_options,
            Target(write_options, options.bad_rows),
            transform,
            pace=_pace(options),
            progress=_progress(),
        )
    if done.bad:
        became = "were left out" if options.bad_rows == "drop" else f"went to {options.bad_rows}"
        sys.stderr.write(f"hutch: {done.bad:,} bad rows {became}\n")
    return _code(done)


def _transform(options: argparse.Namespace) -> Any:  # noqa: ANN401  # its module needs an extra
    from pyspark_hutch.jobs.errors import WrongArgument  # noqa: PLC0415
    from pyspark_hutch.jobs.extras import ARROW, require  # noqa: PLC0415
    from pyspark_hutch.jobs.functions import named_function  # noqa: PLC0415

    if options.batches and options.function is None:
        raise WrongArgument("--batches says what the function of --with takes; there is none")
    function = None if options.function is None else named_function(options.function)
    if function is not None:
        function.load()
    require(ARROW)
    from pyspark_hutch.jobs.transforming import Transform  # noqa: PLC0415

    return Transform(function, is_json=options.json, takes_batches=options.batches)


def _report(options: argparse.Namespace) -> int:
    from pyspark_hutch.jobs.extras import PLOTS  # noqa: PLC0415

    read_options = _read_options(options)
    with _session(options, PLOTS) as spark:
        from pyspark_hutch.jobs.reporting import report  # noqa: PLC0415

        found = report(
            spark, read_options, Path(options.file), key=options.key, progress=_progress()
        )
    sys.stdout.write(f"{options.file}\n")
    return _code(found.done)


def _zip(options: argparse.Namespace) -> int:
    from pyspark_hutch.jobs.archive import write_archive  # noqa: PLC0415
    from pyspark_hutch.jobs.errors import JobFailed  # noqa: PLC0415

    try:
        count = write_archive(Path(options.file))
    except OSError as error:
        raise JobFailed(f"cannot write {options.file}: {error.strerror}") from None
    sys.stdout.write(f"{options.file}: {count} modules\n")
    return 0


JOBS: Final = {
    "to-lake": _Job(
        "land a stream as Parquet, Delta or Iceberg, each row once",
        texts.TO_LAKE,
        texts.TO_LAKE_EXAMPLES,
        _add_to_lake,
        _to_lake,
    ),
    "from-files": _Job(
        "publish Parquet, JSON lines, CSV or lines of text to a stream",
        texts.FROM_FILES,
        texts.FROM_FILES_EXAMPLES,
        _add_from_files,
        _from_files,
    ),
    "copy": _Job(
        "copy a stream to another through a function of yours",
        texts.COPY,
        texts.COPY_EXAMPLES,
        _add_copy,
        _copy,
    ),
    "report": _Job(
        "write statistics of a stream as a page of HTML",
        texts.REPORT,
        texts.REPORT_EXAMPLES,
        _add_report,
        _report,
    ),
    "zip": _Job(
        "write the archive for workers that have only pyarrow and numpy",
        texts.ZIP,
        texts.ZIP_EXAMPLES,
        _add_zip,
        _zip,
    ),
}
