"""Fuzz one target with atheris, for as long as it is let.

    python -m tests.fuzz TARGET [--kept FOLDER] [--runs N] [--seconds N]

What it finds interesting is kept in the folder, with how many inputs have been tried in all: the
same command goes on from there. An input that fails is written beside them as `crash-…`; it belongs
into `tests/fuzz/corpus` then, with a name of its own.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import atheris

with atheris.instrument_imports(
    include=[
        "gateway",
        "hutch",
        "pyspark_hutch.client",
        "hutch.pravega",
        "tests.property.gateway.publish_model",
        "tests.property.gateway.chunk_model",
    ]
):
    from tests.fuzz.targets import INPUT_BYTES_MAX, TARGETS, Target

from tests.fuzz.inputs import FOLDER

_SAVE_EACH_S: Final = 2.0


class Counted:
    """A target, and how often it was called in all runs together."""

    def __init__(self, target: Target, place: Path) -> None:
        self._target = target
        self._place = place
        self.count = int(place.read_text()) if place.exists() else 0
        self._saved_at = -math.inf

    def __call__(self, data: bytes) -> None:
        self._target(data)
        self.count += 1
        if self.count % 256 == 0 and time.monotonic() - self._saved_at > _SAVE_EACH_S:
            self.save()

    def save(self) -> None:
        """Note the count: the fuzzer ends the process without a farewell."""
        self._saved_at = time.monotonic()
        new = self._place.with_suffix(".new")
        new.write_text(str(self.count))
        new.replace(self._place)


def main(arguments: Sequence[str] | None = None) -> None:
    """Fuzz until a finding, Ctrl-C, or the end that was asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("target", choices=sorted(TARGETS))
    parser.add_argument("--kept", type=Path, default=Path(".fuzz"))
    parser.add_argument("--runs", type=int, default=-1, help="inputs to try; endless without")
    parser.add_argument("--seconds", type=int, default=0, help="how long; endless without")
    options = parser.parse_args(arguments)
    kept = options.kept / options.target
    kept.mkdir(parents=True, exist_ok=True)
    counted = Counted(TARGETS[options.target], options.kept / f"{options.target}.count")
    sys.stdout.write(f"{options.target}: {counted.count} inputs tried before\n")
    sys.stdout.flush()
    atheris.Setup(
        [
            sys.argv[0],
            str(kept),
            str(FOLDER / options.target),
            f"-artifact_prefix={kept}/",
            f"-max_len={INPUT_BYTES_MAX}",
            f"-runs={options.runs}",
            f"-max_total_time={options.seconds}",
            "-timeout=20",
            "-rss_limit_mb=2048",
        ],
        counted,
    )
    atheris.Fuzz()


if __name__ == "__main__":
    main()
