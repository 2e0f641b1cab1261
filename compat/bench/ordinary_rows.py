"""Rows of what users do: ordinary rates, windows and numbers of streams."""

from typing import Final

from compat.bench.row import (
    CONFIRM_P50,
    CONFIRM_P99,
    CPU,
    DELIVERY_P50,
    DELIVERY_P99,
    DELIVERY_P999,
    Row,
)

# Messages in a second.
PACES: Final = (1_000, 10_000, 50_000)
PACE_OF_PAIRS: Final = 10_000

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
