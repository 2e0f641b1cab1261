"""Steps of the rows of Pravega's wire protocol: each on a server of its own, begun anew."""

import sys
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from compat.bench.acknowledging import READY
from compat.bench.connection import Address
from compat.bench.errors import BenchError
from compat.bench.generator import perform
from compat.bench.jobs import Job, Work
from compat.bench.scale import Scale
from compat.bench.servers import (
    ACKNOWLEDGING,
    HUTCH_DISK,
    PRAVEGA,
    WIRE_SERVERS,
    Server,
    ServerName,
)
from compat.bench.steps import Results, Step
from compat.broker.ports import free_ports
from compat.clients.programs import Unavailable
from compat.pravega.servers import NotReady, Served, hutch, pravega, running

HEAP: Final = "-Xmx1500m"
KIB: Final = 1 << 10
WINDOW: Final = 2_000
# Pravega stops reading a connection with 128 MiB under way.
WINDOW_BYTES: Final = 16 << 20


@contextmanager
def fresh_store(server: Server) -> Iterator[Served]:
    """Yield a new server of the kind of `server`.

    Raises:
        BenchError: There is no way to one here, or it does not start.
    """
    parent = None if server.data_folder is None else server.data_folder.parent
    with tempfile.TemporaryDirectory(prefix="wire-", dir=parent) as name:
        folder = Path(name)
        if server.name == PRAVEGA:
            started = pravega(folder, heap=HEAP)
        elif server.name == ACKNOWLEDGING:
            started = acknowledging(folder)
        else:
            started = hutch(folder, durability="disk" if server.name == HUTCH_DISK else "os")
        try:
            with started as served:
                yield served
        except (Unavailable, NotReady) as error:
            raise BenchError(str(error)) from error


@contextmanager
def acknowledging(folder: Path) -> Iterator[Served]:
    """Yield a server that acknowledges and stores nothing, beside a controller of Hutch.

    Raises:
        NotReady: It does not start.
    """
    (port,) = free_ports(1)
    command = (sys.executable, "-m", "compat.bench.acknowledging", str(port))
    with (
        running(command, folder / "acknowledging.log", lambda said: READY in said) as pid,
        hutch(folder, advertised=f"127.0.0.1:{port}") as served,
    ):
        yield served._replace(address=("127.0.0.1", port), pid=pid)


def measured(server: Server, scale: Scale, wanted: Collection[str]) -> Results:
    """Append, read and wait, row after row, on one server."""
    rows = {row for row in wanted if row in _ROWS_OF.get(server.name, _WORKS)}
    if not rows:
        return {}  # some take a while to start
    results = {}
    with fresh_store(server) as served:
        for row, (work, body_bytes) in _WORKS.items():
            if row not in rows:
                continue
            job = Job(
                work=work,
                address=Address(*(served.controller if row in _BY_JAVA else served.address)),
                pids=(served.pid,),
                stream=row,
                body_bytes=body_bytes,
                message_count=_count(scale, work, body_bytes),
                warmup_count=_warmup(scale, work),
                window=min(WINDOW, WINDOW_BYTES // body_bytes),
            )
            results[row] = perform(job)
    return results


def _count(scale: Scale, work: Work, body_bytes: int) -> int:
    if work in {"wire_append", "java_write", "java_read"}:
        return scale.wire_appends[body_bytes]
    return scale.wire_appends[64 * KIB] if work == "wire_read" else scale.latency_messages


def _warmup(scale: Scale, work: Work) -> int:
    return scale.latency_messages if work == "java_latency" else scale.wire_warmup


BESIDE: Final = "wire_beside"
# By row: what is done, with events of how many bytes.
_WORKS: Final[dict[str, tuple[Work, int]]] = {
    "wire_append_1024": ("wire_append", KIB),
    "wire_append_100": ("wire_append", 100),
    "wire_append_65536": ("wire_append", 64 * KIB),
    "wire_latency": ("wire_latency", KIB),
    "wire_tail": ("wire_tail", KIB),
    "wire_read": ("wire_read", KIB),
    "java_write": ("java_write", KIB),
    "java_latency": ("java_latency", KIB),
    "java_read": ("java_read", KIB),
    # Clients that break the protocol come last, where other rows follow on the same server.
    BESIDE: ("wire_beside", KIB),
}
_BY_JAVA: Final = frozenset(row for row in _WORKS if row.startswith("java_"))
"""These begin at the controller."""
_ROWS_OF: Final[dict[ServerName, frozenset[str]]] = {
    PRAVEGA: frozenset(_WORKS) - {BESIDE},
    ACKNOWLEDGING: _BY_JAVA | {"wire_read"},  # where the client may be what a row waits for
}
"""The rows of servers that do not have all."""
WIRE_STEPS: Final = (Step(tuple(_WORKS), measured, servers=WIRE_SERVERS, begins_anew=True),)
