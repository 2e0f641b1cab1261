"""A Spark cluster of this machine, from pip's package alone: a master and two workers."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from compat.broker.processes import descendants
from tests.spark_cluster.hosts import LOCAL, Host
from tests.spark_cluster.sessions import Session

_SPEC: Final = find_spec("pyspark")
HOME: Final = Path("/" if _SPEC is None or _SPEC.origin is None else _SPEC.origin).parent
ROUND_TRIP: Final = Path(__file__).with_name("round_trip.py")
WORKERS: Final = 2
# Two cores start three Java machines, and other tests may run meanwhile.
START_SECONDS: Final = 60.0
MASTER: Final = "org.apache.spark.deploy.master.Master"
WORKER: Final = "org.apache.spark.deploy.worker.Worker"
EXECUTOR: Final = "CoarseGrainedExecutorBackend"
_MASTER_URL: Final = re.compile(r"Starting Spark master at (spark://\S+)")
_ANY_PORT: Final = ("--port", "0", "--webui-port", "0")

_SETTINGS: Final = {
    "spark.cores.max": str(WORKERS),
    "spark.driver.memory": "768m",
    "spark.executor.cores": "1",
    "spark.executor.memory": "512m",
    # No task before all executors are there, or a short job may be done by one of them.
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def java_options() -> str:
    """Return the options of every Java machine, with its place for files: it ignores TMPDIR."""
    # One that lives for seconds is not worth its best compiler, half of its CPU time.
    return f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Djava.io.tmpdir={tempfile.gettempdir()}"


def java_variables() -> dict[str, str]:
    """Return them for a driver, and for the short-lived Java that finds out how to start it."""
    return dict.fromkeys(("SPARK_LAUNCHER_OPTS", "SPARK_SUBMIT_OPTS"), java_options())


def settings_of(driver: Host = LOCAL) -> dict[str, str]:
    """Return the settings of a job whose driver runs on this host."""
    return _SETTINGS | {
        "spark.executor.extraJavaOptions": java_options(),
        "spark.driver.bindAddress": driver.address,
        "spark.driver.host": driver.address,
    }


def environment(python: str = sys.executable, host: Host = LOCAL) -> dict[str, str]:
    """Return what Spark's processes are started with; no settings of the test run's own."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("HUTCH_")}
    own = {
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": python,
        "SPARK_HOME": str(HOME),
        "SPARK_LOCAL_IP": host.address,
    }
    return kept | java_variables() | own


class Cluster:
    """Master and workers, each in a folder and a session of its own, on ports the system picks.

    Attributes:
        url: What a driver connects to.
        workers: Their sessions.
    """

    def __init__(self, folder: Path, hosts: Sequence[Host] = (LOCAL,) * (1 + WORKERS)) -> None:
        """Start them all.

        Args:
            folder: To work in.
            hosts: That of the master, then those of the workers.
        """
        self._folder = folder
        self._stack = ExitStack()
        self._hosts = hosts
        self.workers: list[Session] = []
        try:
            self._master = self._start("master", MASTER, hosts[0])
            said = self._master.wait_for("Starting Spark master at", START_SECONDS)
            match = _MASTER_URL.search(said)
            assert match is not None, said
            self.url = match[1]
            self.workers = [self._start_worker(number) for number in range(1, len(hosts))]
            self._master.wait_for("Registering worker", START_SECONDS, len(self.workers))
        except BaseException:
            self._stack.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def worker_of(self, pid: int) -> int | None:
        """Return the index of the worker that a process belongs to; None if to none."""
        for index, worker in enumerate(self.workers):
            if pid in worker.members():
                return index
        return None

    def executor_of(self, pid: int) -> int:
        """Return the executor that started a process."""
        worker = self.worker_of(pid)
        assert worker is not None
        for executor in self.workers[worker].members():
            command = Path(f"/proc/{executor}/cmdline").read_bytes()
            if EXECUTOR.encode() in command and pid in descendants(executor):
                return executor
        raise AssertionError(f"process {pid} belongs to no executor")

    def _start_worker(self, number: int) -> Session:
        name = f"worker-{number}"
        work = ("-c", "1", "-m", "768m", "-d", str(self._folder / name / "work"), self.url)
        return self._start(name, WORKER, self._hosts[number], *work)

    def _start(self, name: str, kind: str, host: Host, *more: str) -> Session:
        own = self._folder / name
        own.mkdir(parents=True)
        variables = environment(host=host)
        variables |= {"SPARK_DAEMON_JAVA_OPTS": java_options(), "SPARK_DAEMON_MEMORY": "256m"}
        java = (str(HOME / "bin" / "spark-class"), kind, "--host", host.address)
        command = [*host.enter, *java, *_ANY_PORT, *more]
        session = Session(command, own / "output.log", own, variables)
        return self._stack.enter_context(session)
