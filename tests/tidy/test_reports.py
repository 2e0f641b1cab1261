"""Reasons of skips, and texts that are no UTF-8, come from workers whole."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tidy.sources import ROOT

pytestmark = pytest.mark.slow
TESTS = r"""
import pytest

@pytest.mark.skipif(True, reason="this machine lacks a tool")
def test_by_mark():
    raise ValueError

def test_by_call():
    pytest.skip("and another one")

def test_half_a_character():
    assert "\udc80" == "one line of a log"
"""


def test_skips_and_half_characters_are_told_by_workers(tmp_path: Path) -> None:
    file = tmp_path / "test_some.py"
    file.write_text(TESTS)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-c", str(ROOT / "pyproject.toml"), "-rsfE"),
            *("--rootdir", str(tmp_path), "-p", "conftest", "-p", "no:cacheprovider"),
            *("-n", "2", str(file)),
        ],
        cwd=ROOT,
        env={**os.environ, "PYTEST_ADDOPTS": "", "HUTCH_REQUIRE_ALL": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "this machine lacks a tool" in done.stdout
    assert "and another one" in done.stdout
    assert r"\udc80" in done.stdout
    assert "1 failed, 2 skipped" in done.stdout, done.stdout + done.stderr
