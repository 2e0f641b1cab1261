"""`python -m compat.roots`: `make test` as an ordinary user, on Debian 12, 13 and testing."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from compat import debian
from compat.roots.root import PACKAGES, Root

SUITES: Final = {"bookworm": "3.11", "trixie": "3.13", "testing": "3.14"}
"""The releases, each with the Python that it has."""
_REPOSITORY: Final = Path(__file__).parents[2]
_COMMAND: Final = ("make", "test", "RERUNS=0")
_FOLDER: Final = Path(".venv/roots")
_LOOK_S: Final = 30
_PERCENT: Final = re.compile(r"\[ *([0-9]+)%\]")
_TOLD: Final = re.compile(r"^(?:FAILED|ERROR|SKIPPED|left |=.* in [0-9.]+s)")
_LAST_LINES: Final = 15


def parser() -> argparse.ArgumentParser:
    """Return the command line's grammar."""
    top = argparse.ArgumentParser(
        prog="python -m compat.roots",
        description="Run `make test` on a clone of this repository's last commit, as an ordinary "
        f"user, on bare Debian systems: {', '.join(PACKAGES)}, and nothing else. Needs root.",
    )
    releases = ", ".join(f"{suite} (Python {version})" for suite, version in SUITES.items())
    top.add_argument("suites", nargs="*", metavar="SUITE", help=f"{releases}; default: all")
    top.add_argument(
        "--folder", type=Path, default=_FOLDER, help="where they are kept: %(default)s"
    )
    top.add_argument("--minutes", type=float, default=60, help="at most, for each: %(default)s")
    top.add_argument("--workers", type=int, default=2, help="as WORKERS of make: %(default)s")
    top.add_argument("--args", default="", help="as ARGS of make")
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tests in each root; return 1 if they failed or could not run in one of them."""
    top = parser()
    options = top.parse_args(arguments)
    if unknown := [suite for suite in options.suites if suite not in SUITES]:
        top.error(f"unknown: {', '.join(unknown)}; there are {', '.join(SUITES)}")
    try:
        debian.require_root_on_debian()
    except debian.CannotBuild as error:
        print(f"the roots were not tried: {error}", file=sys.stderr)
        return 1
    folder = options.folder.resolve()
    command = [*_COMMAND, f"WORKERS={options.workers}", f"ARGS={options.args}"]
    passed = [
        tried(Root(suite, folder / suite), command, options.minutes * 60)
        for suite in options.suites or SUITES
    ]
    return 0 if all(passed) else 1


def tried(root: Root, command: Sequence[str], limit_s: float) -> bool:
    """Run the tests in one root, telling how far they are; return whether they passed."""
    begun = time.monotonic()

    def tell(text: str) -> None:
        print(f"{root.suite}: {(time.monotonic() - begun) / 60:.1f} min: {text}", flush=True)

    try:
        tell("building the root, if it is not there")
        root.build()
        root.clone(_REPOSITORY)
    except debian.CannotBuild as error:
        tell(f"not run: {error}")
        return False
    tell(f"{' '.join(command)}, as told in {root.log}")
    with root.started(command) as process:
        deadline = begun + limit_s
        while (code := process.poll()) is None and time.monotonic() < deadline:
            try:
                process.wait(_LOOK_S)
            except subprocess.TimeoutExpired:
                tell(how_far(root.log.read_text(errors="replace")))
    text = root.log.read_text(errors="replace")
    for line in outcome(text, is_passed=code == 0):
        print(f"    {line}")
    ended = f"cut off at {how_far(text)}" if code is None else "passed" if code == 0 else "failed"
    tell(ended)
    return code == 0


def how_far(text: str) -> str:
    """Return how far a run has come: what pytest said last, else make."""
    if percents := _PERCENT.findall(text):
        return f"{percents[-1]} %"
    made = [line for line in text.splitlines() if line.startswith("make: ")]
    return made[-1] if made else "nothing yet"


def outcome(text: str, *, is_passed: bool) -> list[str]:
    """Return the lines that say what failed, was skipped or was left, else the last ones."""
    lines = text.splitlines()
    told = [line for line in lines if _TOLD.match(line)]
    return told if told or is_passed else lines[-_LAST_LINES:]


if __name__ == "__main__":
    sys.exit(main())
