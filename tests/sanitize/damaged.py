"""Damaged inputs for the fuzz targets, without the fuzzer: in a process with checks built in.

python -m tests.sanitize.damaged --state FILE --seconds N [--kept FOLDER]
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from gateway.kernels import KERNELS, uncompiled
from tests.fuzz.inputs import kept, mutated
from tests.fuzz.targets import INPUT_BYTES_MAX, TARGETS

COMPILED: Final = ("publish", "chunk", "connection")
"""Targets whose inputs reach compiled code."""
A_SEED: Final = 2_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Try all that is kept, then damaged inputs until the time is up."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--kept", type=Path)
    options = parser.parse_args(arguments)
    logging.disable()
    assert not set(KERNELS) & set(uncompiled())
    state: Path = options.state
    counts: dict[str, int] = json.loads(state.read_text()) if state.exists() else {}
    for target in COMPILED:
        inputs = [data for _, data in kept(target)]
        if options.kept is not None and (options.kept / target).is_dir():
            found = [path.read_bytes() for path in sorted((options.kept / target).iterdir())]
            inputs += [data for data in found if len(data) <= INPUT_BYTES_MAX]
        for data in inputs:
            TARGETS[target](data)
        end = time.monotonic() + options.seconds / len(COMPILED)
        while time.monotonic() < end:
            done = counts.get(target, 0)
            for _, data in zip(range(A_SEED), mutated(inputs, done // A_SEED), strict=False):
                TARGETS[target](data)
            counts[target] = done + A_SEED
            state.write_text(json.dumps(counts))
        sys.stdout.write(f"{target}: {len(inputs)} kept inputs, {counts[target]} damaged ones\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
