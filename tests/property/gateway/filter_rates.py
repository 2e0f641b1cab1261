"""How often a chunk's filter values mislead, counted over as many look-ups as are asked for.

    python -m tests.property.gateway.filter_rates [--checks 10000000] [--state FILE]

Each look-up asks for a value that is in a chunk, which must always be let through, and for one that
is not, which may be let through once in fifty. With a state file the count goes on where the last
run was stopped (by Ctrl-C, for instance), with other chunks.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from gateway.log.derived.filters import FINGERPRINTS_MAX, SubscriptionFilter, fold, pack_filters

CHECKS = 10_000_000
FALSE_POSITIVES_MAX = 0.02
VALUES_OF_MEASURE = 100
_SAVE_EACH_S = 5.0
_LOOKED_UP_MAX = 700


@dataclass(slots=True)
class Rates:
    """What was counted; `_100`: of chunks with 100 distinct values.

    Attributes:
        checks: Look-ups of a value that is there.
        missed: How many of them found nothing: must be 0.
        foreign: Look-ups of a value that is not there.
        passed: How many of them were let through.
    """

    rounds: int = 0
    checks: int = 0
    missed: int = 0
    foreign: int = 0
    passed: int = 0
    foreign_100: int = 0
    passed_100: int = 0

    @property
    def is_good(self) -> bool:
        return (
            not self.missed
            and self.passed <= FALSE_POSITIVES_MAX * self.foreign
            and self.passed_100 <= FALSE_POSITIVES_MAX * self.foreign_100
        )

    def __str__(self) -> str:
        return (
            f"{self.checks} look-ups of values that are there, {self.missed} missed; of values "
            f"that are not, {self.passed} of {self.foreign} let through, with 100 values in the "
            f"chunk {self.passed_100} of {self.foreign_100}"
        )


def count_on(rates: Rates, checks: int) -> Iterator[None]:
    """Count up to so many checks; stops after each chunk."""
    while rates.checks < checks:
        chance = random.Random(rates.rounds)
        _count_chunk(rates, chance, checks - rates.checks)
        rates.rounds += 1
        yield


def _count_chunk(rates: Rates, chance: random.Random, left: int) -> None:
    count = chance.choice((1, 2, 10, 64, 65, 100, 100, 300, 655, 656, 2_000, FINGERPRINTS_MAX))
    size = chance.randrange(3, 40)
    values = list({chance.randbytes(size) for _ in range(count)})
    kept, digests = set(values), set[bytes]()
    if chance.random() < 0.2:  # as in a chunk whose values took much memory
        fold(kept, digests)
    if chance.random() < 0.5:
        kept.add(b"")
    packed = pack_filters(kept, digests)
    for value in values[: min(left, _LOOKED_UP_MAX)]:
        rates.checks += 1
        # Both ways to look: few wanted values, and many.
        wanted = [value] if rates.checks % 50 else [value, *map(b"none-%d".__mod__, range(30))]
        rates.missed += not SubscriptionFilter(wanted, unfiltered=False).lets_through(packed)
        foreign = SubscriptionFilter([b"foreign" + value], unfiltered=False)
        passed = foreign.lets_through(packed)
        rates.foreign += 1
        rates.passed += passed
        if len(values) == VALUES_OF_MEASURE:
            rates.foreign_100 += 1
            rates.passed_100 += passed


def main(arguments: Sequence[str] | None = None) -> int:
    """Count; exit status 0 if nothing was missed and little let through."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--checks", type=int, default=CHECKS)
    parser.add_argument("--state", type=Path, help="where to go on, and to note how far it came")
    options = parser.parse_args(arguments)
    rates = Rates()
    if options.state is not None and options.state.exists():
        rates = Rates(**json.loads(options.state.read_text()))
    saved_at = time.monotonic()

    def say(what: object) -> None:
        sys.stdout.write(f"{what}\n")
        sys.stdout.flush()

    def save() -> None:
        if options.state is not None:
            new = options.state.with_suffix(".new")
            new.write_text(json.dumps(asdict(rates)))
            new.replace(options.state)

    try:
        for _ in count_on(rates, options.checks):
            if time.monotonic() - saved_at > _SAVE_EACH_S:
                saved_at = time.monotonic()
                save()
                say(rates)
    except KeyboardInterrupt:
        say("stopped; the same command goes on from here" if options.state else "stopped")
    save()
    say(rates)
    return 0 if rates.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
