"""Appends: shapes of blocks, numbers, several writers, conditions."""

from __future__ import annotations

from typing import Final

from compat.pravega import requests as r
from compat.pravega.case import Acked, Case, Closed, Step, ask, case, read_all
from compat.pravega.requests import W2, W, append, block, end, event, head, read
from hutch.pravega import messages as m
from hutch.pravega.error_messages import InvalidEventNumber, NoSuchSegment, SegmentIsSealed

E = event(b"abc")
BEGIN: Final = (ask(r.create(), gives=m.SegmentCreated), ask(r.setup(), gives=m.AppendSetup))
READ: Final = ask(read(), gives=m.SegmentRead)
INFO: Final = ask(r.info(), gives=m.StreamSegmentInfo)


def padding(size: int) -> bytes:
    """Return what fills a block: a head, and so many bytes."""
    return head(-1, size) + bytes(size)


def partial(data: bytes) -> bytes:
    """Return the beginning of an event at the end of a block."""
    return head(-2, len(data)) + data


def writing(name: str, *steps: Step) -> Case:
    """Return a case on one segment with one writer."""
    return case(name, *BEGIN, *steps)


def shape(name: str, data: bytes, closing: m.AppendBlockEnd) -> Case:
    """Return a case in which a block is taken."""
    return writing(f"block: {name}", ask(block(data), closing, gives=m.DataAppended), READ, INFO)


def refused(name: str, *sends: m.AppendBlock | m.AppendBlockEnd) -> Case:
    """Return a case in which a block ends the connection, and another one looks at the segment."""
    return writing(
        f"no block: {name}",
        ask(*sends, gives=Closed, label="block"),
        ask(r.info(), gives=m.StreamSegmentInfo, on="B"),
    )


FIVE: Final = event(b"abcde")
GOLDEN: Final = FIVE * 3 + partial(b"\0")

BLOCKS: Final = (
    writing("block: an end alone", ask(end(7, E, whole=11), gives=m.DataAppended), READ),
    writing(
        "block: an end alone of another size", ask(end(7, E, whole=99), gives=m.DataAppended), READ
    ),
    writing("block: an end alone with raw bytes", ask(end(1, b"raw"), gives=m.DataAppended), READ),
    writing(
        "block: an end alone with a negative size",
        ask(end(1, E, whole=-1), gives=m.DataAppended),
        READ,
    ),
    writing(
        "block: an empty append",
        ask(end(5), gives=m.DataAppended),
        INFO,
        ask(end(6, b"x"), gives=m.DataAppended),
        READ,
    ),
    writing(
        "block: only an empty append",
        ask(end(5), gives=m.DataAppended),
        ask(r.setup(), gives=m.AppendSetup),
    ),
    shape("of exact size", E * 2, end(2, whole=22, count=2)),
    shape("filled by padding", E + padding(8), end(8, whole=11)),
    shape("filled by empty padding", E + padding(0), end(8, whole=11)),
    writing("block: padding alone", ask(block(padding(8)), end(8), gives=m.DataAppended), INFO),
    shape("an event cut within its data", E + partial(E[:9]), end(10, E[9:], whole=11, count=2)),
    shape("an event cut within its head", E + partial(E[:5]), end(10, E[5:], whole=11, count=2)),
    shape("a partial event alone", partial(E[:5]), end(1, E[5:])),
    shape("a partial event of no bytes", E + partial(b""), end(2, E, whole=11, count=2)),
    shape("a partial event and nothing more", E + partial(E), end(2, whole=11, count=2)),
    shape("as the Java client writes it", GOLDEN, end(4, FIVE[1:], whole=39, count=4)),
    writing("block: empty", ask(block(b""), end(1), gives=m.DataAppended), INFO),
    shape("raw bytes of exact size", b"raw", end(1, whole=3)),
    writing(
        "block: KeepAlive and a read inside",
        ask(append(1, b"x"), gives=m.DataAppended),
        ask(block(E + padding(3))),
        ask(m.KeepAlive(), gives=m.KeepAlive),
        READ,
        ask(end(2, whole=11), gives=m.DataAppended),
        READ,
    ),
    writing(
        "block: other requests inside",
        ask(block(E)),
        ask(r.create(r.OTHER), gives=m.SegmentCreated),
        INFO,
        ask(end(2, whole=11), gives=m.DataAppended),
    ),
    writing(
        "block: two in one write",
        ask(block(E), end(1, whole=11), block(E), end(2, whole=11), gives=Acked(2, W)),
        READ,
    ),
    writing(
        "block: many shapes in one write",
        ask(
            append(1, b"a"),
            block(E),
            end(2, whole=11),
            block(E + padding(4)),
            end(3, whole=11),
            block(partial(E[:4])),
            end(4, E[4:]),
            end(9, b"raw"),
            gives=Acked(9, W),
        ),
        read_all(read(), until=45),
    ),
    writing(
        "block: of 1 MiB",
        ask(block(bytes(1 << 20)), end(1, whole=1 << 20), gives=m.DataAppended),
        read_all(read(0, 1 << 20), until=1 << 20),
    ),
    writing(
        "block: 18 MiB over a partial event and its end",
        ask(
            block(partial(b"x" * (9 << 20))),
            end(1, b"y" * (9 << 20)),
            gives=m.DataAppended,
            label="18 MiB",
        ),
        ask(r.info(), gives=m.StreamSegmentInfo, on="B"),
    ),
    writing(
        "block: 16 MiB over a partial event and its end",
        ask(block(partial(b"x" * (8 << 20))), end(1, b"y" * (8 << 20)), gives=m.DataAppended),
        read_all(read(0, 50 << 20), until=16 << 20),
    ),
    refused("no events", end(1, E, count=0)),
    refused("a negative count of events", end(1, E, count=-1)),
    refused("more whole events than bytes", block(E), end(1, whole=12)),
    refused("a negative size of whole events", block(E), end(1, whole=-1)),
    refused("something else behind the whole events", block(E + head(5, 0)), end(1, whole=11)),
    refused("three bytes behind the whole events", block(E + b"abc"), end(1, whole=11)),
    refused("padding of another size", block(E + head(-1, 99) + bytes(8)), end(1, whole=11)),
    refused("padding, and data in the end", block(E + padding(8)), end(1, b"x", whole=11)),
    refused("an end of another writer", block(E), end(1, whole=11, writer=W2)),
    refused("a block in a block", block(E), block(E)),
    refused("an append in a block", block(E), append(1, b"x"), append(2, b"y")),
    refused("a block of an unknown writer", block(E, writer=W2)),
    refused("an end of an unknown writer", end(1, E, writer=W2)),
    writing(
        "a full block, and data in the end",
        ask(block(E), end(1, b"lost", whole=11), gives=m.DataAppended, label="dropped"),
        ask(r.info(), gives=m.StreamSegmentInfo, on="B", label="dropped"),
    ),
    writing("no block: a set-up in a block", ask(block(E), r.setup(), gives=Closed)),
    writing(
        "no block: a condition in a block", ask(block(E), r.conditional(1, 0, b"x"), gives=Closed)
    ),
    case(
        "no block: an append without a set-up",
        ask(r.create(), gives=m.SegmentCreated),
        ask(append(1, b"x"), gives=Closed),
    ),
    case(
        "no block: a condition without a set-up",
        ask(r.create(), gives=m.SegmentCreated),
        ask(r.conditional(1, 0, b"x"), gives=Closed),
    ),
)

