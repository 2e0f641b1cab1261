"""Runs tests fifty times while the machine is busy, to find those that fail now and then.

Without arguments it takes the tests that failed in the last run, or had a second try, which
`conftest.py` writes down. Arguments are those of pytest: files, tests, options.
"""

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

TRIED_AGAIN: Final = "hutch/tried-again"
"""The key in pytest's cache under which a run leaves the tests that it tried again."""
_FAILED: Final = "cache/lastfailed"
"""The key under which pytest itself leaves those that failed."""
_CACHE: Final = Path(__file__).parents[1] / ".pytest_cache/v"


def failed() -> list[str]:
    """Return the tests that failed in the last run, or were tried again."""
    files = [_CACHE / key for key in (TRIED_AGAIN, _FAILED)]
    found = {name for file in files if file.exists() for name in json.loads(file.read_text())}
    return sorted(found)


def keep_busy() -> None:
    """Use up a core, until the process is ended."""
    while True:
        pass


def main(arguments: list[str]) -> int:
    """Run the tests and return pytest's exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.flaky", description=__doc__)
    parser.add_argument("--count", type=int, default=50, help="how often each test runs")
    parser.add_argument(
        "--busy", type=int, default=os.cpu_count(), help="processes that keep the machine busy"
    )
    options, others = parser.parse_known_args(arguments)
    tests = others or failed()
    if not tests:
        sys.stderr.write("no test failed in the last run: name those to run\n")
        return 0
    busy = [multiprocessing.Process(target=keep_busy, daemon=True) for _ in range(options.busy)]
    for process in busy:
        process.start()
    command = [sys.executable, "-m", "pytest", "-q", f"--count={options.count}", *tests]
    try:
        return subprocess.run(command, check=False).returncode
    finally:
        for process in busy:
            process.kill()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
