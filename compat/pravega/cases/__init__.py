"""The cases, by theme."""

from __future__ import annotations

from typing import Final

from compat.pravega.case import Case
from compat.pravega.cases import appends, attributes, connection, merges, reads, segments, tables

CASES: Final[tuple[Case, ...]] = (
    *connection.CASES,
    *appends.CASES,
    *segments.CASES,
    *reads.CASES,
    *attributes.CASES,
    *merges.CASES,
    *tables.CASES,
)
