"""Reads: lengths, the tail, what ends a waiting one."""

from __future__ import annotations

from typing import Final

from compat.pravega import requests as r
from compat.pravega.case import Closed, ask, case, drop, read_all
from compat.pravega.cases.starts import CREATED, filled
from compat.pravega.requests import read
from hutch.pravega import error_messages as e
from hutch.pravega import messages as m

BIG: Final = 3 << 20
CASES: Final = (
    case("read: the middle", *filled(), ask(read(1, 8), gives=m.SegmentRead)),
    case("read: to the end exactly", *filled(), ask(read(2, 8), gives=m.SegmentRead)),
    case("read: one byte is asked", *filled(), ask(read(0, 1), gives=m.SegmentRead)),
    case("read: no byte is asked", *filled(), ask(read(0, 0), gives=m.SegmentRead)),
    case("read: a negative length", *filled(), ask(read(0, -1), gives=m.SegmentRead)),
    case("read: 50 MB are asked", *filled(b"x" * BIG), read_all(read(0, 50_000_000), until=BIG)),
    case("read: 100 KiB at a time", *filled(b"x" * BIG), read_all(read(0, 100 << 10), until=BIG)),
    case("read: a negative offset", *filled(), ask(read(-1), gives=Closed)),
    case(
        "read: waits at the tail",
        *filled(),
        ask(read(10), m.KeepAlive(), gives=m.KeepAlive),
        ask(r.end(2, b"abc"), gives=(m.DataAppended, m.SegmentRead), is_unordered=True),
    ),
    case(
        "read: waits at the tail of an empty segment",
        CREATED,
        ask(read(), m.KeepAlive(), gives=m.KeepAlive),
        ask(r.setup(), gives=m.AppendSetup, on="B"),
        ask(r.end(1, b"abc"), gives=m.DataAppended, on="B"),
        ask(gives=m.SegmentRead),
    ),
    case(
        "read: waits beyond the tail",
        *filled(),
        ask(read(13), m.KeepAlive(), gives=m.KeepAlive),
        ask(r.end(2, b"abc"), gives=m.DataAppended),
        ask(r.end(3, b"defghijklmn"), gives=(m.DataAppended, m.SegmentRead), is_unordered=True),
    ),
    case(
        "read: two wait at one place",
        *filled(),
        ask(read(10), read(10), m.KeepAlive(), gives=m.KeepAlive),
        ask(
            r.end(2, b"abc"),
            gives=(m.DataAppended, m.SegmentRead, m.SegmentRead),
            is_unordered=True,
        ),
    ),
    case(
        "read: a waiting one does not keep others",
        *filled(),
        ask(
            read(10),
            r.info(),
            read(0, 10),
            gives=(m.StreamSegmentInfo, m.SegmentRead),
            is_unordered=True,
        ),
    ),
    case(
        "read: sealed while it waits",
        *filled(),
        ask(read(10), m.KeepAlive(), gives=m.KeepAlive),
        ask(r.seal(), gives=m.SegmentSealed, on="B"),
        ask(gives=e.SegmentIsSealed),
    ),
    case(
        "read: sealed while it waits beyond the tail",
        *filled(),
        ask(read(15), m.KeepAlive(), gives=m.KeepAlive),
        ask(r.seal(), gives=m.SegmentSealed, on="B"),
        ask(gives=e.SegmentIsSealed),
    ),
    case(
        "read: at the end of a sealed segment",
        *filled(),
        ask(r.seal(), gives=m.SegmentSealed),
        ask(read(10), gives=m.SegmentRead),
    ),
    case(
        "read: beyond the end of a sealed segment",
        *filled(),
        ask(r.seal(), gives=m.SegmentSealed),
        ask(read(11), gives=Closed),
    ),
    case(
        "read: truncated behind a waiting one",
        *filled(),
        ask(read(10), m.KeepAlive(), gives=m.KeepAlive),
        ask(r.truncate(10), gives=m.SegmentTruncated, on="B"),
        ask(r.setup(), gives=m.AppendSetup),
        ask(r.end(2, b"abc"), gives=(m.DataAppended, m.SegmentRead), is_unordered=True),
    ),
    case(
        "read: below the start",
        *filled(),
        ask(r.truncate(5), gives=m.SegmentTruncated),
        ask(read(0), gives=e.SegmentIsTruncated),
    ),
    case(
        "read: the connection goes while it waits",
        *filled(),
        ask(read(10), on="B"),
        drop("B"),
        ask(r.end(2, b"abc"), gives=m.DataAppended),
        ask(read(10), gives=m.SegmentRead),
    ),
)
