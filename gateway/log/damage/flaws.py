"""Damaged places of a stream, as its opening and its check find them."""

import enum
from collections.abc import Callable
from typing import NamedTuple


class Part(enum.Enum):
    """Part of a stream that is damaged."""

    CHUNKS = "chunks"
    INDEX = "index"
    FILTERS = "filter pages"
    SNAPSHOT = "snapshot"


class Flaw(NamedTuple):
    """One damaged place.

    Attributes:
        part: The part of the stream. All but chunks can be rebuilt from these, with one exception:
            only a snapshot knows the publishers whose chunks were removed.
        what: What is wrong there.
        segment: The segment, or the table of the snapshot.
        position: Byte in the segment; None where there is no one place.
    """

    part: Part
    what: str
    segment: str
    position: int | None = None


Sink = Callable[[Flaw], object]
"""Takes each flaw as it is found, before anything is done about it."""
