"""Ports of the commits of a virtual host, and its table."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.broker.streams.staging_limits import Usage
from gateway.broker.streams.streams import Streams
from gateway.log import names
from gateway.pending import Pending
from store.api import SegmentStore, TableEntry
from store.errors import StoreError


@dataclass(frozen=True, slots=True)
class CommitsPorts:
    """Ports of the commits.

    Attributes:
        store: The segment store.
        streams: The streams of the virtual host.
        clock_ms: Milliseconds since the epoch.
        now_for_age_ms: Given an age in ms, the earliest time that it can be now.
        wait: Returns a Pending that settles after a number of milliseconds.
        usage: Bytes that are staged, in all virtual hosts.
        refused: Told what the store did not take; a full disk sets the alarm.
    """

    store: SegmentStore
    streams: Streams
    clock_ms: Callable[[], int]
    now_for_age_ms: Callable[[int], int]
    wait: Callable[[int], Pending[None]]
    usage: Usage
    refused: Callable[[StoreError], object]

    @property
    def virtual_host(self) -> str:
        """The name of the virtual host."""
        return self.streams.virtual_host

    @property
    def table(self) -> str:
        """The name of the table."""
        return names.commits_table(self.virtual_host)

    def segment_of(self, stage: int) -> str:
        """Return the segment of a stage."""
        return names.stage_segment(self.virtual_host, stage)

    async def write(self, entries: Sequence[TableEntry]) -> Sequence[int]:
        """Write rows, all or none; return their versions. Raises StoreError."""
        written: Pending[Sequence[int]] = Pending()
        self.store.update_table(self.table, entries, done=written.settle)
        return await written

    async def read(self, key: bytes) -> bytes | None:
        """Read a row; None if there is none. Raises StoreError."""
        found: Pending[Any] = Pending()
        self.store.read_table(self.table, [key], done=found.settle)
        (entry,) = await found
        return None if entry is None else entry.value

    async def remove(self, keys: Sequence[bytes]) -> None:
        """Remove rows, all or none; they need not be there. Raises StoreError."""
        if keys:
            removed: Pending[None] = Pending()
            entries = [TableEntry(key, b"") for key in keys]
            self.store.for_removal.remove_keys(self.table, entries, done=removed.settle)
            await removed
