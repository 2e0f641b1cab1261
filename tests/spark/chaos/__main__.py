"""Copies streams through Spark while processes are killed, and counts lost and doubled rows.

    python -m tests.spark.chaos [WORD ...] [--short] [--rows 1000000] [--folder FOLDER] [--list]

Words choose the cases whose names have any of them. Short cases have few rows. Each case prints one
line, and a table of all comes at the end. The exit status is 0 if each row of each case was there
once.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.spark.chaos.cases import CASES, SHORT, Case, Size, long
from tests.spark.chaos.running import Ground, Outcome, run_case

ROWS: Final = 1_000_000
HEAD: Final = f"{'case':46} {'rows':>9} kills restarts   lost doubled seconds"


def _line(outcome: Outcome) -> str:
    found = outcome.found
    wrong = f"  {found.wrong} wrong" if found.wrong else ""
    return (
        f"{outcome.case.name:46} {found.rows:9} {outcome.kills:5} {outcome.restarts:8}"
        f" {found.lost:6} {found.doubled:7} {outcome.seconds:7.0f}{wrong}"
    )


def _say(what: object) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


def _run_all(cases: Sequence[Case], size: Size, folder: Path) -> int:
    """Run cases; give how many were not good, with those that did not come to an end."""
    begun = time.monotonic()
    lines, bad = [], 0

    def progress(what: str) -> None:
        _say(f"  {time.monotonic() - begun:6.0f} s  {what}")

    try:
        with Ground(folder, size, progress) as ground:
            for number, case in enumerate(cases, start=1):
                _say(f"{number} of {len(cases)}: {case.name}")
                try:
                    outcome = run_case(case, ground)
                except Exception:  # noqa: BLE001  # the other cases are to run, whatever it is
                    bad += 1
                    _say(traceback.format_exc())
                    lines.append(f"{case.name:46} FAILED, as told above")
                else:
                    bad += not outcome.is_good
                    lines.append(_line(outcome))
                _say(lines[-1])
    except KeyboardInterrupt:
        bad += 1
        _say("stopped")
    _say("\n".join(["", HEAD, *lines]))
    _say(f"{len(lines)} cases, {bad} of them bad")
    return bad


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for; exit status 0 if no row was lost or doubled."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("words", nargs="*", help="words in the names of the cases; none: all cases")
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument("--rows", type=int, default=ROWS, help="rows of a case")
    sizes.add_argument("--short", action="store_true", help="few rows, as in `make test-spark`")
    parser.add_argument("--folder", type=Path, help="where files and logs stay, an empty folder")
    parser.add_argument("--list", action="store_true", help="print the names of the cases")
    options = parser.parse_args(arguments)
    words = options.words or [""]
    cases = [case for case in CASES if any(word in case.name for word in words)]
    if not cases:
        parser.error("no case has one of these words in its name")
    if options.list:
        _say("\n".join(case.name for case in cases))
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory(prefix="hutch-chaos-") as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        size = SHORT if options.short else long(options.rows)
        return 1 if _run_all(cases, size, folder) else 0


if __name__ == "__main__":
    sys.exit(main())
