"""Table of the targets for Hutch, and the check of medians against it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from compat.bench.jobs import Figures
from compat.bench.servers import (
    CLUSTER,
    HUTCH_DISK,
    HUTCH_OS,
    NATS,
    PRAVEGA,
    RABBITMQ,
    ServerName,
)

# Medians by row, then by server.
Medians = Mapping[str, Mapping[ServerName, Figures]]
# Where an fsync is slower than this, no server that syncs can keep the latency of one that doesn't.
FSYNC_LIMIT_MS: Final = 0.15


@dataclass(frozen=True, slots=True)
class Target:
    """One requirement.

    Attributes:
        row: The row it is about.
        metric: The figure of that row.
        subject: Which server must reach it.
        base: The server to whose figure it is a ratio, None for an absolute bound.
        sense: Whether the bound is a least or a most.
        bound: The ratio, or the figure.
        only_with: What it needs to be asked at all: an fsync of at most 0.15 ms.
    """

    row: str
    metric: str
    subject: ServerName
    base: ServerName | None
    sense: Literal["at least", "at most"]
    bound: float
    only_with: Literal["", "fast fsync"] = ""


# fmt: off
TARGETS: Final = (
    #      row                metric  subject     ratio to   sense       bound  only with
    Target("ingest_100x100",  "rate", HUTCH_OS,   RABBITMQ,  "at least", 10),
    Target("ingest_100x100",  "cpu",  HUTCH_OS,   None,      "at most",  0.10),
    Target("ingest_100x1",    "rate", HUTCH_OS,   RABBITMQ,  "at least", 5),
    Target("ingest_100x1",    "cpu",  HUTCH_OS,   None,      "at most",  0.40),
    Target("ingest_1024x100", "rate", HUTCH_OS,   RABBITMQ,  "at least", 4),
    Target("drain_large",     "rate", HUTCH_OS,   RABBITMQ,  "at least", 1),
    Target("drain_large",     "cpu",  HUTCH_OS,   RABBITMQ,  "at most",  0.6),
    Target("drain_single",    "rate", HUTCH_OS,   None,      "at least", 500_000),
    Target("confirm_latency", "p50",  HUTCH_OS,   RABBITMQ,  "at most",  0.4),
    Target("fanout_10",       "rate", HUTCH_OS,   RABBITMQ,  "at least", 2),
    Target("fanout_100",      "rate", HUTCH_OS,   RABBITMQ,  "at least", 2),
    Target("ingest_100x1000", "rate", HUTCH_DISK, HUTCH_OS,  "at least", 0.7),
    Target("ingest_1024x100", "rate", HUTCH_DISK, HUTCH_OS,  "at least", 0.7),
    Target("idle_cpu",        "quiet", HUTCH_OS,  None,      "at most",  0.005),
    Target("idle_cpu",        "heartbeats", HUTCH_OS, None,  "at most",  0.015),
    Target("management",      "connections_s", HUTCH_OS, None, "at most", 1),
    Target("management",      "streams_s",     HUTCH_OS, None, "at most", 1),
    Target("management",      "wait_max",      HUTCH_OS, None, "at most", 20_000),
    Target("bridge_queue",    "rate", HUTCH_OS,   RABBITMQ,  "at least", 0.5),
    Target("bridge_streams",  "rate", HUTCH_OS,   RABBITMQ,  "at least", 1),
    Target("records_in",      "put",  HUTCH_OS,   None,      "at most",  2),
    Target("records_out",     "read", HUTCH_OS,   None,      "at most",  1),
    Target("confirm_latency", "p50",  HUTCH_DISK, RABBITMQ,  "at most",  0.95, "fast fsync"),
    Target("delivery_latency", "cpu", HUTCH_OS,   RABBITMQ,  "at most",  0.2),
    Target("delivery_latency", "cpu", HUTCH_DISK, RABBITMQ,  "at most",  0.5),
    Target("paced_10000",     "cpu",  HUTCH_OS,   RABBITMQ,  "at most",  0.5),
    Target("paced_10000",     "cpu",  HUTCH_DISK, RABBITMQ,  "at most",  0.6),
    Target("paced_50000",     "cpu",  HUTCH_OS,   RABBITMQ,  "at most",  0.5),
    Target("paced_50000",     "cpu",  HUTCH_DISK, RABBITMQ,  "at most",  0.6),
    Target("streams_100x100", "rate", HUTCH_OS,   RABBITMQ,  "at least", 5),
    Target("streams_1000x20", "rate", HUTCH_OS,   RABBITMQ,  "at least", 4),
    Target("drain_restarted", "rate", HUTCH_OS,   RABBITMQ,  "at least", 1),
    Target("drain_cold",      "rate", HUTCH_OS,   RABBITMQ,  "at least", 1),
    Target("ingest_1024x100_of_20000", "rate", HUTCH_OS, RABBITMQ, "at least", 4.5),
    Target("perf_test_20000", "cpu",  HUTCH_OS,   RABBITMQ,  "at most",  0.5),
    Target("perf_test_full",  "rate", HUTCH_OS,   RABBITMQ,  "at least", 2),
    Target("perf_test_full",  "cpu",  HUTCH_OS,   RABBITMQ,  "at most",  0.15),
    Target("mewbase_publish", "rate", HUTCH_OS,   None,      "at least", 100_000),
    Target("mewbase_deliver", "rate", HUTCH_OS,   None,      "at least", 200_000),
    Target("wire_append_1024", "rate", HUTCH_OS,  PRAVEGA,   "at least", 5),
    Target("wire_append_1024", "rate", HUTCH_DISK, HUTCH_OS, "at least", 0.7),
    Target("wire_latency",    "p50",  HUTCH_OS,   PRAVEGA,   "at most",  0.6),
    Target("java_write",      "rate", HUTCH_OS,   PRAVEGA,   "at least", 2),
    Target("java_write",      "cpu",  HUTCH_OS,   PRAVEGA,   "at most",  0.17),
    Target("java_latency",    "p50",  HUTCH_OS,   PRAVEGA,   "at most",  0.6),
    Target("java_read",       "rate", HUTCH_OS,   PRAVEGA,   "at least", 1.4),
    Target("java_read",       "cpu",  HUTCH_OS,   PRAVEGA,   "at most",  0.3),
    Target("wire_read",       "rate", HUTCH_OS,   PRAVEGA,   "at least", 1),
    Target("cluster_ingest",  "rate", CLUSTER,    NATS,      "at least", 0.5),
    Target("cluster_streams", "rate", CLUSTER,    HUTCH_DISK, "at least", 0.25),
    Target("cluster_streams", "saved", CLUSTER,   None,      "at least", 2),
    Target("cluster_latency", "p50",  CLUSTER,    NATS,      "at most",  1.6),
    Target("cluster_drain",   "rate", CLUSTER,    HUTCH_DISK, "at least", 0.95),
    Target("cluster_fanout",  "rate", CLUSTER,    HUTCH_DISK, "at least", 0.95),
    Target("cluster_catch_up", "speed", CLUSTER,  None,      "at least", 1),
    Target("cluster_catch_up", "cost", CLUSTER,   None,      "at most",  1),
)
# fmt: on


@dataclass(frozen=True, slots=True)
class Verdict:
    """Result of a target: the figure, and whether it is reached (None: unknown)."""

    target: Target
    value: float | None
    is_reached: bool | None


def judge(target: Target, medians: Medians, *, fsync_ms: float) -> Verdict:
    """Compare a target with the medians of a run.

    Args:
        target: What is required.
        medians: What was measured.
        fsync_ms: How long a small fsync takes on this machine's disk.
    """
    row = medians.get(target.row, {})
    value = row.get(target.subject, {}).get(target.metric)
    if value is not None and target.base is not None:
        base = row.get(target.base, {}).get(target.metric)
        value = value / base if base else None
    if value is None:
        return Verdict(target, None, None)
    is_reached = value >= target.bound if target.sense == "at least" else value <= target.bound
    if not is_reached and target.only_with and fsync_ms > FSYNC_LIMIT_MS:
        return Verdict(target, value, None)
    return Verdict(target, value, is_reached)
