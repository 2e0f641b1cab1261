"""The management API where there is much: lists come soon, and nobody else waits for them.

`make bench` has the same with 10,000 connections and 1,000 streams.
"""

import contextlib
import threading
import time
from typing import Final

import pytest

from gateway.stream.wire import messages as m
from tests.client import Client
from tests.http_client import Api
from tests.integration.conftest import StartServer

pytestmark = [pytest.mark.timeout(120), pytest.mark.slow]

CONNECTIONS: Final = 1_000
STREAMS: Final = 300
# Two cores are shared with whoever runs this test: far above what a slice takes.
WAIT_S: Final = 0.2


class Pinger(threading.Thread):
    """Asks over the wire again and again; remembers its longest wait."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(daemon=True)
        self._client = Client.opened(host, port)
        self._is_done = threading.Event()
        self.count = 0
        self.longest_s = 0.0

    def run(self) -> None:
        while not self._is_done.is_set():
            began = time.perf_counter()
            self._client.code_of("query_publisher_sequence", m.QueryPublisherSequence("p", "s-0"))
            self.longest_s = max(self.longest_s, time.perf_counter() - began)
            self.count += 1

    def stop(self) -> None:
        self._is_done.set()
        self.join(10)
        self._client.disconnect()


def test_long_lists_come_soon_and_nobody_waits_for_them(start_server: StartServer) -> None:
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
        took: dict[str, float] = {}
        for path, count in (
            ("connections", CONNECTIONS + 2),
            ("stream/connections/%2F", CONNECTIONS + 2),
            ("queues", STREAMS),
            ("bindings", STREAMS),
        ):
            began = time.perf_counter()
            assert len(api.get(path)) == count, path
            took[path] = time.perf_counter() - began
        page = api.get("connections?page=2&page_size=100")
        assert (page["item_count"], page["total_count"]) == (100, CONNECTIONS + 2)
        pinger.stop()
    assert max(took.values()) < 1, took
    assert pinger.count > 20
    assert pinger.longest_s < WAIT_S, f"{pinger.longest_s:.3f} s"
