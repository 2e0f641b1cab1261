"""A server run from the command line: the line and the exit code of one that cannot be started."""

import argparse
import os
import subprocess
from pathlib import Path

from gateway.commands.serving import add_flags, flags_of
from gateway.settings.sources import FLAGS
from store.files import DirectoryFiles
from store.local.recovery.checkpoint_file import FORMAT_NUMBER
from tests.integration.server import run_serve, serve_command, server_environment
from tests.unit.store.local.opened import opened
from tests.unit.store.local.test_overlay import state_of
from tests.unit.store.local.test_store_check import set_format
from tests.waiting import HANG_S


def told(complaint: str) -> list[str]:
    """Return the lines that are none of the log."""
    return [line for line in complaint.splitlines() if line.startswith("hutch: ")]


def test_only_the_flags_that_were_given_count() -> None:
    parser = argparse.ArgumentParser()
    add_flags(parser, FLAGS)

    options = parser.parse_args(["--data", "here", "--interval-ms", "0", "--config", "file"])

    assert flags_of(options, FLAGS) == {"--data": "here", "--interval-ms": "0"}


def test_every_flag_has_a_word_for_its_value_and_a_help() -> None:
    parser = argparse.ArgumentParser()
    add_flags(parser, FLAGS)

    actions = {action.option_strings[0]: action for action in parser._actions}

    assert all(actions[flag].metavar and actions[flag].help for flag in FLAGS)


def test_a_store_of_another_format_stops_the_start_as_wrong_use_and_stays_as_it_is(
    tmp_path: Path,
) -> None:
    directory = tmp_path / "data"
    opened(DirectoryFiles(directory)).close()
    set_format(directory, FORMAT_NUMBER + 1)
    before = state_of(directory)

    done = run_serve(directory)

    assert (done.returncode, done.stdout) == (2, "")
    (line,) = told(done.stderr)
    assert f"the data directory has format {FORMAT_NUMBER + 1}" in line
    assert state_of(directory) == before


def test_an_error_of_the_system_stops_the_start_with_a_line(tmp_path: Path) -> None:
    full = os.open("/dev/full", os.O_WRONLY)

    done = subprocess.run(
        serve_command(tmp_path / "data"),
        stdout=full,  # the line that says that it is ready does not fit
        stderr=subprocess.PIPE,
        text=True,
        timeout=HANG_S,
        env=server_environment(),
        check=False,
    )
    os.close(full)

    assert done.returncode == 1
    assert told(done.stderr) == ["hutch: [Errno 28] No space left on device"]
