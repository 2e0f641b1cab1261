"""The process of a command whose output cannot be written, or that lacks a standard stream."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gateway import __main__ as entry
from tests.integration.server import server_environment
from tests.waiting import HANG_S

PRINTS = (sys.executable, "-m", "gateway", "config")


def run(command: tuple[str, ...] = PRINTS, *, stdout: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=HANG_S,
        env=server_environment(),
        check=False,
    )


def test_a_reader_that_closes_the_pipe_ends_the_command_as_sigpipe_would_and_without_a_word() -> (
    None
):
    reading, writing = os.pipe()
    os.close(reading)

    done = run(stdout=writing)
    os.close(writing)

    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, "")


def test_output_for_which_there_is_no_space_is_told_in_one_line() -> None:
    full = os.open("/dev/full", os.O_WRONLY)

    done = run(stdout=full)
    os.close(full)

    assert done.returncode == 1
    assert done.stderr == "hutch: cannot write what was asked for: No space left on device\n"


def test_an_error_that_says_nothing_of_space_is_not_put_down_to_it() -> None:
    only_read = os.open(os.devnull, os.O_RDONLY)

    done = run(stdout=only_read)
    os.close(only_read)

    assert done.returncode != 0
    assert "cannot write what was asked for" not in done.stderr
    assert "Bad file descriptor" in done.stderr


CLOSED = """
import os, sys
from gateway import cli
from gateway.__main__ import main

def opens_a_file():
    with open(sys.argv[1], "w") as file:
        assert file.fileno() > 2, file.fileno()
    print("text")
    sys.stderr.write("complaint")
    return 0

for number in range(3):
    os.close(number)
sys.stdin = sys.stdout = sys.stderr = None
cli.main = opens_a_file
sys.exit(main())
"""
"""A command that opens a file and prints, in a process without a standard stream."""


def test_a_file_does_not_get_the_number_of_a_standard_stream_that_is_closed(tmp_path: Path) -> None:
    file = tmp_path / "file"

    done = run((sys.executable, "-c", CLOSED, str(file)), stdout=subprocess.DEVNULL)

    assert (done.returncode, done.stderr) == (0, "")
    assert file.read_text() == ""


def test_signals_are_as_before_once_a_server_could_not_be_started(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    monkeypatch.setattr(sys, "argv", ["hutch", "serve", "--log-level", "loud"])

    assert entry.main() == 2

    assert "'loud' is not one of" in capsys.readouterr().err
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before
