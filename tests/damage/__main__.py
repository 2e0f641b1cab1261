"""Damages data directories from seeds, until as many places were damaged as are asked for.

    python -m tests.damage [--places 20000] [--state FILE] [--seed N] [--keep FOLDER]

With a state file it goes on where the last run was stopped (by Ctrl-C, for instance). `--seed`
replays one case; with `--keep` the damaged directory is left in a folder, before it was opened.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from tests.damage.cases import build_all, run_case
from tests.damage.ledger import Built

PLACES: Final = 20_000
FIRST_SEED: Final = 1_000_000
"""Cases of CI have lower ones."""
_SAVE_EACH_S: Final = 5.0
_HANGS_AFTER_S: Final = 120


@dataclass(slots=True)
class Count:
    """How far it came.

    Attributes:
        cases: Cases that ran; each has a seed of its own.
        places: Faults that were made.
        refused: Starts that were refused, as they may be.
        failed: Seeds of cases in which something was wrong.
    """

    cases: int = 0
    places: int = 0
    refused: int = 0
    failed: list[int] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.places} places damaged in {self.cases} directories, {self.refused} starts"
            f" refused, {len(self.failed)} directories with something wrong {self.failed[:20]}"
        )


@contextlib.contextmanager
def limited_time() -> Iterator[None]:
    """Raise TimeoutError in what takes much too long."""

    def too_long(*_: object) -> None:
        raise TimeoutError(f"not done within {_HANGS_AFTER_S} s")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(_HANGS_AFTER_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def count_on(count: Count, places: int, built: Sequence[Built], folder: Path) -> Iterator[str]:
    """Run cases up to so many places; gives what is to be said after each."""
    while count.places < places:
        seed = FIRST_SEED + count.cases
        with limited_time():
            outcome = run_case(built, seed, folder / "case")
        shutil.rmtree(folder / "case")
        count.cases += 1
        count.places += len(outcome.faults)
        count.refused += bool(outcome.refused)
        if outcome.complaints:
            count.failed.append(seed)
        yield str(outcome) if outcome.complaints else ""


def _say(what: object) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


def _replay(seeds: Sequence[int], kept: Path | None) -> int:
    is_good = True
    with tempfile.TemporaryDirectory() as temporary:
        built = build_all(Path(temporary))
        for seed in seeds:
            case = Path(temporary) / f"case-{seed}"
            with limited_time():
                outcome = run_case(built, seed, case)
            _say(outcome)
            is_good = is_good and not outcome.complaints
            if kept is not None:
                shutil.copytree(case / "damaged", kept / str(seed))
    return 0 if is_good else 1


def _count(places: int, state: Path | None) -> int:
    count = Count()
    if state is not None and state.exists():
        count = Count(**json.loads(state.read_text()))
    saved_at = time.monotonic()

    def save() -> None:
        if state is not None:
            new = state.with_suffix(".new")
            new.write_text(json.dumps(asdict(count)))
            new.replace(state)

    try:
        with tempfile.TemporaryDirectory() as temporary:
            built = build_all(Path(temporary))
            for said in count_on(count, places, built, Path(temporary)):
                if said:
                    _say(said)
                if time.monotonic() - saved_at > _SAVE_EACH_S:
                    saved_at = time.monotonic()
                    save()
                    _say(count)
    except KeyboardInterrupt:
        _say("stopped; the same command goes on from here" if state else "stopped")
    save()
    _say(count)
    return 1 if count.failed else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Damage and count; exit status 0 if nothing was wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--places", type=int, default=PLACES)
    parser.add_argument("--state", type=Path, help="where to go on, and to note how far it came")
    parser.add_argument("--seed", type=int, nargs="+", help="replay these cases, no others")
    parser.add_argument("--keep", type=Path, help="with --seed: leave the damaged directory here")
    options = parser.parse_args(arguments)
    if options.seed:
        return _replay(options.seed, options.keep)
    return _count(options.places, options.state)


if __name__ == "__main__":
    sys.exit(main())
