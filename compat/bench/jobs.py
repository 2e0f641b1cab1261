"""Jobs of the generator's process and its answers."""

from dataclasses import dataclass
from typing import Literal

from compat.bench.connection import Address

Work = Literal[
    "ingest",
    "fill_single",
    "drain",
    "confirm_latency",
    "delivery_latency",
    "idle_connections",
    "idle_cpu",
    "many_streams",
    "super_stream",
    "fanout",
    "fanout_stored",
    "paced",
    "fill_filtered",
    "drain_filtered",
    "management",
    "records",
    "wire_append",
    "wire_beside",
    "wire_latency",
    "wire_read",
    "wire_tail",
    "java_write",
    "java_latency",
    "java_read",
    "mewbase_publish",
    "mewbase_deliver",
    "mewbase_stalled",
    "nats_publish",
    "nats_latency",
    "delete",
]

# Names such as seconds, server_cpu_s, generator_share; see the works for theirs.
Figures = dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One piece of work against one server; each work reads the fields that concern it.

    Attributes:
        work: Which one.
        address: The server.
        pids: The server's processes, whose CPU time and memory are read; may be empty.
        stream: Name of the stream, or what the names of several begin with.
        body_bytes: Size of every message's body.
        messages_per_frame: Messages in one Publish frame.
        message_count: Messages that are measured.
        warmup_count: Messages of the same kind sent before, unmeasured.
        messages_per_s: Messages that a paced work sends in a second, to all streams together.
        seconds: How long an idle server is watched.
        window: Messages that may be unconfirmed at a time.
        as_they_come: Whether an ingest sends as soon as there is room for a message.
        send_bytes_max: The longest send of an ingest; 0 for no limit.
        repeats: How often a drain reads the stream from its beginning.
        credit: Chunks that a drain lets the server have on their way.
        check_all: Whether a drain compares the CRC of all chunks instead of a sample.
        stream_count: Streams or partitions that are written at once.
        connection_count: Connections that are opened, or that share the streams.
        keep: Whether the stream is left for the next job.
        management_port: Where the server's management API listens; 0 where it is not known.
        folder: Where a work without a server may put a store.
        durability: What that store's acknowledgements mean: os or disk.
    """

    work: Work
    address: Address
    pids: tuple[int, ...] = ()
    stream: str = "bench"
    body_bytes: int = 100
    messages_per_frame: int = 1
    message_count: int = 0
    warmup_count: int = 0
    messages_per_s: int = 0
    seconds: float = 0.0
    window: int = 1
    as_they_come: bool = False
    send_bytes_max: int = 0
    repeats: int = 1
    credit: int = 100
    check_all: bool = False
    stream_count: int = 1
    connection_count: int = 1
    keep: bool = False
    management_port: int = 0
    folder: str = ""
    durability: str = "os"
