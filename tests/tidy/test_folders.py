import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.folders import DISK

REPOSITORY = Path(__file__).parents[2]
A_FAILURE = """
import subprocess, sys, tempfile

def test_fails(tmp_path):
    (tmp_path / "x").touch()
    assert tmp_path.is_relative_to({memory!r}), tmp_path
    assert tempfile.mkdtemp().startswith({memory!r})
    child = [sys.executable, "-c", "import tempfile; print(tempfile.mkdtemp())"]
    assert subprocess.check_output(child, text=True).startswith({memory!r})
    (tmp_path / "closed").mkdir(0)
    raise ValueError("as meant")
"""
ON_DISK = """
from tests.folders import on_disk

def test_on_disk(tmp_path):
    assert tmp_path.is_relative_to({disk!r}), tmp_path
    (tmp_path / "y").touch()
"""
WAITING = """
import pathlib, time

def test_waits(tmp_path):
    pathlib.Path({begun!r}).touch()
    time.sleep(60)
"""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    return made(tmp_path / "disk")


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    return made(tmp_path / "memory")


def made(folder: Path) -> Path:
    folder.mkdir()
    return folder


@contextmanager
def run(
    test: str, disk: Path, memory: Path | str, *options: str
) -> Iterator[subprocess.Popen[str]]:
    """A run of its own of two files of tests, with these places for temporary files."""
    file, other = disk.parent / "test_it.py", disk.parent / "test_on_disk.py"
    file.write_text(test)
    other.write_text(ON_DISK.format(disk=str(disk)))
    (disk.parent / "places.py").write_text(
        f"import os, tempfile, tests.folders as folders\n"
        f"folders.MEMORY, folders.MEMORY_BYTES_MIN = {str(memory)!r}, 1\n"
        f"tempfile.tempdir = os.environ.get('TMPDIR', {str(disk)!r})\n"
    )
    environment = {
        name: value for name, value in os.environ.items() if name not in {DISK, "TMPDIR"}
    }
    environment |= {"PYTHONPATH": f"{REPOSITORY}{os.pathsep}{disk.parent}"}
    plugins = ["-p", "places", "-p", "conftest", "-p", "no:cacheprovider"]
    settings = ["-c", str(REPOSITORY / "pyproject.toml"), *options]
    command = [sys.executable, "-m", "pytest", *plugins, *settings, str(file), str(other)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        yield process


def said(test: str, disk: Path, memory: Path | str, *options: str) -> str:
    with run(test, disk, memory, *options) as process:
        return process.communicate(timeout=100)[0]


@pytest.mark.parametrize("options", [("-n0",), ("-n", "1")])
def test_a_run_leaves_no_file_after_a_failure(
    disk: Path, memory: Path, options: Sequence[str]
) -> None:
    test = A_FAILURE.format(memory=str(memory))
    output = said(test, disk, memory, *options)
    assert "1 failed, 1 passed" in output, output
    assert "ValueError: as meant" in output, output
    assert [*disk.iterdir(), *memory.iterdir()] == []


@pytest.mark.parametrize("memory_is", ["missing", "full"])
def test_files_are_on_the_disk_where_memory_cannot_take_them(disk: Path, memory_is: str) -> None:
    memory = str(disk / "none") if memory_is == "missing" else "/proc"
    output = said(A_FAILURE.format(memory=str(disk)), disk, memory)
    assert "1 failed, 1 passed" in output, output
    assert "ValueError: as meant" in output, output
    assert [*disk.iterdir()] == []


def test_a_killed_runs_files_are_removed_by_the_next_and_a_running_ones_are_not(
    disk: Path, memory: Path
) -> None:
    begun = disk.parent / "begun"
    waiting = WAITING.format(begun=str(begun))
    other = A_FAILURE.format(memory=str(memory))
    with run(waiting, disk, memory, "-n0") as process:
        while not begun.exists():
            assert process.poll() is None, process.communicate()[0]
            time.sleep(0.01)
        assert "as meant" in said(other, disk, memory, "-n0")
        assert (len([*disk.iterdir()]), len([*memory.iterdir()])) == (1, 1)
        process.send_signal(signal.SIGKILL)
    assert (len([*disk.iterdir()]), len([*memory.iterdir()])) == (1, 1)
    assert "as meant" in said(other, disk, memory, "-n0")
    assert [*disk.iterdir(), *memory.iterdir()] == []
