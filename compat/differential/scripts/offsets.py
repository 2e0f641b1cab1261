"""Stored offsets, statistics, and resolving a place to an offset."""

from __future__ import annotations

from compat.differential import frames as f
from compat.differential.script import (
    Script,
    Step,
    Wait,
    ask,
    marked,
    opened,
    script,
    tell,
)
from compat.differential.scripts.reading import FAR, PLACES, chunk, stocked


def query(reference: str = "app", stream: str = "~s", corr: int = 7) -> Step:
    """Ask on A for a stored offset."""
    return ask("A", f.query_offset(reference, stream, corr=corr))


def stored(offset: int, reference: str = "app", stream: str = "~s") -> Step:
    """Store on A and ask in the same piece."""
    frames = (f.store_offset(reference, stream, offset), f.query_offset(reference, stream))
    return ask("A", *frames, wait=Wait(frames=1))


def with_stream(*steps: Step) -> tuple[Step, ...]:
    """Return steps on A that begin with an empty stream."""
    return (opened("A"), ask("A", f.create("~s")), *steps)


STORED = (
    script("no offset was stored", *with_stream(query())),
    script("an offset is seen by the query behind it", *with_stream(stored(5), query())),
    script(
        "the last one counts, also if it is lower",
        *with_stream(stored(5), stored(3), stored(0), query()),
    ),
    script(
        "the largest offset, and one beyond the end",
        *with_stream(stored(2**64 - 1), stored(1_000_000), query()),
    ),
    script(
        "references have offsets of their own",
        *with_stream(
            stored(1, "one"), stored(2, "two"), query("one"), query("two"), query("three")
        ),
    ),
    script(
        "streams have offsets of their own",
        *with_stream(
            ask("A", f.create("~t")),
            stored(1),
            query("app", "~t"),
            stored(2, "app", "~t"),
            query(),
        ),
    ),
    script("an empty reference", *with_stream(stored(4, ""), query(""))),
    script("a reference of 255 bytes", *with_stream(stored(4, "r" * 255))),
    script(
        "a reference of 256 bytes is not stored",
        *with_stream(stored(4, "r" * 256), query("r" * 256)),
    ),
    script(
        "bytes that are no text in a reference",
        *with_stream(
            ask("A", f.request(0x0B, f.text(b"\xff\xfe") + f.text("~s"))),
            tell("A", f.command(0x0A, f.text(b"\xff\xfe") + f.text("~s") + bytes(7) + b"\x09")),
            ask("A", f.request(0x0B, f.text(b"\xff\xfe") + f.text("~s"))),
        ),
    ),
    script(
        "storing on what does not exist is silent",
        opened("A"),
        stored(5, "app", "~none"),
        query("app", "~none"),
        query("", ""),
    ),
    script(
        "another connection sees what was stored",
        *with_stream(
            stored(9), opened("B"),
            ask("B", f.query_offset("app", "~s")),
            ask("B", f.store_offset("app", "~s", 10), f.query_offset("app", "~s"),
                wait=Wait(frames=1)),
            query(),
        ),
    ),
    script(
        "many stores in one piece",
        *with_stream(
            ask("A", *(f.store_offset("app", "~s", i) for i in range(50)),
                f.query_offset("app", "~s"), wait=Wait(frames=1)),
        ),
    ),
    script(
        "a stream created again has no offsets",
        *with_stream(
            stored(5),
            ask("A", f.delete("~s"), wait=Wait(frames=2)),
            ask("A", f.create("~s")),
            query(),
        ),
    ),
    script(
        "offsets and sequences of one name are two things",
        *with_stream(
            ask("A", f.declare(1, "~s", "app")),
            ask("A", f.messages(1, 7, b"x"), wait=Wait(confirmed=1)),
            query(),
            ask("A", f.query_sequence("app", "~s")),
        ),
    ),
)  # fmt: skip

STATISTICS = (
    script("statistics of what does not exist", opened("A"), ask("A", f.stream_stats("~none"))),
    script("statistics of an empty stream", *with_stream(ask("A", f.stream_stats("~s")))),
    script(
        "statistics chunk by chunk",
        *stocked(
            ask("B", f.stream_stats("~s")),
            chunk(1),
            ask("B", f.stream_stats("~s")),
            chunk(2),
            chunk(3),
            ask("B", f.stream_stats("~s")),
        ),
    ),
    script(
        "statistics after an offset was stored",
        *stocked(
            ask("B", f.store_offset("app", "~s", 1), f.query_offset("app", "~s"),
                wait=Wait(frames=1)),
            ask("B", f.stream_stats("~s"), label="statistics"),
            chunks=1,
        ),
    ),
)  # fmt: skip

RESOLVED = (
    *(
        script(
            f"five chunks, resolved at {name}",
            *stocked(ask("B", f.resolve("~s", place)), chunks=5),
        )
        for name, place, _ in PLACES
    ),
    *(
        script(f"an empty stream, resolved at {name}", *stocked(ask("B", f.resolve("~s", place))))
        for name, place, _ in PLACES
    ),
    script(
        "resolved at timestamps between chunks",
        *stocked(
            chunk(1), marked("a"), chunk(2), marked("b"), chunk(3), marked("c"),
            ask("B", f.resolve("~s", f.at_mark("a"))),
            ask("B", f.resolve("~s", f.at_mark("b"))),
            ask("B", f.resolve("~s", f.at_mark("c"))),
        ),
    ),
    script(
        "resolving where there is no stream",
        opened("A"),
        *(ask("A", f.resolve("~none", place)) for place in (f.FIRST, f.at_offset(5))),
        ask("A", f.resolve("", f.LAST)),
    ),
    script(
        "resolving with properties, which change nothing",
        *stocked(
            ask("B", f.resolve("~s", f.FIRST, {})),
            ask("B", f.resolve("~s", f.FIRST, {"filter.0": "x", "match-unfiltered": "no"})),
            ask("B", f.resolve("~s", f.NEXT, {"chunk_selector": "all", "other": ""})),
            ask("B", f.resolve("~s", f.at_timestamp(FAR), {"name": "n" * 300})),
            chunks=2,
        ),
    ),
)  # fmt: skip

SCRIPTS: tuple[Script, ...] = (*STORED, *STATISTICS, *RESOLVED)
