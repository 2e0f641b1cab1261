"""The differences that are meant, each with its reason."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Final

from compat.comparison import Expected
from compat.pravega.case import Case
from hutch.pravega.messages import ABSENT

RESENT: Final = (
    "Pravega stores an append again whose number is the last one, and never acknowledges it; to "
    "Hutch it was stored already"
)
NOT_ONE: Final = (
    "Pravega stores some of a block that is of none of the three shapes; Hutch stores nothing"
)
SAID: Final = "where there is an error for a bad request, Hutch sends it"
UNSEALED: Final = "a merge that is refused seals the source in Pravega; in Hutch it changes nothing"
ALL_TABLES: Final = "what Pravega has for tables of any keys alone, Hutch has for all"

EXPECTED: Final[tuple[Expected, ...]] = (
    Expected(
        script="*",
        label="hello",
        theirs="Hello high_version=16 low_version=5",
        ours="Hello high_version=17 low_version=5",
        reason="Hutch speaks version 17, which has LocateOffset; release 0.13.0 speaks 16",
    ),
    Expected(
        script="frame: LocateOffset",
        theirs="Closed",
        ours="NoSuchSegment",
        reason="LocateOffset is new in version 17",
    ),
    Expected(
        script="numbers: the same again",
        label="resent",
        theirs="KeepAlive",
        ours="DataAppended",
        reason=RESENT,
    ),
    Expected(
        script="numbers: the same again",
        label="after it",
        theirs="current_segment_write_offset=27",
        ours="current_segment_write_offset=18",
        reason=RESENT,
    ),
    Expected(
        script="numbers: the same again",
        label="stored",
        theirs="x01x\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x01y",
        ours="x01x\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x01z",
        reason=RESENT,
    ),
    Expected(script="create: an empty name", theirs="Closed", ours="ErrorMessage", reason=SAID),
    Expected(script="truncate: below 0", theirs="Closed", ours="SegmentIsTruncated", reason=SAID),
    Expected(script="read: a negative offset", theirs="Closed", ours="ErrorMessage", reason=SAID),
    Expected(
        script="read: beyond the end of a sealed segment",
        theirs="Closed",
        ours="ErrorMessage",
        reason=SAID,
    ),
    Expected(
        script="delete: and create again",
        label="again",
        theirs="SegmentAlreadyExists",
        ours="SegmentCreated",
        reason="Pravega deletes in the background for seconds; in Hutch the name is free at once",
    ),
    Expected(
        script="delete: with a read waiting",
        theirs="SegmentRead",
        ours="NoSuchSegment",
        reason="Pravega ends the wait without a word; Hutch says that the segment is gone",
    ),
    Expected(script="numbers: the same again in one write", label="stored", reason=RESENT),
    Expected(
        script="condition: a lower number after a failure",
        theirs="Closed",
        ours="DataAppended",
        reason="Hutch compares a number with those that are stored",
    ),
    Expected(
        script="condition: the same number as one that was stored",
        label="resent",
        theirs="ConditionalCheckFailed",
        ours="DataAppended",
        reason="to Hutch it was stored already, whatever its condition is now",
    ),
    Expected(
        script="condition: a negative length",
        theirs="DataAppended",
        ours="ConditionalCheckFailed",
        reason="a negative length is no condition to Pravega; to Hutch no segment has it",
    ),
    *(
        Expected(script=pattern, label="block", theirs="Closed", ours="ErrorMessage", reason=SAID)
        for pattern in (
            "no block: no events",
            "no block: a negative count of events",
            "no block: more whole events than bytes",
            "no block: a negative size of whole events",
            "no block: something else behind the whole events",
            "no block: three bytes behind the whole events",
            "no block: padding of another size",
            "no block: padding, and data in the end",
            "no block: an append in a block",
        )
    ),
    Expected(
        script="no block: an append in a block",
        label="*",
        theirs="write_offset=9",
        ours="write_offset=0",
        reason=NOT_ONE,
        is_by_chance=True,
    ),
    Expected(
        script="a full block, and data in the end",
        theirs="DataAppended",
        ours="ErrorMessage",
        reason=NOT_ONE,
    ),
    Expected(
        script="a full block, and data in the end",
        theirs="write_offset=11",
        ours="write_offset=0",
        reason=NOT_ONE,
    ),
    Expected(
        script="block: 18 MiB over a partial event and its end",
        theirs="DataAppended",
        ours="ErrorMessage",
        reason="one append to Hutch's store has at most 17 MiB",
    ),
    Expected(
        script="block: 18 MiB over a partial event and its end",
        theirs="write_offset=18874368",
        ours="write_offset=0",
        reason="one append to Hutch's store has at most 17 MiB",
    ),
    Expected(
        script="writers: two on one segment",
        label="both",
        theirs="event_number=3",
        ours="event_number=3",
        reason="Hutch stores what came together as one append of each writer, one behind the other",
    ),
    Expected(
        script="attribute: the count of events",
        label="count",
        theirs="value=1",
        ours=f"value={ABSENT}",
        reason="Hutch does not count the events of a segment",
    ),
    Expected(
        script="transient: the connection goes",
        label="gone",
        theirs="StreamSegmentInfo",
        ours="NoSuchSegment",
        reason="Pravega keeps it for minutes at least; in Hutch it goes with the connection",
    ),
    Expected(
        script="frame: *TableSegment*",
        theirs="Closed",
        ours="NoSuchSegment",
        reason="Pravega has dropped the merge and the seal of tables; Hutch has them",
    ),
    *(
        Expected(script=name, theirs="Closed", ours="ErrorMessage", reason=SAID)
        for name in (
            "a table operation on a segment",
            "a table's info of a segment",
            "a get on a segment",
            "keys of a segment",
            "delete a segment as a table",
            "table: a key length of 8,193",
        )
    ),
    Expected(script="merge: a truncated source", ours="SegmentIsTruncated", reason=SAID),
    *(
        Expected(script=name, label="source", ours="is_sealed=False", reason=UNSEALED)
        for name in ("merge: into a sealed target", "merge: an attribute is not as expected")
    ),
    Expected(script="merge: a segment into itself", label="itself", reason=UNSEALED),
    Expected(
        script="set up on a table of fixed keys",
        label="table",
        theirs="Closed",
        ours="AppendSetup",
        reason="Hutch treats all tables alike; the append is refused",
    ),
    *(
        Expected(
            script=name,
            theirs="entry_count=",
            reason="Hutch counts the keys that there are, Pravega not those of fixed length, and "
            "removals of keys that there were not",
        )
        for name in (
            "fixed keys: its info",
            "table: a key is removed",
            "table: a missing key is removed",
        )
    ),
    Expected(
        script="table: a negative key length",
        label="negative",
        reason="Pravega takes it for 0; Hutch refuses it",
    ),
    Expected(
        script="table: a key length of 257",
        ours="SegmentCreated",
        reason="keys of fixed length have at most 256 bytes in Pravega, 8 KiB in Hutch",
    ),
    Expected(
        script="fixed keys: deleted if it is empty, and it is not",
        ours="TableSegmentNotEmpty",
        reason=ALL_TABLES,
    ),
    Expected(script="fixed keys: a delta", label="delta", reason=ALL_TABLES),
    Expected(
        script="fixed keys: keys, one at a time",
        label="page",
        reason="Pravega gives all keys at once, then refuses its own continuation",
    ),
    Expected(
        script="table: an empty key",
        label="empty key",
        ours="ErrorMessage",
        reason="a key in Hutch's store has at least one byte",
    ),
    Expected(
        script="table: two wrong conditions: bad, and missing",
        label="two",
        ours="TableKeyBadVersion",
        reason="Hutch tells the first of two wrong conditions",
    ),
    *(
        Expected(
            script=name,
            label="none",
            ours="'a'",
            reason="Hutch gives at least one entry: an empty page is the end of an iteration",
        )
        for name in (
            "table: no keys are asked",
            "table: a negative count of keys",
            "table: a delta of no entries",
        )
    ),
    Expected(
        script="table: a mark of an iteration that never was",
        label="mark",
        theirs="Closed",
        reason="to Hutch's store any key is a place to go on from",
    ),
    Expected(
        script="table: a delta from where the last one ended",
        ours="last_position=position 2",
        reason="Pravega's last position moves behind bytes that are no entries",
    ),
)


def expected_of(cases: Sequence[Case]) -> list[Expected]:
    """Return the differences that these cases can show."""
    return [
        entry for entry in EXPECTED if any(fnmatchcase(case.name, entry.script) for case in cases)
    ]
