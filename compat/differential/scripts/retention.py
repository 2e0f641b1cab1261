"""Retention by size and age, the records that are left, and the first offset of a stream.

Segments are so small that three messages fill one. RabbitMQ looks at them only when it begins
another, without what that will hold, and does so in a process of its own: limits leave room, and
there is a pause before anything is asked.
"""

from __future__ import annotations

from compat.differential import frames as f
from compat.differential.script import (
    Script,
    Step,
    Wait,
    ask,
    hear,
    opened,
    pause,
    script,
    silence,
    tell,
)
from compat.differential.scripts.reading import PLACES

SEGMENT = {"stream-max-segment-size-bytes": "3000"}
SIZE = 1_000
SETTLED_S = 0.4


def message(number: int) -> Step:
    """Store one message in a chunk of its own, on A; three fill a segment."""
    body = b"%03d" % number + bytes(SIZE - 3)
    return ask("A", f.messages(1, number, body), wait=Wait(confirmed=1))


def stocked(arguments: dict[str, str], count: int, *steps: Step, reference: str = "") -> list[Step]:
    """Return steps that begin with a stream of so many messages."""
    return [
        opened("A"),
        ask("A", f.create("~s", SEGMENT | arguments)),
        ask("A", f.declare(1, "~s", reference)),
        *(message(number) for number in range(count)),
        pause(SETTLED_S),
        *steps,
    ]


def described(label: str) -> tuple[Step, ...]:
    """Ask where the stream begins and ends, in every way there is."""
    return (
        ask("A", f.stream_stats("~s"), label=label),
        *(
            ask("A", f.resolve("~s", place), label=label)
            for place in (f.FIRST, f.at_offset(0), f.at_offset(4), f.at_timestamp(0), f.LAST)
        ),
    )


def read(records: int, place: bytes = f.FIRST) -> tuple[Step, ...]:
    """Read what is left."""
    return (
        opened("B"),
        ask("B", f.subscribe(1, "~s", place, 50), wait=Wait(frames=1, records=records)),
        silence("B", 0.1),
    )


BY_SIZE = tuple(
    script(
        f"retention: {count} messages in segments of three, {limit or 'no limit'}",
        *stocked(
            {"max-length-bytes": limit} if limit else {},
            count,
            *described("described"),
            *read(left),
        ),
    )
    for limit, count, left in (
        ("", 10, 10),
        ("8000", 9, 9),
        ("8000", 10, 7),
        ("8000", 13, 7),
        ("100000", 10, 10),
        ("5000", 7, 4),
        ("1", 7, 1),
        ("0", 6, 3),
        ("0", 7, 1),
        ("-1", 7, 1),
    )
)

BY_AGE = (
    script(
        "retention: a segment that is too old goes when another begins",
        *stocked(
            {"max-age": "1s"},
            3,
            pause(2.0),
            message(3),
            pause(SETTLED_S),
            *described("described"),
            *read(1),
        ),
    ),
    script(
        "retention: the only segment stays however old",
        *stocked({"max-age": "1s"}, 2, pause(2.0), *described("described"), *read(2)),
    ),
    script(
        "retention: an age that is none removes nothing",
        *stocked({"max-age": "soon"}, 7, *described("described"), *read(7)),
    ),
    script(
        "retention: by size and by age",
        *stocked(
            {"max-age": "1h", "max-length-bytes": "8000"}, 10, *described("described"), *read(7)
        ),
    ),
)

KEPT = (
    script(
        "retention: a stored offset below what is left, and a publisher",
        *stocked(
            {"max-length-bytes": "1"},
            2,
            tell("A", f.store_offset("old", "~s", 1)),
            tell("A", f.store_offset("far", "~s", 2**64 - 1)),
            ask("A", f.query_offset("old", "~s"), label="before"),
            *(message(number) for number in range(2, 14)),
            pause(SETTLED_S),
            ask("A", f.query_offset("old", "~s"), label="after"),
            ask("A", f.query_offset("far", "~s"), label="after"),
            ask("A", f.query_sequence("ref", "~s"), label="after"),
            message(5),
            ask("A", f.query_sequence("ref", "~s"), label="duplicate"),
            reference="ref",
        ),
    ),
    script(
        "retention: an offset before the first can be stored",
        *stocked(
            {"max-length-bytes": "1"},
            10,
            tell("A", f.store_offset("low", "~s", 1)),
            ask("A", f.query_offset("low", "~s")),
            tell("A", f.store_offset("zero", "~s", 0)),
            ask("A", f.query_offset("zero", "~s")),
        ),
    ),
    script(
        "retention: reading at an offset that is gone begins at the oldest",
        *stocked({"max-length-bytes": "8000"}, 10, *read(7, f.at_offset(1))),
    ),
    script(
        "retention: a consumer at the end notices nothing",
        *stocked(
            {"max-length-bytes": "1"},
            1,
            opened("B"),
            ask("B", f.subscribe(1, "~s", f.NEXT, 50), wait=Wait(frames=1)),
            *(step for number in range(1, 8) for step in (message(number), hear("B", records=1))),
        ),
    ),
)

# Ten messages in four segments, all there or the last two left: a client that is told its start
# must get all records from there.
SEGMENTS_AT = tuple(
    script(
        f"retention: four segments, {name}",
        *stocked({}, 10),
        opened("B"),
        ask("B", f.resolve("~s", place), label="resolved"),
        ask("B", f.subscribe(1, "~s", place, 50), wait=Wait(frames=1), label="subscribed"),
        hear("B", linger_s=0.2),
    )
    for name, place, _ in PLACES
)
TRUNCATED_AT = tuple(
    script(
        f"retention: two segments of four are left, {name}",
        *stocked({"max-length-bytes": "5000"}, 10),
        opened("B"),
        ask("B", f.resolve("~s", place), label="resolved"),
        ask("B", f.subscribe(1, "~s", place, 50), wait=Wait(frames=1), label="subscribed"),
        hear("B", linger_s=0.2),
    )
    for name, place, _ in PLACES
)

# New in RabbitMQ 4.4: 4.3 takes it for an argument that it does not know.
INITIAL = (
    *(
        script(
            f"initial offset: {value!r}",
            opened("A"),
            ask("A", f.create("~s", {"stream-initial-offset": value}), label="create"),
            ask("A", f.metadata("~s"), label="metadata"),
        )
        for value in ("0", "1000", str(2**47 - 1), str(2**47), "-1", "", "ten", "1.5")
    ),
    script(
        "initial offset: the first record gets it",
        opened("A"),
        ask("A", f.create("~s", {"stream-initial-offset": "1000"})),
        ask("A", f.resolve("~s", f.NEXT), label="empty"),
        ask("A", f.stream_stats("~s"), label="statistics of nothing"),
        ask("A", f.declare(1, "~s")),
        message(0),
        ask("A", f.stream_stats("~s"), label="statistics"),
        opened("B"),
        ask("B", f.subscribe(1, "~s"), wait=Wait(frames=1, records=1), label="read"),
    ),
    script(
        "initial offset: create again with another",
        opened("A"),
        ask("A", f.create("~s", {"stream-initial-offset": "1"}, corr=1)),
        ask("A", f.create("~s", {"stream-initial-offset": "01"}, corr=2)),
        ask("A", f.create("~s", {"stream-initial-offset": "2"}, corr=3), label="another"),
        ask("A", f.create("~s", corr=4), label="another"),
    ),
)

SCRIPTS: tuple[Script, ...] = (
    *BY_SIZE, *BY_AGE, *KEPT, *SEGMENTS_AT, *TRUNCATED_AT, *INITIAL,
)  # fmt: skip
