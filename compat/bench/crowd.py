"""The works with many of a kind: idle connections, streams and partitions written at once."""

import itertools
import resource
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Final

from compat.bench.connection import Connection
from compat.bench.errors import CheckFailed
from compat.bench.frames import HEARTBEAT, PublishBlock, frame
from compat.bench.jobs import Figures, Job
from compat.bench.pump import Pump, run
from compat.bench.stopwatch import Stopwatch
from compat.bench.usage import cpu_seconds, memory_of, tree_of

# Long enough for a server to collect what the handshakes left behind.
SETTLE_S: Final = 3.0
# Descriptors beyond the connections: pipes, the poller, and some to spare.
DESCRIPTORS_BESIDES: Final = 100
# Opening one takes RabbitMQ a tenth of a second, most of which it waits.
OPENED_AT_ONCE: Final = 32
OPENING_S: Final = 60.0
HEARTBEAT_S: Final = 60
# Frames in a block that goes to several partitions: about 1 MiB of small messages.
BLOCK_FRAMES: Final = 90


def idle_connections(job: Job) -> Figures:
    """Open many connections and read by how much the server's memory grew.

    Returns:
        `rss` and `pss`, the growth in bytes; `pss_each`, the growth for one connection.
        Socket buffers belong to the kernel and are not counted.
    """
    allow_descriptors(job.connection_count)
    pids = tree_of(job.pids)
    with ExitStack() as stack:
        # The first connection brings code and buffers into memory that all share.
        stack.enter_context(Connection(job.address))
        settle(job)
        before = memory_of(pids)
        for _ in range(job.connection_count):
            stack.enter_context(Connection(job.address))
        settle(job)
        after = memory_of(pids)
    grown = float(after.pss - before.pss)
    return {
        "rss": float(after.rss - before.rss),
        "pss": grown,
        "pss_each": grown / job.connection_count,
    }


def idle_cpu(job: Job) -> Figures:
    """Measure the CPU of a server that holds streams and connections of which nothing is asked.

    Opening ends after a minute, with as many connections as there are by then.

    Returns:
        `connections`, how many there were; `quiet` and `heartbeats`, the parts of a core that the
        server used without heartbeats, and with heartbeats in both directions.
    """
    allow_descriptors(job.connection_count)
    names = [f"{job.stream}-{index}" for index in range(job.stream_count)]
    figures = {}
    with Connection(job.address) as admin:
        for name in names:
            admin.delete_if_there(name)
            admin.create(name)
        for key, heartbeat_s in (("quiet", 0), ("heartbeats", HEARTBEAT_S)):
            with ExitStack() as stack:
                connections = open_connections(job, stack, heartbeat_s=heartbeat_s)
                figures[key] = _idle_share(job, connections, heartbeat_s)
                figures["connections"] = float(len(connections))
        for name in names:
            admin.delete(name)
    return figures


def _idle_share(job: Job, connections: Sequence[Connection], heartbeat_s: int) -> float:
    """Return the part of a core that the server uses in `seconds`, after a short while."""
    pids = tree_of(job.pids)
    senders = itertools.cycle(connections)
    used_s, began = 0.0, 0.0
    for length_s in (min(SETTLE_S, job.seconds), job.seconds):
        used_s, began = cpu_seconds(pids), time.perf_counter()
        if not heartbeat_s:
            time.sleep(length_s)
        while time.perf_counter() < began + length_s:
            next(senders).socket.sendall(frame(HEARTBEAT, b""))
            time.sleep(min(length_s, heartbeat_s / len(connections)))
    return (cpu_seconds(pids) - used_s) / (time.perf_counter() - began)


def settle(job: Job) -> None:
    """Leave a server alone for as long as it needs, or as the job watches it."""
    time.sleep(min(SETTLE_S, job.seconds))


def open_connections(job: Job, stack: ExitStack, *, heartbeat_s: int = 0) -> list[Connection]:
    """Open connections, which `stack` closes; return those that there are after a minute."""
    deadline = time.monotonic() + OPENING_S

    def open_one(_number: int) -> Connection | None:
        if time.monotonic() >= deadline:
            return None
        return Connection(job.address, heartbeat_s=heartbeat_s)

    with ThreadPoolExecutor(OPENED_AT_ONCE) as pool:
        opened = [one for one in pool.map(open_one, range(job.connection_count)) if one is not None]
    for connection in opened:
        stack.enter_context(connection)
    return opened


