"""Hello, KeepAlive, and frames that are no messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from compat.pravega import requests as r
from compat.pravega.case import TAG, Case, Closed, ask, case
from hutch.pravega import messages as m
from hutch.pravega import table_messages as t
from hutch.pravega.codec import HEAD_BYTES, PAYLOAD_BYTES_MAX, encode
from hutch.pravega.layout import WireMessage

STILL_HERE: Final = ask(m.KeepAlive(), gives=m.KeepAlive)

HELLOS: Final = (
    case("Hello: the newest", ask(m.Hello(17, 5), gives=m.Hello, label="hello"), STILL_HERE),
    case("Hello: version 15", ask(m.Hello(15, 5), gives=m.Hello, label="hello"), STILL_HERE),
    case("Hello: version 5 alone", ask(m.Hello(5, 5), gives=m.Hello, label="hello"), STILL_HERE),
    case("Hello: versions to come", ask(m.Hello(99, 16), gives=m.Hello, label="hello")),
    case(
        "Hello: only versions to come",
        ask(m.Hello(99, 90), gives=(m.Hello, Closed), label="hello"),
    ),
    case(
        "Hello: only versions that are gone",
        ask(m.Hello(4, 1), gives=(m.Hello, Closed), label="hello"),
    ),
    case(
        "Hello: a highest below the lowest",
        ask(m.Hello(5, 16), gives=m.Hello, label="hello"),
        STILL_HERE,
    ),
    case(
        "Hello: twice",
        ask(m.Hello(17, 5), gives=m.Hello, label="hello"),
        ask(m.Hello(17, 5), gives=m.Hello, label="hello"),
    ),
    case(
        "Hello: behind a command",
        ask(r.create(), gives=m.SegmentCreated),
        ask(m.Hello(17, 5), gives=m.Hello, label="hello"),
    ),
    case("Hello: none", ask(r.create(), gives=m.SegmentCreated)),
    case("KeepAlive: comes back", STILL_HERE, STILL_HERE),
    case("KeepAlive: with bytes", ask(r.head(100, 3) + b"abc", gives=m.KeepAlive)),
    case(
        "Padding alone: ignored", ask(r.head(-1, 3) + b"\0\0\0", m.KeepAlive(), gives=m.KeepAlive)
    ),
    case(
        "two requests and a KeepAlive in one write",
        ask(r.create(), gives=m.SegmentCreated),
        ask(
            r.info(),
            m.KeepAlive(),
            r.read(),
            gives=(m.StreamSegmentInfo, m.KeepAlive),
            is_unordered=True,
        ),
    ),
)

FRAMES: Final = (
    case("frame: an unknown code", ask(r.head(63, 0), gives=Closed)),
    case("frame: an unknown negative code", ask(r.head(-99, 4) + bytes(4), gives=Closed)),
    case("frame: a negative length", ask(r.head(100, -1), gives=Closed)),
    case("frame: a length of 2^31-1", ask(r.head(100, 2**31 - 1), gives=Closed)),
    case(
        "frame: one byte more than a frame", ask(r.head(100, PAYLOAD_BYTES_MAX + 1), gives=Closed)
    ),
    case(
        "frame: the largest",
        ask(
            r.head(-1, PAYLOAD_BYTES_MAX) + bytes(PAYLOAD_BYTES_MAX),
            m.KeepAlive(),
            gives=m.KeepAlive,
        ),
    ),
    case("frame: in two writes", ask(b"\0\0\0\x64\0"), ask(b"\0\0\0", gives=m.KeepAlive)),
    case("frame: LocateOffset", ask(m.LocateOffset(1, r.S, 0, ""), gives=Closed)),
    case("frame: MergeTableSegments", ask(t.MergeTableSegments(1, r.TABLE, r.S, ""), gives=Closed)),
    case("frame: SealTableSegment", ask(t.SealTableSegment(1, r.TABLE, ""), gives=Closed)),
    case("frame: FlushToStorage", ask(r.head(-3, 14) + bytes(14), gives=Closed)),
    case("frame: ListStorageChunks", ask(r.head(-5, 12) + bytes(12), gives=Closed)),
    case("frame: an event by itself", ask(r.head(0, 3) + b"abc", gives=Closed)),
    case("frame: a partial event by itself", ask(r.head(-2, 3) + b"abc", gives=Closed)),
    case("frame: an answer", ask(m.SegmentCreated(1, r.S), gives=Closed)),
    case(
        "frame: a name that is not modified UTF-8",
        ask(r.head(11, 14) + bytes(8) + b"\0\x02\xff\xff" + b"\0\0", gives=Closed),
    ),
    case(
        "frame: a list that says more than it has",
        ask(
            r.head(78, 8 + 2 + 3 + 2 + 4) + bytes(8) + b"\0\3a/b\0\0" + b"\0\0\xff\xff",
            gives=Closed,
        ),
    ),
    case(
        "frame: data of a negative size",
        ask(r.create(), gives=m.SegmentCreated),
        ask(r.setup(), gives=m.AppendSetup),
        ask(
            r.head(4, 16 + 4 + 4 + 4 + 8 + 8) + r.W.bytes + bytes(4) + b"\xff" * 4 + bytes(20),
            gives=Closed,
        ),
    ),
)

REQUESTS: Final[tuple[WireMessage, ...]] = (
    m.Hello(17, 5),
    r.setup(),
    r.append(1, b"x"),
    r.conditional(1, 0, b"x"),
    r.conditional_end(1, 0, b"x"),
    r.read(),
    r.info(),
    r.create(),
    r.seal(),
    r.delete(),
    r.policy(1, 1),
    r.attribute(),
    r.set_attribute(1, 2),
    r.truncate(0),
    r.transient(),
    r.merge(),
    r.merge_batch(r.S, r.OTHER),
    r.create_table(),
    r.delete_table(),
    r.table_info(),
    r.update((b"k", b"v")),
    r.remove(b"k"),
    r.get(b"k"),
    r.keys_of(),
    r.entries_of(),
    r.delta(),
)


def cut(message: WireMessage, size: int) -> bytes:
    """Return a frame whose payload has `size` bytes of the message's."""
    frame = encode(message)
    return frame[:4] + size.to_bytes(4) + frame[HEAD_BYTES : HEAD_BYTES + size]


