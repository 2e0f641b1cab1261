"""Runs a case: fills the source, lets Spark copy it through the kills, counts what has arrived."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from hutch.stream import messages as m
from tests.client import Client
from tests.integration.server import LOG_CHARACTERS, HutchServer, ServerDidNotStart
from tests.spark.chaos.cases import PARTITIONS, Case, Size
from tests.spark.chaos.killing import Killing, kills_of
from tests.spark.chaos.reading import Found, body_of, read_back
from tests.spark.driver import Driver, Killed
from tests.spark.proxy import Proxy
from tests.spark.publishing import append, create_super_stream
from tests.spark.queries import uncommit
from tests.spark_cluster.standalone import EXECUTOR, Cluster, settings_of

SOURCE: Final = "source"
PARTS: Final = (4, 7, 5, 9)
"""`minPartitions` of the runs of a query, one after the other."""
PATIENT: Final = {"planner.retries": "20", "planner.retryIntervalMs": "500"}
RUNS_MAX: Final = 20
"""Runs of one query beyond which it counts as one that comes to no end."""
STARTS_MAX: Final = 5


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a case.

    Attributes:
        found: In the target.
        kills: Kills that it met.
        restarts: Runs that ended with an error and were started again, as an operator would.
        seconds: All of it, with the reading back.
    """

    case: Case
    found: Found
    kills: int
    restarts: int
    seconds: float

    @property
    def is_good(self) -> bool:
        """Whether each row is there once, and no other."""
        return not (self.found.lost or self.found.doubled or self.found.wrong)


class Ground:
    """Servers with a filled source, and the Spark of all cases; made when they are first needed.

    Args:
        folder: For all files.
        size: Of the cases.
        say: Takes lines that tell how far it is.
    """

    def __init__(self, folder: Path, size: Size, say: Callable[[str], object]) -> None:
        self.folder = folder
        self.size = size
        self.say = say
        self._stack = ExitStack()
        self._servers: dict[str, HutchServer] = {}
        self._drivers: dict[bool, Driver] = {}
        self._cluster: Cluster | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def server(self, durability: str) -> HutchServer:
        """Return the running server of that durability."""
        if durability not in self._servers:
            arguments = ("--durability", durability)
            server = HutchServer(self.folder / durability / "data", *arguments)
            self._servers[durability] = self._stack.enter_context(server)
            self.say(f"filling a server with durability {durability}")
            self._fill(server)
        return self._servers[durability]

    def driver(self, *, on_cluster: bool) -> Driver:
        """Return the Spark that runs the queries."""
        if on_cluster not in self._drivers:
            # Only this form of a local master lets a task fail and be tried again.
            master = self.cluster.url if on_cluster else "local[2,3]"
            folder = self.folder / ("cluster-driver" if on_cluster else "driver")
            folder.mkdir()
            driver = Driver(folder, settings_of() | {"spark.master": master})
            self._drivers[on_cluster] = self._stack.enter_context(driver)
        return self._drivers[on_cluster]

    @property
    def cluster(self) -> Cluster:
        """A master and two workers."""
        if self._cluster is None:
            self._cluster = self._stack.enter_context(Cluster(self.folder / "cluster"))
        return self._cluster

    def kill_executor(self) -> None:
        """Kill an executor that runs."""
        for worker in self.cluster.workers:
            for pid in worker.members():
                if EXECUTOR.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                    os.kill(pid, signal.SIGKILL)
                    return
        raise AssertionError("no executor runs")

    def _fill(self, server: HutchServer) -> None:
        own = self.size.rows // PARTITIONS
        with Client.opened(server.host, server.port, timeout_s=60) as client:
            for index, name in enumerate(create_super_stream(client, SOURCE, PARTITIONS)):
                bodies = [body_of(index * own + n, self.size.row_bytes) for n in range(own)]
                append(client, name, bodies, at_once=self.size.frame_rows)


