"""A real `hutch serve` process for a test: started, watched, killed, started again.

Not a server in this process and not a container: what a person would type, or a fork of a process
that has loaded it (`preloaded.py`). Its data directory is the test's own. Output goes to files
beside that directory, so nothing can block on a full pipe and a failed test can still read it.
"""

from __future__ import annotations

import atexit
import os
import re
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import IO, Final, NamedTuple, Self

from tests.integration.preloaded import CAN_FORK, Forked, Preloaded

REPOSITORY: Final = Path(__file__).resolve().parents[2]

# Generous: two cores are shared with whatever else the machine is doing.
START_SECONDS: Final = 20.0
# The promise of a graceful stop.
STOP_SECONDS: Final = 10.0
# How much of a log a failed test shows: its end.
LOG_CHARACTERS: Final = 6_000

_READY: Final = re.compile(r"^hutch ready\b.*$", re.MULTILINE)
_ADDRESS: Final = r"\[?([\w.:-]*?[\w.-])\]?:(\d+)"
_STREAM_ADDRESS: Final = re.compile(r"\bstream\W+" + _ADDRESS)
_STORE_ADDRESS: Final = re.compile(r"\bstore\W+" + _ADDRESS)
_MANAGEMENT_ADDRESS: Final = re.compile(r"\bmanagement\W+" + _ADDRESS)
_ANY_ADDRESS: Final = re.compile(_ADDRESS)


class Endpoint(NamedTuple):
    """Where stream clients connect."""

    host: str
    port: int


class ServerDidNotStart(Exception):
    """The process ended, or printed no ready line in time; holds what it said."""

    def __init__(self, exit_code: int | None, output: str) -> None:
        super().__init__(f"server did not start, exit code {exit_code}:\n{output}")
        self.exit_code = exit_code
        self.output = output


class HutchServer:
    """One server process on one data directory.

    The first start lets the system pick the port. Later starts ask for the same one,
    since clients come back to the port that was advertised to them.

    Args:
        data_dir: The data directory; made by the server if it is missing.
        arguments: Further arguments of `hutch serve`.
        environment: Variables to set for the process. Every `HUTCH_…` variable of the
            test run itself is taken away first: a developer's settings are not the test's.
        enter: The beginning of a command that runs the server in another namespace.
        is_typed: Start it as users do, by `python -m gateway`, though it takes longer.
    """

    def __init__(
        self,
        data_dir: Path,
        *arguments: str,
        environment: dict[str, str] | None = None,
        enter: Sequence[str] = (),
        is_typed: bool = False,
    ) -> None:
        self.data_dir = data_dir
        self.arguments = arguments
        self.environment = environment or {}
        self.enter = enter
        self.is_typed = is_typed
        self.endpoint = Endpoint("127.0.0.1", 0)
        self.ready_line = ""
        self._starts = 0
        self._process: subprocess.Popen[bytes] | Forked | None = None
        self.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def host(self) -> str:
        """The host that the server listens on."""
        return self.endpoint.host

    @property
    def port(self) -> int:
        """The port that the server listens on; the same after a restart."""
        return self.endpoint.port

    @property
    def management(self) -> Endpoint:
        """Where the management API listens; the system picks the port at each start."""
        match = _MANAGEMENT_ADDRESS.search(self.ready_line)
        assert match is not None, f"no management in the ready line: {self.ready_line!r}"
        return Endpoint(match[1], int(match[2]))

    @property
    def store(self) -> Endpoint:
        """Where clients of the store's own protocol connect."""
        match = _STORE_ADDRESS.search(self.ready_line)
        assert match is not None, f"no store in the ready line: {self.ready_line!r}"
        return Endpoint(match[1], int(match[2]))

    @property
    def process(self) -> subprocess.Popen[bytes] | Forked:
        """The latest process, running or not."""
        assert self._process is not None
        return self._process

    @property
    def pid(self) -> int:
        """The process id of the latest start."""
        return self.process.pid

    @property
    def is_running(self) -> bool:
        """Whether the latest process has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def stdout(self) -> str:
        """Everything that the latest process printed."""
        return self._output_path("stdout").read_text(errors="replace")

    @property
    def stderr(self) -> str:
        """Everything that the latest process logged."""
        return self._output_path("stderr").read_text(errors="replace")

    @property
    def logs(self) -> str:
        """What all the processes of this server logged, oldest first."""
        paths = (self._output_path("stderr", start) for start in range(1, self._starts + 1))
        return "".join(path.read_text(errors="replace") for path in paths if path.exists())

    def wait_for_log(self, words: str, within_s: float = 10.0) -> None:
        """Wait until the log says something. Raises AssertionError if it does not."""
        deadline = time.monotonic() + within_s
        while words not in self.logs:
            assert time.monotonic() < deadline, self.logs
            time.sleep(0.01)

    def start(self) -> None:
        """Start the process and wait until it is ready to serve.

        Raises:
            ServerDidNotStart: It ended first, or was not ready within `START_SECONDS`.
        """
        assert not self.is_running
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                self._start_once(deadline)
            except ServerDidNotStart as failure:
                # The port was ours a moment ago. Somebody's outgoing connection may
                # have been given it meanwhile; that passes.
                was_ours = self._starts > 1 and "in use" in failure.output
                if not was_ours or time.monotonic() > deadline:
                    raise
                time.sleep(0.2)
            else:
                return

    def restart(self) -> None:
        """Start again on the same data and port; a process still running is killed first."""
        if self.is_running:
            self.kill()
        self.start()

    def kill(self) -> None:
        """End the process as a crash would: SIGKILL, no chance to flush."""
        if self.is_running:
            self.process.kill()
        self.process.wait(STOP_SECONDS)

    def terminate(self) -> float:
        """Ask the process to stop (SIGTERM) and check that it does so with exit code 0.

        Returns:
            How long it took, in seconds, at most `STOP_SECONDS`.
        """
        started = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        try:
            exit_code = self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(
                f"still running {STOP_SECONDS} s after SIGTERM:\n{self.stderr[-LOG_CHARACTERS:]}"
            ) from None
        assert exit_code == 0, (
            f"exit code {exit_code} after SIGTERM:\n{self.stderr[-LOG_CHARACTERS:]}"
        )
        return time.monotonic() - started

    def close(self) -> None:
        """End the process if it still runs; for clean-up, checks nothing."""
        if self._process is not None:
            self.kill()

    def rss_bytes(self) -> int:
        """Read how much memory the process has resident, in bytes."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        match = re.search(r"^VmRSS:\s+(\d+) kB$", status, re.MULTILINE)
        assert match is not None, "the process has ended"
        return int(match[1]) * 1024

    def open_file_count(self) -> int:
        """Count the file descriptors that the process holds open."""
        return sum(1 for _ in Path(f"/proc/{self.pid}/fd").iterdir())

    def _start_once(self, deadline: float) -> None:
        self._starts += 1
        with (
            self._output_path("stdout").open("wb") as stdout,
            self._output_path("stderr").open("wb") as stderr,
        ):
            self._process = self._run(stdout, stderr)
        _running.add(self)
        while (match := _READY.search(self.stdout)) is None:
            exit_code = self._process.poll()
            if exit_code is not None or time.monotonic() > deadline:
                self.close()
                raise ServerDidNotStart(exit_code, self.stdout + self.stderr)
            time.sleep(0.005)
        self.ready_line = match[0]
        self.endpoint = _endpoint_of(self.ready_line)

    def _run(self, stdout: IO[bytes], stderr: IO[bytes]) -> subprocess.Popen[bytes] | Forked:
        """Run the server in a process of its own."""
        command = self._command()
        environment = server_environment(self.environment)
        # Python itself reads its variables once, when it starts.
        is_for_python = any(not name.startswith("HUTCH_") for name in self.environment)
        if CAN_FORK and not (is_for_python or self.enter or self.is_typed):
            return _preloaded().start(command[3:], environment, stdout, stderr)
        return subprocess.Popen(
            [*self.enter, *command],
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            env=environment,
        )

    def _command(self) -> list[str]:
        return serve_command(self.data_dir, "--port", str(self.port), *self._arguments())

    def _arguments(self) -> tuple[str, ...]:
        if "--management-port" in self.arguments:
            return self.arguments
        return ("--management-port", "0", *self.arguments)

    def _output_path(self, kind: str, start: int | None = None) -> Path:
        self.data_dir.parent.mkdir(parents=True, exist_ok=True)
        number = self._starts if start is None else start
        return self.data_dir.parent / f"{self.data_dir.name}.{number}.{kind}"