NUMBERS: Final = (
    writing(
        "numbers: need not be dense",
        *(ask(append(n, b"x"), gives=m.DataAppended) for n in (1, 5, 100)),
        ask(r.setup(), gives=m.AppendSetup),
    ),
    writing("numbers: 0 first", ask(append(0, b"x"), gives=m.DataAppended)),
    writing("numbers: a negative one", ask(append(-1, b"x"), gives=Closed)),
    writing(
        "numbers: the largest",
        ask(append(2**63 - 1, b"x"), gives=m.DataAppended),
        ask(r.setup(), gives=m.AppendSetup),
    ),
    writing(
        "numbers: a lower one",
        ask(append(5, b"x"), gives=m.DataAppended),
        ask(append(4, b"y"), gives=Closed),
        ask(r.info(), gives=m.StreamSegmentInfo, on="B"),
    ),
    writing(
        "numbers: the same again",
        ask(append(5, b"x"), gives=m.DataAppended),
        ask(
            append(5, b"y"),
            m.KeepAlive(),
            gives=m.KeepAlive,
            is_unordered=True,
            label="resent",
        ),
        ask(append(6, b"z"), gives=Acked(6, W), label="after it"),
        ask(read(), gives=m.SegmentRead, label="stored"),
    ),
    writing(
        "numbers: the same again in one write",
        ask(end(5, b"x"), end(5, b"y"), end(6, b"z"), gives=Acked(6, W), label="stored"),
        ask(read(), gives=m.SegmentRead, label="stored"),
    ),
    writing(
        "numbers: a lower one in one write",
        ask(end(5, b"x"), end(4, b"y"), gives=Closed, is_loose=True),
        ask(end(5, b"x"), gives=Closed, on="B"),
    ),
    writing(
        "numbers: a writer comes back",
        ask(append(5, b"x"), gives=m.DataAppended),
        ask(r.setup(), gives=m.AppendSetup, on="B"),
        ask(append(6, b"y"), gives=m.DataAppended, on="B"),
        ask(r.setup(), gives=m.AppendSetup, on="C"),
    ),
    writing(
        "numbers: a writer comes back with a lower one",
        ask(append(5, b"x"), gives=m.DataAppended),
        ask(r.setup(), gives=m.AppendSetup, on="B"),
        ask(append(4, b"y"), gives=Closed, on="B"),
    ),
    writing(
        "numbers: a set-up again on the same connection",
        ask(append(5, b"x"), gives=m.DataAppended),
        ask(r.setup(), gives=m.AppendSetup),
        ask(append(6, b"y"), gives=m.DataAppended),
    ),
    writing(
        "numbers: overtaken",
        ask(append(1, b"x"), gives=m.DataAppended),
        ask(r.setup(), gives=m.AppendSetup, on="B"),
        ask(append(7, b"b"), gives=m.DataAppended, on="B"),
        ask(append(8, b"a"), gives=(InvalidEventNumber, Closed)),
        ask(append(9, b"b"), gives=m.DataAppended, on="B"),
        ask(read(), gives=m.SegmentRead, on="B"),
    ),
    writing(
        "numbers: overtaken while new",
        ask(r.setup(), gives=m.AppendSetup, on="B"),
        ask(append(1, b"b"), gives=m.DataAppended, on="B"),
        ask(append(2, b"a"), gives=(InvalidEventNumber, Closed)),
    ),
    writing(
        "numbers: overtaken, several on their way",
        ask(r.setup(), gives=m.AppendSetup, on="B"),
        ask(append(1, b"b"), gives=m.DataAppended, on="B"),
        ask(append(2, b"a"), append(3, b"a"), append(4, b"a"), gives=Closed, is_loose=True),
        ask(r.info(), gives=m.StreamSegmentInfo, on="B"),
    ),
    writing(
        "numbers: overtaken by the same number",
        ask(r.setup(), gives=m.AppendSetup, on="B"),
        ask(append(5, b"b"), gives=m.DataAppended, on="B"),
        ask(append(5, b"a"), gives=(InvalidEventNumber, Closed)),
    ),
)

