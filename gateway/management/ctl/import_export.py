"""`hutch import` and `hutch export`: definitions in and out of a running server."""

import json
import os
import secrets
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from gateway.command_line import visible
from gateway.management.ctl.asking import ServerRefused
from gateway.management.ctl.grammar import Ask, Asked, WrongUse, argument, command
from gateway.management.definitions.report import ImportOutcome, ReportRow, report_table
from gateway.management.errors import UnusableDefinitions
from gateway.management.wire import BODY_BYTES_MAX

_OWNER_ONLY: Final = 0o600
_ROW: Final = ("kind", "virtual_host", "name", "outcome", "reason")


def _report(answer: Mapping[str, Any]) -> str:
    is_dry_run, changes = answer["is_dry_run"], answer["changes"]
    rows = [
        ReportRow(**{**each, "outcome": ImportOutcome(each["outcome"])})
        for each in answer["objects"]
    ]
    end = f"{changes} objects were changed.\n"
    if is_dry_run:
        end = f"Nothing was changed; an import would change {changes} objects.\n"
    return report_table(rows, is_dry_run=is_dry_run) + end


@command(
    argument("file FILE", "definitions in JSON; - is standard input"),
    argument("--dry-run", "say what it would do, no more"),
    argument(
        "--vhost VHOST",
        "where the export of one virtual host goes (default: to that of the same name)",
        dest="virtual_host",
    ),
    shown=_report,
)
def import_definitions(ask: Ask, asked: Asked) -> object:
    """Bring the definitions of a RabbitMQ into a running server.

    These are users, virtual hosts, permissions, policies, streams and super streams, in a file that
    `rabbitmqctl export_definitions`, its management page or `hutch export` wrote, of a whole broker
    or of one virtual host.

    Prints what was imported, what was adapted, and what was skipped and why. All or nothing: if
    anything is wrong with the file, or fails, the server stays as it was. What the file says is so
    already is left alone, so an import can be run again; one that was cut off is finished so.

    Passwords come along in the form that they have. Messages do not.

    Examples:
      hutch import definitions.json --dry-run     says what it would do, and changes nothing
      hutch import definitions.json
      curl -u guest:guest http://old:15672/api/definitions | hutch import -
    """
    file = asked.pop("file")
    try:
        answer = ask("import_definitions", asked, _content(file))
    except ServerRefused as error:
        if error.code != UnusableDefinitions.code:
            raise
        place = "standard input" if file == "-" else file
        lines = (f"{place}: {line}" for line in str(error).splitlines())
        raise ServerRefused("\n".join(lines), error.code) from None
    objects = [dict(zip(_ROW, row, strict=True)) for row in answer.pop("rows")]
    return {**answer, "objects": objects}


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


@command(
    argument(
        "file FILE",
        "where to (default: standard output); made for its owner alone",
        nargs="?",
        default="-",
    ),
    argument("--vhost VHOST", "only this virtual host", dest="virtual_host"),
)
def export_definitions(ask: Ask, asked: Asked) -> None:
    """Write the definitions of a running server as a RabbitMQ definitions file.

    These are users, virtual hosts, permissions, policies, streams and super streams. `hutch import`
    and RabbitMQ can read them.

    RabbitMQ cannot use argon2id hashes: users that have one are written without a password, with a
    warning. An import into the server that they come from leaves them their password.

    Examples:
      hutch export definitions.json
      hutch export --vhost orders | gzip > orders.json.gz
    """
    file = asked.pop("file")
    answer = ask("export_definitions", asked)
    text = json.dumps(answer["definitions"], indent=2, ensure_ascii=False) + "\n"
    try:
        _write(file, text.encode())
    except OSError as error:
        if file == "-":  # the entry point says what is wrong with it, as for every command
            raise
        raise WrongUse(f"cannot write {file}: {error.strerror}") from None
    for warning in answer["warnings"]:
        sys.stderr.write(f"hutch: warning: {visible(warning)}\n")


def _write(file: str, content: bytes) -> None:
    if file == "-":
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    # Whole or not at all; hashes of passwords are for the owner alone.
    target = Path(file)
    beside = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
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