@cache
def _preloaded() -> Preloaded:
    return Preloaded(server_environment())


class StoreProcess(HutchServer):
    """The same for `hutch store serve`."""

    def _command(self) -> list[str]:
        return store_command(self.data_dir, "--port", str(self.port), *self.arguments)


def store_command(data_dir: Path, *arguments: str) -> list[str]:
    """Build the command line of a store's own server on that data directory."""
    return [sys.executable, "-m", "gateway", "store", "serve", "--data", str(data_dir), *arguments]


def serve_command(data_dir: Path, *arguments: str) -> list[str]:
    """Build the command line of a server on that data directory."""
    return [sys.executable, "-m", "gateway", "serve", "--data", str(data_dir), *arguments]


def server_environment(extra: dict[str, str] | None = None) -> dict[str, str]:
    """Copy this process's environment for a server, without settings of Hutch in it."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("HUTCH_")}
    paths = [str(REPOSITORY), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    # A crash of compiled code then says where it was; nothing else changes.
    environment["PYTHONFAULTHANDLER"] = "1"
    return environment | (extra or {})


def run_serve(
    data_dir: Path, *arguments: str, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `hutch serve` where it is expected to end by itself; returns code and output.

    Raises:
        subprocess.TimeoutExpired: It went on running for `START_SECONDS`; it is ended then.
    """
    return subprocess.run(
        serve_command(data_dir, *arguments),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=START_SECONDS,
        env=server_environment(environment),
        check=False,
    )


def _endpoint_of(ready_line: str) -> Endpoint:
    match = _STREAM_ADDRESS.search(ready_line) or _ANY_ADDRESS.search(ready_line)
    assert match is not None, f"no address in the ready line: {ready_line!r}"
    return Endpoint(match[1], int(match[2]))


_running: weakref.WeakSet[HutchServer] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for server in list(_running):
        server.close()
