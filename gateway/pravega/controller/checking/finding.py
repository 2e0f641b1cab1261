"""Findings of a check, and the store's segments as it sees them."""

from collections.abc import Mapping
from typing import NamedTuple

from store.api import SegmentInfo

Held = Mapping[str, SegmentInfo]
"""All segments and tables of a store, by name."""

UNDER_WAY = "a change is under way and is finished at the next start"


class Finding(NamedTuple):
    """One thing that a check has found.

    Attributes:
        what: A sentence without its end.
        owner: The thing of the controller's that it is about, as `kind=name`.
        segment: Name of the segment; empty if no one is meant.
        is_damage: It is wrong. What is not is worth a note: clients, or a change that was cut
            short, may have left it so.
    """

    what: str
    owner: str
    segment: str = ""
    is_damage: bool = True

    def __str__(self) -> str:
        """Return the line: the finding, then its place."""
        where = f"segment={self.segment} " if self.segment else ""
        return f"{self.what} {where}{self.owner}"


def note(what: str, owner: str, segment: str = "") -> Finding:
    """Return a finding that is no damage."""
    return Finding(what, owner, segment, is_damage=False)


def is_segment(name: str, held: Held) -> bool:
    """Return whether there is a segment of a name that is no table."""
    return name in held and not held[name].is_table
