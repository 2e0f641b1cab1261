"""Segments: their life, missing ones, transient ones, and those of the other kind."""

from __future__ import annotations

from typing import Final

from compat.pravega import requests as r
from compat.pravega.case import TRANSIENT, Case, Closed, ask, case, drop, read_all
from compat.pravega.cases.starts import CREATED, HERE, INFO, filled
from compat.pravega.requests import MISSING, UNSET, S, core, info, read
from hutch.pravega import error_messages as e
from hutch.pravega import messages as m
from hutch.pravega.layout import WireMessage
from hutch.pravega.table_messages import TableSegmentInfo


def on_missing(name: str, request: WireMessage) -> Case:
    """Return a case in which a request names a segment that is not there."""
    return case(f"missing: {name}", ask(request, gives=e.NoSuchSegment), HERE)


LIFE: Final = (
    case(
        "create: with a scale policy", ask(r.create(rate=5, scale=1), gives=m.SegmentCreated), INFO
    ),
    case("create: events per second", ask(r.create(rate=5, scale=2), gives=m.SegmentCreated), INFO),
    case(
        "create: an unknown scale type",
        ask(r.create(rate=5, scale=9), gives=m.SegmentCreated),
        INFO,
    ),
    case("create: a negative rate", ask(r.create(rate=-5, scale=1), gives=m.SegmentCreated), INFO),
    case("create: a rollover size", ask(r.create(rollover=1 << 20), gives=m.SegmentCreated), INFO),
    case(
        "create: a negative rollover size", ask(r.create(rollover=-1), gives=m.SegmentCreated), INFO
    ),
    case("create: twice", CREATED, ask(r.create(), gives=e.SegmentAlreadyExists), INFO),
    case(
        "create: twice in one write",
        ask(
            r.create(),
            r.create(),
            gives=(m.SegmentCreated, e.SegmentAlreadyExists),
            is_unordered=True,
        ),
    ),
    case("create: an empty name", ask(r.create(""), gives=Closed)),
    case(
        "policy: read back",
        CREATED,
        ask(r.policy(7, 2), gives=m.SegmentPolicyUpdated),
        ask(r.attribute(core(2)), gives=m.SegmentAttribute),
        ask(r.attribute(core(3)), gives=m.SegmentAttribute),
    ),
    case(
        "policy: on a sealed segment",
        CREATED,
        ask(r.seal(), gives=m.SegmentSealed),
        ask(r.policy(7, 2), gives=e.SegmentIsSealed),
    ),
    case(
        "policy: at creation",
        ask(r.create(rate=5, scale=1, rollover=4096), gives=m.SegmentCreated),
        *(ask(r.attribute(core(n)), gives=m.SegmentAttribute, label="core") for n in (2, 3, 4)),
    ),
    case(
        "seal: refuses appends, allows reads",
        *filled(),
        ask(r.seal(), gives=m.SegmentSealed),
        INFO,
        ask(read(), gives=m.SegmentRead),
        ask(read(4), gives=m.SegmentRead),
    ),
    case(
        "seal: twice",
        *filled(),
        ask(r.seal(), gives=m.SegmentSealed),
        ask(r.seal(), gives=e.SegmentIsSealed),
    ),
    case(
        "seal: an empty segment",
        CREATED,
        ask(r.seal(), gives=m.SegmentSealed),
        ask(read(), gives=m.SegmentRead),
        INFO,
    ),
    case(
        "truncate: within",
        *filled(),
        ask(r.truncate(4), gives=m.SegmentTruncated),
        INFO,
        ask(read(4), gives=m.SegmentRead),
        ask(read(3), gives=e.SegmentIsTruncated),
    ),
    case(
        "truncate: the same again",
        *filled(),
        ask(r.truncate(4), gives=m.SegmentTruncated),
        ask(r.truncate(4), gives=m.SegmentTruncated),
        INFO,
    ),
    case(
        "truncate: backwards",
        *filled(),
        ask(r.truncate(4), gives=m.SegmentTruncated),
        ask(r.truncate(3), gives=e.SegmentIsTruncated),
        INFO,
    ),
    case("truncate: at 0", *filled(), ask(r.truncate(0), gives=m.SegmentTruncated), INFO),
    case(
        "truncate: all of it",
        *filled(),
        ask(r.truncate(10), gives=m.SegmentTruncated),
        INFO,
        ask(r.end(2, b"x"), gives=m.DataAppended),
        ask(read(10), gives=m.SegmentRead),
    ),
    case(
        "truncate: beyond the end", *filled(), ask(r.truncate(11), gives=e.SegmentIsTruncated), INFO
    ),
    case(
        "truncate: below 0",
        *filled(),
        ask(r.truncate(-1), gives=Closed),
        ask(info(), gives=m.StreamSegmentInfo, on="B"),
    ),
    case(
        "truncate: a sealed segment",
        *filled(),
        ask(r.seal(), gives=m.SegmentSealed),
        ask(r.truncate(4), gives=m.SegmentTruncated),
        INFO,
        ask(read(4), gives=m.SegmentRead),
    ),
    case(
        "truncate: all of a sealed segment",
        *filled(),
        ask(r.seal(), gives=m.SegmentSealed),
        ask(r.truncate(10), gives=m.SegmentTruncated),
        INFO,
        ask(read(10), gives=m.SegmentRead),
    ),
    case(
        "delete: once and twice",
        *filled(),
        ask(r.delete(), gives=m.SegmentDeleted),
        ask(info(), gives=e.NoSuchSegment),
        ask(r.delete(), gives=e.NoSuchSegment),
    ),
    case(
        "delete: a sealed segment",
        *filled(),
        ask(r.seal(), gives=m.SegmentSealed),
        ask(r.delete(), gives=m.SegmentDeleted),
        ask(read(), gives=e.NoSuchSegment),
    ),
    case(
        "delete: and create an empty one again",
        CREATED,
        ask(r.delete(), gives=m.SegmentDeleted),
        ask(r.create(), gives=m.SegmentCreated),
        INFO,
    ),
    case(
        "delete: and create again",
        *filled(),
        ask(r.delete(), gives=m.SegmentDeleted),
        ask(r.create(), gives=e.SegmentAlreadyExists, label="again"),
    ),
    case(
        "delete: with a read waiting",
        CREATED,
        ask(read()),
        ask(r.delete(), gives=m.SegmentDeleted, on="B"),
        ask(gives=m.SegmentRead),
    ),
)

