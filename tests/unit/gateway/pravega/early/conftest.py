"""A server of both dialects on a store of the test's own, and a client of the early one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.early_rig import EarlyClient, EarlyServer, serving_early


@pytest.fixture
def server(tmp_path: Path) -> Iterator[EarlyServer]:
    with serving_early(tmp_path) as server:
        yield server


@pytest.fixture
def client(server: EarlyServer) -> Iterator[EarlyClient]:
    with server.early_client() as client:
        yield client
