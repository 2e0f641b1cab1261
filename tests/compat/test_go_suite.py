"""The Go client's own tests, as its authors wrote them, pass on Hutch."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from compat.suites import namespace, sources
from compat.suites.catalogue import SUITES
from compat.suites.results import Results

# Each half has a server and a network of its own. Both wait nearly all of their two minutes.
HALVES = (("./pkg/stream",), ("./pkg/ha", "./pkg/integration_test"))
ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_go_client_s_own_tests_pass(tmp_path: Path) -> None:
    if reason := namespace.missing():
        pytest.skip(f"no network of its own can be had here: {reason}")
    try:
        sources.get("go")
    except sources.SourceError as error:
        pytest.skip(str(error))
    folders = [tmp_path / str(number) for number in range(len(HALVES))]
    with ThreadPoolExecutor(len(HALVES)) as pool:
        halves = list(pool.map(results_of, HALVES, folders))
    results = Results({name: how for half in halves for name, how in half.outcomes.items()})
    assert SUITES["go"].faults(results) == []


def results_of(packages: Sequence[str], folder: Path) -> Results:
    """Run the tests of some packages; the folder is for what comes of it."""
    folder.mkdir()
    report, log = folder / "results.json", folder / "output.log"
    only = [word for package in packages for word in ("--only", package)]
    with log.open("wb") as output:
        subprocess.run(
            [sys.executable, "-m", "compat.suites", "go", *only, "--json", report],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )
    assert report.exists(), log.read_text(errors="replace")[-2000:]
    return Results(json.loads(report.read_text()))
