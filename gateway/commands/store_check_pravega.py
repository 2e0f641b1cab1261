"""`hutch store check`: what Pravega's controller keeps, and the events of its streams."""

from collections.abc import Iterator, Mapping
from typing import Final, Protocol

from gateway.pravega.controller.checking.check import findings, segments_of_streams
from gateway.pravega.controller.checking.events import Events
from gateway.pravega.controller.checking.finding import Finding, Shape
from gateway.pravega.controller.checking.records import Records
from gateway.pravega.controller.names import TABLE
from store.api import READ_BYTES_MAX, ReadResult, TableEntry
from store.errors import StoreError
from store.local.store_check import CheckedStore


class Progress(Protocol):
    """Shows how far a check is."""

    def expect(self, size: int) -> None:
        """Add bytes that are checked too."""
        ...

    def walked(self, size: int) -> None:
        """Count bytes that were checked."""
        ...


class ControllerCheck:
    """One check of the controller's table, and of the segments that it tells of.

    Attributes:
        damage: What is wrong.
        events: Number of events in streams.
    """

    def __init__(
        self, checked: CheckedStore, progress: Progress, segments: Mapping[str, Shape]
    ) -> None:
        """`segments` are all of the store, by name."""
        self._checked = checked
        self._progress = progress
        self._segments = segments
        self._records: Final = Records()
        self.damage: list[Finding] = []
        self.events = 0

    def takes(self, table: str, row: TableEntry) -> bool:
        """Take in a row; return False if it is one of the controller's that it cannot use."""
        return table != TABLE or self._records.take(row.key, row.value)

    def run(self) -> Iterator[Finding]:
        """Yield all that is found, when all rows have been taken in."""
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
            f" {len(known.streams)} Pravega streams with {self.events:,} events,"
            f" {len(known.groups)} reader groups, {len(known.tables)} key-value tables,"
            f" {len(known.transactions)} transactions,"
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
