"""The differences that are meant between a real Pravega and Hutch, by what the client sees."""

from __future__ import annotations

from typing import Final

from compat.comparison import Expected

BAD_CUT: Final = "Pravega fails at a segment that is not there; Hutch says that it is no cut"
BEYOND: Final = (
    "Pravega takes a truncation beyond the end, and then refuses every other one of the stream; "
    "Hutch refuses it and changes nothing"
)

EXPECTED: Final[tuple[Expected, ...]] = (
    Expected(
        script="stream-again",
        label="unread",
        theirs="hangs",
        ours="INVALID_ARGUMENT",
        reason="the client asks Pravega for ever for segments of a stream that was made again; "
        "Hutch says that they are no cut of it",
    ),
    *(
        Expected(
            script="successors",
            label=f"{words} a missing segment",
            theirs="UNKNOWN",
            ours="INVALID_ARGUMENT",
            reason=BAD_CUT,
        )
        for words in ("behind", "from")
    ),
    Expected(
        script="successors",
        label="much later",
        theirs="[events/0.0]",
        ours="[events/2.1, events/3.2, events/4.2]",
        reason="Pravega 0.13 gives a stream's first segments whatever the time is",
    ),
    Expected(
        script="successors",
        label="of a missing epoch",
        theirs="NOT_FOUND",
        ours="INVALID_ARGUMENT",
        reason="to Hutch the number is wrong, and nothing is missing",
    ),
    Expected(
        script="transactions-completed",
        label="completed",
        theirs="[]",
        ours="[first COMMITTED events, second ABORTED events]",
        reason="a Pravega that runs alone lists none, within ten seconds",
    ),
    Expected(
        script="truncated-wrongly",
        label="beyond the end",
        theirs="true",
        ours="ControllerFailureException",
        reason=BEYOND,
    ),
    Expected(
        script="truncated-wrongly",
        label="after that",
        theirs="ControllerFailureException",
        ours="true",
        reason=BEYOND,
    ),
    Expected(
        script="truncated-wrongly",
        label="first read",
        theirs="null",
        ours="k0:2",
        reason=BEYOND,
    ),
)