class Copy:
    """The query of a case.

    Attributes:
        checkpoint: Its folder.
        restarts: Runs that ended with an error so far.
    """

    def __init__(self, case: Case, ground: Ground, folder: Path, proxies: dict[str, Proxy]) -> None:
        self._driver = ground.driver(on_cluster=case.victim == "executor")
        self._size = ground.size
        self._say = ground.say
        self.checkpoint = folder / "checkpoint"
        self._parts = cycle(PARTS)
        self.restarts = 0
        budget = -(-self._size.rows // (1 if case.in_one_batch else self._size.batches))
        source = {"superStream": SOURCE, "startingOffsets": "earliest"}
        target = {"superStream" if case.to_super_stream else "stream": case.name}
        self._wanted: dict[str, Any] = {
            "source": proxies["source"].options | PATIENT | source,
            "target": proxies["target"].options | PATIENT | target,
            "checkpoint": str(self.checkpoint),
            "plan": case.plan,
            "app": case.name,
        }
        self._wanted["source"]["maxOffsetsPerTrigger"] = str(budget)

    def run(self, killing: Killing) -> None:
        """Run until all is copied, again after each kill and each error."""
        for _ in range(RUNS_MAX):
            killing.left()  # raises the error of a kill that failed
            wanted = self._wanted | {"parts": next(self._parts)}
            try:
                error = self._driver.run(wanted, self._size.within_s)
            except Killed:
                continue
            if error is None:
                return
            self.restarts += 1
            self._say(f"the query ended, and is started again: {error.strip().splitlines()[-1]}")
        raise AssertionError(f"the query comes to no end:\n{self._driver.said}")


def run_case(case: Case, ground: Ground) -> Outcome:
    """Run a case and count what the target holds in the end.

    Raises:
        Exception: A kill failed.
        AssertionError: A kill did not come, or the query comes to no end.
        TimeoutError: The query does not end.
    """
    begun = time.monotonic()
    server = ground.server(case.durability)
    folder = ground.folder / case.name
    folder.mkdir()
    victims: dict[str, Callable[[], object]] = {
        "driver": lambda: ground.driver(on_cluster=False).kill(),
        "executor": ground.kill_executor,
        "server": partial(_restart, server),
    }
    with _target(case, server) as streams, ExitStack() as stack:
        proxies = {
            name: stack.enter_context(Proxy(server.host, server.port))
            for name in ("source", "target")
        }
        kill = victims.get(case.victim, lambda: None)
        killing = Killing(kills_of(case, ground.size), kill, proxies, ground.say)
        copy = Copy(case, ground, folder, proxies)
        copy.run(killing)
        uncommit(copy.checkpoint)
        copy.run(killing)
        assert not killing.left(), f"{killing.left()} kills did not come"
        rows = ground.size.rows // PARTITIONS * PARTITIONS
        found = read_back(server.endpoint, streams, rows, ground.size.row_bytes)
    shutil.rmtree(folder)
    return Outcome(case, found, killing.done, copy.restarts, time.monotonic() - begun)


def _restart(server: HutchServer) -> None:
    """Kill a server and start it again, with patience: the machine may be busy."""
    for _ in range(STARTS_MAX):
        try:
            server.restart()
        except ServerDidNotStart as failure:
            if failure.exit_code is not None:
                raise
        else:
            return
    raise AssertionError(f"the server does not start:\n{server.logs[-LOG_CHARACTERS:]}")


@contextmanager
def _target(case: Case, server: HutchServer) -> Iterator[list[str]]:
    """Make the target and give its streams; remove it when it was read."""
    with Client.opened(server.host, server.port) as client:
        if case.to_super_stream:
            streams = create_super_stream(client, case.name, 3)
        else:
            client.create(case.name)
            streams = [case.name]
    yield streams
    with Client.opened(server.host, server.port) as client:
        if case.to_super_stream:
            client.must("delete_super_stream", m.DeleteSuperStream(case.name))
        else:
            client.must("delete_stream", m.DeleteStream(case.name))
