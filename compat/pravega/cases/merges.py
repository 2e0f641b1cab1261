"""Merges of segments, one and several, with attributes and without."""

from __future__ import annotations

from typing import Final

from compat.pravega import requests as r
from compat.pravega.case import Closed, ask, case, read_all
from compat.pravega.cases.starts import INFO, filled
from compat.pravega.requests import MISSING, OTHER, THIRD, UNSET, S, info, read
from hutch.pravega import error_messages as e
from hutch.pravega import messages as m
from hutch.pravega.messages import AttributeUpdate

CASES: Final = (
    case(
        "merge: source behind target",
        *filled(),
        *filled(b"abc", OTHER),
        ask(r.merge(), gives=m.SegmentsMerged),
        INFO,
        read_all(read(), until=13),
        ask(info(OTHER), gives=e.NoSuchSegment),
    ),
    case(
        "merge: again",
        *filled(),
        *filled(b"abc", OTHER),
        ask(r.merge(), gives=m.SegmentsMerged),
        ask(r.merge(), gives=m.SegmentsMerged, is_loose=True),
        INFO,
    ),
    case(
        "merge: a source that never was",
        *filled(),
        ask(r.merge(), gives=e.NoSuchSegment, label="never was"),
        INFO,
    ),
    case(
        "merge: into a target that is missing",
        *filled(b"abc", OTHER),
        ask(r.merge(), gives=e.NoSuchSegment),
    ),
    case(
        "merge: an empty source",
        *filled(),
        ask(r.create(OTHER), gives=m.SegmentCreated),
        ask(r.merge(), gives=m.SegmentsMerged),
        INFO,
        ask(info(OTHER), gives=e.NoSuchSegment),
    ),
    case(
        "merge: a sealed source",
        *filled(),
        *filled(b"abc", OTHER),
        ask(r.seal(OTHER), gives=m.SegmentSealed),
        ask(r.merge(), gives=m.SegmentsMerged),
        read_all(read(), until=13),
    ),
    case(
        "merge: into a sealed target",
        *filled(),
        *filled(b"abc", OTHER),
        ask(r.seal(), gives=m.SegmentSealed),
        ask(r.merge(), gives=e.SegmentIsSealed),
        ask(info(OTHER), gives=m.StreamSegmentInfo, label="source"),
    ),
    case(
        "merge: a truncated source",
        *filled(),
        *filled(b"abc", OTHER),
        ask(r.truncate(1, OTHER), gives=m.SegmentTruncated),
        ask(r.merge(), gives=Closed),
        ask(info(), gives=m.StreamSegmentInfo, on="B"),
    ),
    case(
        "merge: a segment into itself",
        *filled(),
        ask(r.merge(S, S), gives=e.SegmentIsSealed, label="itself"),
        ask(info(), gives=m.StreamSegmentInfo, label="itself"),
    ),
    case(
        "merge: appends go on behind it",
        *filled(),
        *filled(b"abc", OTHER),
        ask(r.merge(), gives=m.SegmentsMerged),
        ask(r.setup(), gives=m.AppendSetup),
        ask(r.end(2, b"xyz"), gives=m.DataAppended),
        read_all(read(), until=16),
    ),
    case(
        "merge: a reader waits at the target",
        *filled(),
        *filled(b"abc", OTHER),
        ask(read(10), m.KeepAlive(), gives=m.KeepAlive),
        ask(r.merge(), gives=m.SegmentsMerged, on="B"),
        ask(gives=m.SegmentRead),
    ),
    case(
        "merge: an attribute is as expected",
        *filled(),
        *filled(b"abc", OTHER),
        ask(r.set_attribute(5, UNSET), gives=m.SegmentAttributeUpdated),
        ask(r.merge(updates=[AttributeUpdate(r.ATTRIBUTE, 4, 6, 5)]), gives=m.SegmentsMerged),
        ask(r.attribute(), gives=m.SegmentAttribute),
    ),
    case(
        "merge: an attribute is not as expected",
        *filled(),
        *filled(b"abc", OTHER),
        ask(r.set_attribute(5, UNSET), gives=m.SegmentAttributeUpdated),
        ask(
            r.merge(updates=[AttributeUpdate(r.ATTRIBUTE, 4, 6, 4)]),
            gives=m.SegmentAttributeUpdated,
        ),
        ask(r.attribute(), gives=m.SegmentAttribute),
        INFO,
        ask(info(OTHER), gives=m.StreamSegmentInfo, label="source"),
    ),
    case(
        "merge: an attribute is new",
        *filled(),
        *filled(b"abc", OTHER),
        ask(r.merge(updates=[AttributeUpdate(r.ATTRIBUTE, 4, 6, UNSET)]), gives=m.SegmentsMerged),
        ask(r.attribute(), gives=m.SegmentAttribute),
    ),
    case(
        "merge: an attribute is set only if it is new",
        *filled(),
        *filled(b"abc", OTHER),
        ask(r.merge(updates=[AttributeUpdate(r.ATTRIBUTE, 0, 6, 0)]), gives=m.SegmentsMerged),
        ask(r.attribute(), gives=m.SegmentAttribute),
    ),
    case(
        "merge: an attribute is replaced",
        *filled(),
        *filled(b"abc", OTHER),
        ask(r.set_attribute(5, UNSET), gives=m.SegmentAttributeUpdated),
        ask(r.merge(updates=[AttributeUpdate(r.ATTRIBUTE, 1, 6, 0)]), gives=m.SegmentsMerged),
        ask(r.attribute(), gives=m.SegmentAttribute),
    ),
    case(
        "merge: an attribute is greater",
        *filled(),
        *filled(b"abc", OTHER),
        ask(r.set_attribute(5, UNSET), gives=m.SegmentAttributeUpdated),
        ask(r.merge(updates=[AttributeUpdate(r.ATTRIBUTE, 2, 6, 0)]), gives=m.SegmentsMerged),
        ask(r.attribute(), gives=m.SegmentAttribute),
    ),
    case(
        "merge: an attribute is not greater",
        *filled(),
        *filled(b"abc", OTHER),
        ask(r.set_attribute(5, UNSET), gives=m.SegmentAttributeUpdated),
        ask(
            r.merge(updates=[AttributeUpdate(r.ATTRIBUTE, 2, 5, 0)]),
            gives=m.SegmentAttributeUpdated,
        ),
        INFO,
    ),
    case(
        "merge: an attribute is added to",
        *filled(),
        *filled(b"abc", OTHER),
        ask(r.set_attribute(5, UNSET), gives=m.SegmentAttributeUpdated),
        ask(r.merge(updates=[AttributeUpdate(r.ATTRIBUTE, 3, 6, 0)]), gives=m.SegmentsMerged),
        ask(r.attribute(), gives=m.SegmentAttribute),
    ),
    case(
        "merge: an unknown type of update",
        *filled(),
        *filled(b"abc", OTHER),
        ask(r.merge(updates=[AttributeUpdate(r.ATTRIBUTE, 9, 6, 0)]), gives=Closed),
    ),
    case(
        "merge in batch: two sources",
        *filled(),
        *filled(b"abc", OTHER),
        *filled(b"xyz", THIRD),
        ask(r.merge_batch(S, OTHER, THIRD), gives=m.SegmentsBatchMerged),
        read_all(read(), until=16),
    ),
    case(
        "merge in batch: one source",
        *filled(),
        *filled(b"abc", OTHER),
        ask(r.merge_batch(S, OTHER), gives=m.SegmentsBatchMerged),
        INFO,
    ),
    case(
        "merge in batch: no sources",
        *filled(),
        ask(r.merge_batch(S), gives=m.SegmentsBatchMerged, label="none"),
    ),
    case(
        "merge in batch: a source that never was",
        *filled(),
        *filled(b"abc", OTHER),
        ask(r.merge_batch(S, OTHER, MISSING), gives=m.SegmentsBatchMerged, label="never was"),
        INFO,
    ),
    case(
        "merge in batch: into a target that is missing",
        *filled(b"abc", OTHER),
        ask(r.merge_batch(S, OTHER), gives=e.NoSuchSegment),
    ),
    case(
        "merge in batch: again",
        *filled(),
        *filled(b"abc", OTHER),
        ask(r.merge_batch(S, OTHER), gives=m.SegmentsBatchMerged),
        ask(r.merge_batch(S, OTHER), gives=m.SegmentsBatchMerged, label="again"),
    ),
    case(
        "merge in batch: into a sealed target",
        *filled(),
        *filled(b"abc", OTHER),
        ask(r.seal(), gives=m.SegmentSealed),
        ask(r.merge_batch(S, OTHER), gives=e.SegmentIsSealed),
    ),
)