WRITERS: Final = (
    writing(
        "writers: two on one segment",
        ask(r.setup(writer=W2), gives=m.AppendSetup),
        ask(append(1, b"a"), gives=m.DataAppended),
        ask(append(1, b"b", writer=W2), gives=m.DataAppended),
        ask(
            append(2, b"c"),
            append(2, b"d", writer=W2),
            append(3, b"e"),
            gives=(Acked(3, W), Acked(2, W2)),
            is_unordered=True,
            label="both",
        ),
        ask(r.setup(), gives=m.AppendSetup, on="B"),
        INFO,
    ),
    writing(
        "writers: two segments on one connection",
        ask(r.create(r.OTHER), gives=m.SegmentCreated),
        ask(r.setup(r.OTHER, W2), gives=m.AppendSetup),
        ask(
            append(1, b"a"),
            append(9, b"b", writer=W2),
            gives=(Acked(1, W), Acked(9, W2)),
            is_unordered=True,
        ),
        READ,
        ask(read(segment=r.OTHER), gives=m.SegmentRead),
    ),
    writing(
        "writers: one is led to another segment",
        ask(append(3, b"a"), gives=m.DataAppended),
        ask(r.create(r.OTHER), gives=m.SegmentCreated),
        ask(r.setup(r.OTHER), gives=m.AppendSetup),
        ask(append(1, b"b"), gives=m.DataAppended),
        ask(read(segment=r.OTHER), gives=m.SegmentRead),
        INFO,
    ),
    writing(
        "writers: 50 appends in one write",
        ask(*(append(n, bytes(100)) for n in range(1, 51)), gives=Acked(50, W)),
        read_all(read(0, 1 << 20), until=50 * 108),
    ),
    writing(
        "writers: on a segment that is missing",
        ask(r.setup(r.MISSING), gives=NoSuchSegment),
        ask(m.KeepAlive(), gives=m.KeepAlive),
    ),
    writing(
        "writers: on a sealed segment",
        ask(append(1, b"a"), gives=m.DataAppended),
        ask(r.seal(), gives=m.SegmentSealed),
        ask(append(2, b"b"), gives=SegmentIsSealed),
        ask(r.setup(), gives=m.AppendSetup),
        ask(append(2, b"b"), gives=SegmentIsSealed),
        INFO,
    ),
    writing(
        "writers: several appends to a sealed segment",
        ask(r.seal(), gives=m.SegmentSealed),
        ask(
            append(1, b"b"),
            append(2, b"c"),
            gives=SegmentIsSealed,
            is_loose=True,
        ),
        ask(r.info(), gives=m.StreamSegmentInfo, on="B"),
    ),
    writing(
        "writers: on a deleted segment",
        ask(append(1, b"a"), gives=m.DataAppended),
        ask(r.delete(), gives=m.SegmentDeleted),
        ask(append(2, b"b"), gives=NoSuchSegment),
    ),
    writing(
        "writers: the numbers of events count",
        ask(end(1, E * 3, count=3, whole=33), gives=m.DataAppended),
        READ,
    ),
)

