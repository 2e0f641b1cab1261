"""Subscribing at every kind of place, credit, and unsubscribing.

Where the number of chunks is the point, each chunk is one sub-batch that was confirmed before the
next was sent: no server joins those.
"""

from __future__ import annotations

from compat.differential import frames as f
from compat.differential.script import (
    Script,
    Step,
    Wait,
    ask,
    drop,
    hear,
    marked,
    opened,
    script,
    silence,
    tell,
)


def chunk(publishing_id: int) -> Step:
    """Store one chunk of two records, on A."""
    bodies = f.inner(b"a%d" % publishing_id, b"b%d" % publishing_id)
    frame = f.publish(1, f.sub_batch(publishing_id, bodies, records=2))
    return ask("A", frame, wait=Wait(confirmed=1))


def message(publishing_id: int) -> Step:
    """Store one message, on A."""
    return ask("A", f.messages(1, publishing_id, b"m%d" % publishing_id), wait=Wait(confirmed=1))


def stocked(*steps: Step, chunks: int = 0) -> tuple[Step, ...]:
    """Return steps that begin with a stream of so many chunks, published on A."""
    return (
        opened("A"),
        ask("A", f.create("~s")),
        ask("A", f.declare(1, "~s")),
        *(chunk(number) for number in range(1, chunks + 1)),
        opened("B"),
        *steps,
    )


def subscribed(offset: bytes, records: int, credit: int = 100) -> Step:
    """Subscribe on B and await so many records."""
    frame = f.subscribe(1, "~s", offset, credit)
    return ask("B", frame, wait=Wait(frames=1, records=records))


FAR = 2_000_000_000_000_000
PLACES = (
    ("first", f.FIRST, 10),
    ("last", f.LAST, 2),
    ("next", f.NEXT, 0),
    ("offset 0", f.at_offset(0), 10),
    ("offset 4, where a chunk begins", f.at_offset(4), 6),
    ("offset 5, inside a chunk", f.at_offset(5), 6),
    ("offset 9, the last record", f.at_offset(9), 2),
    ("offset 10, the end", f.at_offset(10), 0),
    ("offset 11, beyond the end", f.at_offset(11), 0),
    ("the largest offset", f.at_offset(2**64 - 1), 0),
    ("timestamp 0", f.at_timestamp(0), 10),
    ("a negative timestamp", f.at_timestamp(-(2**63)), 10),
    ("a timestamp in the far future", f.at_timestamp(FAR), 0),
)
FULL = tuple(
    script(
        f"five chunks, subscribed at {name}",
        *stocked(
            subscribed(place, records),
            silence("B", 0.1),
            chunk(6),
            hear("B", records=2),
            chunk(7),
            hear("B", records=2),
            chunks=5,
        ),
        exact_chunks=True,
    )
    for name, place, records in PLACES
)
EMPTY = tuple(
    script(
        f"an empty stream, subscribed at {name}",
        *stocked(
            subscribed(place, 0),
            silence("B", 0.1),
            chunk(1),
            hear("B", records=2),
            chunk(2),
            hear("B", records=2),
        ),
        exact_chunks=True,
    )
    for name, place, _ in PLACES
)

TIMES = (
    script(
        "a timestamp between two chunks begins at the later one",
        *stocked(
            chunk(1), marked("a"), chunk(2), marked("b"), chunk(3),
            subscribed(f.at_mark("a"), 4),
            ask("B", f.subscribe(2, "~s", f.at_mark("b"), 10), wait=Wait(frames=1, records=2)),
            silence("B", 0.1),
        ),
        exact_chunks=True,
    ),
    script(
        "a timestamp behind the last chunk waits for what comes",
        *stocked(
            chunk(1), marked("a"),
            subscribed(f.at_mark("a"), 0),
            silence("B", 0.1),
            chunk(2),
            hear("B", records=2),
        ),
        exact_chunks=True,
    ),
)  # fmt: skip

