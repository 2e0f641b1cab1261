"""`python -m compat.suites SUITE`: an official client's own tests on Hutch; `get` fetches them."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from compat.pravega.java.__main__ import main as pravega_java
from compat.suites import namespace, sources
from compat.suites.catalogue import SUITES, Place
from compat.suites.results import FAILED, PASSED, SKIPPED, Results
from compat.suites.servers import SERVERS

EXIT_FAILURES = 1
EXIT_USAGE = 2
PRAVEGA = "pravega-java"


def parser() -> argparse.ArgumentParser:
    """Return the command line's grammar."""
    top = argparse.ArgumentParser(
        prog="python -m compat.suites",
        description="Run an official client's own test suite against Hutch, in a network of its"
        " own. `get SUITE` fetches its sources; compat/suites/README.md says what else is needed."
        f" `{PRAVEGA}` runs programs on Pravega's client: python -m compat.pravega.java.",
    )
    top.add_argument("suite", choices=sorted(SUITES))
    top.add_argument("--checkout", type=Path, help="the client's repository (default: as got)")
    top.add_argument("--server", choices=sorted(SERVERS), default="hutch", help="default: hutch")
    top.add_argument(
        "--only",
        action="append",
        default=[],
        help="tests in the suite's own words; Go's packages begin with ./",
    )
    top.add_argument("--json", type=Path, help="write how each test ended to this file")
    return top


def main(arguments: Sequence[str]) -> int:
    """Run a suite, or get one; return the exit code."""
    if arguments and (command := COMMANDS.get(arguments[0])):
        return command(arguments[1:])
    options = parser().parse_args(arguments)
    if options.checkout is None:
        options.checkout = sources.folder(options.suite)
    if not options.checkout.is_dir():
        print(f"{options.suite}: not run: {sources.how(options.suite)}", file=sys.stderr)
        return EXIT_USAGE
    if not namespace.is_inside():
        reason = namespace.missing()
        if reason:
            print(f"no network of its own can be had here: {reason}", file=sys.stderr)
            return EXIT_USAGE
        return namespace.run_inside(arguments)
    folder = Path(tempfile.mkdtemp(prefix=f"hutch-suite-{options.suite}-"))
    reports = folder / "reports"
    reports.mkdir()
    print(f"log and reports: {folder}", flush=True)
    checkout = options.checkout.resolve()
    with SERVERS[options.server](folder, checkout) as certificates:
        place = Place(checkout, reports, certificates, options.only)
        results = SUITES[options.suite].run(place)
    version = commit_of(options.checkout) or sources.SOURCES[options.suite].version
    show(options.suite, version, results)
    if options.json is not None:
        options.json.write_text(json.dumps(results.outcomes, indent=1, sort_keys=True) + "\n")
    is_whole = options.server == "hutch" and not options.only
    faults = SUITES[options.suite].faults(results) if is_whole else results.named(FAILED)
    if faults:
        print(f"{options.suite} failed: {faults[0]}", file=sys.stderr)
    return EXIT_FAILURES if faults else 0


def get(arguments: Sequence[str]) -> int:
    """Put the sources of suites where a run finds them; return the exit code."""
    top = argparse.ArgumentParser(prog="python -m compat.suites get")
    top.add_argument("suite", nargs="+", choices=sorted(SUITES))
    status = 0
    for name in top.parse_args(arguments).suite:
        try:
            print(f"{name}: {sources.get(name)}", flush=True)
        except sources.SourceError as error:
            print(f"{name}: {error}", file=sys.stderr)
            status = EXIT_FAILURES
    return status


def commit_of(checkout: Path) -> str:
    """Return what was tested; empty if the folder is no repository of its own."""
    if not (checkout / ".git").exists():
        return ""
    return subprocess.run(
        ["git", "-C", checkout, "describe", "--tags", "--always"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()


def show(suite: str, commit: str, results: Results) -> None:
    """Print the numbers and what did not pass."""
    counts = results.counts()
    for outcome in (FAILED, SKIPPED):
        for name in results.named(outcome):
            print(f"{outcome}: {name}")
    numbers = ", ".join(f"{counts[outcome]} {outcome}" for outcome in (PASSED, FAILED, SKIPPED))
    print(f"{suite} {commit}: {len(results.outcomes)} tests, {numbers}")


COMMANDS: Final[Mapping[str, Callable[[Sequence[str]], int]]] = {"get": get, PRAVEGA: pravega_java}
"""Commands that are no suite of a stream client."""

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
