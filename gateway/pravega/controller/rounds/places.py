"""Places where a stream once ended: its retention truncates it at one of them.

Source: Pravega, which notes a cut of each stream in every round of retention.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, Self

from gateway.pravega.controller.readers.group import Cut
from gateway.pravega.controller.records.epochs import History
from gateway.pravega.controller.records.history import precedes
from gateway.pravega.controller.records.model import StreamPolicy

BY_TIME, BY_SIZE = 1, 2
"""Kinds of retention, in Pravega's numbers."""
ENTRIES_MAX: Final = 5_000
"""Segments in all places of a stream: beyond, every second of the older ones is forgotten."""


class StreamEnd(NamedTuple):
    """A place where a stream ended.

    Attributes:
        at_ms: When that was noted.
        size: Bytes that had been written since the stream's first place.
        cut: The ends of the segments that were written then, by identity.
    """

    at_ms: int
    size: int
    cut: Cut

    def to_bytes(self) -> bytes:
        """Return the place's form in the table."""
        return json.dumps(self).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read the bytes of `to_bytes`."""
        at_ms, size, cut = json.loads(data)
        return cls(at_ms, size, {int(identity): offset for identity, offset in cut.items()})


def chosen(
    places: Sequence[StreamEnd],
    policy: StreamPolicy,
    now: StreamEnd,
    history: History,
    given_up: Iterable[Cut],
) -> StreamEnd | None:
    """Return the place to truncate a stream at; None if it keeps all that it has.

    What is kept is at least the policy's minimum. What is above is kept while groups of readers
    have not given it up, but for what is above the policy's maximum.

    Args:
        places: The places that are known, oldest first.
        policy: Time in ms, or size in bytes, that is kept.
        now: Where the stream ends.
        history: Its segments.
        given_up: What the groups that it waits for have given up.
    """
    by_time = policy.retention_type == BY_TIME
    kept = [(now.at_ms - each.at_ms if by_time else now.size - each.size) for each in places]
    cuts = list(given_up)
    for place, amount in zip(reversed(places), reversed(kept), strict=True):
        if amount < policy.retention:
            continue
        is_too_much = 0 < policy.retention_max <= amount
        if is_too_much or all(precedes(history, place.cut, cut) for cut in cuts):
            return place
    return None


def slowest(history: History, cuts: Sequence[Cut]) -> Cut | None:
    """Return the cut before which all groups have given up; None where their cuts cross."""
    for cut in cuts:
        if all(precedes(history, cut, other) for other in cuts):
            return cut
    return None


def thinned(places: Sequence[StreamEnd]) -> list[StreamEnd]:
    """Return the places to forget, so that the others have no more entries than may be."""
    if sum(len(each.cut) for each in places) <= ENTRIES_MAX:
        return []
    older = places[: len(places) // 2]
    return list(older[1::2]) or list(places[:1])