CHECKED = (
    script("subscribe to what does not exist", opened("A"), ask("A", f.subscribe(1, "~none"))),
    script("subscribe to the empty name", opened("A"), ask("A", f.subscribe(1, ""))),
    script(
        "subscribe with an id that is taken",
        *stocked(
            ask("B", f.subscribe(1, "~s", f.NEXT, corr=1)),
            ask("B", f.subscribe(1, "~s", f.NEXT, corr=2)),
            ask("B", f.subscribe(1, "~none", f.NEXT, corr=3)),
            ask("B", f.subscribe(2, "~s", f.NEXT, corr=4)),
            ask("B", f.unsubscribe(1, corr=5)),
            ask("B", f.subscribe(1, "~s", f.NEXT, corr=6)),
        ),
    ),
    script(
        "the 257th subscription",
        *stocked(
            ask("B", *(f.subscribe(i, "~s", f.NEXT, 1, corr=i) for i in range(256))),
            ask("B", f.subscribe(7, "~s", f.NEXT, corr=1)),
            ask("B", f.subscribe(7, "~none", f.NEXT, corr=2)),
            ask("B", f.unsubscribe(7, corr=3)),
            ask("B", f.subscribe(7, "~s", f.NEXT, corr=4)),
        ),
    ),
    *(
        script(
            f"subscribe with a name of {size} bytes",
            *stocked(
                ask("B", f.subscribe(1, "~s", pairs={"name": "n" * size}, corr=1)),
                ask("B", f.subscribe(2, "~none", pairs={"name": "n" * size}, corr=2)),
            ),
        )
        for size in (255, 256)
    ),
    script(
        "subscribe with properties that nobody knows",
        *stocked(
            ask("B", f.subscribe(1, "~s", pairs={"colour": "red", "": "", "filter": "x"}),
                wait=Wait(frames=1, records=2)),
            chunks=1,
        ),
    ),
    script(
        "unsubscribe what is there and what is not",
        *stocked(
            ask("B", f.unsubscribe(1, corr=1)),
            subscribed(f.FIRST, 2),
            ask("B", f.unsubscribe(1, corr=2)),
            ask("B", f.unsubscribe(1, corr=3)),
            chunk(2),
            silence("B"),
            chunks=1,
        ),
    ),
    script(
        "two subscriptions of one connection to one stream",
        *stocked(
            ask("B", f.subscribe(3, "~s", f.FIRST, 10), wait=Wait(frames=1, records=4)),
            ask("B", f.subscribe(200, "~s", f.at_offset(2), 10), wait=Wait(frames=1, records=2)),
            chunk(3),
            hear("B", records=4),
            chunks=2,
        ),
        exact_chunks=True,
    ),
    script(
        "a connection that publishes and reads at once",
        opened("A"),
        ask("A", f.create("~s")),
        ask("A", f.declare(1, "~s")),
        ask("A", f.subscribe(1, "~s", f.FIRST, 100)),
        *(
            ask("A", f.messages(1, number, b"m%d" % number), wait=Wait(confirmed=1, records=1))
            for number in range(5)
        ),
    ),
    script(
        "a subscription goes on where it was when another connection comes and goes",
        *stocked(
            subscribed(f.FIRST, 4),
            opened("C"),
            ask("C", f.subscribe(1, "~s", f.FIRST, 100), wait=Wait(frames=1, records=4)),
            drop("C"),
            chunk(3),
            hear("B", records=2),
            chunks=2,
        ),
    ),
)  # fmt: skip

