"""The differences that are meant, each with its reason."""

from __future__ import annotations

from typing import Final

from compat.comparison import Expected

RESENT: Final = (
    "Pravega stores an append again whose number is the last one, and never acknowledges it; to "
    "Hutch it was stored already"
)
NOT_ONE: Final = (
    "Pravega stores some of a block that is of none of the three shapes; Hutch stores nothing"
)
ANSWERED: Final = "where there is an error for a bad request, Hutch sends it"

EXPECTED: Final[tuple[Expected, ...]] = (
    Expected(
        script="*",
        label="hello",
        theirs="Hello high_version=16 low_version=5",
        ours="Hello high_version=17 low_version=5",
        reason="Hutch speaks version 17, which has LocateOffset; release 0.13.0 speaks 16",
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
    Expected(script="create: an empty name", theirs="Closed", ours="ErrorMessage", reason=ANSWERED),
    Expected(
        script="truncate: below 0", theirs="Closed", ours="SegmentIsTruncated", reason=ANSWERED
    ),
    Expected(
        script="read: a negative offset", theirs="Closed", ours="ErrorMessage", reason=ANSWERED
    ),
    Expected(
        script="read: beyond the end of a sealed segment",
        theirs="Closed",
        ours="ErrorMessage",
        reason=ANSWERED,
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
    Expected(
        script="writers: on a sealed segment",
        theirs="offset=2",
        ours="offset=-1",
        reason="Pravega puts the event's number where an offset is",
    ),
)
