"""A well-behaved client beside a hostile one, and a watch on what the server spends."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Final, Self

from hutch.stream import messages as m
from hutch.stream.offsets import NEXT
from tests.client import Client, plain
from tests.integration.server import HutchServer
from tests.integration.turns import Turns
from tests.machine import is_within
from tests.waiting import HANG_S, wait_until

# The most that the server may compute in one turn while others misbehave: five times what it does.
TURN_S_MAX: Final = 0.2
MIB: Final = 1 << 20


class Neighbour(threading.Thread):
    """Publishes one record after another, and gets a confirm and a delivery for each.

        with Neighbour(server):
            …something hostile…

    Leaving the block checks that its traffic went on, that no turn of the server's loop took more
    than `TURN_S_MAX` of CPU, which would have kept it waiting, and that the server's memory grew by
    no more than `growth_bytes_max` over what it was before.
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
        self._turns = Turns(server)

    def __enter__(self) -> Self:
        # Its password is compared once a minute: a thread takes 19 MiB for that, for good.
        Client.opened(*self._server.endpoint).disconnect()
        self._before_bytes = self._server.rss_bytes()
        self._turns.__enter__()
        self.start()
        assert self._has_begun.wait(HANG_S), self._error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self._wait_for_more()
            self._is_done.set()
            self.join(HANG_S)
            if kind is not None:
                return
            assert self._server.is_running, self._server.stderr
            if self._error is not None:
                raise AssertionError("the neighbour was disturbed") from self._error
            turn_s = self._turns.longest_s
        finally:
            self._turns.__exit__(kind, error, trace)
        within = is_within(turn_s, TURN_S_MAX)
        assert within, f"the server computed for {turn_s:.3f} s in one turn"
        growth = self._peak_bytes - self._before_bytes
        assert growth <= self._growth_bytes_max, f"memory grew by {growth / MIB:.1f} MiB"

    @property
    def longest_turn_s(self) -> float:
        """CPU of the longest turn since the block began, in seconds."""
        return self._turns.longest_s

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
        wait_until(lambda: self._count >= enough or not self.is_alive())

    def _round_trip(self, client: Client) -> None:
        publishing_id = self._count + 1
        record = b"record %d" % publishing_id
        client.publish(1, {publishing_id: record})
        assert client.confirmed() == (1, (publishing_id,))
        chunk = client.delivery().chunk
        client.credit(1, 1)
        assert (chunk.chunk_id, chunk.records()) == (self._count, [record])
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
