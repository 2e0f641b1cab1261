"""The rows of the table: what each measures, in which units, and in a sentence what it means."""

from typing import Final

from compat.bench.cluster_rows import CLUSTER_ROWS
from compat.bench.ordinary_rows import PACED_ROWS, PERF_TEST_ROWS, STREAMS_ROWS, WINDOWED_ROWS
from compat.bench.row import (
    ALONE_P50,
    ALONE_P99,
    BESIDE,
    BYTES,
    CONNECTIONS,
    CPU,
    HEARTBEATS,
    LIST_CONNECTIONS,
    LIST_STREAMS,
    P50,
    P99,
    PSS,
    PSS_EACH,
    QUIET,
    RATE,
    RECORD_PUT,
    RECORD_PUT_CPU,
    RECORD_READ,
    RECORD_READ_CPU,
    RSS,
    WAIT_MAX,
    WAIT_P99,
    Row,
)
from compat.bench.servers import PRAVEGA

INGEST_MEANING: Final = (
    "One connection, one publisher without a reference, one new stream; pipelined with a bounded "
    "number of unconfirmed messages; from the first send to the last confirm. Every id must be "
    "confirmed once, and the stream must end at the last offset."
)
DRAIN_MEANING: Final = (
    "One subscription from `first`, credit always ahead; from the first credit to the last "
    "record. Offsets must be dense, every header right, and the CRC and content of one chunk in "
    "16 (in a pass that is not timed: of all chunks) those of what was written. The kernel drops "
    "the data of the other large chunks unread, so that the reader is not the limit."
)

FANOUT_MEANING: Final = (
    "One publisher at full speed, 100 B, 100 messages per frame, and consumers on a connection "
    "each that subscribed before; from the first send until the last consumer has the last record. "
    "messages/s are those received by all consumers together. Checked as in a drain, but that each "
    "consumer looks into one chunk of 64, another one than its neighbours."
)

WIRE_MEANING: Final = (
    "By Pravega's wire protocol, to a fresh `hutch store serve` and a fresh Pravega 0.13.0 (all in "
    "memory, a heap of 1.5 GB) in each round, warmed by appends of 100 B. "
)
JAVA_MEANING: Final = (
    "By Pravega's Java client 0.13.0, in a process of its own, to the same servers, and to one "
    "that acknowledges and stores nothing, which shows what the client itself reaches. "
)
APPEND_MEANING: Final = WIRE_MEANING + (
    "One writer, one event in a frame, 2,000 or 16 MiB unacknowledged, frames built before; "
    "from the first send to the last acknowledgement. The segment must have every byte."
)

MEWBASE_MEANING: Final = (
    "By mewbase's protocol, to a fresh `hutch serve --mewbase-port` in each round. "
)

BRIDGE_MEANING: Final = (
    "`hutch bridge` in the column of Hutch, RabbitMQ's shovel in that of RabbitMQ, between the "
    "same two ends, both in a fresh RabbitMQ; each message acknowledged behind the target's "
    "confirm. CPU is that of the broker and the bridge. "
)

TLS_MEANING: Final = "Over TLS 1.3 with AES-256-GCM. "

