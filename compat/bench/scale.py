"""Amounts of work of a run: the counts for figures, and those for a smoke test."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Counts of one run; those of messages are per measurement and per server.

    Attributes:
        rounds: Measurements of each server, in turn; the table has their medians.
        ingest_messages: By (body bytes, messages per frame).
        windowed_messages: The same, with small windows or small sends.
        drain_messages: Records of the stream of large chunks.
        single_messages: Records of the stream of one-message chunks.
        drain_repeats: How often a measurement reads the stream.
        latency_messages: Messages of a ping-pong.
        paced_s: How long messages are sent at each pace.
        perf_test_s: How long each run of stream-perf-test takes.
        idle_connections: Connections whose memory is measured.
        streams: Streams that are written at once, by the numbers that rows are called after.
        streams_messages: Messages to all of them together, by that number and by messages per
            frame.
        partitions_messages: Messages to the partitions of a super stream together.
        fanout_messages: By consumers, the messages published to them.
        filtered_messages: Records of the stream of which a tenth is wanted.
        idle_s: How long a server with these connections and streams is watched while it is idle; no
            look at an idle server settles for longer.
        management_connections: Connections that are listed over HTTP; no more are opened than the
            system lets both sides have.
        management_streams: Streams that are listed.
        records: Records that are put and read in one process.
        wire_appends: By body bytes, the events that are appended by Pravega's protocol. A real
            Pravega keeps them on its heap, so that 500 MiB are the limit.
        wire_warmup: Events of 100 B that are appended before.
        bridge_messages: Messages of 1 KiB that a bridge carries.
        mewbase_events: Events that are published, or delivered, by mewbase's protocol.
        mewbase_stalled: Subscribers that take nothing.
        mewbase_waiting: Events of 1 KiB that each of them wants.
        catch_up_bytes: Bytes that a follower of a cluster is behind.
        touched_part: Part of the free memory that is touched before all else.
        settle_s: How long a fresh server is left alone before its memory is read.
        is_quick: Whether it only proves that each row runs: rows that begin a server anew share
            one, nothing waits until servers are quiet, and no target is judged.
    """

    rounds: int
    ingest_messages: dict[tuple[int, int], int]
    windowed_messages: dict[tuple[int, int], int]
    drain_messages: int
    single_messages: int
    drain_repeats: int
    latency_messages: int
    paced_s: float
    perf_test_s: int
    idle_connections: int
    streams: dict[int, int]
    streams_messages: dict[tuple[int, int], int]
    partitions_messages: int
    fanout_messages: dict[int, int]
    filtered_messages: int
    idle_s: float
    management_connections: int
    management_streams: int
    records: int
    wire_appends: dict[int, int]
    wire_warmup: int
    bridge_messages: int
    mewbase_events: int
    mewbase_stalled: int
    mewbase_waiting: int
    catch_up_bytes: int
    touched_part: float
    settle_s: float
    is_quick: bool


# Bounded by disk space, 0.5 to 1 GiB a measurement, and by a server that takes 10 s for it.
FULL: Final = Scale(
    rounds=5,
    ingest_messages={
        (100, 1): 4_000_000,
        (100, 100): 8_000_000,
        (100, 1000): 8_000_000,
        (1024, 100): 800_000,
    },
    windowed_messages={(100, 1): 1_000_000, (100, 100): 2_000_000, (1024, 100): 800_000},
    drain_messages=8_000_000,
    single_messages=50_000,
    drain_repeats=5,
    latency_messages=10_000,
    paced_s=10.0,
    perf_test_s=12,
    idle_connections=1_000,
    streams={100: 100, 1_000: 1_000},
    streams_messages={
        (100, 1): 300_000,
        (100, 20): 1_000_000,
        (100, 100): 2_000_000,
        (1_000, 1): 300_000,
        (1_000, 20): 1_000_000,
        (1_000, 100): 2_000_000,
    },
    partitions_messages=8_000_000,
    fanout_messages={10: 4_000_000, 100: 800_000},
    filtered_messages=8_000_000,
    idle_s=60.0,
    management_connections=10_000,
    management_streams=1_000,
    records=2_000_000,
    wire_appends={100: 500_000, 1024: 200_000, 65_536: 4_000},
    wire_warmup=100_000,
    bridge_messages=50_000,
    mewbase_events=300_000,
    mewbase_stalled=1_000,
    mewbase_waiting=100_000,
    catch_up_bytes=1 << 30,
    touched_part=0.6,
    settle_s=10.0,
    is_quick=False,
)

QUICK: Final = Scale(
    rounds=1,
    ingest_messages={
        (100, 1): 50_000,
        (100, 100): 100_000,
        (100, 1000): 100_000,
        (1024, 100): 20_000,
    },
    windowed_messages={(100, 1): 20_000, (100, 100): 50_000, (1024, 100): 20_000},
    drain_messages=200_000,
    single_messages=2_000,
    drain_repeats=1,
    latency_messages=300,
    paced_s=0.3,
    perf_test_s=2,
    idle_connections=10,
    streams={100: 8, 1_000: 12},
    streams_messages={
        (100, 1): 4_000,
        (100, 20): 20_000,
        (100, 100): 50_000,
        (1_000, 1): 4_000,
        (1_000, 20): 20_000,
        (1_000, 100): 50_000,
    },
    partitions_messages=100_000,
    fanout_messages={10: 100_000, 100: 20_000},
    filtered_messages=200_000,
    idle_s=0.3,
    management_connections=10,
    management_streams=5,
    records=50_000,
    wire_appends={100: 5_000, 1024: 5_000, 65_536: 100},
    wire_warmup=2_000,
    bridge_messages=500,
    mewbase_events=5_000,
    mewbase_stalled=10,
    mewbase_waiting=10_000,
    catch_up_bytes=64 << 20,
    touched_part=0.0,
    settle_s=0.0,
    is_quick=True,
)
