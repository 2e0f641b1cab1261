"""Checklist 23: the fuzz targets on their corpus, and on a few seconds of damage done to it.

The long runs are `make fuzz TARGET=…`; these hold what those have found.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import pytest

from tests.fuzz.inputs import FOLDER, kept, mutated
from tests.fuzz.targets import TARGETS
from tests.waiting import HANG_S

SECONDS: Final = 0.5
SEED: Final = int(os.environ.get("HUTCH_TEST_SEED", "1"))
ROOT: Final = Path(__file__).parents[2]

each_target = pytest.mark.parametrize("target", TARGETS)


def test_every_target_has_a_corpus_and_every_corpus_a_target() -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(TARGETS)


@each_target
def test_the_corpus_is_taken_without_a_finding(target: str) -> None:
    for name, data in kept(target):
        try:
            TARGETS[target](data)
        except BaseException as error:
            raise AssertionError(f"{target}/{name}") from error


@each_target
def test_a_damaged_corpus_is_taken_without_a_finding(target: str) -> None:
    inputs = [data for _, data in kept(target)]
    end = time.monotonic() + SECONDS
    for number, data in enumerate(mutated(inputs, SEED)):
        if time.monotonic() > end and number >= 50:
            break
        try:
            TARGETS[target](data)
        except BaseException as error:
            raise AssertionError(f"{target}, seed {SEED}, input {number}: {data!r}") from error


def test_damage_of_one_seed_is_always_the_same() -> None:
    inputs = [data for _, data in kept("frame")]

    first, again = (list(itertools.islice(mutated(inputs, 3), 50)) for _ in range(2))

    assert first == again


@pytest.mark.slow
def test_a_run_of_the_fuzzer_keeps_what_it_finds_and_goes_on_from_there(tmp_path: Path) -> None:
    pytest.importorskip("atheris")
    before = 1_000
    (tmp_path / "frame.count").write_text(str(before))
    (tmp_path / "frame").mkdir()
    command = [sys.executable, "-m", "tests.fuzz", "frame", "--kept", str(tmp_path)]

    done = subprocess.run(
        [*command, "--seconds", "1"],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )

    assert done.returncode == 0, done.stderr[-3_000:]
    assert f"frame: {before} inputs tried before" in done.stdout
    assert list((tmp_path / "frame").iterdir()), "inputs that reach something new are kept"
    assert int((tmp_path / "frame.count").read_text()) > before
