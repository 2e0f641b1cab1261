"""`python -m compat.differential`: play every script on RabbitMQ and on Hutch, and compare."""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
from argparse import Namespace
from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

from compat.bench.hutch import Hutch
from compat.broker import BrokerUnavailable, RunningBroker, obtain
from compat.comparison import Comparison, Played, compare
from compat.differential.administration import (
    Administration,
    HutchAdministration,
    RabbitMQAdministration,
)
from compat.differential.coverage import document, missing, shown, unlisted
from compat.differential.expected import EXPECTED
from compat.differential.runner import play_all
from compat.differential.script import Script
from compat.differential.scripts import SCRIPTS

USAGE_ERROR = 2
COVERAGE = Path(__file__).parents[1] / "COVERAGE.md"
# What RabbitMQ does by itself.
SETTINGS = """
[users]
anonymous = "guest"
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare, report; exit status 0 if every difference is a meant one."""
    options = parser().parse_args(arguments)
    chosen = [one for one in SCRIPTS if fnmatchcase(one.name, options.only)]
    if not chosen:
        print(f"no script is named like {options.only!r}", file=sys.stderr)
        return USAGE_ERROR
    if options.coverage and len(chosen) < len(SCRIPTS):
        print("--coverage needs every script", file=sys.stderr)
        return USAGE_ERROR
    if options.hutch and not options.data:
        chosen = [one for one in chosen if not one.is_administered]
    try:
        broker = obtain()
    except BrokerUnavailable as error:
        print(error, file=sys.stderr)
        return 1
    try:
        return with_broker(broker, chosen, options)
    finally:
        broker.stop()


def with_broker(broker: RunningBroker, chosen: Sequence[Script], options: Namespace) -> int:
    """Play the scripts on the broker, and do with its answers what was asked for."""
    address: tuple[str, int]
    to_change: Administration | None
    theirs = partial(
        play_all,
        address=broker.stream_address,
        administration=(theirs_to_change := RabbitMQAdministration(broker)),
    )
    if options.print:
        show(chosen, theirs(chosen))
        return 0
    if options.coverage:
        return write_coverage(chosen, theirs(chosen))
    with contextlib.ExitStack() as stack:
        if options.itself:
            address, to_change = broker.stream_address, theirs_to_change
        elif options.hutch:
            host, _, port = options.hutch.rpartition(":")
            address = host or "127.0.0.1", int(port)
            to_change = HutchAdministration(options.data) if options.data else None
        else:
            address, to_change = start_hutch(stack)
        ours = partial(play_all, address=address, administration=to_change)
        found = compare(chosen, theirs, ours, () if options.itself else EXPECTED)
    is_whole = options.only == "*"
    report(chosen, found, is_whole=is_whole, is_verbose=options.verbose)
    verdict = found.verdict
    return 1 if verdict.unexpected or (verdict.stale and is_whole) else 0


def parser() -> argparse.ArgumentParser:
    """Return the command line's grammar."""
    top = argparse.ArgumentParser(
        prog="python -m compat.differential",
        description="Send the same frames to RabbitMQ and to Hutch and compare the answers. "
        "RabbitMQ is found or started as `python -m compat.broker` does.",
    )
    top.add_argument(
        "--hutch", metavar="HOST:PORT", help="a Hutch that runs (default: one is started)"
    )
    top.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help="its data directory; without it scripts that change users are left out",
    )
    top.add_argument("--itself", action="store_true", help="compare RabbitMQ with itself")
    top.add_argument("--only", default="*", metavar="PATTERN", help="scripts with such a name")
    top.add_argument("--print", action="store_true", help="print RabbitMQ's answers, compare none")
    top.add_argument(
        "--coverage", action="store_true", help="write COVERAGE.md from RabbitMQ's answers"
    )
    top.add_argument("--verbose", action="store_true", help="list the meant differences too")
    return top


def start_hutch(stack: contextlib.ExitStack) -> tuple[tuple[str, int], Administration]:
    """Start a Hutch that ends with `stack`; return where it listens, and how to change it."""
    folder = Path(tempfile.mkdtemp())
    settings = folder / "hutch.toml"
    settings.write_text(SETTINGS)
    command = [sys.executable, "-m", "gateway", "serve", "--config", str(settings)]
    hutch = Hutch(command, folder, "os")
    stack.callback(hutch.stop)
    hutch.start()
    address = hutch.address.host, hutch.address.port
    return address, HutchAdministration(hutch.data_folder)


def show(scripts: Sequence[Script], played: dict[str, list[Played]]) -> None:
    """Print the answers of one server."""
    for one in scripts:
        print(one.name)
        for step in played[one.name]:
            print(f"  {step.number} {step.title}")
            for line in step.lines:
                print(f"      {line}")


def write_coverage(scripts: Sequence[Script], theirs: dict[str, list[Played]]) -> int:
    """Write the page of what RabbitMQ's answers show; exit status 0 if nothing is missing."""
    found = shown(theirs)
    for what, pairs in (("not shown", missing(found)), ("not listed", unlisted(found))):
        for command, code in pairs:
            print(f"{what}: {command} {code}")
    if missing(found) or unlisted(found):
        return 1
    COVERAGE.write_text(document(found, scripts))
    return 0


def report(
    scripts: Sequence[Script], found: Comparison, *, is_whole: bool, is_verbose: bool
) -> None:
    """Print what was found."""
    verdict = found.verdict
    for difference in found.unsteady:
        print(f"differed once, and not when played again:\n{difference}\n")
    for difference in verdict.unexpected:
        print(f"{difference}\n")
    if is_verbose:
        for difference, entry in verdict.explained:
            print(f"meant: {entry.reason}\n{difference}\n")
    if is_whole:
        for entry in verdict.stale:
            print(f"no longer differs: {entry.script} {entry.label}: {entry.reason}")
    exchanges = sum(one.exchange_count for one in scripts)
    print(
        f"{len(scripts)} scripts, {exchanges} exchanges: {len(verdict.unexpected)} differences, "
        f"{len(verdict.explained)} meant ones"
    )


if __name__ == "__main__":
    sys.exit(main())
