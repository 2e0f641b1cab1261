"""`python -m compat.pravega.java`: readers by Pravega's Java client on a real Pravega and on Hutch.

Each scenario gives values, and those of the two servers are compared.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from compat.clients.programs import Unavailable
from compat.comparison import Comparison, Expected, Outcomes, compare
from compat.pravega.__main__ import address
from compat.pravega.java import written
from compat.pravega.java.coverage import coverage
from compat.pravega.java.expected import EXPECTED
from compat.pravega.java.program import NEWEST, OLDEST, Scenario, played, run, scenarios
from compat.pravega.servers import Address, NotReady, hutch, pravega

USAGE_ERROR: Final = 2
Play = Callable[[Sequence[Scenario]], Outcomes]
Seconds = dict[str, float]


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare, report; exit status 0 if every difference is a meant one."""
    options = parser().parse_args(arguments)
    versions = options.client or [NEWEST, OLDEST]
    try:
        if options.methods:
            print(*coverage().lines(), sep="\n")
            return 0
        chosen = {version: scenarios(version, options.only) for version in versions}
        if not any(chosen.values()):
            print(f"no scenario is named like {options.only!r}", file=sys.stderr)
            return USAGE_ERROR
        with contextlib.ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            theirs = options.pravega
            if theirs is None and not options.written:
                theirs = stack.enter_context(pravega(folder)).controller
            if options.write:
                return write_down(chosen, theirs)
            ours = theirs if options.itself else options.hutch
            ours = ours or stack.enter_context(hutch(folder)).controller
            meant = () if options.itself else EXPECTED
            statuses = [
                contrast(version, chosen[version], theirs, ours, meant, options.only == "*")
                for version in versions
            ]
    except (Unavailable, NotReady) as error:
        print(error, file=sys.stderr)
        return 1
    return max(statuses)


def parser() -> argparse.ArgumentParser:
    """Return the command line's grammar."""
    top = argparse.ArgumentParser(
        prog="python -m compat.pravega.java",
        description="Run readers by Pravega's Java client on a real Pravega 0.13.0 and on Hutch,"
        " and compare what they see. Both servers are started; Maven downloads Pravega and the"
        " client the first time.",
    )
    top.add_argument(
        "--client",
        action="append",
        choices=(NEWEST, OLDEST),
        help="a version of the client (default: both)",
    )
    top.add_argument("--pravega", type=address, metavar="HOST:PORT", help="a controller that runs")
    top.add_argument("--hutch", type=address, metavar="HOST:PORT", help="a controller that runs")
    top.add_argument("--only", default="*", metavar="PATTERN", help="scenarios with such a name")
    which = top.add_mutually_exclusive_group()
    which.add_argument("--itself", action="store_true", help="compare Pravega with itself")
    which.add_argument(
        "--written", action="store_true", help="take the values that Pravega gave once"
    )
    which.add_argument("--write", action="store_true", help="write down Pravega's values")
    which.add_argument(
        "--methods", action="store_true", help="list the client's methods, and which are called"
    )
    return top


def write_down(chosen: dict[str, list[Scenario]], theirs: Address) -> int:
    """Write down what the real Pravega gives, where a scenario ended well; return the status."""
    failed = []
    for version, some in chosen.items():
        values = run(some, version, theirs, {})
        ended = {name: given for name, given in values.items() if given["end"] == "ok"}
        written.write(version, ended)
        failed += [f"{name}, client {version}" for name in values if name not in ended]
    for name in failed:
        print(f"does not end well on Pravega, and is not written down: {name}")
    return 1 if failed else 0


def contrast(
    version: str,
    chosen: Sequence[Scenario],
    theirs: Address | None,
    ours: Address,
    meant: Sequence[Expected],
    is_whole: bool,  # noqa: FBT001  # of one caller
) -> int:
    """Compare by one version of the client, and print it; return the exit status.

    Args:
        version: That of the client.
        chosen: What to run.
        theirs: The real Pravega's controller; None takes what is written down.
        ours: Hutch's controller.
        meant: Differences that are meant.
        is_whole: All scenarios are run, so each entry of `meant` must be of use.
    """
    took: tuple[Seconds, Seconds] = {}, {}

    def on(server: Address | None, seconds: Seconds) -> Play:
        def play(some: Sequence[Scenario]) -> Outcomes:
            if server is not None:
                return played(run(some, version, server, seconds))
            known = written.read(version)
            return played({one.name: known.get(one.name, {}) for one in some})

        return play

    names = {one.name for one in chosen}
    meant = [entry for entry in meant if entry.script in names]  # the oldest client has fewer
    found = compare(chosen, on(theirs, took[0]), on(ours, took[1]), meant, reference="Pravega")
    print(f"client {version}")
    return report(chosen, found, took, is_whole=is_whole)


def report(
    chosen: Sequence[Scenario],
    found: Comparison,
    took: tuple[Seconds, Seconds],
    *,
    is_whole: bool,
) -> int:
    """Print each scenario with its values where they differ; return the exit status."""
    verdict = found.verdict
    for one in chosen:
        wrong = [each for each in verdict.unexpected if each.script == one.name]
        explained = [pair for pair in verdict.explained if pair[0].script == one.name]
        word = "differs" if wrong else "meant" if explained else "same"
        times = " ".join(f"{each[one.name]:5.1f}" if one.name in each else "    -" for each in took)
        print(f"{word:8}{one.name:28}{len(found.theirs[one.name]):3} values {times} s")
        for each in wrong:
            print(f"    {each.label}")
            print(f"        Pravega  {' '.join(each.theirs) or '(nothing)'}")
            print(f"        Hutch    {' '.join(each.ours) or '(nothing)'}")
        for each, entry in explained:
            theirs, ours = " ".join(each.theirs), " ".join(each.ours)
            print(f"    {each.label}: {theirs}, {ours}: {entry.reason}")
    for each in found.unsteady:
        print(f"differed once, and not when run again:\n{each}\n")
    stale = verdict.stale if is_whole else ()
    for entry in stale:
        print(f"no longer differs: {entry.script} {entry.label}: {entry.reason}")
    hung = [
        name
        for name, steps in found.theirs.items()
        if name not in {each.script for each in found.unsteady}
        and not any(step.label == "end" and step.lines == ("ok",) for step in steps)
    ]
    for name in hung:
        print(f"does not end well on Pravega: {name}")
    print(
        f"{len(chosen)} scenarios: {len(verdict.unexpected)} differences,"
        f" {len(verdict.explained)} meant ones"
    )
    return 1 if verdict.unexpected or stale or hung else 0


if __name__ == "__main__":
    sys.exit(main())