AT: Final = len(E)
CONDITIONS: Final = (
    writing(
        "condition: the length",
        ask(r.conditional(1, 0, b"abc"), gives=m.DataAppended),
        ask(r.conditional(2, AT, b"d"), gives=m.DataAppended),
        READ,
    ),
    writing(
        "condition: an event of no bytes", ask(r.conditional(1, 0, b""), gives=m.DataAppended), READ
    ),
    writing(
        "condition: not the length",
        ask(r.conditional(1, 5, b"abc"), gives=m.ConditionalCheckFailed),
        ask(r.conditional(2, 0, b"abc"), gives=m.DataAppended),
        ask(r.conditional(3, 0, b"abc"), gives=m.ConditionalCheckFailed),
        READ,
    ),
    writing(
        "condition: the same number after a failure",
        ask(r.conditional(1, 5, b"abc"), gives=m.ConditionalCheckFailed),
        ask(r.conditional(1, 0, b"abc"), gives=m.DataAppended),
        READ,
    ),
    writing(
        "condition: a lower number after a failure",
        ask(r.conditional(5, 9, b"abc"), gives=m.ConditionalCheckFailed),
        ask(r.conditional(4, 0, b"abc"), gives=Closed),
    ),
    writing(
        "condition: an unconditional append after a failure",
        ask(r.conditional(1, 5, b"abc"), gives=m.ConditionalCheckFailed),
        ask(append(2, b"abc"), gives=m.DataAppended),
        READ,
    ),
    writing(
        "condition: a negative length", ask(r.conditional(1, -1, b"abc"), gives=m.DataAppended)
    ),
    writing(
        "condition: beyond 2^62",
        ask(r.conditional(1, 2**61, b"abc"), gives=m.ConditionalCheckFailed),
    ),
    writing(
        "condition: raw bytes", ask(r.conditional_end(1, 0, b"raw"), gives=m.DataAppended), READ
    ),
    writing(
        "condition: raw bytes, not the length",
        ask(r.conditional_end(1, 9, b"raw"), gives=m.ConditionalCheckFailed),
        INFO,
    ),
    writing(
        "condition: no raw bytes", ask(r.conditional_end(1, 0, b""), gives=m.DataAppended), INFO
    ),
    writing(
        "condition: a lower number",
        ask(append(5, b"x"), gives=m.DataAppended),
        ask(r.conditional(4, 9, b"x"), gives=Closed),
    ),
    writing(
        "condition: the same number as one that was stored",
        ask(append(5, b"abc"), gives=m.DataAppended),
        ask(r.conditional(5, 3, b"x"), gives=m.ConditionalCheckFailed, label="resent"),
    ),
    writing(
        "condition: overtaken, and not the length",
        ask(r.setup(), gives=m.AppendSetup, on="B"),
        ask(append(1, b"abc"), gives=m.DataAppended, on="B"),
        ask(r.conditional(2, 0, b"x"), gives=(InvalidEventNumber, Closed)),
    ),
    writing(
        "condition: overtaken, and the length",
        ask(r.setup(), gives=m.AppendSetup, on="B"),
        ask(append(1, b"abc"), gives=m.DataAppended, on="B"),
        ask(r.conditional(2, AT, b"x"), gives=(InvalidEventNumber, Closed)),
    ),
    writing(
        "condition: two writers with predicted lengths",
        ask(r.setup(writer=W2), gives=m.AppendSetup),
        ask(
            r.conditional_end(1, 0, b"aaa"),
            r.conditional_end(1, 3, b"bbb", writer=W2),
            r.conditional_end(2, 6, b"ccc"),
            gives=(Acked(2, W), Acked(1, W2)),
            is_unordered=True,
        ),
        READ,
    ),
    writing(
        "condition: on a sealed segment",
        ask(r.seal(), gives=m.SegmentSealed),
        ask(r.conditional(1, 0, b"x"), gives=SegmentIsSealed),
    ),
    writing(
        "condition: on a deleted segment",
        ask(r.delete(), gives=m.SegmentDeleted),
        ask(r.conditional(1, 0, b"x"), gives=NoSuchSegment),
    ),
    writing(
        "condition: after an unconditional append",
        ask(append(1, b"abc"), r.conditional_end(2, AT, b"x"), append(3, b"y"), gives=Acked(3, W)),
        read_all(read(), until=AT + 1 + 9),
    ),
)

CASES: Final = (*BLOCKS, *NUMBERS, *WRITERS, *CONDITIONS)
