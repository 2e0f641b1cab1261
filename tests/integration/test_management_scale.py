"""The management API where there is much: long lists hold up no other client.

`make bench` has the same with 10,000 connections and 1,000 streams.
"""

import contextlib
import resource
import threading
from collections.abc import Iterator
from typing import Final

import pytest

from hutch.stream import messages as m
from tests.client import Client
from tests.http_client import Api
from tests.integration.conftest import StartServer
from tests.waiting import HANG_S

pytestmark = pytest.mark.slow

CONNECTIONS: Final = 1_000
STREAMS: Final = 300
BETWEEN: Final = 3
"""So many answers come at least while one list is made: it is made in more slices."""
TRIES: Final = 10


class Pinger(threading.Thread):
    """Asks over the wire again and again; counts the answers."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(daemon=True)
        self._client = Client.opened(host, port)
        self._is_done = threading.Event()
        self.count = 0

    def run(self) -> None:
        while not self._is_done.is_set():
            self._client.code_of("query_publisher_sequence", m.QueryPublisherSequence("p", "s-0"))
            self.count += 1

    def stop(self) -> None:
        self._is_done.set()
        self.join(HANG_S)
        self._client.disconnect()


@pytest.fixture
def descriptors() -> Iterator[None]:
    """As many descriptors for this process as the system allows; it begins with 1,024 mostly."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("descriptors")
def test_other_clients_are_answered_while_a_long_list_is_made(start_server: StartServer) -> None:
    server = start_server("--durability", "os")
    api = Api(*server.management)
    with contextlib.ExitStack() as stack:
        admin = stack.enter_context(Client.opened(*server.endpoint))
        for number in range(STREAMS):
            admin.create(f"s-{number}")
        for _ in range(CONNECTIONS):
            stack.enter_context(Client.opened(*server.endpoint))
        pinger = Pinger(*server.endpoint)
        pinger.start()
        answered: dict[str, int] = {}
        for path, count in (
            ("connections", CONNECTIONS + 2),
            ("stream/connections/%2F", CONNECTIONS + 2),
            ("queues", STREAMS),
            ("bindings", STREAMS),
        ):
            answered[path] = 0
            for _ in range(TRIES):  # a busy machine may give the client no turn meanwhile
                before = pinger.count
                assert len(api.get(path)) == count, path
                answered[path] = max(answered[path], pinger.count - before)
                if answered[path] > BETWEEN:
                    break
        page = api.get("connections?page=2&page_size=100")
        assert (page["item_count"], page["total_count"]) == (100, CONNECTIONS + 2)
        pinger.stop()
    assert min(answered.values()) > BETWEEN, answered
