"""Steps of the rows of Pravega's wire protocol: each on a server of its own, begun anew."""

import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from compat.bench.connection import Address
from compat.bench.errors import BenchError
from compat.bench.generator import perform
from compat.bench.jobs import Figures, Job, Work
from compat.bench.scale import Scale
from compat.bench.servers import HUTCH_DISK, PRAVEGA, WIRE_SERVERS, Server
from compat.bench.steps import Results, Step
from compat.clients.programs import Unavailable
from compat.pravega.servers import NotReady, Served, hutch, pravega

HEAP: Final = "-Xmx1500m"
KIB: Final = 1 << 10
WINDOW: Final = 2_000
# Pravega stops reading a connection with 128 MiB under way.
WINDOW_BYTES: Final = 16 << 20


@contextmanager
def fresh_store(server: Server) -> Iterator[Served]:
    """Give a new server of the kind of `server`.

    Raises:
        BenchError: There is no way to one here, or it does not start.
    """
    parent = None if server.data_folder is None else server.data_folder.parent
    with tempfile.TemporaryDirectory(prefix="wire-", dir=parent) as name:
        folder = Path(name)
        if server.name == PRAVEGA:
            started = pravega(folder, heap=HEAP)
        else:
            started = hutch(folder, durability="disk" if server.name == HUTCH_DISK else "os")
        try:
            with started as served:
                yield served
        except (Unavailable, NotReady) as error:
            raise BenchError(str(error)) from error


def _measure(server: Server, scale: Scale, work: Work, body_bytes: int, count: int) -> Figures:
    with fresh_store(server) as served:
        job = Job(
            work=work,
            address=Address(*served.address),
            pids=(served.pid,),
            body_bytes=body_bytes,
            message_count=count,
            warmup_count=scale.wire_warmup,
            window=min(WINDOW, WINDOW_BYTES // body_bytes),
        )
        return perform(job)


def appends(server: Server, scale: Scale, wanted: Collection[str]) -> Results:
    """Append events of each size."""
    return {
        row: _measure(server, scale, "wire_append", body_bytes, count)
        for body_bytes, count in scale.wire_appends.items()
        if (row := f"wire_append_{body_bytes}") in wanted
    }


def latency(server: Server, scale: Scale, _wanted: Collection[str]) -> Results:
    """Append events one at a time."""
    return {"wire_latency": _measure(server, scale, "wire_latency", KIB, scale.latency_messages)}


def beside(server: Server, scale: Scale, _wanted: Collection[str]) -> Results:
    """Append events one at a time beside clients that break the protocol."""
    return {"wire_beside": _measure(server, scale, "wire_beside", KIB, scale.latency_messages)}


def tail(server: Server, scale: Scale, _wanted: Collection[str]) -> Results:
    """Append events for a reader that waits."""
    return {"wire_tail": _measure(server, scale, "wire_tail", KIB, scale.latency_messages)}


def read(server: Server, scale: Scale, _wanted: Collection[str]) -> Results:
    """Read a segment."""
    count = scale.wire_appends[64 * KIB]
    return {"wire_read": _measure(server, scale, "wire_read", KIB, count)}


WIRE_STEPS: Final = (
    Step(("wire_append_1024",), appends, servers=WIRE_SERVERS),
    Step(("wire_append_100",), appends, servers=WIRE_SERVERS),
    Step(("wire_append_65536",), appends, servers=WIRE_SERVERS),
    Step(("wire_latency",), latency, servers=WIRE_SERVERS),
    Step(("wire_beside",), beside, servers=WIRE_SERVERS - {PRAVEGA}),
    Step(("wire_tail",), tail, servers=WIRE_SERVERS),
    Step(("wire_read",), read, servers=WIRE_SERVERS),
)
