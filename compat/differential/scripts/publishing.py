"""Declaring publishers, publishing entries of every kind, being confirmed and refused."""

from __future__ import annotations

import gzip
import struct

from compat.differential import frames as f
from compat.differential.script import (
    Script,
    Step,
    Wait,
    ask,
    hear,
    opened,
    refused,
    script,
    silence,
    tell,
)

READ_ALL = Wait(frames=1)


def confirmed(*bodies: bytes, count: int) -> Step:
    """Send on A and await that many confirmed ids."""
    return ask("A", *bodies, wait=Wait(confirmed=count))


def read_back(records: int) -> tuple[Step, ...]:
    """Read the stream on a connection of its own."""
    return (
        opened("R"),
        ask("R", f.subscribe(1, "~s", f.FIRST, 1000), wait=Wait(frames=1, records=records)),
        silence("R", 0.1),
    )


def with_publisher(*steps: Step, reference: str = "") -> tuple[Step, ...]:
    """Return steps on A that begin with a stream and publisher 1."""
    return (
        opened("A"),
        ask("A", f.create("~s")),
        ask("A", f.declare(1, "~s", reference)),
        *steps,
    )


DECLARED = (
    script("declare on what does not exist", opened("A"), ask("A", f.declare(1, "~none"))),
    script("declare on the empty name", opened("A"), ask("A", f.declare(1, ""))),
    script(
        "declare with an id that is taken",
        *with_publisher(
            ask("A", f.declare(1, "~s", corr=2)),
            ask("A", f.declare(1, "~s", "other", corr=3)),
            ask("A", f.declare(1, "~none", corr=4)),
        ),
    ),
    script(
        "declare with a reference that is taken",
        *with_publisher(
            ask("A", f.declare(2, "~s", "ref", corr=2)),
            ask("A", f.declare(3, "~s", "ref2", corr=3)),
            ask("A", f.declare(2, "~s", "ref2", corr=4)),
            ask("A", f.create("~t", corr=5)),
            ask("A", f.declare(4, "~t", "ref", corr=6)),
            ask("A", f.declare(5, "~none", "ref", corr=7)),
            reference="ref",
        ),
    ),
    script(
        "the same reference on two connections",
        *with_publisher(
            opened("B"),
            ask("B", f.declare(1, "~s", "ref")),
            reference="ref",
        ),
    ),
    script(
        "publishers without reference, as many as there are ids",
        *with_publisher(
            ask("A", *(f.declare(number, "~s", corr=number) for number in (0, 2, 3, 254, 255))),
        ),
    ),
    script(
        "the 257th publisher",
        opened("A"),
        ask("A", f.create("~s")),
        ask("A", *(f.declare(number, "~s", corr=number) for number in range(256))),
        ask("A", f.declare(0, "~s", corr=1)),
        ask("A", f.declare(7, "~none", corr=2)),
        ask("A", f.declare(7, "~s", "r" * 256, corr=3)),
        ask("A", f.delete_publisher(7, corr=4)),
        ask("A", f.declare(7, "~s", corr=5)),
    ),
    *(
        script(
            f"declare with a reference of {size} bytes",
            opened("A"),
            ask("A", f.create("~s")),
            ask("A", f.declare(1, "~s", "r" * size, corr=2)),
            ask("A", f.query_sequence("r" * size, "~s", corr=3)),
        )
        for size in (254, 255, 256, 1000)
    ),
    script(
        "a long reference on what does not exist",
        opened("A"),
        ask("A", f.declare(1, "~none", "r" * 256)),
    ),
    script(
        "255 bytes in fewer letters",
        opened("A"),
        ask("A", f.create("~s")),
        ask("A", f.declare(1, "~s", "ü" * 127, corr=2)),
        ask("A", f.declare(2, "~s", "ü" * 128, corr=3)),
    ),
    script(
        "delete publishers that are there and that are not",
        *with_publisher(
            ask("A", f.delete_publisher(2, corr=2)),
            ask("A", f.delete_publisher(1, corr=3)),
            ask("A", f.delete_publisher(1, corr=4)),
            ask("A", f.declare(1, "~s", "ref", corr=5)),
            reference="ref",
        ),
    ),
    script(
        "publishing after the publisher was deleted",
        *with_publisher(
            confirmed(f.messages(1, 1, b"a"), count=1),
            ask("A", f.delete_publisher(1)),
            ask("A", f.messages(1, 2, b"b"), wait=READ_ALL),
        ),
    ),
)

