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
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile
from types import TracebackType
from typing import IO, Final, NamedTuple, Self

from tests.integration.garbage import beside as garbage_beside
from tests.integration.preloaded import CAN_FORK, Forked, Preloaded
from tests.integration.turns import make as make_turns
from tests.waiting import HANG_S

REPOSITORY: Final = Path(__file__).resolve().parents[2]

# How much of a log a failed test shows: its end.
LOG_CHARACTERS: Final = 6_000

# The ports that are opened where they are not asked for, and the flag that opens one.
_PORTS: Final = {"--port": None, "--management-port": None, "--tls-port": "--tls-cert"}
_STORE_PORTS: Final = {"--port": None}

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
        is_awaited: Each start waits until it serves; else `wait_until_ready` does.
    """

    def __init__(
        self,
        data_dir: Path,
        *arguments: str,
        environment: dict[str, str] | None = None,
        enter: Sequence[str] = (),
        is_typed: bool = False,
        is_awaited: bool = True,
    ) -> None:
        self.data_dir = data_dir
        self.arguments = arguments
        self.environment = environment or {}
        self.enter = enter
        self.is_typed = is_typed
        self.is_awaited = is_awaited
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

    @property
    def turns_path(self) -> Path:
        """The file that shows the turns of its loop; see `turns.py`."""
        return self._output_path("turns")

    @property
    def garbage_path(self) -> Path:
        """The file that shows what only the collector frees; see `garbage.py`."""
        return garbage_beside(self.turns_path)

    def wait_for_log(self, words: str, within_s: float = HANG_S) -> None:
        """Wait until the log says something. Raises AssertionError if it does not."""
        deadline = time.monotonic() + within_s
        while words not in self.logs:
            assert time.monotonic() < deadline, self.logs
            time.sleep(0.01)

    def start(self) -> None:
        """Start the process and wait until it is ready to serve.

        Raises:
            ServerDidNotStart: It ended first, or was not ready within `HANG_S`.
        """
        assert not self.is_running
        deadline = time.monotonic() + HANG_S
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
        self.process.wait(HANG_S)

    def terminate(self) -> None:
        """Ask the process to stop (SIGTERM) and check that it does so with exit code 0.

        A stop gives up each step after its time (`gateway.serving.process`), and then ends with 1.
        """
        self.process.send_signal(signal.SIGTERM)
        try:
            exit_code = self.process.wait(HANG_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(
                f"still running {HANG_S} s after SIGTERM:\n{self.stderr[-LOG_CHARACTERS:]}"
            ) from None
        assert exit_code == 0, (
            f"exit code {exit_code} after SIGTERM:\n{self.stderr[-LOG_CHARACTERS:]}"
        )

    def close(self) -> None:
        """End the process if it still runs; for clean-up, checks nothing."""
        if self._process is None:
            return
        if "COVERAGE_FILE" in os.environ and self.is_running:  # a killed one tells no lines
            self.process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(HANG_S)
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
        if self.is_awaited:
            self.wait_until_ready(deadline)

    def wait_until_ready(self, deadline: float | None = None) -> None:
        """Wait until the process serves. Raises ServerDidNotStart."""
        if deadline is None:
            deadline = time.monotonic() + HANG_S
        while (match := _READY.search(self.stdout)) is None:
            exit_code = self.process.poll()
            if exit_code is not None or time.monotonic() > deadline:
                self.close()
                raise ServerDidNotStart(exit_code, self.stdout + self.stderr)
            time.sleep(0.005)
        self.ready_line = match[0]
        self.endpoint = _endpoint_of(self.ready_line)

    def _run(self, stdout: IO[bytes], stderr: IO[bytes]) -> subprocess.Popen[bytes] | Forked:
        """Run the server in a process of its own."""
        command = [*self.enter, *self._command()]
        is_typed = self.is_typed or bool(self.enter)
        make_turns(self.turns_path)
        return _started(
            command, self.environment, stdout, stderr, is_typed=is_typed, turns=self.turns_path
        )

    def _command(self) -> list[str]:
        return serve_command(self.data_dir, "--port", str(self.port), *self.arguments)

    def _output_path(self, kind: str, start: int | None = None) -> Path:
        self.data_dir.parent.mkdir(parents=True, exist_ok=True)
        number = self._starts if start is None else start
        return self.data_dir.parent / f"{self.data_dir.name}.{number}.{kind}"


@cache
def _preloaded() -> Preloaded:
    return Preloaded(server_environment())


def _started(
    command: Sequence[str],
    variables: dict[str, str],
    stdout: IO[bytes],
    stderr: IO[bytes],
    *,
    is_typed: bool,
    turns: Path | None = None,
) -> subprocess.Popen[bytes] | Forked:
    """Start `hutch` as users do, or in a fork of a process that has loaded it."""
    environment = server_environment(variables)
    # Python itself reads its variables once, when it starts; a path can still be added later.
    is_for_python = any(
        name != "PYTHONPATH" and not name.upper().startswith("HUTCH_") for name in variables
    )
    if CAN_FORK and not (is_for_python or is_typed):
        return _preloaded().start(command[3:], environment, stdout, stderr, turns)
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, env=environment
    )


class StoreProcess(HutchServer):
    """The same for `hutch store serve`."""

    def _command(self) -> list[str]:
        return store_command(self.data_dir, "--port", str(self.port), *self.arguments)


def store_command(data_dir: Path, *arguments: str) -> list[str]:
    """Build the command line of a store's own server on that data directory."""
    return _command(("store", "serve"), data_dir, _STORE_PORTS, arguments)


