"""Named publishers: what counts as a duplicate, and what is remembered."""

from __future__ import annotations

from compat.differential import frames as f
from compat.differential.script import (
    Script,
    Step,
    Wait,
    ask,
    drop,
    opened,
    script,
    silence,
)


def sent(*ids: int, publisher: int = 1, on: str = "A") -> Step:
    """Send entries of these ids in one frame and await as many confirmed."""
    entries = (f.entry(number, b"m%d" % number) for number in ids)
    return ask(on, f.publish(publisher, *entries), wait=Wait(confirmed=len(ids)))


def sequence(reference: str = "ref", on: str = "A") -> Step:
    """Ask for the last id."""
    return ask(on, f.query_sequence(reference, "~s"))


def read_back(records: int) -> tuple[Step, ...]:
    """Read the stream on a connection of its own."""
    return (
        opened("R"),
        ask("R", f.subscribe(1, "~s", f.FIRST, 1000), wait=Wait(frames=1, records=records)),
        silence("R", 0.1),
    )


def named(*steps: Step) -> tuple[Step, ...]:
    """Return steps on A that begin with a stream and publisher 1 of the reference `ref`."""
    return (
        opened("A"),
        ask("A", f.create("~s")),
        ask("A", f.declare(1, "~s", "ref")),
        *steps,
    )


SCRIPTS: tuple[Script, ...] = (
    script(
        "ids that rise are all stored",
        *named(sequence(), sent(1), sent(2, 3), sent(10), sequence(), *read_back(4)),
    ),
    script(
        "an id that was stored is confirmed and not stored again",
        *named(sent(5), sent(5), sent(4), sent(1, 5), sequence(), sent(6), *read_back(2)),
    ),
    script(
        "one frame with ids up and down",
        *named(sent(7), sent(10, 9, 11), sequence(), *read_back(3)),
    ),
    script(
        "each id twice in one frame",
        *named(sent(1, 1, 2, 2), sequence(), *read_back(2)),
    ),
    script(
        "id 0 is stored once",
        *named(sent(0), sequence(), sent(0), sent(0, 1), sequence(), *read_back(2)),
    ),
    script(
        "the largest id",
        *named(sent(2**64 - 1), sequence(), sent(1), *read_back(1)),
    ),
    script(
        "a sub-batch is one id",
        *named(
            ask("A", f.publish(1, f.sub_batch(3, f.inner(b"a", b"b"), records=2)),
                wait=Wait(confirmed=1)),
            ask("A", f.publish(1, f.sub_batch(3, f.inner(b"c", b"d"), records=2)),
                wait=Wait(confirmed=1)),
            sequence(),
            *read_back(2),
        ),
    ),
    script(
        "filter values do not matter",
        *named(
            ask("A", f.publish(1, f.filtered_entry(3, "x", b"a"), version=2),
                wait=Wait(confirmed=1)),
            ask("A", f.publish(1, f.filtered_entry(3, "y", b"b"), version=2),
                wait=Wait(confirmed=1)),
            sequence(),
            *read_back(1),
        ),
    ),
    script(
        "the sequence outlives the publisher and the connection",
        *named(
            sent(8),
            ask("A", f.delete_publisher(1)),
            sequence(),
            ask("A", f.declare(2, "~s", "ref")),
            sent(8, publisher=2),
            drop("A"),
            opened("B"),
            sequence(on="B"),
            ask("B", f.declare(1, "~s", "ref")),
            sent(7, 8, 9, on="B"),
            sequence(on="B"),
            *read_back(2),
        ),
    ),
    script(
        "two connections share a reference's sequence",
        *named(
            opened("B"),
            ask("B", f.declare(9, "~s", "ref")),
            sent(1),
            sent(1, publisher=9, on="B"),
            sent(2, publisher=9, on="B"),
            sent(2),
            sent(3),
            sequence(),
            *read_back(3),
        ),
    ),
    script(
        "references do not know each other",
        *named(
            ask("A", f.declare(2, "~s", "other")),
            sent(5),
            sent(5, publisher=2),
            sequence(),
            sequence("other"),
            *read_back(2),
        ),
    ),
    script(
        "streams do not know each other",
        *named(
            ask("A", f.create("~t")),
            ask("A", f.declare(2, "~t", "ref")),
            sent(5),
            ask("A", f.query_sequence("ref", "~t")),
            sent(4, publisher=2),
            ask("A", f.query_sequence("ref", "~t")),
        ),
    ),
    script(
        "a stream created again knows nothing",
        *named(
            sent(5),
            ask("A", f.delete("~s"), wait=Wait(frames=2)),
            ask("A", f.create("~s")),
            sequence(),
            ask("A", f.declare(1, "~s", "ref")),
            sent(1),
            sequence(),
        ),
    ),
    script(
        "a reference that has begun with no message",
        *named(sequence(), sent(), sequence()),
    ),
    script(
        "sequences of strange references",
        *named(
            sequence("unknown"),
            sequence(""),
            sequence("r" * 255),
            sequence("r" * 256),
            ask("A", f.query_sequence("ref", "~none")),
            ask("A", f.query_sequence("", "~none")),
            ask("A", f.query_sequence("r" * 300, "~none")),
        ),
    ),
)  # fmt: skip
