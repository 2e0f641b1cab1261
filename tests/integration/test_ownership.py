"""Other users of the machine: what they may see of a server's files, and whom commands trust."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.administrator import NOBODY, ctl, hutch
from tests.integration.conftest import StartServer

LISTEN = """
import os, socket, sys
listening = socket.socket(socket.AF_UNIX)
listening.bind(sys.argv[1])
os.setuid(int(sys.argv[2]))
listening.listen()
print("listening", flush=True)
connected, _ = listening.accept()
print(connected.recv(4096), flush=True)
"""
"""Listens on a socket as a user, and shows what it is told."""


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_data_directory_is_the_owners_alone(
    start_server: StartServer, tmp_path: Path
) -> None:
    before = os.umask(0)
    try:
        server = start_server(data=tmp_path / "data")
    finally:
        os.umask(before)

    folders = [server.data_dir, *(each for each in server.data_dir.iterdir() if each.is_dir())]
    assert {mode_of(folder) for folder in folders} == {0o700}
    assert len(folders) > 2
    assert "other users" not in server.logs


def test_a_data_directory_that_others_may_write_to_is_warned_of(
    start_server: StartServer, tmp_path: Path
) -> None:
    data = tmp_path / "open"
    data.mkdir()
    data.chmod(0o777)
    server = start_server(data=data)

    assert "other users may write to the data directory" in server.logs
    assert f"directory={data} mode=777" in server.logs
    data.chmod(0o770)
    server.restart()
    assert server.logs.count("other users may write") == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("owner", [0, NOBODY])
def test_commands_tell_nothing_to_a_socket_of_another_user(tmp_path: Path, owner: int) -> None:
    """Root tells the owner of the directory nothing either."""
    os.chown(tmp_path, owner, owner)
    place = str(tmp_path / "admin.sock")
    arguments = [sys.executable, "-c", LISTEN, place, str(NOBODY)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE) as listening:
        assert listening.stdout is not None
        try:
            assert listening.stdout.readline() == b"listening\n"
            done = hutch(tmp_path, "ctl", "add_user", "app", stdin=b"secret\n", check=False)
            told = listening.stdout.readline()
        finally:
            listening.kill()

    assert done.returncode == 69
    assert told == b"b''\n"
    [line] = done.stderr.splitlines()
    assert b"the socket there is of the user nobody, and not trusted" in line
    assert b"sudo -u nobody hutch" in line


def test_commands_reach_the_server_of_their_own_user(start_server: StartServer) -> None:
    assert ctl(start_server(), "list_users")
