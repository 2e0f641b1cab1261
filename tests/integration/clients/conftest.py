"""Fixtures of the tests with stock clients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.integration.clients.node import NodeClient, NodeUnavailable, install_client
from tests.integration.server import Endpoint

NewNodeClient = Callable[[Endpoint], NodeClient]


@pytest.fixture
def is_typed() -> bool:
    # rstream does not come back to a server that is there again a tenth of a second later.
    return True


@pytest.fixture(scope="session")
def node_installed() -> Path:
    """The directory with the pinned Node client."""
    try:
        return install_client()
    except NodeUnavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture
def new_node_client(node_installed: Path, tmp_path: Path) -> Iterator[NewNodeClient]:
    """Connect Node clients that end with the test."""
    with ExitStack() as stack:

        def connect(endpoint: Endpoint) -> NodeClient:
            directory = tmp_path / f"node-{len(list(tmp_path.glob('node-*')))}"
            directory.mkdir()
            return stack.enter_context(NodeClient(node_installed, directory, endpoint))

        yield connect


@pytest.fixture
def node(new_node_client: NewNodeClient, endpoint: Endpoint) -> NodeClient:
    """A Node client connected to the shared server."""
    return new_node_client(endpoint)
