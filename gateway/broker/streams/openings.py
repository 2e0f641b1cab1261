"""Count of the times this store was opened after an end that was not a graceful stop.

Every stream remembers the count at its creation ("born"). Its epoch is 1 plus the unclean openings
since: it rises exactly when bytes that were not confirmed may have been lost, so that an offset
given out again can be told from its first use.
"""

import json
import logging
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final

from gateway.log.derived.tracking import create_table_if_missing
from gateway.log.names import server_table, writer_of
from gateway.pending import Pending
from hutch.formats.chunk import LAST_NUMBER, next_offset_and_epoch
from store.api import ABSENT, Durability, SegmentInfo, SegmentStore, TableEntry, Writer

log = logging.getLogger(__name__)

TABLE: Final = server_table("server")
KEY: Final = b"openings"
"""The key of the count in the table. An empty value says that the count is damaged."""
EPOCH_MAX: Final = 0xFFFE
"""One below the largest number of 16 bits: the largest stands for the end of all offsets."""


class Openings:
    """The count, and the mark of a clean end.

    Attributes:
        unclean_count: How many openings followed an unclean end.
        is_damaged: What is stored is no count: it has to be learned from the streams.
    """

    def __init__(self, store: SegmentStore) -> None:
        self._store = store
        self.unclean_count = 0
        self.is_damaged = False

    async def begin(self) -> None:
        """Read the count, raise it if the last end was unclean, and mark this run as running.

        A count that is damaged is left as it is: `note` every stream, then call `begun`.
        """
        await create_table_if_missing(self._store, TABLE)
        described: Pending[tuple[SegmentInfo, int]] = Pending()
        self._store.table_info(TABLE, done=described.settle)
        info, _ = await described
        found: Pending[Any] = Pending()
        self._store.read_table(TABLE, [KEY], done=found.settle)
        (entry,) = await found
        stored: tuple[int, bool] | None = None
        if entry is not None:
            with suppress(ValueError, TypeError, KeyError):
                stored = unpack(entry.value)
        if stored is not None:
            self.unclean_count = stored[0] + (not stored[1])
        # What a damaged table still has is perhaps not what was written last.
        self.is_damaged = info.is_damaged or (entry is not None and stored is None)
        if not self.is_damaged:
            await self._write(clean=False)

    async def note(self, streams: Iterable[tuple[str, int]]) -> None:
        """Learn from streams how many there were at least, where the count is damaged.

        A writer's number holds the epoch under which its stream was written last.

        Args:
            streams: The segment of each, and how many there had been when it was created.

        Raises:
            StoreError: A segment cannot be opened.
        """
        for segment, born in streams:
            opened: Pending[Writer] = Pending()
            self._store.open_writer(segment, writer_of(segment), done=opened.settle)
            number = (await opened).event_number
            epoch = 1
            if number != ABSENT and number < LAST_NUMBER:
                epoch = max(next_offset_and_epoch(number)[1], 1)
            self.unclean_count = max(self.unclean_count, born + epoch - 1)

    async def begun(self) -> None:
        """Write the count down if it was damaged, now that all streams were noted.

        It never goes back, or an epoch would be given again to other records. Until it is written,
        the next start does the same.

        Raises:
            StoreError: The store refused.
        """
        if self.is_damaged:
            self.unclean_count += 1
            log.warning("count of openings was damaged and is rebuilt count=%d", self.unclean_count)
            await self._write(clean=False)
            self.is_damaged = False

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
        self._store.for_removal.update_table(
            TABLE, [TableEntry(KEY, value)], done=written.settle, durability=Durability.DISK
        )
        await written


def unpack(value: bytes) -> tuple[int, bool]:
    """Decode the count and the mark of a clean end. Raises ValueError or a like error."""
    fields = json.loads(value)
    count, is_clean = fields["unclean"], fields["clean"]
    if type(count) is not int or type(is_clean) is not bool or count < 0:
        raise ValueError("this is no count of openings")
    return count, is_clean