def cut_short() -> Iterator[Case]:
    """Yield, of each request, one that ends too soon and one without any payload."""
    for request in REQUESTS:
        name = type(request).__name__
        yield case(f"cut short: {name}", ask(cut(request, 7), gives=Closed))
        yield case(f"no payload: {name}", ask(cut(request, 0), gives=Closed))


def lengthened(message: WireMessage) -> bytes:
    """Return a frame with 8 bytes behind the message's last field."""
    frame = encode(message)
    return frame[:4] + (len(frame) - HEAD_BYTES + 8).to_bytes(4) + frame[HEAD_BYTES:] + bytes(8)


LONGER: Final = (
    case("bytes too many: Hello", ask(lengthened(m.Hello(17, 5)), gives=m.Hello, label="hello")),
    case("bytes too many: CreateSegment", ask(lengthened(r.create()), gives=m.SegmentCreated)),
    case(
        "bytes too many: appends and reads",
        ask(r.create(), gives=m.SegmentCreated),
        ask(lengthened(r.setup()), gives=m.AppendSetup),
        ask(lengthened(r.append(1, b"x")), gives=m.DataAppended),
        ask(lengthened(r.info()), gives=m.StreamSegmentInfo),
        ask(lengthened(r.read()), gives=m.SegmentRead),
    ),
)

OLDER: Final = (
    case(
        "older versions: CreateSegment without a rollover size",
        ask(cut(r.create(), len(encode(r.create())) - HEAD_BYTES - 8), gives=m.SegmentCreated),
    ),
    case(
        "older versions: ReadSegment without a request id",
        ask(r.create(), gives=m.SegmentCreated),
        ask(r.setup(), gives=m.AppendSetup),
        ask(
            cut(r.append(1, b"x"), len(encode(r.append(1, b"x"))) - HEAD_BYTES - 8),
            gives=m.DataAppended,
        ),
        ask(cut(r.read(), len(encode(r.read())) - HEAD_BYTES - 8), gives=m.SegmentRead),
    ),
    case(
        "older versions: CreateTableSegment without all that came later",
        ask(
            cut(r.create_table(), len(encode(r.create_table())) - HEAD_BYTES - 13),
            gives=m.SegmentCreated,
        ),
        ask(r.table_info(), gives=t.TableSegmentInfo),
    ),
    case(
        "older versions: MergeSegments without attributes",
        ask(r.create(), gives=m.SegmentCreated),
        ask(r.create(r.OTHER), gives=m.SegmentCreated),
        ask(cut(r.merge(), len(encode(r.merge())) - HEAD_BYTES - 4), gives=m.SegmentsMerged),
    ),
)

NAMES: Final = tuple(
    case(
        f"name: {words}",
        ask(r.create(name), gives=m.SegmentCreated),
        ask(r.setup(name), gives=m.AppendSetup),
        ask(r.append(1, b"x"), gives=m.DataAppended),
        ask(r.read(segment=name), gives=m.SegmentRead),
        ask(r.info(name), gives=m.StreamSegmentInfo),
    )
    for words, name in (
        ("one slash", f"{TAG}/b"),
        ("spaces and letters of other scripts", f"{TAG}/a b/ä€字"),
        ("NUL and a character above U+FFFF", f"{TAG}/\0/\U0001f407"),
        ("dots", f"{TAG}/../../x"),
        ("a trailing slash", f"{TAG}/a/"),
        ("no epoch", f"{TAG}/s/0"),
        ("a transaction's", f"{TAG}/s/0.#epoch.0#transaction.{'0' * 32}"),
        ("200 letters", f"{TAG}/{'x' * 200}"),
    )
)

CASES: Final = (*HELLOS, *FRAMES, *cut_short(), *LONGER, *OLDER, *NAMES)
