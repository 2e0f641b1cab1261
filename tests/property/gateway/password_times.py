"""What a refused login costs, by the reason: nobody may learn from it which users there are.

    python -m tests.property.gateway.password_times [--tries 10000] [--state FILE]

Processor time on the thread that compares is measured, in turn for each kind, since the time of a
wall clock is that of the machine's other work. With a state file a run goes on where the last one
was stopped (by Ctrl-C, for instance).
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from gateway.broker.access.model import User
from gateway.broker.access.password_check import compare
from gateway.broker.access.passwords import Algorithm, PasswordHash

TRIES = 10_000
DIFFERENCE_MAX = 0.05
_SAVE_EACH_S = 5.0

HASHES = {
    "unknown user": None,
    "wrong password, argon2id": PasswordHash.of("right", Algorithm.ARGON2ID),
    "wrong password, sha256": PasswordHash.of("right", Algorithm.SHA256),
    "wrong password, sha512": PasswordHash.of("right", Algorithm.SHA512),
    "wrong password, md5": PasswordHash.of("right", Algorithm.MD5),
    "user without a password": User("none", None).password_hash,
}

Times = dict[str, list[int]]
"""Nanoseconds of each try, by kind."""


def measure(times: Times, tries: int) -> Iterator[None]:
    """Measure until every kind has so many tries; stops after each round."""
    while len(times[next(iter(HASHES))]) < tries:
        for kind, hashed in HASHES.items():
            password = b"wrong%d" % len(times[kind])
            before = time.thread_time_ns()
            assert not compare(hashed, password)
            times[kind].append(time.thread_time_ns() - before)
        yield


def difference(times: Times) -> float:
    """Return by how much the dearest kind is above the cheapest, of 1; each by its median."""
    medians = [statistics.median(taken) for taken in times.values()]
    return max(medians) / min(medians) - 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure; exit status 0 if no kind can be told from another."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--tries", type=int, default=TRIES)
    parser.add_argument("--state", type=Path, help="where to go on, and to note how far it came")
    options = parser.parse_args(arguments)
    times: Times = {kind: [] for kind in HASHES}
    if options.state is not None and options.state.exists():
        times = json.loads(options.state.read_text())
    saved_at = time.monotonic()

    def save() -> None:
        tries = len(times["unknown user"])
        sys.stdout.write(f"{tries} tries of each kind, difference {difference(times):.2%}\n")
        sys.stdout.flush()
        if options.state is not None:
            new = options.state.with_suffix(".new")
            new.write_text(json.dumps(times))
            new.replace(options.state)

    try:
        for _ in measure(times, options.tries):
            if time.monotonic() - saved_at > _SAVE_EACH_S:
                saved_at = time.monotonic()
                save()
    except KeyboardInterrupt:
        # The last round may be incomplete.
        whole = min(len(taken) for taken in times.values())
        times = {kind: taken[:whole] for kind, taken in times.items()}
        sys.stdout.write("stopped; the same command goes on from here\n")
    save()
    return 0 if difference(times) < DIFFERENCE_MAX else 1


if __name__ == "__main__":
    sys.exit(main())
