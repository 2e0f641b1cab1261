"""Steps of each row on one server: the jobs, in order, that give its figures.

A step gives several rows where they need the same stream. Steps run in the order of
`STEPS`: memory first, while the servers are fresh.
"""

import resource
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Final

from compat.bench.connection import Address
from compat.bench.errors import BenchError
from compat.bench.generator import perform
from compat.bench.jobs import Figures, Job
from compat.bench.scale import Scale
from compat.bench.servers import HUTCH_OS, RABBITMQ, STREAM_SERVERS, Server, ServerName
from compat.bench.usage import memory_of, tree_of

# Unconfirmed messages by messages per frame. RabbitMQ stops reading a connection that has
# 50,000 unconfirmed, and clients default to 10,000; large frames need several on their way.
WINDOWS: Final = {1: 10_000, 100: 40_000, 1000: 100_000}
# A twentieth of a measurement lets a server find its batch size and warm its buffers.
WARMUP_PART: Final = 20
LARGE_CREDIT: Final = 100
SINGLE_CREDIT: Final = 20_000
PARTITIONS: Final = 3
SMALL_BYTES: Final = 100
# TLS costs the generator more than the server, and this part is enough to measure.
TLS_PART: Final = 4
STREAM: Final = "bench"

# Figures by row.
Results = dict[str, Figures]


@dataclass(frozen=True, slots=True)
class Step:
    """Something that is done on each server in turn.

    Attributes:
        rows: The rows that it can give.
        run: Measures the wanted ones of them on a server.
        once: Whether it is done in the first round only, because it needs fresh servers.
        servers: The servers that it can be done on.
        begins_anew: Whether it begins a server of its own, so that each of its rows is measured by
            itself, on each server in turn, unless the run is a quick one.
    """

    rows: tuple[str, ...]
    run: Callable[[Server, Scale, Collection[str]], Results]
    once: bool = False
    servers: frozenset[ServerName] = STREAM_SERVERS
    begins_anew: bool = False

    def parts(self, scale: Scale) -> list[tuple[str, ...]]:
        """Return the rows, those together that are measured at once."""
        if self.begins_anew and not scale.is_quick:
            return [(row,) for row in self.rows]
        return [self.rows]


def idle_memory(server: Server, _scale: Scale, _wanted: Collection[str]) -> Results:
    """Read the memory of an unused server."""
    memory = memory_of(tree_of(server.pids))
    return {"idle_memory": {"rss": float(memory.rss), "pss": float(memory.pss)}}


def idle_connections(server: Server, scale: Scale, _wanted: Collection[str]) -> Results:
    """Open many connections that do nothing."""
    job = Job(
        work="idle_connections",
        address=server.address,
        pids=server.pids,
        connection_count=scale.idle_connections,
        seconds=scale.idle_s,
    )
    return {"idle_connections": perform(job)}


def idle_cpu(server: Server, scale: Scale, _wanted: Collection[str]) -> Results:
    """Watch a server with many connections and streams that do nothing."""
    return {"idle_cpu": perform(replace(_crowd(server, scale), work="idle_cpu"))}


def ingest(server: Server, scale: Scale, wanted: Collection[str]) -> Results:
    """Publish into a new stream for each size and number per frame."""
    results = {}
    for (body_bytes, per_frame), count in scale.ingest_messages.items():
        row = ingest_row(body_bytes, per_frame)
        if row in wanted:
            results[row] = perform(ingest_job(server, body_bytes, per_frame, count))
    return results


def ingest_row(body_bytes: int, messages_per_frame: int) -> str:
    """Return the name of an ingest's row."""
    return f"ingest_{body_bytes}x{messages_per_frame}"


def drain_large(server: Server, scale: Scale, wanted: Collection[str]) -> Results:
    """Write a stream at full speed; read it, also after a restart and from a cold disk."""
    count = fill(server, scale.drain_messages)
    results = {}
    if "drain_large" in wanted:
        results["drain_large"] = perform(
            drain_job(server, count, repeats=scale.drain_repeats, credit=LARGE_CREDIT)
        )
        perform(drain_job(server, count, credit=LARGE_CREDIT, check_all=True))
    # Once each: a second reading would be neither unchecked nor cold.
    if "drain_restarted" in wanted:
        server.restart(evict=False)
        results["drain_restarted"] = perform(drain_job(server, count, credit=LARGE_CREDIT))
    if "drain_cold" in wanted and server.data_folder is not None:
        server.restart(evict=True)
        results["drain_cold"] = perform(drain_job(server, count, credit=LARGE_CREDIT))
    perform(Job(work="delete", address=server.address, stream=STREAM))
    return results