SIMPLE = (
    script(
        "one message, read back",
        *with_publisher(confirmed(f.messages(1, 1, b"hello"), count=1), *read_back(1)),
        exact_chunks=True,
    ),
    script(
        "one message of a named publisher, read back",
        *with_publisher(
            confirmed(f.messages(1, 1, b"hello"), count=1), *read_back(1), reference="ref"
        ),
        exact_chunks=True,
    ),
    script(
        "an empty message",
        *with_publisher(confirmed(f.messages(1, 1, b""), count=1), *read_back(1)),
        exact_chunks=True,
    ),
    script(
        "a hundred messages in one frame",
        *with_publisher(
            confirmed(f.messages(1, 1, *(b"m%d" % i for i in range(100))), count=100),
            *read_back(100),
        ),
    ),
    script(
        "ids without order and twice, without reference",
        *with_publisher(
            confirmed(
                f.publish(1, *(f.entry(i, b"x") for i in (5, 5, 3, 0, 2**64 - 1, 5))), count=6
            ),
            *read_back(6),
        ),
    ),
    script(
        "two publishers of one stream on one connection",
        *with_publisher(
            ask("A", f.declare(2, "~s")),
            confirmed(f.messages(1, 1, b"a"), count=1),
            confirmed(f.messages(2, 1, b"b"), count=1),
            confirmed(f.messages(1, 2, b"c"), f.messages(2, 2, b"d"), count=2),
            *read_back(4),
        ),
    ),
    script(
        "a count that is too high",
        *with_publisher(
            confirmed(f.publish(1, f.entry(1, b"a"), count=5), count=1),
            confirmed(f.messages(1, 2, b"b"), count=1),
            *read_back(2),
        ),
    ),
    script(
        "a count that is too low",
        *with_publisher(
            confirmed(f.publish(1, f.entry(1, b"a"), f.entry(2, b"b"), count=1), count=2),
            *read_back(2),
        ),
    ),
    script(
        "a count of none before an entry",
        *with_publisher(
            ask("A", f.publish(1, f.entry(1, b"a"), count=0), wait=Wait()),
            silence("A"),
            confirmed(f.messages(1, 2, b"b"), count=1),
        ),
    ),
    script(
        "a count of 2^32 - 1",
        *with_publisher(
            confirmed(f.publish(1, f.entry(1, b"a"), count=2**32 - 1), count=1),
            ask("A", f.metadata(), wait=Wait(frames=1, timeout_s=1.0), label="afterwards"),
            *read_back(1),
        ),
    ),
    script(
        "a publish of nothing",
        *with_publisher(
            ask("A", f.publish(1), wait=Wait()),
            silence("A"),
            confirmed(f.messages(1, 2, b"b"), count=1),
            *read_back(1),
        ),
    ),
    script(
        "a publish of nothing by an unknown publisher",
        opened("A"),
        ask("A", f.publish(9), wait=READ_ALL),
    ),
    script(
        "an unknown publisher",
        *with_publisher(
            ask("A", f.messages(9, 10, b"a", b"b", b"c"), wait=READ_ALL),
            confirmed(f.messages(1, 1, b"x"), count=1),
            *read_back(1),
        ),
    ),
    script(
        "an unknown publisher with a count that lies",
        opened("A"),
        ask("A", f.publish(9, f.entry(1, b"a"), f.entry(2, b"b"), count=1), wait=READ_ALL),
        ask("A", f.publish(9, f.entry(1, b"a"), count=3), wait=READ_ALL),
    ),
    script(
        "an unknown publisher sends a sub-batch",
        opened("A"),
        ask("A", f.publish(9, f.sub_batch(4, f.inner(b"a", b"b"), records=2)), wait=READ_ALL),
    ),
    script(
        "an unknown publisher in version 2",
        opened("A"),
        ask("A", f.publish(9, f.filtered_entry(4, "v", b"x"), version=2), wait=READ_ALL),
    ),
    script(
        "an entry cut short: those before it are stored",
        *with_publisher(
            refused("A", f.messages(1, 1, b"stored", b"cut")[:-1]),
            *read_back(1),
        ),
    ),
    script(
        "an entry whose size points far beyond the frame",
        *with_publisher(
            refused("A", f.publish(1, struct.pack(">QI", 1, 0x7FFFFFFF) + b"abc")),
        ),
    ),
    script(
        "an id cut short",
        *with_publisher(refused("A", f.publish(1, b"\0\0\0\1"))),
    ),
)

