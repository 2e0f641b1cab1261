"""A server of the wire protocol on a store of the test's own, and a client."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pravega_client import WireClient
from tests.pravega_rig import WireServer, serving


@pytest.fixture
def server(tmp_path: Path) -> Iterator[WireServer]:
    with serving(tmp_path) as server:
        yield server


@pytest.fixture
def client(server: WireServer) -> Iterator[WireClient]:
    """A client that has said Hello."""
    with server.client() as client:
        client.hello()
        yield client
