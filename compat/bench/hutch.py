"""Hutch as a server under test: a process of its own on a fresh data directory."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

from compat import certificates
from compat.bench.connection import Address
from compat.bench.errors import BenchError
from compat.bench.servers import HUTCH_DISK, HUTCH_OS, ServerName, evict_files
from compat.broker.ports import free_ports

START_TIMEOUT_S: Final = 60.0
# The promise is 10 s; a benchmark is not the place to test it.
STOP_TIMEOUT_S: Final = 30.0
POLL_S: Final = 0.02
READY: Final = "hutch ready"


class Hutch:
    """One `hutch serve` with a durability of its own."""

    can_restart = True

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        durability: Literal["os", "disk"],
        ready: str = READY,
    ) -> None:
        """Prepare a server; nothing runs yet.

        Args:
            command: What starts a server, up to and including `serve`.
            folder: An existing folder for its data and its output; removed by `stop`.
            durability: When it confirms.
            ready: Words that it prints once it is started.
        """
        self.name: ServerName = HUTCH_OS if durability == "os" else HUTCH_DISK
        self._folder = folder
        self._ready = ready
        self._output = folder / "output.log"
        self.data_folder = folder / "data"
        port, self.management_port, tls_port = free_ports(3)
        self.address = Address("127.0.0.1", port)
        made = certificates.make(folder / "certificates")
        self.tls_address = self.address._replace(port=tls_port, ca=str(made.ca))
        self._command = [
            *command,
            *("--data", str(self.data_folder)),
            *("--host", self.address.host),
            *("--port", str(port)),
            *("--management-port", str(self.management_port)),
            *("--tls-port", str(tls_port)),
            *("--tls-cert", str(made.server.certificate)),
            *("--tls-key", str(made.server.key)),
            *("--durability", durability),
        ]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pids(self) -> tuple[int, ...]:
        return () if self._process is None else (self._process.pid,)

    def start(self) -> None:
        """Start it and wait until it says that it is ready.

        Raises:
            BenchError: It ended instead, or did not say so in time.
        """
        if self._process is not None and self._process.poll() is None:
            return
        # The user's own settings are not the benchmark's.
        environment = {k: v for k, v in os.environ.items() if not k.startswith("HUTCH_")}
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                self._command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        deadline = time.monotonic() + START_TIMEOUT_S
        while self._ready not in (said := self._output.read_text(errors="replace")):
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.end()
                raise BenchError(f"{self.name} did not get ready; it printed: {said[-400:]}")
            time.sleep(POLL_S)

    def restart(self, *, evict: bool) -> None:
        self.end()
        if evict:
            evict_files(self.data_folder)
        self.start()

    def stop(self) -> None:
        self.end()
        shutil.rmtree(self._folder, ignore_errors=True)

    def end(self) -> None:
        """End it, and keep its data."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
