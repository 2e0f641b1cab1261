"""Runs the long proofs: `make night`, and `make long` for those of hours.

    python -m tests.night [PART …] [--long] [--list] [--anew]

Each part has an amount and a time limit. Parts that mostly wait run beside those that compute; the
bench runs alone, when they have ended. After a part that fails the next one runs. For the same
commit without changes, parts that have passed are not run again: a night that was interrupted goes
on. The table is written to the folder after each part, and printed at the end. The exit status is 0
if all parts have passed; one that could not run counts as failed, and says what it needs.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from tests.night.lanes import Lanes
from tests.night.part import ROOT, Part
from tests.night.parts import LONG, NIGHT
from tests.night.results import Results

FOLDER: Final = ROOT / "build"
INTERRUPTED: Final = 130


def main(
    arguments: Sequence[str] | None = None,
    night: Sequence[Part] = NIGHT,
    long: Sequence[Part] = LONG,
) -> int:
    """Run parts; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.night",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help="only these (default: all)")
    parser.add_argument("--long", action="store_true", help="the parts that take hours instead")
    parser.add_argument("--list", action="store_true", help="list the parts, run nothing")
    parser.add_argument("--anew", action="store_true", help="run what has passed again as well")
    parser.add_argument(
        "--patience", type=float, default=1.0, metavar="N", help="limits times N, on a slow machine"
    )
    parser.add_argument("--folder", type=Path, default=FOLDER, help="default: build")
    options = parser.parse_args(arguments)
    parts = long if options.long else night
    unknown = set(options.parts) - {part.name for part in parts}
    if unknown:
        parser.error(f"no part is named {', '.join(sorted(unknown))}: see --list")
    chosen = [part for part in parts if not options.parts or part.name in options.parts]
    if options.list:
        for part in chosen:
            say(f"{part.name:<20}{part.proves} ({part.amount}, at most {part.limit_s} s)")
        return 0
    results = Results.read(options.folder)
    try:
        patient = [replace(part, limit_s=round(part.limit_s * options.patience)) for part in chosen]
        Lanes(results, night, long, options.anew, say).run(patient)
    except KeyboardInterrupt:
        say("interrupted; the same command goes on from here")
        return INTERRUPTED
    say(results.shown(night, long))
    ended = (results.found.get(part.name) for part in chosen)
    return 0 if all(result is not None and result.is_passed for result in ended) else 1


def say(line: str) -> None:
    """Print a line at once."""
    print(line, flush=True)  # noqa: T201


if __name__ == "__main__":
    for _number in (signal.SIGINT, signal.SIGTERM):  # a shell lets its background ignore SIGINT
        signal.signal(_number, signal.default_int_handler)
    sys.exit(main())
