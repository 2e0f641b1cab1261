"""Steps of the rows of a cluster: each on a cluster, or a plain server, begun anew."""

import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from compat.bench.cluster import ACTIVE, FOLLOWER, HUTCH, Cluster, Place, serving
from compat.bench.generator import perform
from compat.bench.hutch import Hutch
from compat.bench.jobs import Figures, Job
from compat.bench.ordinary_steps import streams_job
from compat.bench.quiet import await_quiet
from compat.bench.row import KIB, MIB
from compat.bench.scale import Scale
from compat.bench.servers import CLUSTER, CLUSTER_SERVERS, HUTCH_DISK, NATS, Server, ServerName
from compat.bench.steps import (
    LARGE_CREDIT,
    STREAM,
    WARMUP_PART,
    Results,
    Step,
    drain_job,
    fill,
    ingest_job,
)
from compat.bench.usage import cpu_seconds, tree_of

PER_FRAME: Final = 100
# Bytes that the peer has unacknowledged: Hutch cuts what it logs at 4 MiB.
NATS_WINDOW: Final = 16
CONSUMERS: Final = 10
# By the number they are called after, and messages per frame.
STREAMS: Final = (1_000, 1)
SENDING_TWICE: Final = "compat.bench.sending_twice"
# Between two parts of what is written beside a follower its place is looked at.
PARTS: Final = 8
PARTS_MAX: Final = 4 * PARTS
# Members say once a second how far they are, and look as often.
LEVEL_S: Final = 2.0

# A measurement of a server that was begun anew, for the lane of a name.
Work = Callable[[Hutch, Scale], Figures]


@contextmanager
def fresh(server: Server, module: str = HUTCH) -> Iterator[Hutch]:
    """Yield a plain server where that is to be measured, else a cluster. Raises BenchError.

    `module` is what is run as `hutch`.
    """
    parent = None if server.data_folder is None else server.data_folder.parent
    with tempfile.TemporaryDirectory(prefix="cluster-", dir=parent) as name:
        folder = Path(name)
        is_plain = server.name == HUTCH_DISK
        begun = Hutch(serving(module), folder, "disk") if is_plain else Cluster(folder, module)
        try:
            begun.start()
            yield begun
        finally:
            begun.stop()


def measured(server: Server, scale: Scale, wanted: Collection[str]) -> Results:
    """Measure row after row on one server."""
    works = {row: work for row, work in works_of(server.name).items() if row in wanted}
    if not works:
        return {}  # a cluster takes a while to start
    with fresh(server) as begun:
        return {row: work(begun, scale) for row, work in works.items()}


def streams(server: Server, scale: Scale, _wanted: Collection[str]) -> Results:
    """Write many streams at once; in a cluster once more, where small appends are sent twice."""
    with fresh(server) as begun:
        figures = perform(streams_job(begun, scale, *STREAMS))
    if server.name == CLUSTER:
        with fresh(server, SENDING_TWICE) as begun:
            figures["saved"] = (
                figures["rate"] / perform(streams_job(begun, scale, *STREAMS))["rate"]
            )
    return {"cluster_streams": figures}


def works_of(lane: ServerName) -> Mapping[str, Work]:
    """Return by row what is measured in a lane; what stops a member comes last."""
    if lane == NATS:
        return {"cluster_ingest": _nats_publish, "cluster_latency": _nats_latency}
    works: dict[str, Work] = {
        "cluster_ingest": _ingest,
        "cluster_latency": _latency,
        "cluster_drain": _drain,
        "cluster_fanout": _fanout,
    }
    return works | ({"cluster_catch_up": _catch_up} if lane == CLUSTER else {})


def _ingest(server: Hutch, scale: Scale) -> Figures:
    job = ingest_job(server, KIB, PER_FRAME, scale.ingest_messages[KIB, PER_FRAME])
    return in_bytes(perform(job), KIB)


