"""`hutch pipeline`: the command line of the jobs around streams that run on Spark.

The jobs are in `pyspark_hutch`, which is imported when one is chosen: the server works without it.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Final

from gateway.command_line import visible
from gateway.commands import pipeline_help as texts

ENDPOINTS: Final = "localhost:5552"


def add_arguments(parser: argparse.ArgumentParser, given: Sequence[str]) -> None:
    """Add all jobs; only the job that is given gets its full description."""
    parser.description = texts.DESCRIPTION
    width = max(map(len, JOBS)) + 2
    lines = [f"  {name:{width}}{text.summary}" for name, (text, _) in JOBS.items()]
    parser.epilog = "jobs:\n" + "\n".join(lines) + "\n\n" + texts.EXIT_CODES
    jobs = parser.add_subparsers(dest="job", metavar="JOB", required=True)
    for name, (text, add) in JOBS.items():
        if name not in given:
            jobs.add_parser(name)
            continue
        subparser = jobs.add_parser(
            name,
            description=text.description,
            epilog=text.examples,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        subparser.set_defaults(parser=subparser)
        add(subparser)


def run(options: argparse.Namespace) -> int:
    """Run a job; return the exit code."""
    from pyspark_hutch.jobs.commands import RUN  # noqa: PLC0415  # the server does without
    from pyspark_hutch.jobs.errors import JobError  # noqa: PLC0415  # the same

    try:
        return RUN[options.job](options)
    except JobError as error:
        sys.stderr.write(f"hutch: {visible(str(error))}\n")
        return error.exit_code


# ------------------------------------------------------------------- arguments that jobs share


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"{text!r}: write NAME=VALUE")
    return name, value


def _add_pairs(parser: argparse._ActionsContainer, flag: str, what: str) -> None:
    parser.add_argument(
        flag,
        metavar="NAME=VALUE",
        type=_pair,
        action="append",
        default=[],
        help=f"{what}; can be repeated",
    )


def _add_spark(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("Spark")
    add = group.add_argument
    add("--master", metavar="URL", default="local[*]", help=texts.MASTER)
    _add_pairs(group, "--conf", "a setting of Spark, as spark.driver.memory=4g")
    add("--py-files", metavar="FILE", action="append", default=[], help=texts.PY_FILES)
    add("--verbose", action="store_true", help="show Spark's warnings and traces")


def _add_source(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("reading")
    add = group.add_argument
    several = f"the server, or several with commas between them (default: {ENDPOINTS})"
    add("--endpoints", metavar="HOST:PORT", default=ENDPOINTS, help=several)
    add("--super-stream", action="store_true", help="what is read is a super stream")
    fates = ("fail", "skip", "raw")
    add("--bad-sub-batches", choices=fates, metavar="|".join(fates), help=texts.BAD_SUB_BATCHES)
    _add_pairs(group, "--option", texts.OPTION)


def _add_target(parser: argparse.ArgumentParser, default: str) -> None:
    group = parser.add_argument_group("writing")
    add = group.add_argument
    add("--to-endpoints", metavar="HOST:PORT", help=f"the server to write to (default: {default})")
    add("--to-super-stream", action="store_true", help="what is written is a super stream")
    _add_pairs(group, "--to-option", texts.TO_OPTION)


def _add_checkpoint(
    parser: argparse.ArgumentParser, default: str, *, is_needed: bool = False
) -> None:
    text = f"folder in which the job notes how far it has come ({default})"
    parser.add_argument("--checkpoint", metavar="DIR", required=is_needed, help=text)


# ------------------------------------------------------------------------- arguments of each job


def _add_to_lake(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("stream", metavar="STREAM", help="what to read")
    add("target", metavar="DIR", help="folder to write to, made if it is missing")
    formats = ("parquet", "delta", "iceberg")
    add("--format", choices=formats, default="parquet", help="what to write")
    add("--table", metavar="NAMESPACE.NAME", help=texts.TABLE)
    add("--columns", metavar="SCHEMA", help=texts.COLUMNS)
    _add_checkpoint(parser, "default: in DIR/_checkpoints")
    add("--continuous", action="store_true", help=texts.CONTINUOUS)
    _add_source(parser)
    _add_spark(parser)


def _add_from_files(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("files", metavar="PATH", help="file, folder or pattern")
    add("stream", metavar="STREAM", help="what to write")
    add("--format", choices=("parquet", "json", "csv", "text"), help=texts.FORMAT)
    add("--body", metavar="COLUMN", help=texts.BODY)
    add("--key", metavar="COLUMN", help="column with the routing key")
    _add_pairs(parser, "--read-option", texts.READ_OPTION)
    _add_checkpoint(parser, "default: none, all files are published again")
    _add_target(parser, ENDPOINTS)
    _add_spark(parser)


def _add_copy(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("stream", metavar="FROM", help="what to read")
    add("target", metavar="TO", help="what to write")
    add("--with", dest="function", metavar="FUNCTION", help=texts.WITH)
    add("--batches", action="store_true", help=texts.BATCHES)
    add("--json", action="store_true", help=texts.JSON)
    add("--bad-rows", metavar="fail|drop|STREAM", default="fail", help=texts.BAD_ROWS)
    _add_checkpoint(parser, "needed", is_needed=True)
    add("--continuous", action="store_true", help=texts.CONTINUOUS)
    _add_source(parser)
    _add_target(parser, "that of --endpoints")
    _add_spark(parser)


def _add_report(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("stream", metavar="STREAM", help="what to read")
    add("file", metavar="FILE.html", help="the page to write")
    add("--key", metavar="SQL", help=texts.KEY)
    _add_source(parser)
    _add_spark(parser)


def _add_zip(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE.zip", help="the archive to write")


JOBS: Final[dict[str, tuple[texts.JobHelp, Callable[[argparse.ArgumentParser], None]]]] = {
    "to-lake": (texts.TO_LAKE, _add_to_lake),
    "from-files": (texts.FROM_FILES, _add_from_files),
    "copy": (texts.COPY, _add_copy),
    "report": (texts.REPORT, _add_report),
    "zip": (texts.ZIP, _add_zip),
}
"""Jobs, each with the texts of `--help` and the function that adds its arguments."""