CREDITS = (
    script(
        "version 2 of Deliver says how far the stream is committed",
        *stocked(
            ask("B", f.versions((8, 1, 2))),
            subscribed(f.FIRST, 2, 1),
            ask("B", f.credit(1, 1), wait=Wait(chunks=1)),
            chunk(4),
            ask("B", f.credit(1, 2), wait=Wait(chunks=2)),
            chunks=3,
        ),
        exact_chunks=True,
    ),
    script(
        "credit of an unknown subscription",
        opened("A"),
        ask("A", f.credit(9, 5)),
        ask("A", f.credit(0, 0)),
        ask("A", f.credit(255, -1)),
    ),
    script(
        "no credit, no chunk; then as many as credited",
        *stocked(
            subscribed(f.FIRST, 0, 0),
            silence("B"),
            ask("B", f.credit(1, 1), wait=Wait(chunks=1)),
            silence("B"),
            ask("B", f.credit(1, 2), wait=Wait(chunks=2)),
            silence("B"),
            ask("B", f.credit(1, 100), wait=Wait(chunks=2)),
            silence("B", 0.1),
            chunks=5,
        ),
        exact_chunks=True,
    ),
    script(
        "credit of one, topped up by one",
        *stocked(
            subscribed(f.FIRST, 2, 1),
            silence("B"),
            ask("B", f.credit(1, 1), wait=Wait(chunks=1)),
            silence("B"),
            ask("B", f.credit(1, 1), wait=Wait(chunks=1)),
            silence("B"),
            chunk(4),
            silence("B"),
            ask("B", f.credit(1, 1), wait=Wait(chunks=1)),
            chunks=3,
        ),
        exact_chunks=True,
    ),
    script(
        "credit that was not used waits for what comes",
        *stocked(
            subscribed(f.FIRST, 2, 3),
            chunk(2),
            hear("B", chunks=1),
            chunk(3),
            silence("B", label="below the threshold"),
            chunk(4),
            silence("B", label="below the threshold"),
            ask("B", f.credit(1, 3), wait=Wait(chunks=1), label="below the threshold"),
            silence("B"),
            chunks=1,
        ),
        exact_chunks=True,
    ),
    script(
        "negative credit is subtracted",
        *stocked(
            subscribed(f.FIRST, 0, 0),
            tell("B", f.credit(1, -2)),
            tell("B", f.credit(1, 2)),
            silence("B"),
            ask("B", f.credit(1, 1), wait=Wait(chunks=1)),
            silence("B"),
            chunks=3,
        ),
        exact_chunks=True,
    ),
    script(
        "credit of 0 changes nothing",
        *stocked(
            subscribed(f.FIRST, 2, 1),
            tell("B", f.credit(1, 0)),
            silence("B"),
            chunks=2,
        ),
        exact_chunks=True,
    ),
    script(
        "credit of the largest numbers adds up",
        *stocked(
            subscribed(f.FIRST, 2, 65_535),
            tell("B", f.credit(1, 32_767), f.credit(1, 32_767)),
            chunk(2),
            hear("B", chunks=1),
            chunks=1,
        ),
        exact_chunks=True,
    ),
    script(
        "subscriptions do not share credit",
        *stocked(
            ask("B", f.subscribe(1, "~s", f.FIRST, 1), wait=Wait(frames=1, chunks=1)),
            ask("B", f.subscribe(2, "~s", f.FIRST, 1), wait=Wait(frames=1, chunks=1)),
            ask("B", f.credit(2, 1), wait=Wait(chunks=1)),
            silence("B"),
            ask("B", f.credit(1, 1), wait=Wait(chunks=1)),
            chunks=3,
        ),
        exact_chunks=True,
    ),
    script(
        "half of the initial credit used up, one added",
        *stocked(
            subscribed(f.FIRST, 8, 4),
            ask("B", f.credit(1, 1), wait=Wait(), label="half"),
            silence("B", label="half"),
            ask("B", f.credit(1, 1), wait=Wait(), label="half"),
            silence("B", label="half"),
            ask("B", f.credit(1, 1), wait=Wait(), label="half"),
            silence("B", label="half"),
            chunks=8,
        ),
        exact_chunks=True,
    ),
)

