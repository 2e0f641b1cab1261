"""Tests may have as many files open as the system allows, not as a login shell does."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tidy.sources import ROOT

pytestmark = pytest.mark.slow
FILES = 1_500
TESTS = f"""
def test_of_dropped_files():
    files = [open(__file__) for _ in range({FILES})]
"""


@pytest.mark.skipif(
    resource.getrlimit(resource.RLIMIT_NOFILE)[1] < FILES * 2, reason="the system allows few files"
)
def test_a_worker_may_have_more_files_than_a_login_shell_allows(tmp_path: Path) -> None:
    file = tmp_path / "test_some.py"
    file.write_text(TESTS)
    shell = f"ulimit -S -n 1024; exec {sys.executable} -m pytest -q -p conftest"
    options = f"-c {ROOT / 'pyproject.toml'} --rootdir {tmp_path} -p no:cacheprovider -n 1"
    done = subprocess.run(
        ["sh", "-c", f"{shell} {options} -W ignore::ResourceWarning {file}"],
        cwd=ROOT,
        env={**os.environ, "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert "1 passed" in done.stdout, done.stdout + done.stderr
