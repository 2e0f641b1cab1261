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
from compat.bench.jobs import Job, Work
from compat.bench.scale import Scale
from compat.bench.servers import HUTCH_DISK, HUTCH_OS, RABBITMQ, STREAM_SERVERS, Server
from compat.bench.steps import Results, Step
from compat.broker.ports import free_ports

CHANNEL: Final = "bench"
EVENT_BYTES: Final = 200
STALLED_EVENT_BYTES: Final = 1024
WINDOW: Final = 2_000


@contextmanager
def fresh_mewbase(server: Server, module: str = "gateway") -> Iterator[tuple[Hutch, int]]:
    """Give a new server of the kind of `server`, with a channel, and its port for mewbase.

    `module` is what is run as `hutch`.
    """
    parent = None if server.data_folder is None else server.data_folder.parent.parent
    (port,) = free_ports(1)
    command = [sys.executable, "-m", module, "serve", "--mewbase-port", str(port)]
    with tempfile.TemporaryDirectory(prefix="mewbase-", dir=parent) as name:
        hutch = Hutch(command, Path(name), "disk" if server.name == HUTCH_DISK else "os")
        hutch.start()
        try:
            with Connection(hutch.address) as connection:
                connection.create(CHANNEL)
            yield hutch, port
        finally:
            hutch.stop()


def _job(hutch: Hutch, port: int, scale: Scale, work: Work, body_bytes: int) -> Job:
    is_stalled = work == "mewbase_stalled"
    return Job(
        work=work,
        address=hutch.address._replace(port=port),
        pids=hutch.pids,
        stream=CHANNEL,
        body_bytes=body_bytes,
        message_count=scale.latency_messages if is_stalled else scale.mewbase_events,
        warmup_count=scale.mewbase_waiting if is_stalled else scale.wire_warmup,
        connection_count=scale.mewbase_stalled,
        window=WINDOW,
    )


def _measure(server: Server, scale: Scale, work: Work, body_bytes: int) -> Results:
    with fresh_mewbase(server) as (hutch, port):
        return {work: perform(_job(hutch, port, scale, work, body_bytes))}


def publish(server: Server, scale: Scale, _wanted: Collection[str]) -> Results:
    """Publish events."""
    return _measure(server, scale, "mewbase_publish", EVENT_BYTES)


def answered(server: Server, scale: Scale, _wanted: Collection[str]) -> Results:
    """Have events answered that are not stored."""
    with fresh_mewbase(server, "compat.bench.mewbase_answers") as (hutch, port):
        job = _job(hutch, port, scale, "mewbase_publish", EVENT_BYTES)
        return {"mewbase_answered": perform(job)}


def deliver(server: Server, scale: Scale, _wanted: Collection[str]) -> Results:
    """Deliver events."""
    return _measure(server, scale, "mewbase_deliver", EVENT_BYTES)


def stalled(server: Server, scale: Scale, _wanted: Collection[str]) -> Results:
    """Deliver events one at a time beside subscribers that take nothing."""
    return _measure(server, scale, "mewbase_stalled", STALLED_EVENT_BYTES)


_SERVERS: Final = STREAM_SERVERS - {RABBITMQ}
MEWBASE_STEPS: Final = (
    Step(("mewbase_publish",), publish, servers=_SERVERS),
    Step(("mewbase_answered",), answered, servers=frozenset({HUTCH_OS})),
    Step(("mewbase_deliver",), deliver, servers=_SERVERS),
    Step(("mewbase_stalled",), stalled, servers=_SERVERS),
)
