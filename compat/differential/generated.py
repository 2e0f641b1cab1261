"""`python -m compat.differential.generated`: valid sequences drawn by Hypothesis, on both servers.

    python -m compat.differential.generated [--sequences N] [--commands 200] [--state FILE]

With a state file the count goes on where the last run was stopped (by Ctrl-C, for instance), with
other sequences. A sequence that the two servers answer differently is made as short as can be, and
printed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import secrets
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings

from compat.broker import BrokerUnavailable, obtain
from compat.comparison import Difference, differences
from compat.differential.__main__ import start_hutch
from compat.differential.runner import Address, play
from compat.differential.script import Script
from compat.differential.sequences import sequences
from compat.differential.wire import TIMED_OUT

SEQUENCES = 100_000
COMMANDS_MAX = 200
A_BATCH = 25


class Differs(AssertionError):
    """Two servers answered a sequence differently."""


class Both:
    """The two servers, and a run's tag for each sequence."""

    def __init__(self, theirs: Address, ours: Address) -> None:
        self.addresses = theirs, ours
        self.tag = secrets.token_hex(2)
        self.played = 0
        self.differing = 0
        self.pool = ThreadPoolExecutor(2)

    def play(self, script: Script) -> list[Difference]:
        """Play a sequence on both at once; return where they differ."""
        self.played += 1
        run = f"{self.tag}{self.played % 10_000:04}".encode()
        theirs, ours = self.pool.map(lambda address: play(script, address, run), self.addresses)
        if any(TIMED_OUT in step.lines for step in theirs):
            # The comparison would still be right, but the rest of the sequence is not as drawn.
            raise Differs(f"RabbitMQ sent less than was thought: {theirs}")
        return differences({script.name: theirs}, {script.name: ours})

    def require_alike(self, script: Script) -> None:
        """Raise `Differs` unless both answer a sequence alike."""
        if found := self.play(script):
            sent = [f"  {number} {step}" for number, step in enumerate(told(script), start=1)]
            raise Differs("\n".join([*map(str, found), "the sequence:", *sent]))


def told(script: Script) -> list[str]:
    """Return the steps of a sequence, to read."""
    return [
        f"{step.connection} {step.action.value} {step.data!r} {step.wait}" for step in script.steps
    ]


def compare(
    both: Both, *, count: int, commands_max: int, number: int, is_shortening: bool = False
) -> None:
    """Draw `count` sequences and play each on both servers; raise `Differs` at a difference.

    Args:
        both: The servers.
        count: How many sequences.
        commands_max: The longest.
        number: Of the draw; the same number draws the same sequences.
        is_shortening: Print a sequence that is answered differently, and then look for the shortest
            one, which takes minutes.
    """

    @seed(number)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=(Phase.generate, *[Phase.shrink] * is_shortening),
        suppress_health_check=list(HealthCheck),
    )
    @given(sequences(commands_max))
    def play_it(script: Script) -> None:
        try:
            both.require_alike(script)
        except Differs as error:
            if is_shortening and not both.differing:
                print(error, "looking for the shortest such sequence", sep="\n", flush=True)
            both.differing += 1
            raise

    play_it()


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare sequences until there are enough; exit status 0 if no two answers differ."""
    options = parser().parse_args(arguments)
    done = 0
    if options.state is not None and options.state.exists():
        done = int(json.loads(options.state.read_text())["sequences"])
    try:
        broker = obtain()
    except BrokerUnavailable as error:
        print(error, file=sys.stderr)
        return 1
    with contextlib.ExitStack() as stack:
        stack.callback(broker.stop)
        both = Both(broker.stream_address, start_hutch(stack)[0])
        while done < options.sequences:
            began = time.monotonic()
            count = min(A_BATCH, options.sequences - done)
            try:
                compare(
                    both,
                    count=count,
                    commands_max=options.commands,
                    number=done,
                    is_shortening=True,
                )
            except Differs as error:
                print(error)
                return 1
            except KeyboardInterrupt:
                print(f"\nstopped after {done} sequences")
                return 0
            done += count
            if options.state is not None:
                options.state.write_text(json.dumps({"sequences": done}))
            print(f"{done} sequences alike, {time.monotonic() - began:.1f} s", flush=True)
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the command line's grammar."""
    top = argparse.ArgumentParser(
        prog="python -m compat.differential.generated",
        description="Send valid sequences of commands to RabbitMQ and to Hutch until enough of "
        "them were answered alike.",
    )
    top.add_argument("--sequences", type=int, default=SEQUENCES, metavar="N", help="how many")
    top.add_argument("--commands", type=int, default=COMMANDS_MAX, metavar="N", help="the longest")
    top.add_argument("--state", type=Path, metavar="FILE", help="where the count is kept")
    return top


if __name__ == "__main__":
    sys.exit(main())
