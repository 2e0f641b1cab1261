"""`hutch store check`: what Pravega's controller keeps, and the events of its streams."""

from collections.abc import Iterator
from typing import Final

from gateway.commands.progress import Progress
from gateway.pravega.controller.checking.check import findings, segments_of_streams
from gateway.pravega.controller.checking.finding import Finding, Held
from gateway.pravega.controller.checking.records import Records
from gateway.pravega.controller.checking.streams import Events
from gateway.pravega.controller.records.table import RecordTable
from gateway.pravega.names import TABLE
from store.api import READ_BYTES_MAX, ReadResult
from store.errors import StoreError
from store.local.store_check import CheckedStore


class ControllerCheck:
    """One check of the controller's table, and of the segments that it tells of.

    Attributes:
        table: The name of the table.
        damage: What is wrong.
        events: Number of events in streams.
    """

    table: Final = TABLE

    def __init__(self, checked: CheckedStore, progress: Progress, segments: Held) -> None:
        """`segments` are all of the store, by name."""
        self._checked = checked
        self._progress = progress
        self._segments = segments
        store = checked.store
        self._records: Final = Records(RecordTable(store, store.for_removal))
        self.damage: list[Finding] = []
        self.events = 0

    async def load(self) -> list[bytes]:
        """Read the controller's table; return the keys of rows that it cannot use.

        Raises:
            StoreError: The table cannot be read.
        """
        await self._records.load()
        return self._records.refused

    def run(self) -> Iterator[Finding]:
        """Yield all that is found, when the table was read."""
        if TABLE not in self._segments:
            return
        for finding in self._found():
            if finding.is_damage:
                self.damage.append(finding)
            yield finding

    @property
    def summary(self) -> str:
        """The counts; empty in a store that has had no controller."""
        if TABLE not in self._segments:
            return ""
        known = self._records
        return (
            f" {len(known.known_streams)} Pravega streams with {self.events:,} events,"
            f" {len(known.groups)} reader groups, {len(known.tables.all())} key-value tables,"
            f" {len(known.all_transactions())} transactions,"
        )

    def _found(self) -> Iterator[Finding]:
        yield from findings(self._records, self._segments)
        names = segments_of_streams(self._records, self._segments)
        for shape in map(self._segments.__getitem__, names):
            self._progress.expect(shape.length - shape.start)
        for name in names:
            try:
                self.events += self._count(name)
            except StoreError as error:
                stream = name.rpartition("/")[0]
                yield Finding(f"it cannot be read: {error}", f"stream={stream}", name)

    def _count(self, name: str) -> int:
        """Read a segment; return how many events it has. Raises StoreError."""
        shape, store = self._segments[name], self._checked.store
        place, events = shape.start, Events()
        while place < shape.length:
            read: ReadResult = self._checked.ask(store.read, name, place, READ_BYTES_MAX)
            events.feed(read.data)
            self._progress.walked(len(read.data))
            place += len(read.data)
        return events.count
