"""Rows of a cluster: two members on the machine, and three servers that sync what they log."""

from typing import Final

from compat.bench.row import (
    ACTIVE_BYTES,
    ACTIVE_CPU,
    BYTES,
    CPU,
    CPU_EACH_MIB,
    FOLLOWER_BYTES,
    FOLLOWER_COST,
    FOLLOWER_CPU,
    FOLLOWER_SPEED,
    LEFT_BEHIND,
    P50,
    P99,
    RATE,
    SAVED,
    Row,
)
from compat.bench.servers import NATS

CLUSTER_MEANING: Final = (
    "A cluster begun anew in each round, on this one machine: an active member, one that follows, "
    "and three servers of NATS with `sync_interval: always`; CPU is that of all five. Beside it a "
    "fresh Hutch `disk`. "
)
NATS_MEANING: Final = (
    "nats-py publishes to a stream of three replicas on the same servers, whose members do nothing "
    "meanwhile: "
)
STORED_MEANING: Final = (
    "What was stored is read when the other member has it too and no server is busy. "
)

CLUSTER_ROWS: Final = (
    Row(
        "cluster_ingest",
        "cluster, ingest 1 KiB, 100 per frame",
        (BYTES, CPU_EACH_MIB),
        CLUSTER_MEANING
        + "As for the other ingests. "
        + NATS_MEANING
        + "as many bytes, in messages of 1 MiB, 16 of them unacknowledged.",
        NATS,
    ),
    Row(
        "cluster_streams",
        "cluster, 1,000 streams at once, 1 per frame",
        (RATE, SAVED, CPU),
        CLUSTER_MEANING
        + "As the row of as many streams. Then once more on a cluster that sends small appends to "
        "the log twice, as they are in the store: by how much the rate is higher than there.",
        NATS,
    ),
    Row(
        "cluster_latency",
        "cluster, ping-pong of 1 KiB, publish to confirm",
        (P50, P99, CPU),
        CLUSTER_MEANING
        + "One message on its way at a time. "
        + NATS_MEANING
        + "one message, and the next when it is acknowledged.",
        NATS,
    ),
    Row(
        "cluster_drain",
        "cluster, drain, large chunks",
        (RATE, CPU),
        CLUSTER_MEANING + STORED_MEANING + "As the drain of large chunks.",
        NATS,
    ),
    Row(
        "cluster_fanout",
        "cluster, 10 consumers of a stored stream",
        (RATE, CPU),
        CLUSTER_MEANING
        + STORED_MEANING
        + "From the first credit until the last consumer has the last record; messages/s are those "
        "received by all consumers together. Each consumer looks into one chunk of 64.",
        NATS,
    ),
    Row(
        "cluster_catch_up",
        "cluster, a follower 1 GiB behind, beside writing at full speed",
        (
            *(ACTIVE_BYTES, FOLLOWER_BYTES, FOLLOWER_SPEED),
            *(ACTIVE_CPU, FOLLOWER_CPU, FOLLOWER_COST, LEFT_BEHIND),
        ),
        CLUSTER_MEANING
        + "The follower is stopped, 1 GiB is stored (1 KiB, 100 per frame), and it is started; "
        "from then on the active member is written at full speed, until the follower is within 2 s "
        "of it, or four times as much is written. MiB are those of messages. Here CPU is that of "
        "each member alone, for a MiB that it has stored.",
        NATS,
    ),
)
