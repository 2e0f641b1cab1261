"""`hutch store check` tells whatever a start and its readers tell of a damaged directory.

It tells it before them, changes nothing, and finds nothing where there is no damage.
"""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest

from gateway.cli import main
from store.errors import StoreError
from tests.damage.cases import build_all, listened, small_parts
from tests.damage.faults import Target, make_faults
from tests.damage.ledger import Built
from tests.damage.reading import read_all
from tests.damage.server import Served
from tests.unit.store.local.test_overlay import state_of

CASES: Final = 40
_OF_STREAMS: Final = (
    "damaged chunk is ",
    "filter page is dropped ",
    "filter pages are damaged ",
    "publishing ids are damaged ",
    "stored index is damaged ",
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Built]:
    return build_all(tmp_path_factory.mktemp("built"))


def told_by_a_start(directory: Path, chance: random.Random) -> Iterator[str]:
    """Start a broker, read all, and yield what the log says of damage: where it is."""
    refusal = ""
    with small_parts(), listened() as log:
        try:
            running = Served(directory)
            try:
                read_all(running.broker, chance)
                running.stop()
            finally:
                running.release()
        except StoreError as error:
            refusal = str(error)
    if refusal:
        yield "damaged: "
    for line in log.damage:
        yield line.partition(": stop the server")[0]
    for line in log.lines:
        if line.startswith(_OF_STREAMS):
            where = re.search(r"stream=\S+ virtual_host=\S+|segment=\S+", line)
            assert where is not None, line
            yield where[0]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_what_a_start_tells_is_found_before_and_nothing_changes(
    built: Sequence[Built], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    exit_codes = set()
    for seed in range(CASES):
        chance = random.Random(f"check {seed}")
        chosen, directory = chance.choice(built), tmp_path / str(seed)
        shutil.copytree(chosen.directory, directory)
        faults = make_faults(seed, Target(directory, chosen.kinds, chosen.older))
        before = state_of(directory)

        exit_codes.add(main(["store", "check", "--data", str(directory)]))

        found = capsys.readouterr().out
        assert state_of(directory) == before, seed
        told = list(told_by_a_start(directory, chance))
        assert not [each for each in told if each not in found], (seed, faults, found)
    assert exit_codes == {0, 1}


def test_a_directory_without_a_fault_is_sound(
    built: Sequence[Built], capsys: pytest.CaptureFixture[str]
) -> None:
    for each in built:
        assert main(["store", "check", "--data", str(each.directory)]) == 0
        assert "damaged: " not in capsys.readouterr().out
