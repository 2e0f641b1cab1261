"""A `hutch store serve` with a controller, and PyPI's client of Pravega."""

from __future__ import annotations

import faulthandler
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.integration.server import HutchServer, StoreProcess

StartStore = Callable[..., StoreProcess]
Manager = Any  # the client has no types
HANGS_S = 200.0
_CONTROLLER = re.compile(r"\bcontroller=\S+:(\d+)")


def controller_port(server: HutchServer) -> int:
    match = _CONTROLLER.search(server.ready_line)
    assert match is not None, server.ready_line
    return int(match[1])


@pytest.fixture
def pravega() -> Iterator[ModuleType]:
    """The client's module.

    It waits without letting Python run, so no ordinary time limit ends a test in which it hangs.
    """
    module: ModuleType = pytest.importorskip(
        "pravega_client", reason="PyPI's client of Pravega has no wheel for this machine"
    )
    faulthandler.dump_traceback_later(HANGS_S, exit=True)
    yield module
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture
def start_store(tmp_path: Path) -> Iterator[StartStore]:
    """Start a server that keeps its ports when it is started again."""
    started: list[StoreProcess] = []

    def start(*arguments: str) -> StoreProcess:
        server = StoreProcess(tmp_path / "data", "--controller-port", "0", *arguments)
        started.append(server)
        server.arguments = ("--controller-port", str(controller_port(server)), *arguments)
        return server

    yield start
    for server in started:
        server.close()


@pytest.fixture
def store_server(start_store: StartStore) -> StoreProcess:
    return start_store("--durability", "os")


@pytest.fixture
def manager(store_server: StoreProcess, pravega: ModuleType) -> Manager:
    """The client, connected, with the scope `scope`."""
    manager = pravega.StreamManager(f"tcp://127.0.0.1:{controller_port(store_server)}")
    assert manager.create_scope("scope")
    return manager
