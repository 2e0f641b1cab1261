"""Tune: the largest frame, and heartbeats."""

from __future__ import annotations

import struct

from compat.differential import frames as f
from compat.differential.script import (
    Reached,
    Script,
    Wait,
    ask,
    opened,
    pause,
    raw,
    reached,
    script,
    tell,
    timed,
    until_end,
)

MIB = 1 << 20
HEAD_BYTES = 12
NAME_BYTES = 120
REFUSED = Wait(frames=1, timeout_s=2.0)


def metadata_of_size(size: int) -> bytes:
    """Return a Metadata frame of exactly that size, about streams that do not exist."""
    count, left = divmod(size - HEAD_BYTES, 2 + NAME_BYTES)
    # Names that are all the same collapse; the last one takes what is left, and is never too long.
    names = ["x" * NAME_BYTES] * (count - 1) + ["y" * (left + NAME_BYTES - 100), "z" * 98]
    frame = f.metadata(*names)
    assert len(frame) == size
    return frame


LIMITS = tuple(
    script(
        f"frame limit: the client says {client}, so {limit} is accepted and one more is not",
        opened("A", frame_bytes_max=client),
        ask("A", metadata_of_size(limit)),
        raw("A", struct.pack(">I", limit + 1), wait=REFUSED),
    )
    for client, limit in ((1000, 1000), (8192, 8192), (20000, 20000))
) + tuple(
    script(
        f"frame limit: the client says {client}, so the server's 1 MiB holds",
        opened("A", frame_bytes_max=client),
        ask("A", f.metadata("~none")),
        raw("A", struct.pack(">I", MIB + 1), wait=REFUSED),
    )
    for client in (0, MIB, 2 * MIB, 0xFFFFFFFF)
)

PUBLISHED = (
    script(
        "frame limit: a publish of exactly 1 MiB is stored",
        opened("A"),
        ask("A", f.create("~s")),
        ask("A", f.declare(1, "~s")),
        ask("A", f.messages(1, 1, b"p" * (MIB - 21)), wait=Wait(confirmed=1)),
        ask("A", f.subscribe(1, "~s"), wait=Wait(frames=1, records=1)),
    ),
    script(
        "frame limit: it does not bound what the server sends",
        opened("A"),
        ask("A", f.create("~s")),
        ask("A", f.declare(1, "~s")),
        ask("A", f.messages(1, 1, b"b" * 50_000), wait=Wait(confirmed=1)),
        opened("B", frame_bytes_max=1000),
        ask("B", f.subscribe(1, "~s"), wait=Wait(frames=1, records=1)),
    ),
    script(
        "frame limit: the client's counts from Open on, not from Tune",
        reached("A", Reached.AUTHENTICATED),
        tell("A", f.tune(1000)),
        pause(0.1),
        ask("A", f.open_host()),
        raw("A", struct.pack(">I", 1001), wait=REFUSED),
    ),
    script(
        "frame limit: the frame that was too large is not read",
        opened("A", frame_bytes_max=1000),
        raw("A", struct.pack(">I", 1001) + bytes(1001), wait=REFUSED),
    ),
)  # fmt: skip

HEARTBEATS = (
    script(
        "heartbeats: every second to a client that is silent, which is then dropped",
        opened("A", heartbeat_s=1),
        until_end("A", 6.0, is_timed=True),
        heartbeats=True,
    ),
    script(
        "heartbeats: any bytes keep the connection",
        opened("A", heartbeat_s=1),
        *(step for _ in range(8) for step in (pause(0.5), tell("A", f.heartbeat()))),
        ask("A", f.metadata()),
    ),
    script(
        "heartbeats: none where both say 0",
        opened("A", heartbeat_s=0),
        pause(3.2),
        ask("A", f.metadata()),
        heartbeats=True,
    ),
    script(
        "heartbeats: the client's number counts, also above the server's",
        opened("A", heartbeat_s=4_000_000),
        ask("A", f.metadata()),
    ),
    script(
        "heartbeats: one that comes due before Open ends the connection",
        reached("A", Reached.AUTHENTICATED),
        timed("A", f.tune(MIB, 1), wait=Wait(fin=True, timeout_s=4.0)),
    ),
    script(
        "heartbeats: 4,294,967 s are accepted",
        reached("A", Reached.AUTHENTICATED),
        tell("A", f.tune(MIB, 4_294_967)),
        pause(0.1),
        ask("A", f.open_host()),
    ),
    script(
        "heartbeats: 4,294,968 s are too many",
        reached("A", Reached.AUTHENTICATED),
        ask("A", f.tune(MIB, 4_294_968), wait=Wait(fin=True, timeout_s=4.0)),
    ),
)

SCRIPTS: tuple[Script, ...] = (*LIMITS, *PUBLISHED, *HEARTBEATS)