ROWS: Final = (
    Row(
        "idle_memory",
        "idle, after the start",
        (RSS, PSS),
        "Resident memory of the server's processes after the start, before the first connection.",
    ),
    Row(
        "idle_connections",
        "1,000 idle connections",
        (PSS, PSS_EACH),
        "By how much the server's resident memory grows with 1,000 connections that are open and "
        "silent. Socket buffers belong to the kernel and are not counted.",
    ),
    Row(
        "idle_cpu",
        "idle, 10,000 connections, 1,000 streams",
        (CONNECTIONS, QUIET, HEARTBEATS),
        "CPU that the server uses in a minute in which no client asks for anything, in percent of "
        "one core. With as many connections as were open after a minute, which the row tells. "
        "Heartbeats go in both directions.",
    ),
    Row("ingest_100x1", "ingest 100 B, 1 per frame", (RATE, CPU), INGEST_MEANING),
    Row("ingest_100x100", "ingest 100 B, 100 per frame", (RATE, CPU), INGEST_MEANING),
    Row("ingest_100x1000", "ingest 100 B, 1,000 per frame", (RATE, CPU), INGEST_MEANING),
    Row("ingest_1024x100", "ingest 1 KiB, 100 per frame", (RATE, CPU), INGEST_MEANING),
    *WINDOWED_ROWS,
    Row("drain_large", "drain, large chunks", (RATE, CPU), DRAIN_MEANING),
    Row(
        "drain_restarted",
        "the same after a restart",
        (RATE, CPU),
        "Hutch restarted, the files still in the page cache: it checks the CRC of chunks that "
        "this process did not write. RabbitMQ, which never checks them, is not restarted.",
    ),
    Row(
        "drain_cold",
        "the same from a cold disk",
        (RATE, CPU),
        "Hutch restarted, and both servers' files dropped from the page cache.",
    ),
    Row(
        "drain_single",
        "drain, one-message chunks",
        (RATE, CPU),
        "A stream written one message at a time, each confirmed before the next, so that every "
        "stored chunk has one message. Hutch joins small chunks when it delivers them; records "
        "are compared.",
    ),
    Row(
        "confirm_latency",
        "ping-pong, publish to confirm",
        (P50, P99, CPU),
        "One 100-byte message on its way at a time, on one connection.",
    ),
    Row(
        "delivery_latency",
        "ping-pong, publish to delivery",
        (P50, P99, CPU),
        "One 100-byte message on its way at a time, from its send on one connection to its "
        "arrival at a subscriber on another; the next is sent when it is confirmed too.",
    ),
    *PACED_ROWS,
    *STREAMS_ROWS,
    *PERF_TEST_ROWS,
    Row(
        "super_stream",
        "super stream of 3 partitions",
        (RATE, CPU),
        "100 B, 100 messages per frame, the frames to the partitions in turn, over one "
        "connection with three publishers; otherwise as for the ingests.",
    ),
    Row("fanout_10", "10 consumers of one stream", (RATE, CPU), FANOUT_MEANING),
    Row("fanout_100", "100 consumers of one stream", (RATE, CPU), FANOUT_MEANING),
    Row(
        "drain_filtered",
        "drain with a filter, 1 chunk of 10",
        (RATE, CPU),
        "A stream of chunks of 1,000 messages of 100 B, each chunk with one of ten filter values; "
        "one subscription wants one of these. messages/s count all that the stream holds, most of "
        "it passed by. Every wanted record must come.",
    ),
    Row(
        "management",
        "management API, 10,000 connections, 1,000 streams",
        (CONNECTIONS, LIST_CONNECTIONS, LIST_STREAMS, WAIT_P99, WAIT_MAX),
        "`GET /api/connections` and `GET /api/queues` in full, the slowest of all; meanwhile "
        "another connection asks for a stream's statistics again and again, and its waits are "
        "measured. With as many connections as were open after a minute, which the row tells.",
    ),
    Row(
        "tls_ingest_100x1",
        "TLS ingest 100 B, 1 per frame",
        (RATE, CPU),
        TLS_MEANING + INGEST_MEANING,
    ),
    Row(
        "tls_ingest_100x100",
        "TLS ingest 100 B, 100 per frame",
        (RATE, CPU),
        TLS_MEANING + INGEST_MEANING,
    ),
    Row(
        "tls_drain",
        "TLS drain, large chunks",
        (RATE, CPU),
        "A stream of large chunks read over TLS 1.3. The reader opens every byte, which costs it "
        "more than sealing costs the server: look at the CPU. Checked as in a drain.",
    ),
    Row(
        "records_in",
        "records in, 100 B, in one process",
        (RECORD_PUT, RECORD_PUT_CPU),
        "Without a server: records are put into the log of a stream one by one, as a protocol "
        "without chunks does it, from the first until the last is committed. CPU is that of all "
        "threads, the store's too.",
    ),
    Row(
        "records_out",
        "records out, 100 B, in one process",
        (RECORD_READ, RECORD_READ_CPU),
        "The same records read from their chunks, with their offsets and times. Every chunk is "
        "checked, and offsets must be dense.",
    ),
    Row(
        "bridge_queue",
        "a bridge, queue to stream, 1 KiB",
        (RATE, CPU),
        BRIDGE_MEANING + "From a classic queue, 1,000 unacknowledged.",
    ),
    Row(
        "bridge_streams",
        "a bridge, stream to stream, 1 KiB",
        (RATE, CPU),
        BRIDGE_MEANING + "From a stream, by AMQP for the shovel, which writes what it has sent "
        "before once more after a restart; by the stream protocol for `hutch bridge`.",
    ),
    Row(
        "mewbase_publish",
        "mewbase, publish 200 B",
        (RATE, CPU),
        MEWBASE_MEANING + "2,000 events unanswered, frames built before; from the first send to "
        "the last answer. Each request must be answered once, in order.",
    ),
    Row(
        "mewbase_answered",
        "mewbase, the same without storing",
        (RATE, CPU),
        MEWBASE_MEANING + "A server that takes each request apart and answers it, and stores "
        "nothing; what it lacks to the row above is what storing costs.",
    ),
    Row(
        "mewbase_deliver",
        "mewbase, deliver 200 B",
        (RATE, CPU),
        MEWBASE_MEANING + "One subscription from the first event on, acknowledged at each MiB; "
        "from SUBSCRIBE to the last event.",
    ),
    Row(
        "mewbase_stalled",
        "mewbase, 1 KiB to a reader, beside 1,000 that take nothing",
        (ALONE_P50, ALONE_P99, P50, P99, BESIDE, PSS_EACH),
        MEWBASE_MEANING + "One event on its way at a time, from its send on one connection to its "
        "arrival on another: first alone, then beside 1,000 subscribers that want 100 MB each, and "
        "neither read nor acknowledge. Also by how much each of these makes the server grow.",
    ),
    Row("wire_append_1024", "append 1 KiB", (RATE, CPU), APPEND_MEANING, PRAVEGA),
    Row("wire_append_100", "append 100 B", (RATE, CPU), APPEND_MEANING, PRAVEGA),
    Row("wire_append_65536", "append 64 KiB", (RATE, CPU), APPEND_MEANING, PRAVEGA),
    Row(
        "wire_latency",
        "append 1 KiB, one at a time",
        (P50, P99, CPU),
        WIRE_MEANING + "From the send of an event to its acknowledgement.",
        PRAVEGA,
    ),
    Row(
        "wire_beside",
        "append 1 KiB, one at a time, beside bad clients",
        (ALONE_P50, ALONE_P99, P50, P99, BESIDE),
        WIRE_MEANING + "First alone; then beside some 500 connections a second that break the "
        "protocol: lengths that lie, unknown commands, Ends without a block, halves of frames that "
        "are held open, reads that wait.",
        PRAVEGA,
    ),
    Row(
        "wire_tail",
        "append 1 KiB, to a reader at the tail",
        (P50, P99),
        WIRE_MEANING + "From the send of an event to its arrival at a reader that waits for it.",
        PRAVEGA,
    ),
    Row(
        "wire_read",
        "read a segment",
        (BYTES,),
        WIRE_MEANING + "1 MiB at a time from the beginning, one request after the other, just "
        "after it was written. Every byte is compared.",
        PRAVEGA,
    ),
    Row(
        "java_write",
        "Java client, write 1 KiB",
        (RATE, CPU),
        JAVA_MEANING + "An EventStreamWriter, 2,000 events on their way.",
        PRAVEGA,
    ),
    Row(
        "java_latency",
        "Java client, write 1 KiB, one at a time",
        (P50, P99, CPU),
        JAVA_MEANING + "From writeEvent to its future, after as many unmeasured.",
        PRAVEGA,
    ),
    Row(
        "java_read",
        "Java client, read 1 KiB in a batch",
        (RATE, CPU),
        JAVA_MEANING + "The batch client, from the first event to the last, once some were read.",
        PRAVEGA,
    ),
    *CLUSTER_ROWS,
)
ROW_NAMES: Final = tuple(row.name for row in ROWS)
