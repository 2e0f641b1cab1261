"""`hutch import` and `hutch export`: definitions in and out of a running server."""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any, Final

from gateway.management.ctl.asking import Refused, ask
from gateway.management.ctl.ctl import add_place, data_directory, within_edge
from gateway.management.ctl.grammar import WrongUse, add, argument
from gateway.management.definitions.report import Outcome, Row, report_table, visible
from gateway.management.wire import BODY_BYTES_MAX

IMPORT: Final = """\
Bring users, virtual hosts, permissions, policies, streams and super streams from a RabbitMQ into
a running server: a file that `rabbitmqctl export_definitions`, its management page or
`hutch export` wrote, of a whole broker or of one virtual host.

Prints what was imported, what was adapted, and what was skipped and why. All or nothing: if
anything is wrong with the file, or fails, the server stays as it was. What the file says is so
already is left alone, so an import can be run again; one that was cut off is finished so.

Passwords come along in the form that they have. Messages do not.
"""
IMPORT_EXAMPLES: Final = """\
examples:
  hutch import definitions.json --dry-run     says what it would do, and changes nothing
  hutch import definitions.json
  curl -u guest:guest http://old:15672/api/definitions | hutch import -
"""
EXPORT: Final = """\
Write users, virtual hosts, permissions, policies, streams and super streams of a running server
as a RabbitMQ definitions file, which `hutch import` and RabbitMQ can read.

RabbitMQ cannot use argon2id hashes: users who have one are written without a password, with a
warning. An import into the server that they come from leaves them their password.
"""
EXPORT_EXAMPLES: Final = """\
examples:
  hutch export definitions.json
  hutch export --vhost orders | gzip > orders.json.gz
"""
_OWNER_ONLY: Final = 0o600
UNUSABLE: Final = "unusable_definitions"
"""Code of a refusal for what is in the file."""


def add_import(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `hutch import`."""
    parser.description, parser.epilog = IMPORT, IMPORT_EXAMPLES
    add(
        parser,
        argument("file FILE", "definitions in JSON; - is standard input"),
        argument("--dry-run", "say what it would do, no more"),
        argument(
            "--vhost VHOST",
            "where the export of one virtual host goes (default: to that of the same name)",
        ),
        argument("--json", "print the report as JSON"),
    )
    add_place(parser)


def add_export(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `hutch export`."""
    parser.description, parser.epilog = EXPORT, EXPORT_EXAMPLES
    where = "where to (default: standard output); made for its owner alone"
    add(
        parser,
        argument("file FILE", where, nargs="?", default="-"),
        argument("--vhost VHOST", "only this virtual host"),
    )
    add_place(parser)


def run_import(options: argparse.Namespace) -> int:
    """Run `hutch import`; return the exit code."""
    return within_edge(lambda: _naming(options))


def _naming(options: argparse.Namespace) -> int:
    """Import, and put the file's name before what is wrong with it."""
    try:
        return _import(options)
    except Refused as error:
        if error.code != UNUSABLE:
            raise
        file = "standard input" if options.file == "-" else options.file
        lines = (f"{file}: {line}" for line in str(error).splitlines())
        raise Refused("\n".join(lines), error.code) from None


def _import(options: argparse.Namespace) -> int:
    arguments: dict[str, Any] = {"dry_run": options.dry_run}
    if options.vhost is not None:
        arguments["virtual_host"] = options.vhost
    directory = data_directory(options)
    answer = ask(directory, "import_definitions", arguments, _content(options.file))
    rows = [
        Row(kind, host, name, Outcome(outcome), reason)
        for kind, host, name, outcome, reason in answer["rows"]
    ]
    if options.json:
        report = {
            "is_dry_run": answer["is_dry_run"],
            "changes": answer["changes"],
            "objects": [row.fields() for row in rows],
        }
        sys.stdout.write(json.dumps(report, indent=2) + "\n")
        return 0
    sys.stdout.write(report_table(rows, is_dry_run=options.dry_run))
    changes = answer["changes"]
    if options.dry_run:
        sys.stdout.write(f"Nothing was changed; an import would change {changes} objects.\n")
    else:
        sys.stdout.write(f"{changes} objects were changed.\n")
    return 0


def _content(file: str) -> bytes:
    try:
        if file == "-":
            content = sys.stdin.buffer.read(BODY_BYTES_MAX + 1)
        else:
            with Path(file).open("rb") as opened:
                content = opened.read(BODY_BYTES_MAX + 1)
    except OSError as error:
        raise WrongUse(f"cannot read {file}: {error.strerror}") from None
    if len(content) > BODY_BYTES_MAX:
        raise WrongUse(f"{file} is larger than {BODY_BYTES_MAX} bytes")
    if not content.strip():
        raise WrongUse(f"{file} is empty")
    return content


def run_export(options: argparse.Namespace) -> int:
    """Run `hutch export`; return the exit code."""
    return within_edge(lambda: _export(options))


def _export(options: argparse.Namespace) -> int:
    arguments = {} if options.vhost is None else {"virtual_host": options.vhost}
    answer = ask(data_directory(options), "export_definitions", arguments)
    text = json.dumps(answer["definitions"], indent=2, ensure_ascii=False) + "\n"
    try:
        _write(options.file, text.encode())
    except BrokenPipeError:  # of standard output: it has no reader, which is said elsewhere
        raise
    except OSError as error:
        raise WrongUse(f"cannot write {options.file}: {error.strerror}") from None
    for warning in answer["warnings"]:
        sys.stderr.write(f"hutch: warning: {visible(warning)}\n")
    return 0


def _write(file: str, content: bytes) -> None:
    if file == "-":
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    # Whole or not at all; hashes of passwords are for the owner alone.
    target = Path(file)
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY)
    try:
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(content)
            opened.flush()
            os.fsync(opened.fileno())
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
