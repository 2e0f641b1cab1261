"""A well-behaved client beside a hostile one, and a watch on what the server spends."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Final, Self

from compat.bench.usage import cpu_seconds
from gateway.stream.wire import messages as m
from gateway.stream.wire.offsets import NEXT
from tests.client import Client, plain
from tests.integration.server import HutchServer

# The longest that one round trip may take while others misbehave. Far above what it
# takes (a millisecond), far below what a blocked event loop would make of it.
PATIENCE_S: Final = 1.0
MIB: Final = 1 << 20


class Neighbour(threading.Thread):
    """Publishes one record after another, and gets a confirm and a delivery for each.

        with Neighbour(server):
            …something hostile…

    Leaving the block checks that its traffic went on all the time, and that the server's
    memory grew by no more than `growth_bytes_max` over what it was before.
    """

    def __init__(self, server: HutchServer, *, growth_bytes_max: int = 8 * MIB) -> None:
        super().__init__(daemon=True)
        self._server = server
        self._growth_bytes_max = growth_bytes_max
        self._before_bytes = 0
        self._peak_bytes = 0
        self._is_done = threading.Event()
        self._has_begun = threading.Event()
        self._error: BaseException | None = None
        self._count = 0
        self._slowest_s = 0.0
        self._computed_s = 0.0  # CPU of the server in the slowest round trip

    def __enter__(self) -> Self:
        self._before_bytes = self._server.rss_bytes()
        self.start()
        assert self._has_begun.wait(10), self._error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self._wait_for_more()
        self._is_done.set()
        self.join(10)
        if kind is not None:
            return
        assert self._server.is_running, self._server.stderr
        if self._error is not None:
            raise AssertionError("the neighbour was disturbed") from self._error
        # A server that blocks its loop computes meanwhile; one that waits for a core does not.
        assert self._slowest_s < PATIENCE_S, (
            f"a round trip took {self._slowest_s:.3f} s, of which the server computed "
            f"{self._computed_s:.3f} s"
        )
        growth = self._peak_bytes - self._before_bytes
        assert growth <= self._growth_bytes_max, f"memory grew by {growth / MIB:.1f} MiB"

    @property
    def slowest_s(self) -> float:
        """The longest round trip so far."""
        return self._slowest_s

    @property
    def growth_bytes(self) -> int:
        """How much memory the server has taken on at most since the block began."""
        return self._peak_bytes - self._before_bytes

    def run(self) -> None:
        try:
            with Client.opened(*self._server.endpoint) as client:
                stream = f"neighbour-{id(self)}-{time.monotonic_ns()}"
                client.create(stream)
                client.declare(1, stream, "neighbour")
                client.subscribe(1, stream, NEXT, credit=2)
                while not self._is_done.is_set():
                    self._round_trip(client)
                    self._has_begun.set()
                    time.sleep(0.005)
        except BaseException as error:  # noqa: BLE001 (raised in the test's own thread)
            self._error = error
        finally:
            self._has_begun.set()

    def _wait_for_more(self) -> None:
        """Wait until it was served again, after everything that happened in the block."""
        enough = self._count + 3
        deadline = time.monotonic() + 5 * PATIENCE_S
        while self._count < enough and self.is_alive() and time.monotonic() < deadline:
            time.sleep(0.002)

    def _round_trip(self, client: Client) -> None:
        publishing_id = self._count + 1
        record = b"record %d" % publishing_id
        computed_before_s = cpu_seconds([self._server.pid])
        sent_at = time.monotonic()
        client.publish(1, {publishing_id: record})
        assert client.confirmed() == (1, (publishing_id,))
        chunk = client.delivery().chunk
        client.credit(1, 1)
        assert (chunk.chunk_id, chunk.records()) == (self._count, [record])
        took_s = time.monotonic() - sent_at
        if took_s > self._slowest_s:
            self._slowest_s = took_s
            self._computed_s = cpu_seconds([self._server.pid]) - computed_before_s
        self._count = publishing_id
        self._peak_bytes = max(self._peak_bytes, self._server.rss_bytes())


def refuse_logins(server: HutchServer) -> None:
    """Let passwords be compared side by side: each thread takes its 19 MiB once, for good."""
    for _ in range(4):
        clients = [Client(*server.endpoint) for _ in range(16)]
        for client in clients:
            client.request("peer_properties", m.PeerProperties({}))
            client.request("sasl_handshake", m.SaslHandshake())
            client.send_request("sasl_authenticate", plain("guest", "wrong"))
        for client in clients:
            client.wait_until_gone()
            client.disconnect()