def drain_single(server: Server, scale: Scale, _wanted: Collection[str]) -> Results:
    """Write a stream message by message, and read it."""
    count = scale.single_messages
    perform(Job(work="fill_single", address=server.address, stream=STREAM, message_count=count))
    figures = perform(drain_job(server, count, repeats=scale.drain_repeats, credit=SINGLE_CREDIT))
    perform(drain_job(server, count, credit=SINGLE_CREDIT, check_all=True))
    perform(Job(work="delete", address=server.address, stream=STREAM))
    return {"drain_single": figures}


def latencies(server: Server, scale: Scale, wanted: Collection[str]) -> Results:
    """Play ping-pong with the server."""
    results = {}
    if "confirm_latency" in wanted:
        results["confirm_latency"] = perform(
            Job(
                work="confirm_latency",
                address=server.address,
                pids=server.pids,
                stream=STREAM,
                message_count=scale.latency_messages,
                warmup_count=scale.latency_messages // 10,
            )
        )
    if "delivery_latency" in wanted:
        results["delivery_latency"] = perform(
            Job(
                work="delivery_latency",
                address=server.address,
                pids=server.pids,
                stream=STREAM,
                message_count=scale.latency_messages,
                warmup_count=scale.latency_messages // 10,
            )
        )
    return results


def super_stream(server: Server, scale: Scale, _wanted: Collection[str]) -> Results:
    """Write the partitions of a super stream at once."""
    job = Job(
        work="super_stream",
        address=server.address,
        pids=server.pids,
        stream=STREAM,
        stream_count=PARTITIONS,
        messages_per_frame=100,
        message_count=scale.partitions_messages,
        warmup_count=scale.partitions_messages // WARMUP_PART,
        window=WINDOWS[100],
    )
    return {"super_stream": perform(job)}


def fanout(server: Server, scale: Scale, wanted: Collection[str]) -> Results:
    """Write a stream that many consumers read meanwhile."""
    results = {}
    for consumers, count in scale.fanout_messages.items():
        row = f"fanout_{consumers}"
        if row in wanted:
            results[row] = perform(
                Job(
                    work="fanout",
                    address=server.address,
                    pids=server.pids,
                    stream=STREAM,
                    connection_count=consumers,
                    messages_per_frame=100,
                    message_count=count,
                    window=WINDOWS[100],
                    credit=LARGE_CREDIT,
                )
            )
    return results


def drain_filtered(server: Server, scale: Scale, _wanted: Collection[str]) -> Results:
    """Write a stream of chunks with ten values, and read those with one of them."""
    job = Job(
        work="fill_filtered",
        address=server.address,
        pids=server.pids,
        stream=STREAM,
        messages_per_frame=1000,
        message_count=scale.filtered_messages,
    )
    count = int(perform(job)["stored"])
    job = replace(
        job,
        work="drain_filtered",
        message_count=count,
        repeats=scale.drain_repeats,
        credit=LARGE_CREDIT,
    )
    figures = perform(job)
    perform(Job(work="delete", address=server.address, stream=STREAM))
    return {"drain_filtered": figures}


def management(server: Server, scale: Scale, _wanted: Collection[str]) -> Results:
    """List many connections and streams over HTTP."""
    return {"management": perform(_crowd(server, scale))}


