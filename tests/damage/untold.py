"""What damage to a directory of version 1 cannot tell, because nothing guarded it there.

Entries of tables had no checksum, nor had headers, trailers and filter values of chunks; only their
records did. Which stream a chunk is of was not said. So, of files that a fault has touched:

- a table answers anything for its own keys, and a stream that it lists may be missing;
- a stream has wrong times, last publishing ids and filter values, each in that stream alone;
- where a file has changed places with one of another segment, the records are that one's.

Which files there were in the journal, and how large, was not said either, and frames did not say
what was synced: it takes an acknowledged change and a later one behind the damage to know. An older
checkpoint is as good as the last one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from store.local.checkpoint import CHECKPOINT
from tests.damage.faults import Fault
from tests.damage.ledger import Built

SILENT_STEPS: Final = 2
"""So many sound steps behind damage of the journal do not tell yet that it is damage."""


@dataclass(frozen=True)
class Untold:
    """What may be wrong without a line; nothing of it in version 2.

    Attributes:
        steps: Sound steps at the journal's end that may follow damage.
        changed: Segments of which a file was touched.
        mixed: Those of which a file has changed places with one of another segment.
        may_be_earlier: The checkpoint may be an older one.
    """

    steps: int = 0
    changed: frozenset[str] = frozenset()
    mixed: frozenset[str] = frozenset()
    may_be_earlier: bool = False


def untold_of(built: Built, faults: Sequence[Fault]) -> Untold:
    """Tell what nothing guards of a directory that has these faults."""
    if built.version > 1:
        return Untold()
    changed: set[str] = set()
    mixed: set[str] = set()
    for fault in faults:
        segments = {built.ledger.files[name] for name in fault.files if name in built.ledger.files}
        changed |= segments
        if len(fault.files) > 1:
            mixed |= segments
    may_be_earlier = any(CHECKPOINT in fault.files for fault in faults)
    return Untold(SILENT_STEPS, frozenset(changed), frozenset(mixed), may_be_earlier)
