"""A real process on real files, killed in the middle of its work again and again."""

import random
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from store.api import Durability
from tests.conformance.harness import Rig
from tests.simulation.appender import NAMES, WRITER, open_rig, piece_of
from tests.simulation.world import FACTOR, SEED

KILLS = int(3 * FACTOR)
ROOT = Path(__file__).parents[2]


def _run_and_kill(directory: Path, durability: Durability, after_s: float) -> list[str]:
    """Give the lines that the process had written when it was killed."""
    command = [sys.executable, "-m", "tests.simulation.appender", str(directory), durability.value]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        first = process.stdout.readline()  # it works, from here on the time counts
        time.sleep(after_s)
        process.kill()
        lines = [first, *process.stdout]
    whole = [line.decode().split() for line in lines if line.endswith(b"\n")]
    return [" ".join(words) for words in whole]


def _check(rig: Rig, lines: Iterable[str]) -> None:
    contents = {name: rig.content(name) for name in NAMES}
    last = dict.fromkeys(NAMES, 0)
    for line in lines:
        name, number, position = line.split()
        last[name] = int(number)
        assert contents[name].startswith(piece_of(name, last[name]), int(position))
    for name, content in contents.items():
        stored = max(0, rig.do(rig.store.get_attribute, name, WRITER))
        assert stored >= last[name]
        # Every number up to the one that is stored, each once and whole.
        assert content == b"".join(piece_of(name, number) for number in range(1, stored + 1))


@pytest.mark.parametrize("durability", Durability)
def test_what_a_killed_process_had_acknowledged_is_there(
    tmp_path: Path, durability: Durability
) -> None:
    chance = random.Random(SEED)
    for _ in range(KILLS):
        lines = _run_and_kill(tmp_path, durability, chance.uniform(0.02, 0.4))
        assert lines
        rig = open_rig(tmp_path, durability)
        _check(rig, lines)
        rig.close()
