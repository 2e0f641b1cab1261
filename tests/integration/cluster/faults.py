"""Faults of members and of the log's servers, one after the other, under clients that go on."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Callable
from typing import Final

from compat.broker.ports import free_ports
from compat.nats_servers import NatsServer
from tests.client import Client
from tests.integration.administrator import hutch
from tests.integration.cluster.clients import Going, Publishing, Reading
from tests.integration.cluster.members import Cluster
from tests.integration.load import records_of
from tests.integration.server import Endpoint, HutchServer
from tests.waiting import HANG_S, wait_until

HOST: Final = "127.0.0.1"
PROGRESS: Final = 400
"""Confirms of each publisher, and records of each reader, after which a fault is over."""
STREAMS: Final = {"named": "w", "unnamed": ""}


class Supervised:
    """A member that is started again whenever it has ended, as by a supervisor."""

    def __init__(self, cluster: Cluster, name: str, port: int, management: int = 0) -> None:
        self.endpoint = Endpoint(HOST, port)
        ports = ("--port", str(port), "--management-port", str(management))
        self.server = cluster.start(name, *ports)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._is_over.wait(0.05):
            if not self.server.is_running:
                self.server.start()

    @property
    def is_active(self) -> bool:
        """True if clients can connect."""
        return "hutch ready" in self.server.stdout and self.server.is_running

    def stop(self) -> None:
        """End it for good, as a supervisor does."""
        self._is_over.set()
        self._thread.join()
        if self.server.is_running:
            self.server.terminate()


class FaultRun:
    """A cluster of two under load, and the faults that come over it.

    Attributes:
        told: What was done, for a test that fails.
    """

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self.told: list[str] = []
        self._random = random.Random(seed)
        self._cluster = cluster
        names = zip("ab", free_ports(2), strict=True)
        self._members = [Supervised(cluster, name, port) for name, port in names]
        self._endpoints = [each.endpoint for each in self._members]
        wait_until(lambda: self.active is not None)
        with self._client() as client:
            for stream in STREAMS:
                client.create(stream)
        self.publishing = [Publishing(self._endpoints, *each) for each in STREAMS.items()]
        self.reading = [Reading(self._endpoints, each, "app") for each in STREAMS]
        self._all: list[Going] = [*self.publishing, *self.reading]
        for each in self._all:
            each.start()
        self._progress()

    @property
    def active(self) -> Supervised | None:
        """The member that serves."""
        return next((each for each in self._members if each.is_active), None)

    def fault(self, kind: str) -> None:
        """Have one fault, and wait until all clients have gone on."""
        self.told.append(kind)
        _FAULTS[kind](self)
        self._progress()

    def kinds(self, count: int) -> list[str]:
        """Return so many kinds of faults, each once before one comes twice."""
        kinds: list[str] = []
        while len(kinds) < count:
            some = list(_FAULTS)
            self._random.shuffle(some)
            kinds += some
        return kinds[:count]

    def finish(self) -> int:
        """End all, and demand what was promised; return how many records are there twice."""
        for each in self._all:
            each.finish()
        with self._client() as client:
            streams = {stream: records_of(client, stream) for stream in STREAMS}
        for member in self._members:
            member.stop()
        twice = 0
        for publishing, reading in zip(self.publishing, self.reading, strict=True):
            records = streams[publishing.stream]
            twice += publishing.check(records)
            reading.check(records)
        one, other = self._cluster.directories_at_one_number()
        assert one == other
        for member in self._members:
            hutch(member.server.data_dir, "store", "check")
        return twice

    def _client(self) -> Client:
        wait_until(lambda: self.active is not None)
        active = self.active
        assert active is not None
        return Client.opened(*active.endpoint)

    def _progress(self) -> None:
        before = self._counts()

        def has_gone_on() -> bool:
            for each in self._all:
                if each.error is not None:
                    raise RuntimeError(f"a client fails after {self.told}") from each.error
            counts = zip(self._counts(), before, strict=True)
            return all(now >= was + PROGRESS for now, was in counts)

        try:
            wait_until(has_gone_on, within_s=2 * HANG_S)
        except AssertionError as error:
            raise AssertionError(f"no client goes on after {self.told}") from error

    def _counts(self) -> list[int]:
        return [
            *(len(each.confirmed) for each in self.publishing),
            *(len(each.seen) for each in self.reading),
        ]

    # Faults

    def _server(self, *, is_active: bool) -> HutchServer:
        wait_until(lambda: self.active is not None)
        return next(each.server for each in self._members if each.is_active is is_active)

    def kill_active(self) -> None:
        """Kill the member that serves."""
        self._server(is_active=True).kill()

    def end_active(self) -> None:
        """Have the member that serves hand over."""
        self._server(is_active=True).terminate()

    def stop_active(self) -> None:
        """Stop the member that serves, until another one does, and wake it."""
        stopped = self._server(is_active=True)
        other = self._server(is_active=False)
        self._stopped_until(stopped, lambda: "hutch ready" in other.stdout)

    def kill_follower(self) -> None:
        """Kill the member that follows."""
        self._server(is_active=False).kill()

    def _stopped_until(self, server: HutchServer, is_done: Callable[[], bool]) -> None:
        server.process.send_signal(signal.SIGSTOP)
        try:
            wait_until(is_done)
            time.sleep(self._random.random())
        finally:
            server.process.send_signal(signal.SIGCONT)

    def _nats(self, count: int) -> list[NatsServer]:
        return self._random.sample(self._cluster.nats.each, count)

    def kill_nats(self) -> None:
        """Kill one server of the log."""
        self._nats_away(1, NatsServer.kill)

    def stop_nats(self) -> None:
        """Stop one server of the log for a time."""
        self._nats_away(1, NatsServer.stop)

    def empty_nats(self) -> None:
        """Replace one server of the log by an empty one."""

        def replace(server: NatsServer) -> None:
            server.kill()
            server.empty()

        self._nats_away(1, replace)

    def stop_two_nats(self) -> None:
        """Take the log's majority away for a time."""
        self._nats_away(2, NatsServer.stop)

    def kill_all_nats(self) -> None:
        """Kill all servers of the log."""
        self._nats_away(3, NatsServer.kill)

    def _nats_away(self, count: int, end: Callable[[NatsServer], object]) -> None:
        servers = self._nats(count)
        for each in servers:
            end(each)
        time.sleep(self._random.uniform(0, 4))
        for each in servers:
            if each.is_running:
                each.wake()
        self._cluster.nats.start()


_FAULTS: Final[dict[str, Callable[[FaultRun], None]]] = {
    call.__name__: call
    for call in (
        *(FaultRun.kill_active, FaultRun.end_active, FaultRun.stop_active),
        *(FaultRun.kill_follower, FaultRun.kill_nats, FaultRun.stop_nats),
        *(FaultRun.empty_nats, FaultRun.stop_two_nats, FaultRun.kill_all_nats),
    )
}
