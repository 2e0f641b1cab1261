"""A cluster as a server under test: an active member, one that follows, and the log's servers."""

import json
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

from compat.bench.connection import Address
from compat.bench.errors import BenchError
from compat.bench.hutch import Hutch
from compat.bench.jobs import Job
from compat.bench.management import listed
from compat.bench.servers import CLUSTER
from compat.nats_servers import HOST, NatsServers, NotReady, Unavailable, program

HUTCH: Final = "gateway"
ACTIVE, FOLLOWER = "a", "b"
LOG_SERVERS: Final = 3
FOLLOWS: Final = "following the log"
LOOK_S: Final = 0.1
# A member tells once a second how far it is, and the active one learns it by its own next word.
SETTLED_S: Final = 2.5
SETTLE_LIMIT_S: Final = 300.0


class Place(NamedTuple):
    """Messages of the log that a member has applied, and since when it has not all, in seconds."""

    number: int
    lag_messages: int
    lag_s: float


class Cluster(Hutch):
    """Two members on this machine; clients speak to the first one, which serves.

    Attributes:
        follower: The other one. It may be ended and started.
    """

    def __init__(self, folder: Path, module: str = HUTCH) -> None:
        """Prepare all; nothing runs yet.

        Args:
            folder: An existing folder for all data; removed by `stop`.
            module: What is run as `hutch`.

        Raises:
            BenchError: The servers of the log cannot be had here.
        """
        try:
            self._nats = NatsServers(folder / "nats", LOG_SERVERS)
        except Unavailable as error:
            raise BenchError(str(error)) from error
        log = "--log-level", "info", "--log", self._nats.url
        member = [*serving(module), *log, "--member"]
        place = folder / "follower"
        place.mkdir()
        self.follower = Hutch([*member, FOLLOWER], place, "disk", ready=FOLLOWS)
        super().__init__([*member, ACTIVE], folder, "disk")
        self.name = CLUSTER

    @property
    def pids(self) -> tuple[int, ...]:
        """All processes: the members', and those of the log's servers."""
        log = (each.pid for each in self._nats.each if each.is_running)
        return *super().pids, *self.follower.pids, *log

    @property
    def active_pids(self) -> tuple[int, ...]:
        """The active member's process."""
        return super().pids

    @property
    def log_address(self) -> Address:
        """The first of the log's servers."""
        return Address(HOST, self._nats.each[0].port)

    def start(self) -> None:
        """Start all that does not run, and wait until one member serves and the other one follows.

        Raises:
            BenchError: Something ended instead, or was not ready in time.
        """
        try:
            self._nats.start()
        except NotReady as error:
            raise BenchError(str(error)) from error
        super().start()
        self.follower.start()

    def end(self) -> None:
        self.follower.end()
        super().end()
        self._nats.close()

    def places(self) -> dict[str, Place]:
        """Return how far each member is, by name, as the active one knows it. Raises BenchError."""
        job = Job(work="management", address=self.address, management_port=self.management_port)
        (node,) = json.loads(listed(job, "nodes"))
        return {
            each["name"]: Place(each["number"], each["lag_messages"], each["lag_seconds"])
            for each in node["cluster_members"]
        }

    def settle(self) -> None:
        """Wait until both members have all, and say so for a while. Raises BenchError."""
        deadline = time.monotonic() + SETTLE_LIMIT_S
        since, last = time.monotonic(), dict[str, Place]()
        while time.monotonic() - since < SETTLED_S:
            places = self.places()
            if places != last or not _are_level(places):
                since, last = time.monotonic(), places
            if time.monotonic() > deadline:
                raise BenchError(f"the members do not become level: {places}")
            time.sleep(LOOK_S)


def _are_level(places: dict[str, Place]) -> bool:
    return {ACTIVE, FOLLOWER} <= set(places) and not any(
        each.lag_messages for each in places.values()
    )


def serving(module: str = HUTCH) -> list[str]:
    """Return the command that starts a server."""
    return [sys.executable, "-m", module, "serve"]


def why_not() -> str:
    """Return the reason that there can be no cluster here; empty if there can."""
    if find_spec("nats") is None:
        return "nats-py is not installed"
    try:
        program()
    except Unavailable as error:
        return str(error)
    return ""
