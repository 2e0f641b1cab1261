"""Rows of what users do: ordinary rates, windows and numbers of streams."""

from dataclasses import dataclass
from typing import Final

from compat.bench.row import (
    CONFIRM_P50,
    CONFIRM_P99,
    CPU,
    CPU_SECONDS,
    DELIVERY_P50,
    DELIVERY_P99,
    DELIVERY_P999,
    RATE,
    Row,
)

# Messages in a second.
PACES: Final = (1_000, 10_000, 50_000)
PACE_OF_PAIRS: Final = 10_000
PERF_TEST_PACE: Final = 20_000
# Streams, and messages per frame.
STREAMS: Final = ((100, 1), (100, 20), (100, 100), (1_000, 1), (1_000, 20), (1_000, 100))
CONNECTIONS_OF_STREAMS: Final = 4
FRAMES_OF_EACH_STREAM: Final = 10
# RabbitMQ stops reading a connection that has 50,000 unconfirmed.
WINDOW_OF_STREAMS: Final = 40_000


@dataclass(frozen=True, slots=True)
class Windowed:
    """An ingest with a small window, or with small sends, whose messages leave as they come.

    Attributes:
        body_bytes: Size of every message's body.
        per_frame: Messages in a frame.
        window: Messages that may be unconfirmed.
        send_bytes_max: The longest send; 0 for no limit.
    """

    body_bytes: int
    per_frame: int
    window: int
    send_bytes_max: int = 0

    @property
    def row(self) -> str:
        """Return the name of its row."""
        return f"ingest_{self.body_bytes}x{self.per_frame}_of_{self.window}"


WINDOWED: Final = (
    Windowed(100, 1, 1_000),
    Windowed(100, 1, 10_000),
    Windowed(100, 100, 1_000),
    Windowed(100, 100, 10_000),
    Windowed(1024, 100, 20_000, send_bytes_max=128 << 10),
)

WINDOWED_MEANING: Final = (
    "As for the other ingests, but with at most so many unconfirmed messages, and each confirm "
    "lets messages out at once, however few they are: sends are as small as the server's confirms "
    "make them. The others wait until a quarter of a large window is free."
)
_SIZES: Final = {100: "100 B", 1024: "1 KiB"}
_SMALL_SENDS: Final = " Sends have at most 128 KiB."
WINDOWED_ROWS: Final = tuple(
    Row(
        case.row,
        f"ingest {_SIZES[case.body_bytes]}, {case.per_frame} per frame, window {case.window:,}",
        (RATE, CPU),
        WINDOWED_MEANING + (_SMALL_SENDS if case.send_bytes_max else ""),
    )
    for case in WINDOWED
)

STREAMS_MEANING: Final = (
    f"100 B; a frame to each of the streams in turn, over {CONNECTIONS_OF_STREAMS} connections "
    f"that share them evenly, with a publisher for each stream. {FRAMES_OF_EACH_STREAM} frames may "
    f"be unconfirmed for each publisher, and {WINDOW_OF_STREAMS:,} messages on a connection. Every "
    "id must be confirmed once to its own publisher, and every stream must end at its last offset."
)
STREAMS_ROWS: Final = tuple(
    Row(
        f"streams_{streams}x{per_frame}",
        f"{streams:,} streams at once, {per_frame} per frame",
        (RATE, CPU),
        STREAMS_MEANING,
    )
    for streams, per_frame in STREAMS
)

PACED_MEANING: Final = (
    "100 B, one message in a frame, each sent at a time that is fixed beforehand; messages that "
    "the generator sends late go out together, a frame for each. Latencies count from that time, "
    "so that what waits behind a pause is charged with it. The generator sleeps in between, and "
    "how late it wakes is in the figures of every server. Every id must be confirmed once, every "
    "record must come in order, and every chunk must be what was written, by its CRC."
)
_PACED: Final = (
    DELIVERY_P50,
    DELIVERY_P99,
    DELIVERY_P999,
    CONFIRM_P50,
    CONFIRM_P99,
    CPU,
)
PACED_ROWS: Final = (
    *(
        Row(
            f"paced_{pace}",
            f"paced, {pace:,} messages/s",
            _PACED,
            "One stream, a publisher and a subscriber on a connection each. " + PACED_MEANING,
        )
        for pace in PACES
    ),
    Row(
        "paced_pairs",
        f"paced, {PACE_OF_PAIRS:,} messages/s over 10 connections",
        _PACED,
        f"Ten streams, each with a connection for its publisher and its consumer, and "
        f"{PACE_OF_PAIRS // 10:,} messages/s: at full speed the work would be that of the ingests, "
        "while at an ordinary rate a server is woken for a message or two. " + PACED_MEANING,
    ),
)

PERF_TEST_MEANING: Final = (
    "The official stream-perf-test with one producer and one consumer of a new stream, for 12 "
    "seconds, its start included. It checks nothing; messages/s are those that its summary says "
    "were consumed, and the CPU is the server's from the start of the program to its end."
)
PERF_TEST_ROWS: Final = (
    Row(
        "perf_test_20000",
        f"stream-perf-test, {PERF_TEST_PACE:,} messages/s",
        (CPU_SECONDS, CPU),
        PERF_TEST_MEANING + f" `--rate {PERF_TEST_PACE} --batch-size 1`.",
    ),
    Row(
        "perf_test_full",
        "stream-perf-test, 100 B at full speed",
        (RATE, CPU),
        PERF_TEST_MEANING + " `--size 100`.",
    ),
)
