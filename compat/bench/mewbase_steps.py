"""Steps of the rows of mewbase's protocol: each on a server of its own, begun anew."""

import sys
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from compat.bench.connection import Connection
from compat.bench.generator import perform
from compat.bench.hutch import Hutch
from compat.bench.jobs import Figures, Job, Work
from compat.bench.scale import Scale
from compat.bench.servers import HUTCH_DISK, HUTCH_OS, RABBITMQ, STREAM_SERVERS, Server
from compat.bench.steps import Results, Step
from compat.broker.ports import free_ports

EVENT_BYTES: Final = 200
STALLED_EVENT_BYTES: Final = 1024
WINDOW: Final = 2_000


@contextmanager
def fresh_mewbase(server: Server, module: str = "gateway") -> Iterator[tuple[Hutch, int]]:
    """Yield a new server of the kind of `server`, and its port for mewbase.

    `module` is what is run as `hutch`.
    """
    parent = None if server.data_folder is None else server.data_folder.parent.parent
    (port,) = free_ports(1)
    command = [sys.executable, "-m", module, "serve", "--mewbase-port", str(port)]
    with tempfile.TemporaryDirectory(prefix="mewbase-", dir=parent) as name:
        hutch = Hutch(command, Path(name), "disk" if server.name == HUTCH_DISK else "os")
        hutch.start()
        try:
            yield hutch, port
        finally:
            hutch.stop()


def measured(server: Server, scale: Scale, wanted: Collection[str]) -> Results:
    """Publish and deliver, row after row, on one server."""
    with fresh_mewbase(server) as (hutch, port):
        return {row: _perform(hutch, port, scale, row) for row in _WORKS if row in wanted}


def answered(server: Server, scale: Scale, _wanted: Collection[str]) -> Results:
    """Have events answered that are not stored."""
    with fresh_mewbase(server, "compat.bench.mewbase_answers") as (hutch, port):
        return {"mewbase_answered": _perform(hutch, port, scale, "mewbase_publish")}


def _perform(hutch: Hutch, port: int, scale: Scale, work: Work) -> Figures:
    with Connection(hutch.address) as connection:
        connection.create(work)
    is_stalled = work == "mewbase_stalled"
    return perform(
        Job(
            work=work,
            address=hutch.address._replace(port=port),
            pids=hutch.pids,
            stream=work,
            body_bytes=STALLED_EVENT_BYTES if is_stalled else EVENT_BYTES,
            message_count=scale.latency_messages if is_stalled else scale.mewbase_events,
            warmup_count=scale.mewbase_waiting if is_stalled else scale.wire_warmup,
            connection_count=scale.mewbase_stalled,
            window=WINDOW,
        )
    )


_SERVERS: Final = STREAM_SERVERS - {RABBITMQ}
_WORKS: Final[tuple[Work, ...]] = ("mewbase_publish", "mewbase_deliver", "mewbase_stalled")
MEWBASE_STEPS: Final = (
    Step(_WORKS, measured, servers=_SERVERS, begins_anew=True),
    Step(("mewbase_answered",), answered, servers=frozenset({HUTCH_OS})),
)