def _crowd(server: Server, scale: Scale) -> Job:
    """Return the job of many connections and streams."""
    _, descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)
    return Job(
        work="management",
        address=server.address,
        pids=server.pids,
        stream=STREAM,
        stream_count=scale.management_streams,
        # Hutch leaves a third of what the system allows to its store.
        connection_count=min(scale.management_connections, descriptors * 3 // 5),
        seconds=scale.idle_s,
        repeats=scale.drain_repeats,
        management_port=server.management_port,
    )


def tls_ingest(server: Server, scale: Scale, wanted: Collection[str]) -> Results:
    """Publish into a new stream over TLS."""
    results = {}
    for per_frame in (1, 100):
        row = f"tls_{ingest_row(SMALL_BYTES, per_frame)}"
        if row in wanted:
            count = scale.ingest_messages[SMALL_BYTES, per_frame] // TLS_PART
            job = ingest_job(server, SMALL_BYTES, per_frame, count)
            results[row] = perform(replace(job, address=tls_address_of(server)))
    return results


def tls_drain(server: Server, scale: Scale, _wanted: Collection[str]) -> Results:
    """Write a stream at full speed without TLS, and read it over TLS."""
    count = fill(server, scale.drain_messages // TLS_PART)
    job = drain_job(server, count, credit=LARGE_CREDIT)
    figures = perform(replace(job, address=tls_address_of(server), repeats=scale.drain_repeats))
    perform(Job(work="delete", address=server.address, stream=STREAM))
    return {"tls_drain": figures}


def records(server: Server, scale: Scale, wanted: Collection[str]) -> Results:
    """Put records into a log and read them, with the durability of a server that is idle."""
    if server.name == RABBITMQ or server.data_folder is None:
        return {}
    figures = perform(
        Job(
            work="records",
            address=server.address,
            message_count=scale.records,
            warmup_count=scale.records // WARMUP_PART,
            repeats=scale.drain_repeats,
            folder=str(server.data_folder.parent),
            durability="os" if server.name == HUTCH_OS else "disk",
        )
    )
    return {row: figures for row in ("records_in", "records_out") if row in wanted}


def tls_address_of(server: Server) -> Address:
    """Return where a server listens for TLS. Raises BenchError."""
    if server.tls_address is None:
        raise BenchError("it is not known where it listens for TLS")
    return server.tls_address


def ingest_job(server: Server, body_bytes: int, messages_per_frame: int, count: int) -> Job:
    """Return the job of an ingest at full speed."""
    return Job(
        work="ingest",
        address=server.address,
        pids=server.pids,
        stream=STREAM,
        body_bytes=body_bytes,
        messages_per_frame=messages_per_frame,
        message_count=count,
        warmup_count=count // WARMUP_PART,
        window=WINDOWS[messages_per_frame],
    )


def fill(server: Server, count: int) -> int:
    """Write a stream at full speed and leave it; return how many messages it has."""
    written = perform(
        Job(
            work="ingest",
            address=server.address,
            stream=STREAM,
            messages_per_frame=100,
            message_count=count,
            window=WINDOWS[100],
            keep=True,
        )
    )
    return int(written["stored"])


def drain_job(
    server: Server, count: int, *, credit: int, repeats: int = 1, check_all: bool = False
) -> Job:
    """Return the job of a drain of a stream that has so many messages."""
    return Job(
        work="drain",
        address=server.address,
        pids=server.pids,
        stream=STREAM,
        message_count=count,
        repeats=repeats,
        credit=credit,
        check_all=check_all,
    )


STEPS: Final = (
    Step(("idle_memory",), idle_memory, once=True),
    Step(("idle_connections",), idle_connections, once=True),
    Step(("idle_cpu",), idle_cpu, once=True),
    Step(("ingest_100x1",), ingest),
    Step(("ingest_100x100",), ingest),
    Step(("ingest_100x1000",), ingest),
    Step(("ingest_1024x100",), ingest),
    Step(("drain_large", "drain_restarted", "drain_cold"), drain_large),
    Step(("drain_single",), drain_single),
    Step(("confirm_latency", "delivery_latency"), latencies),
    Step(("super_stream",), super_stream),
    Step(("fanout_10",), fanout),
    Step(("fanout_100",), fanout),
    Step(("drain_filtered",), drain_filtered),
    Step(("management",), management, once=True),
    Step(("tls_ingest_100x1",), tls_ingest),
    Step(("tls_ingest_100x100",), tls_ingest),
    Step(("tls_drain",), tls_drain),
    Step(("records_in", "records_out"), records),
)
