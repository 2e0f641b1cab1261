"""The work "paced": messages sent at times fixed beforehand, confirmed and delivered meanwhile.

Every latency counts from the time at which its message was due, not from when it was sent: a
server, or a generator, that falls behind is not spared what the messages behind it wait. The
generator sleeps between the times, since a core that it kept busy would be taken from the server.
"""

import ctypes
import select
import time
from array import array
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Final

from compat.bench.connection import Connection
from compat.bench.errors import BenchError, CheckFailed
from compat.bench.jobs import Figures, Job
from compat.bench.lane import Lane
from compat.bench.latency import percentiles
from compat.bench.pump import STALL_LIMIT_S
from compat.bench.stopwatch import Stopwatch

SECOND_NS: Final = 1_000_000_000
# From the choice of the times to the first of them.
LEAD_NS: Final = 1_000_000
LONGEST_SLEEP_S: Final = 1.0
# Linux wakes a process up to 50 µs late unless it is told otherwise.
PR_SET_TIMERSLACK: Final = 29
TIMER_SLACK_NS: Final = 1


def paced(job: Job) -> Figures:
    """Publish `messages_per_s` to `stream_count` streams in turn, each with a consumer.

    With twice as many connections as streams, publisher and consumer have one each; with as many,
    they share one.

    Returns:
        `p50`, `p99` and `p999` from the time that a message was due to its delivery; the same
        behind `confirm_` to its confirm, and behind `late_` to its send, which is the generator's
        own share of them. Also what a stopwatch returns, and `records_per_chunk`.

    Raises:
        CheckFailed: A confirm or a record is missing, twice or damaged.
        BenchError: Nothing came for a minute, or a connection was ended.
    """
    _wake_in_time()
    names = [f"{job.stream}-{index}" for index in range(job.stream_count)]
    is_shared = job.connection_count == job.stream_count
    each = -(-job.message_count // job.stream_count)
    warmup_each = -(-job.warmup_count // job.stream_count)
    stopwatch = Stopwatch(job.pids)
    with ExitStack() as stack:
        lanes = []
        for name in names:
            publisher = stack.enter_context(Connection(job.address))
            subscriber = publisher if is_shared else stack.enter_context(Connection(job.address))
            lanes.append(Lane(publisher, subscriber, stream=name, body_bytes=job.body_bytes))
        play(lanes, warmup_each, job.messages_per_s)
        with stopwatch:
            began_ns = play(lanes, each, job.messages_per_s)
        for lane in lanes:
            lane.check()
    _finish(job, names, each + warmup_each)
    chunks = sum(lane.chunks for lane in lanes)
    return (
        stopwatch.figures(each * len(lanes))
        | _latencies(lanes, warmup_each, began_ns, job.messages_per_s)
        | {"records_per_chunk": (each + warmup_each) * len(lanes) / chunks}
    )


def due_ns(began_ns: int, number: int, messages_per_s: int) -> int:
    """Return when message `number` of all is due."""
    return began_ns + number * SECOND_NS // messages_per_s


def play(lanes: Sequence[Lane], each: int, messages_per_s: int) -> int:
    """Send so many messages to each lane, one lane after the other, and await what comes.

    Returns:
        The time at which the first one was due.

    Raises:
        CheckFailed: A chunk is not the one that must come next.
        BenchError: Nothing came for a minute, or a connection was ended.
    """
    count, sent_before = each * len(lanes), lanes[0].sent
    lane_of = {descriptor: lane for lane in lanes for descriptor in lane.descriptors}
    descriptors = list(lane_of)
    began_ns = moved_ns = time.perf_counter_ns() + LEAD_NS
    while True:
        now_ns = time.perf_counter_ns()
        due = min(count, max(0, (now_ns - began_ns) * messages_per_s // SECOND_NS + 1))
        for index, lane in enumerate(lanes):
            lane.send(sent_before + (due - index - 1) // len(lanes) + 1)
        if due == count and all(lane.has(sent_before + each) for lane in lanes):
            return began_ns
        sleep_s = LONGEST_SLEEP_S
        if due < count:
            next_ns = due_ns(began_ns, due, messages_per_s)
            sleep_s = max(0, next_ns - time.perf_counter_ns()) / SECOND_NS
        waiting = [descriptor for lane in lanes for descriptor in lane.waiting]
        ready, _, _ = select.select(descriptors, waiting, (), min(sleep_s, LONGEST_SLEEP_S))
        for descriptor in ready:
            lane_of[descriptor].take(descriptor)
        if ready:
            moved_ns = now_ns
        elif now_ns - moved_ns > STALL_LIMIT_S * SECOND_NS:
            raise BenchError(f"nothing came for {STALL_LIMIT_S:.0f} s")


def _latencies(
    lanes: Sequence[Lane], warmup_each: int, began_ns: int, messages_per_s: int
) -> Figures:
    """Return the percentiles of all lanes together, without what was sent to warm up."""
    delivered, confirmed, sent = array("q"), array("q"), array("q")
    for index, lane in enumerate(lanes):
        due = array("q", bytes(8 * warmup_each))
        due.extend(
            due_ns(began_ns, number * len(lanes) + index, messages_per_s)
            for number in range(lane.sent - warmup_each)
        )
        delivered += lane.deliveries.latencies_ns(due)[warmup_each:]
        sent += lane.sendings.latencies_ns(due)[warmup_each:]
        in_order = array("q", (due[number] for number in lane.confirmed))
        confirmed += lane.confirms.latencies_ns(in_order)[warmup_each:]
    return percentiles(delivered) | percentiles(confirmed, "confirm_") | percentiles(sent, "late_")


def _finish(job: Job, names: Sequence[str], length: int) -> None:
    """Demand that each stream has its length, and delete it. Raises CheckFailed."""
    with Connection(job.address) as admin:
        for name in names:
            last = admin.stream_stats(name)["committed_offset"]
            if last != length - 1:
                raise CheckFailed(f"stream {name} ends at offset {last} after {length} messages")
        for name in names:
            admin.delete(name)


def _wake_in_time() -> None:
    """Let sleeps of this process end when they should."""
    ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS, 0, 0, 0)
