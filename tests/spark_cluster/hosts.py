"""Hosts that are network namespaces of this machine, joined by a bridge in another one.

Each is held by a process, and nothing has a name in the file system: the kernel removes namespaces,
interfaces and mounts when the processes of the test have ended, however they ended.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeVar

from tests.spark_cluster.sessions import Session

R = TypeVar("R")

_TOOLS: Final = ("ip", "mount", "nsenter", "setpriv", "unshare")
_UNSHARE: Final = ("unshare", "--net", "--mount")
_COMMAND_SECONDS: Final = 20.0
_CLONE_NEWNET: Final = 0x40000000
_READY: Final = "the host is ready"


@dataclass(frozen=True)
class Host:
    """A place to run processes.

    Attributes:
        address: By which the others reach it.
        holder: A process that is there; 0: this machine as it is.
    """

    address: str
    holder: int = 0

    @property
    def enter(self) -> tuple[str, ...]:
        """The beginning of a command that is to run there."""
        return ("nsenter", f"--target={self.holder}", "--net", "--mount") if self.holder else ()

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end there."""
        return subprocess.run(
            [*self.enter, *command],
            capture_output=True,
            text=True,
            timeout=_COMMAND_SECONDS,
            check=False,
        )

    def must(self, *command: str) -> None:
        """Run a command that ends well."""
        done = self.run(*command)
        assert done.returncode == 0, (command, done.stderr)

    def call(self, work: Callable[[], R]) -> R:
        """Do something in a thread whose sockets are in the host's network."""
        if not self.holder:
            return work()

        def entered() -> R:
            libc = ctypes.CDLL(None, use_errno=True)
            with Path(f"/proc/{self.holder}/ns/net").open("rb") as namespace:
                if libc.setns(namespace.fileno(), _CLONE_NEWNET):
                    raise OSError(ctypes.get_errno(), "setns")
            return work()

        with ThreadPoolExecutor(1) as pool:
            return pool.submit(entered).result()


LOCAL: Final = Host("127.0.0.1")


def why_no_network() -> str:
    """Return why there can be no hosts here; empty if there can."""
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing:
        return f"{' and '.join(missing)} not installed (Debian: iproute2, mount, util-linux)"
    if os.geteuid():
        return "networks of their own need root"
    return LOCAL.run(*_UNSHARE, "true").stderr.strip()


class Network:
    """Hosts on one bridge, without a way to anywhere else; they end with the block.

    Args:
        folder: For the output of the processes that hold them.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stack = ExitStack()
        self._count = 0
        self._switch = self._hold(())
        self._switch.must("ip", "link", "add", "bridge", "type", "bridge")
        self._switch.must("ip", "link", "set", "bridge", "up")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def host(self, *hidden: Path) -> Host:
        """Add a host, on which these folders are empty."""
        host = self._hold(hidden)
        port = f"port-{self._count}"
        pair = ("type", "veth", "peer", "name", "eth0", "netns", str(host.holder))
        self._switch.must("ip", "link", "add", port, *pair)
        self._switch.must("ip", "link", "set", port, "master", "bridge", "up")
        host.must("ip", "address", "add", f"{host.address}/24", "dev", "eth0")
        host.must("ip", "link", "set", "eth0", "up")
        return host

    def _hold(self, hidden: Sequence[Path]) -> Host:
        self._count += 1
        hiding = [f"mount -t tmpfs none '{path}'" for path in hidden]
        steps = ["ip link set lo up", *hiding, f"echo '{_READY}'", "exec sleep infinity"]
        holding = (*_UNSHARE, "sh", "-c", " && ".join(steps))
        output = self._folder / f"host-{self._count}.log"
        session = self._stack.enter_context(Session(holding, output, self._folder, os.environ))
        session.wait_for(_READY, _COMMAND_SECONDS)
        return Host(f"10.0.0.{self._count}", session.process.pid)