MISSES: Final = (
    on_missing("info", info(MISSING)),
    on_missing("read", read(segment=MISSING)),
    on_missing("seal", r.seal(MISSING)),
    on_missing("truncate", r.truncate(0, MISSING)),
    on_missing("delete", r.delete(MISSING)),
    on_missing("policy", r.policy(1, 1, MISSING)),
    on_missing("attribute", r.attribute(segment=MISSING)),
    on_missing("set attribute", r.set_attribute(1, UNSET, segment=MISSING)),
    on_missing("set-up", r.setup(MISSING)),
    on_missing("table: info", r.table_info(MISSING)),
    on_missing("table: update", r.update((b"k", b"v"), segment=MISSING)),
    on_missing("table: remove", r.remove(b"k", segment=MISSING)),
    on_missing("table: get", r.get(b"k", segment=MISSING)),
    on_missing("table: keys", r.keys_of(segment=MISSING)),
    on_missing("table: entries", r.entries_of(segment=MISSING)),
    on_missing("table: delta", r.delta(segment=MISSING)),
    on_missing("table: delete", r.delete_table(MISSING)),
)

TRANSIENTS: Final = (
    case(
        "transient: made, written and merged",
        *filled(),
        ask(r.transient(), gives=m.SegmentCreated),
        ask(r.setup(TRANSIENT, r.W2), gives=m.AppendSetup),
        ask(r.end(1, b"abc", writer=r.W2), gives=m.DataAppended),
        ask(r.merge(S, TRANSIENT), gives=m.SegmentsMerged),
        read_all(read(), until=13),
    ),
    case(
        "transient: two of one parent",
        CREATED,
        ask(r.transient(), gives=m.SegmentCreated),
        ask(r.transient(), gives=m.SegmentCreated),
        ask(info(TRANSIENT), gives=m.StreamSegmentInfo),
    ),
    case(
        "transient: no parent", ask(r.transient(MISSING), gives=m.SegmentCreated, label="no parent")
    ),
    case(
        "transient: seen by another connection",
        CREATED,
        ask(r.transient(), gives=m.SegmentCreated),
        ask(info(TRANSIENT), gives=m.StreamSegmentInfo, on="B"),
    ),
    case(
        "transient: the connection goes",
        CREATED,
        ask(r.transient(), gives=m.SegmentCreated),
        drop(),
        ask(info(TRANSIENT), gives=m.StreamSegmentInfo, on="B", label="gone"),
    ),
)

OF_TABLES: Final = (
    case(
        "a table operation on a segment",
        CREATED,
        ask(r.update((b"k", b"v"), segment=S), gives=Closed),
    ),
    case("a table's info of a segment", CREATED, ask(r.table_info(S), gives=Closed)),
    case("a get on a segment", CREATED, ask(r.get(b"k", segment=S), gives=Closed)),
    case("keys of a segment", CREATED, ask(r.keys_of(segment=S), gives=Closed)),
    case("delete a segment as a table", CREATED, ask(r.delete_table(S), gives=Closed)),
    case(
        "info of a table as a segment",
        ask(r.create_table(), gives=m.SegmentCreated),
        ask(info(r.TABLE), gives=m.StreamSegmentInfo, label="table"),
        ask(r.table_info(), gives=TableSegmentInfo),
    ),
    case(
        "seal a table as a segment",
        ask(r.create_table(), gives=m.SegmentCreated),
        ask(r.seal(r.TABLE), gives=m.SegmentSealed, label="table"),
        ask(r.update((b"k", b"v")), gives=e.SegmentIsSealed, label="table"),
    ),
    case(
        "set up on a table",
        ask(r.create_table(), gives=m.SegmentCreated),
        ask(r.setup(r.TABLE), gives=m.AppendSetup, label="table"),
    ),
    case(
        "set up on a table of fixed keys",
        ask(r.create_table(key_length=2), gives=m.SegmentCreated),
        ask(r.setup(r.TABLE), gives=Closed, label="table"),
    ),
    case(
        "create a table on a segment's name",
        CREATED,
        ask(r.create_table(S), gives=e.SegmentAlreadyExists),
    ),
    case(
        "create a segment on a table's name",
        ask(r.create_table(), gives=m.SegmentCreated),
        ask(r.create(r.TABLE), gives=e.SegmentAlreadyExists),
    ),
    case(
        "delete a table as a segment",
        ask(r.create_table(), gives=m.SegmentCreated),
        ask(r.delete(r.TABLE), gives=m.SegmentDeleted, label="table"),
        ask(r.table_info(), gives=e.NoSuchSegment, label="table"),
    ),
)

CASES: Final = (*LIFE, *MISSES, *TRANSIENTS, *OF_TABLES)
