"""Folding: batches of events into the documents that they change."""

from collections.abc import Callable
from typing import Final

from gateway.broker.slices import Slice
from gateway.log.records.reading import Record
from gateway.mewbase.binders.binder import Binder, Changed, Kept
from gateway.mewbase.binders.projection import Change, Projection, checked
from gateway.mewbase.documents import NoDocument
from gateway.mewbase.events import event_of
from gateway.pending import Pending
from store.api import ANY_VERSION

_STEP_EVENTS: Final = 32
"""Events whose documents are read at once; each may have 1 MiB."""
_BATCH_BYTES: Final = 8 * 1024 * 1024
"""Bytes of documents above which a batch takes no more events; one document more than this is far
below what one update may have, TABLE_BATCH_BYTES_MAX."""

InThread = Callable[[Callable[[], None]], Pending[None]]
"""Runs a function on a thread."""
_Named = tuple[int, bytes, str | NoDocument]
"""Position of an event, the event, and the id of its document, or the reason why it has none."""


class Batch:
    """Documents that a run of events has changed.

    Attributes:
        before: Documents as they were when they were read.
        changes: Documents as they are now.
        size_bytes: Bytes of both.
        changed_bytes: Bytes of the changed ones.
        next_position: Position behind the last event that was taken.
        passed_over: Position of each event that makes no document, and the reason.
    """

    def __init__(self) -> None:
        self.before: dict[bytes, Kept] = {}
        self.changes: dict[bytes, bytes] = {}
        self.size_bytes = 0
        self.changed_bytes = 0
        self.next_position = 0
        self.passed_over: list[tuple[int, str]] = []

    @property
    def is_full(self) -> bool:
        """True if it takes no more events: so many bytes change."""
        return self.changed_bytes > _BATCH_BYTES

    def pass_over(self, position: int, error: NoDocument) -> None:
        """Note an event that makes no document."""
        self.passed_over.append((position, str(error)))

    def known(self, name: bytes) -> bytes | None:
        """Return a document as it is now; None if there is none."""
        changed = self.changes.get(name)
        return changed if changed is not None else self.before.get(name, Kept()).content

    def put(self, name: bytes, content: bytes) -> None:
        """Change a document."""
        more = len(content) - len(self.changes.get(name, b""))
        self.size_bytes += more
        self.changed_bytes += more
        self.changes[name] = content

    def changed(self) -> dict[bytes, Changed]:
        """Return what is to be stored, on the condition that it was not changed meanwhile."""
        before = {name: kept.version for name, kept in self.before.items()}
        return {
            name: Changed(content, before.get(name, ANY_VERSION))
            for name, content in self.changes.items()
        }


class Folder:
    """Makes the documents of one projection."""

    def __init__(
        self,
        projection: Projection,
        change: Change | None,
        wait: Callable[[int], Pending[None]],
        in_thread: InThread,
    ) -> None:
        """Begin.

        Args:
            projection: The projection.
            change: Its function, if it has one.
            wait: Returns a Pending that settles after so many milliseconds.
            in_thread: Runs that function on a thread.
        """
        self._projection = projection
        self._fold = projection.fold(change)
        self._wait = wait
        self._in_thread = in_thread
        self._is_slow = change is not None
        self._reads = projection.mode != "replace"

    async def fold(self, binder: Binder, records: list[Record]) -> Batch:
        """Take records from the first one on, until their documents are large. Raises StoreError.

        Nothing is stored by that.
        """
        batch, time_slice = Batch(), Slice(every=1)
        for begin in range(0, len(records), _STEP_EVENTS):
            step: list[_Named] = []
            for record in records[begin : begin + _STEP_EVENTS]:
                step.append(self._named(record))
                await self._let_others_go(time_slice)
            if self._reads:
                names = {name.encode() for _, _, name in step if isinstance(name, str)}
                await self._read(binder, names, batch)
            if self._is_slow:
                await self._in_thread(lambda step=step: self._fold_step(step, batch))  # type: ignore[misc]
            else:
                for named in step:
                    if not batch.is_full:
                        self._fold_one(named, batch)
                        await self._let_others_go(time_slice)
            if batch.size_bytes > _BATCH_BYTES:
                break
        return batch

    async def _let_others_go(self, time_slice: Slice) -> None:
        """Wait for a turn of the event loop if it is time to."""
        if time_slice.is_over():
            await self._wait(0)
            time_slice.begin()

    def _named(self, record: Record) -> _Named:
        position, _, content = record
        event = event_of(content)
        try:
            return position, event, self._projection.id_of(event)
        except NoDocument as error:
            return position, event, error

    @staticmethod
    async def _read(binder: Binder, names: set[bytes], batch: Batch) -> None:
        unknown = sorted(names - batch.before.keys())
        for name, kept in zip(unknown, await binder.read(unknown), strict=True):
            batch.before[name] = kept
            batch.size_bytes += len(kept.content or b"")

    def _fold_step(self, step: list[_Named], batch: Batch) -> None:
        """Take the events of a step, up to one with which the batch is full."""
        for named in step:
            if not batch.is_full:
                self._fold_one(named, batch)

    def _fold_one(self, named: _Named, batch: Batch) -> None:
        position, event, name = named
        batch.next_position = position + 1
        if isinstance(name, NoDocument):
            batch.pass_over(position, name)
            return
        raw = name.encode()
        try:
            batch.put(raw, checked(name, self._fold(name, batch.known(raw), event)))
        except NoDocument as error:
            batch.pass_over(position, error)
