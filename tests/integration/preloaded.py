"""Server processes that need not load the server: forks of one process that has loaded it.

Loading takes most of a start, and the tests start hundreds of servers. `python -m gateway` is what
users type, and what the tests of starting and stopping type too; for all others a fork is the same
server: a process of its own that runs `main` with its own arguments, variables and files.
"""

from __future__ import annotations

import atexit
import ctypes
import faulthandler
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import IO, Final, NoReturn

from tests.integration.garbage import Looks
from tests.integration.garbage import beside as garbage_beside
from tests.integration.turns import Ticks
from tests.waiting import HANG_S

LOADED: Final = (
    "gateway.cli",
    "gateway.serving.backend",
    "gateway.serving.store_backend",
    "gateway.settings.page",
    "gateway.settings.sources",
    "uvloop",
)
"""Modules that most commands need, here loaded once."""
CAN_FORK: Final = sys.platform == "linux"
_SUBREAPER: Final = 36
"""PR_SET_CHILD_SUBREAPER: orphans below this process become its own children."""
_REQUEST_BYTES_MAX: Final = 1 << 20
_LOOK_S: Final = 0.002
"""Time between two looks whether a process has ended."""


_watching: Final[list[Ticks | Looks]] = []
"""Watcher of this process, if it has become a server."""


class Forked:
    """A forked server, with the part of `subprocess.Popen` that tests use."""

    def __init__(self, pid: int, args: Sequence[str]) -> None:
        self.pid = pid
        self.args = args
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit code, -N for signal N; None while the process runs."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float) -> int:
        """Wait for the end. Raises subprocess.TimeoutExpired."""
        deadline = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(self.args, timeout)
            time.sleep(_LOOK_S)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)


class Preloaded:
    """The process that has loaded the server, as the process of the tests sees it."""

    def __init__(self, environment: dict[str, str]) -> None:
        # A fork's parent ends at once, and the fork is then a child of this process.
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                env=environment,
                pass_fds=[theirs.fileno()],
                process_group=0,  # Ctrl-C is for the tests, which end what they have started
            )
        atexit.register(self.close)

    def start(
        self,
        arguments: Sequence[str],
        environment: dict[str, str],
        stdout: IO[bytes],
        stderr: IO[bytes],
        turns: Path | None = None,
    ) -> Forked:
        """Start `hutch` with these arguments, all of its variables, and files for its output.

        With a file for `turns` it can be asked how long the turns of its loop are (`turns.py`), and
        what only the collector frees (`garbage.py`).
        """
        watched = None if turns is None else str(turns)
        request = json.dumps([arguments, environment, str(Path.cwd()), watched]).encode()
        socket.send_fds(self._requests, [request], [stdout.fileno(), stderr.fileno()])
        return Forked(int(self._requests.recv(64)), arguments)

    def close(self) -> None:
        """End the process; servers go on."""
        self._requests.close()
        self._process.wait(HANG_S)


def _serve(requests: socket.socket) -> None:
    """Fork a process for each request until there will be none."""
    for name in LOADED:
        import_module(name)
    gc.collect()
    gc.freeze()
    while True:
        request, files, _, _ = socket.recv_fds(requests, _REQUEST_BYTES_MAX, 2)
        if not request:
            return
        told, tell = os.pipe()
        between = os.fork()
        if not between:
            pid = os.fork()
            if not pid:
                os.close(told)
                os.close(tell)
                requests.close()
                _become(*json.loads(request), *files)
            os.write(tell, b"%d" % pid)
            os._exit(0)
        os.waitpid(between, 0)  # from here on the fork is a child of the tests
        requests.send(os.read(told, 64))
        for file in (told, tell, *files):
            os.close(file)


def _become(
    arguments: Sequence[str],
    environment: dict[str, str],
    folder: str,
    turns: str | None,
    out: int,
    err: int,
) -> NoReturn:
    """Run `hutch` in this process, and end it."""
    from gateway.__main__ import main  # noqa: PLC0415

    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    # Where Python has them too: behind the folder of the program, before the libraries.
    paths = environment.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[1:1] = [path for path in paths if path and path not in sys.path]
    for file, number in ((out, 1), (err, 2)):
        os.dup2(file, number)
        os.close(file)
    faulthandler.enable()  # with the new standard error
    if turns is not None:
        _watching.extend((Ticks(Path(turns)), Looks(garbage_beside(Path(turns)))))
    sys.argv = ["hutch", *arguments]
    sys.exit(main())


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as end:
        _serve(end)