def many_streams(job: Job) -> Figures:
    """Publish a frame to each of many streams in turn, at full speed.

    The streams are spread over the connections evenly, at most 256 on each, and every
    connection has its own window.

    Raises:
        CheckFailed: A confirm is missing or wrong, or a stream has another length.
    """
    names = [f"{job.stream}-{index}" for index in range(job.stream_count)]
    share = job.stream_count // job.connection_count
    per_frame = job.messages_per_frame
    rounds = -(-job.message_count // (job.stream_count * per_frame))
    warmup_rounds = -(-job.warmup_count // (job.stream_count * per_frame))
    block_count = warmup_rounds + rounds
    with ExitStack() as stack:
        admin = stack.enter_context(Connection(job.address))
        began = time.perf_counter()
        for name in names:
            admin.delete_if_there(name)
            admin.create(name)
        create_s = time.perf_counter() - began
        pumps = []
        for index in range(job.connection_count):
            connection = stack.enter_context(Connection(job.address))
            for publisher_id, name in enumerate(names[index * share : (index + 1) * share]):
                connection.declare_publisher(publisher_id, name)
            block = PublishBlock(
                body_bytes=job.body_bytes, messages_per_frame=per_frame, publisher_ids=range(share)
            )
            pumps.append(Pump(connection, block, block_count=block_count, window=job.window))
        stopwatch = _publish(job, pumps, warmup_rounds=warmup_rounds, rounds=rounds)
        for pump in pumps:
            pump.arena.check(
                block_count=block_count,
                block_messages=share * per_frame,
                slots_of_publisher=per_frame,
            )
        for name in names[: share * job.connection_count]:
            last = admin.stream_stats(name)["committed_offset"]
            if last != block_count * per_frame - 1:
                raise CheckFailed(f"stream {name} ends at offset {last}")
        for name in names:
            admin.delete(name)
    figures = stopwatch.figures(rounds * share * per_frame * job.connection_count)
    return figures | {"create_ms_each": create_s / job.stream_count * 1000}


def super_stream(job: Job) -> Figures:
    """Publish to the partitions of a super stream in turn, over one connection.

    One publisher for each of the `stream_count` partitions; a frame to the first, one to the
    second, and so on.

    Raises:
        CheckFailed: A confirm is missing or wrong, or a partition has another length.
    """
    partitions = [f"{job.stream}-partition-{index}" for index in range(job.stream_count)]
    publisher_ids = range(job.stream_count)
    frames_each = max(1, BLOCK_FRAMES // job.stream_count)
    with Connection(job.address) as admin, Connection(job.address) as connection:
        admin.delete_super_stream(job.stream)
        admin.create_super_stream(job.stream, partitions)
        for publisher_id, name in enumerate(partitions):
            connection.declare_publisher(publisher_id, name)
        block = PublishBlock(
            body_bytes=job.body_bytes,
            messages_per_frame=job.messages_per_frame,
            publisher_ids=publisher_ids,
            frames_each=frames_each,
        )
        rounds = -(-job.message_count // block.message_count)
        warmup_rounds = -(-job.warmup_count // block.message_count)
        block_count = warmup_rounds + rounds
        pump = Pump(connection, block, block_count=block_count, window=job.window)
        stopwatch = _publish(job, [pump], warmup_rounds=warmup_rounds, rounds=rounds)
        pump.arena.check(block_count=block_count, block_messages=block.message_count)
        for name in partitions:
            last = admin.stream_stats(name)["committed_offset"]
            if last != block_count * frames_each * job.messages_per_frame - 1:
                raise CheckFailed(f"partition {name} ends at offset {last}")
        admin.delete_super_stream(job.stream)
    return stopwatch.figures(rounds * block.message_count)


def _publish(job: Job, pumps: list[Pump], *, warmup_rounds: int, rounds: int) -> Stopwatch:
    for pump in pumps:
        pump.begin(warmup_rounds)
    run(pumps)
    for pump in pumps:
        pump.begin(rounds)
    stopwatch = Stopwatch(job.pids)
    with stopwatch:
        run(pumps)
    return stopwatch


def allow_descriptors(connection_count: int) -> None:
    """Let this process open so many connections."""
    count = connection_count + DESCRIPTORS_BESIDES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(count, hard), hard))
