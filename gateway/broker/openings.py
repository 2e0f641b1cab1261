"""How often this store was opened after an end that was not a graceful stop.

Every stream remembers the count at its creation ("born"). Its epoch is 1 plus the unclean openings
since: it rises exactly when bytes that nobody was promised may have been lost, so that an offset
given out again can be told from its first use.
"""

import json
from typing import Any, Final

from gateway.log.names import server_table
from gateway.log.tracking import create_table_if_missing
from gateway.pending import Pending
from store.api import Durability, SegmentStore, TableEntry

_TABLE: Final = server_table("server")
_KEY: Final = b"openings"
EPOCH_MAX: Final = 0xFFFE
"""One below what 16 bits hold: the largest event number stands for the end of all offsets."""


class Openings:
    """The count, and the mark of a clean end."""

    def __init__(self, store: SegmentStore) -> None:
        self._store = store
        self.unclean_count = 0

    async def begin(self) -> None:
        """Read the count, raise it if the last end was unclean, and mark this run as running."""
        await create_table_if_missing(self._store, _TABLE)
        found: Pending[Any] = Pending()
        self._store.read_table(_TABLE, [_KEY], done=found.settle)
        (entry,) = await found
        if entry is not None:
            stored = json.loads(entry.value)
            self.unclean_count = stored["unclean"] + (not stored["clean"])
        await self._write(clean=False)

    async def end(self) -> None:
        """Mark a clean end: everything accepted has been stored."""
        await self._write(clean=True)

    def epoch_of(self, born: int) -> int:
        """Epoch under which a stream is written now."""
        return min(1 + self.unclean_count - born, EPOCH_MAX)

    async def _write(self, *, clean: bool) -> None:
        value = json.dumps({"unclean": self.unclean_count, "clean": clean}).encode()
        written: Pending[Any] = Pending()
        # On the disk in any mode: a power cut that took the mark would pass for a clean end.
        # A start on a full disk must be able to say this, so that streams can be deleted there.
        self._store.update_table(
            _TABLE,
            [TableEntry(_KEY, value)],
            done=written.settle,
            durability=Durability.DISK,
            gives_space=True,
        )
        await written
