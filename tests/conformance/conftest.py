"""One rig a test and implementation."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final
from zlib import crc32

import pytest

from tests.conformance.harness import Rig
from tests.conformance.implementations import (
    IMPLEMENTATIONS,
    ON_JETSTREAM,
    Implementation,
    local_on,
)
from tests.conformance.logs import on_jetstream
from tests.folders import on_disk
from tests.nats_servers import NatsServers

__all__ = ["on_disk"]


IS_WHOLE: Final = os.environ.get("HUTCH_CONFORMANCE_LOG") == "whole"
"""Every test runs on three real servers (`make cluster-test`)."""
ONE_OF: Final = 10
"""One of so many tests runs on a real server, too: each takes its time there."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if IS_WHOLE:
        return
    left_out = [item for item in items if ON_JETSTREAM.name in item.name and not is_drawn(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        gone = set(left_out)
        items[:] = [item for item in items if item not in gone]


def is_drawn(item: pytest.Item) -> bool:
    """Return whether a test runs on a real server; another one would if it had another name."""
    return crc32(f"{item.path.name} {item.name}".encode()) % ONE_OF == 0


@pytest.fixture(params=[*IMPLEMENTATIONS, ON_JETSTREAM], ids=lambda each: each.name)
def implementation(request: pytest.FixtureRequest) -> Iterator[Implementation]:
    each = request.param
    assert isinstance(each, Implementation)
    if each is not ON_JETSTREAM:
        yield each
        return
    servers = request.getfixturevalue("three_servers" if IS_WHOLE else "one_server")
    with ExitStack() as logs:
        yield local_on(each.name, lambda: logs.enter_context(on_jetstream(servers)).open())


@pytest.fixture
def rig(implementation: Implementation, tmp_path: Path) -> Iterator[Rig]:
    rig = Rig(lambda loop: implementation.open(loop, tmp_path))
    yield rig
    rig.close()
    assert rig.violations == []
    implementation.check(tmp_path)


@pytest.fixture(scope="session")
def one_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServers]:
    """One server of JetStream, which no test hurts."""
    with NatsServers(tmp_path_factory.mktemp("nats") / "one") as servers:
        yield servers


@pytest.fixture(scope="session")
def three_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServers]:
    """Three of one cluster, which no test hurts."""
    with NatsServers(tmp_path_factory.mktemp("nats") / "three", 3) as servers:
        yield servers
