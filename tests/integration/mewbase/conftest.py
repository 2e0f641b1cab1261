"""Servers with mewbase's port: channels `channel1` and `channel2`, and the user mew, base."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.integration.conftest import StartServer, assert_no_traceback
from tests.integration.server import HutchServer
from tests.mewbase_client import MewbaseClient

StartMewbase = Callable[..., HutchServer]
_SALT = b"salt"
_HASH = base64.b64encode(_SALT + hashlib.sha256(_SALT + b"base").digest()).decode()
_DEFINITIONS = {
    "users": [{"name": "mew", "password_hash": _HASH, "tags": "administrator"}],
    "vhosts": [{"name": "/"}],
    "permissions": [{"user": "mew", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"}],
}
_PORT = re.compile(r"\bmewbase=\S+:(\d+)")


def port_of(server: HutchServer) -> int:
    found = _PORT.search(server.ready_line)
    assert found is not None, server.ready_line
    return int(found[1])


def installed(folder: Path, text: str, *functions: str) -> str:
    """Write a package with functions for projections; return its folder."""
    about = folder / "projecting-1.0.dist-info"
    about.mkdir(parents=True)
    (folder / "projecting.py").write_text(text)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: projecting\nVersion: 1.0\n")
    entries = "".join(f"{each} = projecting:{each}\n" for each in functions)
    (about / "entry_points.txt").write_text("[hutch.projections]\n" + entries)
    return str(folder)


def _environment(folder: Path) -> dict[str, str]:
    definitions = folder / "definitions.json"
    definitions.write_text(json.dumps(_DEFINITIONS))
    return {
        "HUTCH_DEFINITIONS__FILE": str(definitions),
        "HUTCH_USERS__ANONYMOUS": "mew",
        "HUTCH_MEWBASE__CHANNELS": "channel1, channel2",
    }


@pytest.fixture
def start_mewbase(start_server: StartServer, tmp_path: Path) -> StartMewbase:
    """Start a server in which clients that send nothing are mew."""

    def start(*arguments: str, **settings: str) -> HutchServer:
        environment = _environment(tmp_path) | settings
        server = start_server("--mewbase-port", "0", *arguments, environment=environment)
        server.arguments = ("--mewbase-port", str(port_of(server)), *arguments)
        return server

    return start


@pytest.fixture
def server(start_mewbase: StartMewbase) -> HutchServer:
    return start_mewbase("--durability", "os")


@pytest.fixture(scope="module")
def shared_mewbase(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HutchServer]:
    """The same server for all tests of a module, which find what others have published."""
    folder = tmp_path_factory.mktemp("mewbase")
    arguments = ("--mewbase-port", "0", "--durability", "os")
    with HutchServer(folder / "data", *arguments, environment=_environment(folder)) as server:
        yield server
        server.terminate()
        assert_no_traceback(server)


@pytest.fixture
def port(server: HutchServer) -> int:
    return port_of(server)


@pytest.fixture
def stranger(port: int) -> Iterator[MewbaseClient]:
    """A client that has not logged in."""
    with MewbaseClient(port) as client:
        yield client


@pytest.fixture
def client(port: int) -> Iterator[MewbaseClient]:
    """A client that has logged in as the client of 2016 does."""
    with MewbaseClient(port) as client:
        client.connect()
        yield client


@pytest.fixture
def other(port: int) -> Iterator[MewbaseClient]:
    """Another one."""
    with MewbaseClient(port) as client:
        client.connect()
        yield client