ONE_BY_ONE = tuple(message(number) for number in range(40))
JOINED = (
    *(
        script(
            f"five messages of one frame, read from {name}",
            *stocked(
                ask("A", f.messages(1, 1, *(b"m%d" % i for i in range(5))),
                    wait=Wait(confirmed=5)),
                message(6),
                subscribed(place, records),
                silence("B", 0.1),
            ),
        )
        for name, place, records in (
            ("offset 0", f.at_offset(0), 6),
            ("offset 3", f.at_offset(3), 6),
            ("offset 4", f.at_offset(4), 6),
            ("offset 5", f.at_offset(5), 1),
            ("last", f.LAST, 1),
        )
    ),
    *(
        script(
            f"forty messages stored one by one, read from {name}",
            *stocked(*ONE_BY_ONE, subscribed(place, records), silence("B", 0.1)),
        )
        for name, place, records in (
            ("first", f.FIRST, 40),
            ("last", f.LAST, 1),
            ("offset 17", f.at_offset(17), 23),
            ("offset 39", f.at_offset(39), 1),
            ("offset 40", f.at_offset(40), 0),
            ("timestamp 0", f.at_timestamp(0), 40),
        )
    ),
    script(
        "forty messages stored one by one, and a sub-batch in between",
        *stocked(
            *ONE_BY_ONE[:10], chunk(50), *ONE_BY_ONE[10:20], chunk(51),
            subscribed(f.FIRST, 24),
            ask("B", f.subscribe(2, "~s", f.at_offset(11), 100), wait=Wait(frames=1, records=14)),
            silence("B", 0.1),
        ),
    ),
    script(
        "forty messages stored one by one, read with a credit of one",
        *stocked(
            *ONE_BY_ONE,
            ask("B", f.subscribe(1, "~s", f.FIRST, 1), wait=Wait(frames=1, chunks=1),
                label="joined"),
            silence("B", 0.1, label="joined"),
        ),
    ),
    script(
        "a subscription may use the id of one that ended, and begins anew",
        *stocked(
            subscribed(f.FIRST, 4),
            ask("B", f.unsubscribe(1)),
            subscribed(f.FIRST, 4),
            chunk(3),
            hear("B", records=2),
            chunks=2,
        ),
        exact_chunks=True,
    ),
)  # fmt: skip

FILTERS = (
    script(
        "a filter that every chunk matches",
        *stocked(
            ask("A", f.publish(1, f.filtered_entry(1, "red", b"r"), version=2),
                wait=Wait(confirmed=1)),
            ask("B", f.subscribe(1, "~s", f.FIRST, 10, {"filter.0": "red"}),
                wait=Wait(frames=1, records=1)),
        ),
    ),
    script(
        "unfiltered messages with match-unfiltered",
        *stocked(
            message(1),
            ask("B", f.subscribe(1, "~s", f.FIRST, 10,
                                 {"filter.0": "red", "match-unfiltered": "true"}),
                wait=Wait(frames=1, records=1)),
        ),
    ),
    script(
        "a filter that no chunk matches",
        *stocked(
            ask("A", f.publish(1, f.filtered_entry(1, "red", b"r"), version=2),
                wait=Wait(confirmed=1)),
            ask("B", f.subscribe(1, "~s", f.FIRST, 10, {"filter.0": "blue"}), label="filtered"),
            silence("B", 0.1, label="filtered"),
        ),
    ),
    script(
        "a filter on unfiltered messages",
        *stocked(
            message(1),
            ask("B", f.subscribe(1, "~s", f.FIRST, 10, {"filter.0": "red"}), label="filtered"),
            silence("B", 0.1, label="filtered"),
        ),
    ),
)  # fmt: skip

SCRIPTS: tuple[Script, ...] = (
    *FULL, *EMPTY, *TIMES, *CHECKED, *CREDITS, *JOINED, *FILTERS,
)  # fmt: skip