ZIPPED = gzip.compress(f.inner(b"aa", b"bb", b"cc"), mtime=0)


def batches(name: str, *entries: bytes, stored: int, awaits: Wait) -> Script:
    """Return a script that sends entries in one frame and reads back what was stored."""
    return script(
        f"sub-batch: {name}",
        *with_publisher(ask("A", f.publish(1, *entries), wait=awaits), *read_back(stored)),
        exact_chunks=len(entries) == 1,
    )


ONE = Wait(confirmed=1)
TWO_INSIDE = f.inner(b"a", b"b")
SUB_BATCHES = (
    batches("uncompressed", f.sub_batch(1, TWO_INSIDE, records=2), stored=2, awaits=ONE),
    batches(
        "gzip",
        f.sub_batch(1, ZIPPED, records=3, compression=1, uncompressed=18),
        stored=3,
        awaits=ONE,
    ),
    *(
        batches(
            f"compression {compression}, which is not looked into",
            f.sub_batch(1, b"garbage", records=2, compression=compression, uncompressed=100),
            stored=2,
            awaits=ONE,
        )
        for compression in (1, 2, 3, 4)
    ),
    *(
        batches(
            f"compression {compression}, which does not exist",
            f.sub_batch(1, b"garbage", records=2, compression=compression, uncompressed=100),
            stored=0,
            awaits=READ_ALL,
        )
        for compression in (5, 6, 7)
    ),
    batches(
        "reserved bits",
        f.sub_batch(1, TWO_INSIDE, records=2, reserved=15),
        stored=2,
        awaits=ONE,
    ),
    batches("no records", f.sub_batch(1, b"", records=0), stored=0, awaits=READ_ALL),
    batches(
        "no records in a body",
        f.sub_batch(1, TWO_INSIDE, records=0),
        stored=0,
        awaits=READ_ALL,
    ),
    batches(
        "an empty body without compression",
        f.sub_batch(1, b"", records=2, uncompressed=100),
        stored=2,
        awaits=ONE,
    ),
    batches(
        "an empty body with compression",
        f.sub_batch(1, b"", records=2, compression=1, uncompressed=100),
        stored=0,
        awaits=READ_ALL,
    ),
    batches(
        "records × 4 are the uncompressed size",
        f.sub_batch(1, b"12345678", records=2, uncompressed=8),
        stored=2,
        awaits=ONE,
    ),
    batches(
        "records × 4 are one more than the uncompressed size",
        f.sub_batch(1, b"12345678", records=2, uncompressed=7),
        stored=0,
        awaits=READ_ALL,
    ),
    batches(
        "as large uncompressed as allowed",
        f.sub_batch(1, b"x", records=1, compression=1, uncompressed=67_108_864),
        stored=1,
        awaits=ONE,
    ),
    batches(
        "larger uncompressed than allowed",
        f.sub_batch(1, b"x", records=1, compression=1, uncompressed=67_108_865),
        stored=0,
        awaits=READ_ALL,
    ),
    batches(
        "65,535 records",
        f.sub_batch(1, b"x", records=65_535, compression=1, uncompressed=4 * 65_535),
        stored=65_535,
        awaits=ONE,
    ),
    batches(
        "beside simple entries",
        f.entry(1, b"one"),
        f.sub_batch(2, TWO_INSIDE, records=2),
        f.entry(3, b"last"),
        stored=4,
        awaits=Wait(confirmed=3),
    ),
    batches(
        "a wrong one refuses itself and all behind it",
        f.entry(1, b"one"),
        f.sub_batch(2, b"x", records=1, compression=5, uncompressed=9),
        f.entry(3, b"three"),
        f.sub_batch(4, TWO_INSIDE, records=2),
        stored=1,
        awaits=Wait(frames=1, confirmed=1),
    ),
    script(
        "sub-batch: cut short",
        *with_publisher(
            refused("A", f.publish(1, f.sub_batch(1, TWO_INSIDE, records=2)[:-3])), *read_back(0)
        ),
    ),
    script(
        "sub-batch: its header cut short",
        *with_publisher(
            refused("A", f.publish(1, f.sub_batch(1, b"", records=2)[:-2])), *read_back(0)
        ),
    ),
    script(
        "sub-batch: in version 2",
        *with_publisher(
            refused(
                "A",
                f.publish(
                    1,
                    struct.pack(">QH", 1, 1) + b"v" + f.sub_batch(1, TWO_INSIDE, records=2)[8:],
                    version=2,
                ),
            ),
        ),
    ),
)

