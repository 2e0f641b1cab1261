"""A data directory of another format is refused by each command that opens one, and not touched."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from store.local.recovery.checkpoint_file import FORMAT_NUMBER
from tests.integration.administrator import ctl, hutch
from tests.integration.server import HutchServer
from tests.unit.store.local.test_overlay import state_of
from tests.unit.store.local.test_store_check import set_format

COMMANDS = {
    "serve": ("serve", "--port", "0", "--management-port", "0"),
    "store serve": ("store", "serve", "--port", "0"),
    "check": ("store", "check"),
    "repair": ("store", "check", "--repair"),
    "inspect": ("store", "inspect"),
}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory of a server that had a stream."""
    data = tmp_path_factory.mktemp("written") / "data"
    with HutchServer(data) as server:
        ctl(server, "add_stream", "orders")
        server.terminate()
    return data


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("number", [FORMAT_NUMBER - 1, FORMAT_NUMBER + 1])
def test_another_format_is_refused_in_one_line_and_nothing_is_written(
    written: Path, tmp_path: Path, command: str, number: int
) -> None:
    data = tmp_path / "data"
    shutil.copytree(written, data)
    set_format(data, number)
    before = state_of(data)

    done = hutch(data, *COMMANDS[command], check=False)

    assert state_of(data) == before
    assert (done.returncode, done.stdout) == (2, b"")
    (told,) = [line for line in done.stderr.decode().splitlines() if " INFO " not in line]
    assert told == (
        f"hutch: this Hutch stores format {FORMAT_NUMBER}, the data directory has format {number}:"
        " made by an unreleased Hutch: start with an empty directory"
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_a_directory_without_a_format_is_no_store_and_stays_as_it_is(
    tmp_path: Path, command: str
) -> None:
    (tmp_path / "notes.txt").write_text("of somebody")
    before = state_of(tmp_path)

    done = hutch(tmp_path, *COMMANDS[command], check=False)

    assert state_of(tmp_path) == before
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"is no store" in done.stderr or b"holds no store" in done.stderr
    assert b"format" not in done.stderr
