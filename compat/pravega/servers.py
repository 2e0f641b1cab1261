"""The two servers that the cases are played on: a real Pravega 0.13.0, and Hutch."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from compat.broker.ports import free_ports
from compat.clients.programs import Program
from compat.clients.servers import environment
from compat.pravega.connection import Connection, Ended
from compat.pravega.requests import create
from hutch.pravega.codec import encode
from hutch.pravega.error_messages import SegmentAlreadyExists
from hutch.pravega.messages import SegmentCreated

PRAVEGA: Final = Program(
    "Pravega 0.13.0", "pravega-0.13.0", ("java", "mvn"), parent=Path(__file__).parent
)
HEAP: Final = "-Xmx600m"
READY: Final = b"Pravega Sandbox is running locally now"
# A part that fails to start is only logged: the process stays, half dead.
FAILED: Final = (b"exited exceptionally", b"Exception occurred running emulator")
START_S: Final = 120.0
STOP_S: Final = 15.0
POLL_S: Final = 0.2
TRIED: Final = 64
"""Names that are tried; the four parts of Pravega each have some."""
REPOSITORY: Final = Path(__file__).parents[2]

Address = tuple[str, int]


class Served(NamedTuple):
    """A running server: where its store and its controller listen, and its process."""

    address: Address
    pid: int
    controller: Address


class NotReady(Exception):
    """A server did not serve in time; the text ends with what it printed."""


@contextlib.contextmanager
def pravega(folder: Path, *, heap: str = HEAP) -> Iterator[Served]:
    """Yield a real Pravega for the length of the block; the first time it is downloaded.

    Args:
        folder: An existing one, for what it prints. Its data are in memory.
        heap: Java's option.

    Yields:
        Where its segment store and its controller listen, and its process.

    Raises:
        Unavailable: Java or Maven is missing, or nothing could be downloaded.
        NotReady: It does not start.
    """
    command = PRAVEGA.command()
    controller, store, zookeeper = free_ports(3)
    settings = (
        f"-Dsinglenode.controller.rpc.port={controller}",
        f"-Dsinglenode.segmentStore.port={store}",
        f"-Dsinglenode.zk.port={zookeeper}",
    )
    address = "127.0.0.1", store

    def is_ready(said: bytes) -> bool:
        if any(words in said for words in FAILED):
            raise NotReady(tail(said))
        return READY in said and creates(address)

    with running([*command, heap, *settings], folder / "pravega.log", is_ready) as pid:
        yield Served(address, pid, ("127.0.0.1", controller))


@contextlib.contextmanager
def hutch(
    folder: Path, *, durability: str = "os", advertised: str | None = None
) -> Iterator[Served]:
    """Yield a `hutch store serve` for the length of the block.

    Args:
        folder: An existing one, for its data and what it prints.
        durability: When it acknowledges.
        advertised: Where its controller says that the store is; None: where it is.

    Yields:
        Where it listens, for both protocols, and its process.

    Raises:
        NotReady: It does not start.
    """
    port, controller = free_ports(2)
    command = [
        *(sys.executable, "-m", "gateway", "store", "serve"),
        *("--data", str(folder / "data"), "--durability", durability),
        *("--host", "127.0.0.1", "--port", str(port), "--controller-port", str(controller)),
        *(() if advertised is None else ("--advertise", advertised)),
    ]
    with running(command, folder / "hutch.log", lambda said: b"hutch ready" in said) as pid:
        yield Served(("127.0.0.1", port), pid, ("127.0.0.1", controller))


@contextlib.contextmanager
def running(command: Sequence[str], log: Path, is_ready: Callable[[bytes], bool]) -> Iterator[int]:
    """Run a server for the length of the block; give its process.

    Raises:
        NotReady: It ended, or was not ready in time.
    """
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=REPOSITORY,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        deadline = time.monotonic() + START_S
        while not is_ready(said := log.read_bytes()):
            if process.poll() is not None or time.monotonic() > deadline:
                raise NotReady(tail(said))
            time.sleep(POLL_S)
        yield process.pid
    finally:
        stop(process)


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a process."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def creates(address: Address) -> bool:
    """Return whether all parts of a server create segments; it listens before they can."""
    try:
        connection = Connection(address)
    except OSError:
        return False
    with contextlib.closing(connection), contextlib.suppress(Ended):
        # The part is chosen by the name; one that is not there yet says that it is on another host,
        # or ends the connection.
        connection.send(b"".join(encode(create(f"ready/{number}")) for number in range(TRIED)))
        deadline = time.monotonic() + START_S
        answers = [connection.message(deadline) for _ in range(TRIED)]
        return all(isinstance(answer, SegmentCreated | SegmentAlreadyExists) for answer in answers)
    return False


def tail(said: bytes) -> str:
    """Return the end of what a server printed."""
    return said[-1500:].decode(errors="replace")
