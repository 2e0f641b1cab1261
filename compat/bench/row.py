"""A row of the table and its figures."""

from dataclasses import dataclass
from typing import Final, Literal

from compat.bench.servers import RABBITMQ, ServerName

MIB: Final = 1 << 20
KIB: Final = 1 << 10


@dataclass(frozen=True, slots=True)
class Metric:
    """One line of a row.

    Attributes:
        key: Name of the figure that a work returns.
        title: What the table calls it.
        unit_size: The figure is divided by this for the table.
        better: Which way is good.
    """

    key: str
    title: str
    unit_size: float
    better: Literal["higher", "lower"]


RATE: Final = Metric("rate", "messages/s", 1, "higher")
# Seconds per million are microseconds per message.
CPU: Final = Metric("cpu", "server CPU s per million", 1, "lower")
CPU_SECONDS: Final = Metric("cpu_s", "server CPU s", 1, "lower")
P50: Final = Metric("p50", "p50 µs", 1, "lower")
P99: Final = Metric("p99", "p99 µs", 1, "lower")
DELIVERY_P50: Final = Metric("p50", "to delivery p50 µs", 1, "lower")
DELIVERY_P99: Final = Metric("p99", "to delivery p99 µs", 1, "lower")
DELIVERY_P999: Final = Metric("p999", "to delivery p99.9 µs", 1, "lower")
CONFIRM_P50: Final = Metric("confirm_p50", "to confirm p50 µs", 1, "lower")
CONFIRM_P99: Final = Metric("confirm_p99", "to confirm p99 µs", 1, "lower")
RSS: Final = Metric("rss", "RSS MiB", MIB, "lower")
PSS: Final = Metric("pss", "PSS MiB", MIB, "lower")
CONNECTIONS: Final = Metric("connections", "connections", 1, "higher")
LIST_CONNECTIONS: Final = Metric("connections_s", "list connections s", 1, "lower")
LIST_STREAMS: Final = Metric("streams_s", "list streams s", 1, "lower")
WAIT_P99: Final = Metric("wait_p99", "others' wait p99 µs", 1, "lower")
WAIT_MAX: Final = Metric("wait_max", "others' longest wait µs", 1, "lower")
RECORD_PUT: Final = Metric("put", "µs a record", 1, "lower")
RECORD_PUT_CPU: Final = Metric("put_cpu", "CPU µs a record", 1, "lower")
RECORD_READ: Final = Metric("read", "µs a record", 1, "lower")
RECORD_READ_CPU: Final = Metric("read_cpu", "CPU µs a record", 1, "lower")
# Parts of one core.
QUIET: Final = Metric("quiet", "CPU %, no heartbeats", 0.01, "lower")
HEARTBEATS: Final = Metric("heartbeats", "CPU %, heartbeats of 60 s", 0.01, "lower")
CPU_EACH_MIB: Final = Metric("cpu", "CPU ms a MiB", 0.001, "lower")
ACTIVE_BYTES: Final = Metric("active", "active MiB/s", MIB, "higher")
FOLLOWER_BYTES: Final = Metric("follower", "follower MiB/s", MIB, "higher")
FOLLOWER_SPEED: Final = Metric("speed", "follower ÷ active", 1, "higher")
ACTIVE_CPU: Final = Metric("active_cpu", "active CPU ms a MiB", 0.001, "lower")
FOLLOWER_CPU: Final = Metric("follower_cpu", "follower CPU ms a MiB", 0.001, "lower")
FOLLOWER_COST: Final = Metric("cost", "CPU, follower ÷ active", 1, "lower")
SAVED: Final = Metric("saved", "÷ small appends sent twice", 1, "higher")
LEFT_BEHIND: Final = Metric("behind", "MiB behind at the end", MIB, "lower")
BYTES: Final = Metric("rate", "MiB/s", MIB, "higher")
ALONE_P50: Final = Metric("alone_p50", "alone p50 µs", 1, "lower")
ALONE_P99: Final = Metric("alone_p99", "alone p99 µs", 1, "lower")
BESIDE: Final = Metric("ratio", "p50 beside ÷ alone", 1, "lower")
PSS_EACH: Final = Metric("pss_each", "PSS KiB each", KIB, "lower")


@dataclass(frozen=True, slots=True)
class Row:
    """A row: its name on the command line, its title, its lines, and what it means.

    Attributes:
        name: Name of the row on the command line.
        title: What the table calls it.
        metrics: Its lines.
        meaning: A sentence or more.
        reference: The server that Hutch is compared with.
    """

    name: str
    title: str
    metrics: tuple[Metric, ...]
    meaning: str
    reference: ServerName = RABBITMQ