def serve_command(data_dir: Path, *arguments: str) -> list[str]:
    """Build the command line of a server on that data directory."""
    return _command(("serve",), data_dir, _PORTS, arguments)


def _command(
    words: Sequence[str],
    data_dir: Path,
    ports: Mapping[str, str | None],
    arguments: Sequence[str],
) -> list[str]:
    """Let the system pick each port that is not named: the usual one may be another server's."""
    named = {argument.partition("=")[0] for argument in arguments}
    opened = (port for port, flag in ports.items() if flag is None or flag in named)
    picked = [word for port in opened if port not in named for word in (port, "0")]
    start = [sys.executable, "-m", "gateway", *words]
    return [*start, "--data", str(data_dir), *picked, *arguments]


def server_environment(extra: dict[str, str] | None = None) -> dict[str, str]:
    """Copy this process's environment for a server, without settings of Hutch in it."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("HUTCH_")}
    paths = [str(REPOSITORY), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    # A crash of compiled code then says where it was; nothing else changes.
    environment["PYTHONFAULTHANDLER"] = "1"
    return environment | (extra or {})


def run_serve(
    data_dir: Path,
    *arguments: str,
    environment: dict[str, str] | None = None,
    is_typed: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run `hutch serve` where it is expected to end by itself; returns code and output.

    Raises:
        subprocess.TimeoutExpired: It went on running for `HANG_S`; it is ended then.
    """
    command = serve_command(data_dir, *arguments)
    return _as_text(run_to_its_end(command, environment, is_typed=is_typed))


def run_store(
    data_dir: Path,
    *arguments: str,
    environment: dict[str, str] | None = None,
    is_typed: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run `hutch store serve` where it is expected to end by itself; see `run_serve`."""
    command = store_command(data_dir, *arguments)
    return _as_text(run_to_its_end(command, environment, is_typed=is_typed))


def run_to_its_end(
    command: Sequence[str],
    environment: dict[str, str] | None = None,
    *,
    is_typed: bool = False,
    within_s: float = HANG_S,
) -> subprocess.CompletedProcess[bytes]:
    """Run a command of `hutch` that is expected to end by itself; see `run_serve`."""
    with TemporaryFile() as stdout, TemporaryFile() as stderr:
        process = _started(command, environment or {}, stdout, stderr, is_typed=is_typed)
        try:
            code = process.wait(within_s)
        finally:
            process.kill()
            process.wait(HANG_S)
        for file in (stdout, stderr):
            file.seek(0)
        return subprocess.CompletedProcess(command, code, stdout.read(), stderr.read())


def _as_text(done: subprocess.CompletedProcess[bytes]) -> subprocess.CompletedProcess[str]:
    said = (done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))
    return subprocess.CompletedProcess(done.args, done.returncode, *said)


def _endpoint_of(ready_line: str) -> Endpoint:
    match = _STREAM_ADDRESS.search(ready_line) or _ANY_ADDRESS.search(ready_line)
    assert match is not None, f"no address in the ready line: {ready_line!r}"
    return Endpoint(match[1], int(match[2]))


_running: weakref.WeakSet[HutchServer] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for server in list(_running):
        server.close()
