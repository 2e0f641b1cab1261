"""Fixtures of the integration tests: servers of a test's own, and one that client tests share.

With `HUTCH_TEST_ADDRESS=host:port` the client tests run against whatever listens there,
a RabbitMQ for instance; tests that start or stop a server are skipped then.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from compat.certificates import Certificates, make
from hutch.stream import messages as m
from tests.client import Client
from tests.integration.server import Endpoint, HutchServer

ADDRESS_VARIABLE = "HUTCH_TEST_ADDRESS"

StartServer = Callable[..., HutchServer]


def external_endpoint() -> Endpoint | None:
    """The endpoint named by the environment, if client tests are to use that."""
    address = os.environ.get(ADDRESS_VARIABLE)
    if not address:
        return None
    host, _, port = address.rpartition(":")
    return Endpoint(host, int(port))


@pytest.fixture
def is_typed() -> bool:
    """Starts servers as users do if it is true; see `HutchServer`. A module may say so."""
    return False


@pytest.fixture
def start_server(tmp_path: Path, *, is_typed: bool) -> Iterator[StartServer]:
    """Start servers that end with the test; a traceback in their logs fails it.

    `start_server("--durability", "os", data=path)`; without `data` each server gets
    an empty directory.
    """
    if external_endpoint() is not None:
        pytest.skip(f"{ADDRESS_VARIABLE} names a server that this test may not stop")
    servers: list[HutchServer] = []

    def start(*arguments: str, data: Path | None = None, **options: dict[str, str]) -> HutchServer:
        data_dir = data or tmp_path / f"data-{len(servers)}"
        environment = options.get("environment")
        server = HutchServer(data_dir, *arguments, environment=environment, is_typed=is_typed)
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.close()
    for server in servers:
        assert_no_traceback(server)


@pytest.fixture
def server(start_server: StartServer) -> HutchServer:
    """A server of this test's own, with an empty data directory and default settings."""
    return start_server()


@pytest.fixture(scope="session")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HutchServer | None]:
    """One server for all tests that neither stop it nor change its settings."""
    if external_endpoint() is not None:
        yield None
        return
    server = HutchServer(tmp_path_factory.mktemp("shared") / "data")
    yield server
    server.terminate()
    assert_no_traceback(server)


@pytest.fixture
def endpoint(shared_server: HutchServer | None) -> Endpoint:
    """Where the client under test connects."""
    external = external_endpoint()
    if external is not None:
        return external
    assert shared_server is not None
    assert shared_server.is_running, shared_server.stderr
    return shared_server.endpoint


@pytest.fixture
def stream(request: pytest.FixtureRequest) -> Iterator[str]:
    """A stream name that no other test uses; the stream is not made yet."""
    plain = re.sub(r"\W+", "-", request.node.name)
    name = f"{plain[:60]}-{uuid.uuid4().hex[:8]}"
    yield name
    external = external_endpoint()
    if external is not None:
        # Somebody else's server is left as it was found.
        with Client.opened(*external) as client:
            client.code_of("delete_stream", m.DeleteStream(name))


def assert_no_traceback(server: HutchServer) -> None:
    """A traceback is a bug of the server, whatever the client did."""
    assert "Traceback" not in server.logs, server.logs[-8000:]


@contextmanager
def managed_server(folder: Path, *arguments: str) -> Iterator[HutchServer]:
    """A server with a management API for the tests of a module; skips where there can be none."""
    if external_endpoint() is not None:
        pytest.skip("needs a server with a management API")
    with HutchServer(folder / "data", *arguments) as server:
        yield server
        server.terminate()
        assert_no_traceback(server)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """An authority, and certificates of a server and a client."""
    return make(tmp_path_factory.mktemp("certificates"))