FILTERED = (
    *(
        script(
            f"version 2: {name}",
            *with_publisher(
                confirmed(f.publish(1, f.filtered_entry(1, value, b"x"), version=2), count=1),
                *read_back(1),
            ),
            exact_chunks=True,
        )
        for name, value in (
            ("a filter value", "red"),
            ("no filter value", None),
            ("an empty filter value", ""),
            ("a filter value of 5,000 bytes", "v" * 5000),
        )
    ),
    script(
        "version 2: a filter value in a stream of large filters",
        opened("A"),
        ask("A", f.create("~s", {"stream-filter-size-bytes": "200"})),
        ask("A", f.declare(1, "~s")),
        confirmed(f.publish(1, f.filtered_entry(1, "red", b"x"), version=2), count=1),
        *read_back(1),
        exact_chunks=True,
    ),
    script(
        "version 2: several entries",
        *with_publisher(
            confirmed(
                f.publish(
                    1,
                    f.filtered_entry(1, "a", b"1"),
                    f.filtered_entry(2, None, b"2"),
                    f.filtered_entry(3, "", b"3"),
                    version=2,
                ),
                count=3,
            ),
            *read_back(3),
        ),
    ),
    script(
        "version 2: a filter value cut short",
        *with_publisher(
            refused("A", f.publish(1, struct.pack(">QH", 1, 9) + b"abc", version=2)),
        ),
    ),
    script(
        "version 2: of nothing",
        *with_publisher(
            ask("A", f.publish(1, version=2), wait=Wait()),
            silence("A", 0.1),
        ),
    ),
)

IN_PARTS = (
    script(
        "a stream deleted under its publisher",
        *with_publisher(
            tell("A", f.delete("~s")),
            hear("A", frames=2),
            ask("A", f.messages(1, 1, b"late"), wait=READ_ALL),
            ask("A", f.delete_publisher(1)),
        ),
    ),
)

SCRIPTS: tuple[Script, ...] = (*DECLARED, *SIMPLE, *SUB_BATCHES, *FILTERED, *IN_PARTS)
