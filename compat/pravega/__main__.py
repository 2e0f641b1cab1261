"""`python -m compat.pravega`: play every case on a real Pravega and on Hutch, and compare."""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

from compat.clients.programs import Unavailable
from compat.comparison import Comparison, Outcomes, compare
from compat.pravega.case import Case
from compat.pravega.cases import CASES
from compat.pravega.expected import expected_of
from compat.pravega.runner import play_all, surprises
from compat.pravega.servers import Address, NotReady, hutch, pravega

USAGE_ERROR = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare, report; exit status 0 if every difference is a meant one."""
    options = parser().parse_args(arguments)
    chosen = [one for one in CASES if fnmatchcase(one.name, options.only)]
    if not chosen:
        print(f"no case is named like {options.only!r}", file=sys.stderr)
        return USAGE_ERROR
    try:
        with contextlib.ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            theirs = options.pravega or stack.enter_context(pravega(folder)).address
            if options.print:
                played = play_all(chosen, theirs)
                show(chosen, played)
                return 1 if surprises(chosen, played) else 0
            ours = theirs if options.itself else options.hutch
            ours = ours or stack.enter_context(hutch(folder)).address
            found = compare(
                chosen,
                partial(play_all, address=theirs),
                partial(play_all, address=ours),
                () if options.itself else expected_of(chosen),
                reference="Pravega",
            )
    except (Unavailable, NotReady) as error:
        print(error, file=sys.stderr)
        return 1
    return report(chosen, found, is_whole=options.only == "*", is_verbose=options.verbose)


def parser() -> argparse.ArgumentParser:
    """Return the command line's grammar."""
    top = argparse.ArgumentParser(
        prog="python -m compat.pravega",
        description="Send the same frames to a real Pravega 0.13.0 and to Hutch, and compare the "
        "answers. Both are started; Pravega is downloaded by Maven the first time.",
    )
    top.add_argument("--pravega", type=address, metavar="HOST:PORT", help="one that runs")
    top.add_argument("--hutch", type=address, metavar="HOST:PORT", help="one that runs")
    top.add_argument("--itself", action="store_true", help="compare Pravega with itself")
    top.add_argument("--only", default="*", metavar="PATTERN", help="cases with such a name")
    top.add_argument("--print", action="store_true", help="print Pravega's answers, compare none")
    top.add_argument("--verbose", action="store_true", help="list the meant differences too")
    return top


def address(text: str) -> Address:
    """Return host and port; ValueError for other text."""
    host, _, port = text.rpartition(":")
    return host or "127.0.0.1", int(port)


def show(cases: Sequence[Case], played: Outcomes) -> None:
    """Print the answers of one server."""
    for one in cases:
        print(one.name)
        for step in played[one.name]:
            print(f"  {step.number} {step.title}")
            for line in step.lines:
                print(f"      {line}")
    for surprise in surprises(cases, played):
        print(surprise)


def report(cases: Sequence[Case], found: Comparison, *, is_whole: bool, is_verbose: bool) -> int:
    """Print what was found; return the exit status."""
    verdict = found.verdict
    for difference in found.unsteady:
        print(f"differed once, and not when played again:\n{difference}\n")
    for difference in verdict.unexpected:
        print(f"{difference}\n")
    if is_verbose:
        for difference, entry in verdict.explained:
            print(f"meant: {entry.reason}\n{difference}\n")
    stale = verdict.stale if is_whole else ()
    for entry in stale:
        print(f"no longer differs: {entry.script} {entry.label}: {entry.reason}")
    unlike = surprises(cases, found.theirs)
    for surprise in unlike:
        print(f"Pravega answers otherwise than the case says: {surprise}")
    print(
        f"{len(cases)} cases: {len(verdict.unexpected)} differences, "
        f"{len(verdict.explained)} meant ones"
    )
    return 1 if verdict.unexpected or stale or unlike else 0


if __name__ == "__main__":
    sys.exit(main())