def _nats_publish(server: Hutch, scale: Scale) -> Figures:
    count = max(1, scale.ingest_messages[KIB, PER_FRAME] * KIB // MIB)
    job = _nats_job(server, MIB, count, warmup_count=max(1, count // WARMUP_PART))
    return in_bytes(perform(replace(job, work="nats_publish", window=NATS_WINDOW)), MIB)


def in_bytes(figures: Figures, message_bytes: int) -> Figures:
    """Return figures of messages of one size with the rate in bytes, and the CPU of a MiB."""
    found = figures | {"rate": figures["rate"] * message_bytes}
    if "cpu" in figures:
        found["cpu"] = figures["cpu"] / 1e6 * MIB / message_bytes
    return found


def _latency(server: Hutch, scale: Scale) -> Figures:
    count = scale.latency_messages
    return perform(
        Job(
            work="confirm_latency",
            address=server.address,
            pids=server.pids,
            stream=STREAM,
            body_bytes=KIB,
            message_count=count,
            warmup_count=count // 10,
        )
    )


def _nats_latency(server: Hutch, scale: Scale) -> Figures:
    count = scale.latency_messages
    return perform(replace(_nats_job(server, KIB, count, count // 10), work="nats_latency"))


def _nats_job(server: Hutch, body_bytes: int, count: int, warmup_count: int) -> Job:
    assert isinstance(server, Cluster)
    return Job(
        work="nats_publish",
        address=server.log_address,
        pids=server.pids,
        stream=STREAM,
        body_bytes=body_bytes,
        message_count=count,
        warmup_count=warmup_count,
    )


def _drain(server: Hutch, scale: Scale) -> Figures:
    count = fill(server, scale.drain_messages)
    _settle(server, scale)
    job = drain_job(server, count, credit=LARGE_CREDIT)
    figures = perform(replace(job, repeats=scale.drain_repeats))
    perform(replace(job, check_all=True))
    perform(Job(work="delete", address=server.address, stream=STREAM))
    return figures


def _fanout(server: Hutch, scale: Scale) -> Figures:
    count = fill(server, scale.fanout_messages[CONSUMERS])
    _settle(server, scale)
    job = drain_job(server, count, credit=LARGE_CREDIT, repeats=scale.drain_repeats)
    figures = perform(replace(job, work="fanout_stored", connection_count=CONSUMERS))
    perform(Job(work="delete", address=server.address, stream=STREAM))
    return figures


def _settle(server: Hutch, scale: Scale) -> None:
    """Wait until the other member has what was stored, and no process is busy."""
    if isinstance(server, Cluster):
        server.settle()
    if not scale.is_quick:
        await_quiet([server])


def _catch_up(server: Hutch, scale: Scale) -> Figures:
    assert isinstance(server, Cluster)
    server.settle()
    begin = server.places()[FOLLOWER].number
    server.follower.end()
    stored = _write(server, scale.catch_up_bytes, "backlog")
    server.follower.start()
    pids = tree_of(server.active_pids), tree_of(server.follower.pids)
    began, before = time.monotonic(), [*map(cpu_seconds, pids)]
    written, reached = _write_until_level(server, scale.catch_up_bytes // PARTS, begin)
    took_s = time.monotonic() - began
    used = [cpu_seconds(each) - was for each, was in zip(pids, before, strict=True)]
    server.settle()
    # All messages of the log are of the same kind, so that numbers stand for bytes.
    numbers = server.places()[ACTIVE].number - begin
    applied = (stored + written) * (reached - begin) / numbers
    return catch_up_figures(
        written=written,
        applied=applied,
        behind=stored + written - applied,
        took_s=took_s,
        cpu_s=(used[0], used[1]),
    )


def _write_until_level(server: Cluster, part_bytes: int, begin: int) -> tuple[int, int]:
    """Store part after part, until the follower has what the active member has, or there are many.

    Returns:
        Bytes that were stored, and the number that the follower has reached.
    """
    written = parts = 0
    while True:
        written += _write(server, part_bytes, f"part-{parts}")
        parts += 1
        place = server.places()[FOLLOWER]
        if is_level(place, begin) or parts == PARTS_MAX:
            return written, place.number


def _write(server: Cluster, byte_count: int, stream: str) -> int:
    """Store messages at full speed in a stream of their own; return their bytes."""
    job = ingest_job(server, KIB, PER_FRAME, byte_count // KIB)
    written = perform(replace(job, stream=f"{STREAM}-{stream}", warmup_count=0, keep=True))
    return int(written["stored"]) * KIB


def is_level(follower: Place, begin: int) -> bool:
    """Return whether a follower has what the active member had a moment ago.

    Args:
        follower: Its place. As long as it is the one of its last life nothing is known of this one.
        begin: Its number when it was stopped.
    """
    return follower.number > begin and follower.lag_s <= LEVEL_S


def catch_up_figures(
    *, written: float, applied: float, behind: float, took_s: float, cpu_s: tuple[float, float]
) -> Figures:
    """Return the figures of a follower beside those of the active member.

    Args:
        written: Bytes that the active member has stored.
        applied: Bytes that the follower has stored meanwhile.
        behind: Bytes that it has not.
        took_s: How long that took.
        cpu_s: What the active member and the follower have used.
    """
    active_s, follower_s = cpu_s
    active_cpu, follower_cpu = active_s / (written / MIB), follower_s / max(applied / MIB, 1e-9)
    return {
        "active": written / took_s,
        "follower": applied / took_s,
        "speed": applied / written,
        "active_cpu": active_cpu,
        "follower_cpu": follower_cpu,
        "cost": follower_cpu / active_cpu,
        "behind": behind,
    }


_ROWS: Final = (
    *("cluster_ingest", "cluster_latency"),
    *("cluster_drain", "cluster_fanout", "cluster_catch_up"),
)
CLUSTER_STEPS: Final = (
    Step(("cluster_streams",), streams, servers=CLUSTER_SERVERS - {NATS}),
    Step(_ROWS, measured, servers=CLUSTER_SERVERS, begins_anew=True),
)
