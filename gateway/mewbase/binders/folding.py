"""Folding: batches of events into the documents that they change."""

import logging
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from gateway.log.records.reading import Record
from gateway.mewbase.binders.binder import Binder, Changed, Kept
from gateway.mewbase.binders.projection import Change, Projection, checked
from gateway.mewbase.documents import NoDocument
from gateway.mewbase.events import event_of
from gateway.mewbase.sources import EventReading
from gateway.pending import Pending
from hutch.formats.amqp.sections import TooManySections
from store.api import ANY_VERSION

log = logging.getLogger(__name__)

_STEP_EVENTS: Final = 32
"""Events whose documents are read at once; each may have 1 MiB."""
_BATCH_BYTES: Final = 8 * 1024 * 1024
"""Bytes of documents above which a batch takes no more events; one document more than this is far
below what one update may have, TABLE_BATCH_BYTES_MAX."""

InThread = Callable[[Callable[[], None]], Pending[None]]
"""Runs a function on a thread."""


class _Named(NamedTuple):
    """An event, and the document that it changes.

    Attributes:
        position: Its position.
        event: The event; empty if it makes no document.
        name: The id of the document; empty if it makes none.
        is_new: Whether the binder has no document under it.
        reason: Why it makes none. No exception: its frames would keep events until they are
            collected as garbage.
    """

    position: int
    event: bytes
    name: str
    is_new: bool = False
    reason: str = ""


class FoldedBatch:
    """Documents that a run of events has changed.

    Attributes:
        before: Documents as they were when they were read.
        changes: Documents as they are now.
        ids_left: Number of documents that may still be new.
        size_bytes: Bytes of both.
        changed_bytes: Bytes of the changed ones.
        next_position: Position behind the last event that was taken.
        passed_over: Position of each event that makes no document, and the reason.
    """

    def __init__(self, ids_left: int) -> None:
        self.ids_left = ids_left
        self.before: dict[bytes, Kept] = {}
        self.changes: dict[bytes, bytes] = {}
        self.size_bytes = 0
        self.changed_bytes = 0
        self.next_position = 0
        self.passed_over: list[tuple[int, str]] = []

    @property
    def is_full(self) -> bool:
        """True if it takes no more events: the documents that change are large."""
        return self.changed_bytes > _BATCH_BYTES

    def pass_over(self, position: int, reason: str) -> None:
        """Note an event that makes no document."""
        self.passed_over.append((position, reason))

    def known(self, name: bytes) -> bytes | None:
        """Return a document as it is now; None if there is none."""
        changed = self.changes.get(name)
        return changed if changed is not None else self.before.get(name, Kept()).content

    def add(self, name: bytes, content: bytes) -> None:
        """Make a document that the binder does not have. Raises NoDocument: it has no room."""
        if name not in self.changes:
            if not self.ids_left:
                raise NoDocument("the binder takes no more ids (mewbase.binder_ids_max)")
            self.ids_left -= 1
        self.put(name, content)

    def put(self, name: bytes, content: bytes) -> None:
        """Change a document."""
        more = len(content) - len(self.changes.get(name, b""))
        self.size_bytes += more
        self.changed_bytes += more
        self.changes[name] = content

    def changed(self) -> dict[bytes, Changed]:
        """Return the entries to store, on the condition that they were not changed meanwhile."""
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
        reading: EventReading,
        in_thread: InThread,
    ) -> None:
        """Begin.

        Args:
            projection: The projection.
            change: Its function, if it has one.
            reading: State that the readers of events share.
            in_thread: Runs that function on a thread.
        """
        self._projection = projection
        self._fold = projection.fold(change)
        self._reading = reading
        self._turns = reading.turns
        self._in_thread = in_thread
        self._is_slow = change is not None
        self._reads = projection.mode != "replace"

    async def fold(self, binder: Binder, records: list[Record]) -> FoldedBatch:
        """Take records from the first one on, until their documents are large. Raises StoreError.

        Nothing is stored by that.
        """
        batch = FoldedBatch(binder.ids_left)
        for begin in range(0, len(records), _STEP_EVENTS):
            step = await self._read(binder, records[begin : begin + _STEP_EVENTS], batch)
            if self._is_slow:
                await self._in_thread(partial(self._fold_step, step, batch))
            else:
                time_slice = await self._turns.slice()
                for named in step:
                    if not batch.is_full:
                        self._fold_one(named, batch)
                        time_slice = await self._turns.go_on(time_slice)
                self._turns.end(time_slice)
            if batch.size_bytes > _BATCH_BYTES:
                break
        return batch

    async def _read(
        self, binder: Binder, records: list[Record], batch: FoldedBatch
    ) -> list[_Named]:
        """Look into some records, and read the documents that they change. Raises StoreError."""
        step: list[_Named] = []
        time_slice = await self._turns.slice()
        for record in records:
            step.append(self._named(binder, record))
            time_slice = await self._turns.go_on(time_slice)
        self._turns.end(time_slice)
        if self._reads:
            names = {named.name.encode() for named in step if named.name}
            unknown = sorted(names - batch.before.keys())
            found = await self._reading.alone(binder.read(unknown))
            for name, kept in zip(unknown, found, strict=True):
                batch.before[name] = kept
                batch.size_bytes += len(kept.content or b"")
        return step

    def _named(self, binder: Binder, record: Record) -> _Named:
        position, _, content = record
        try:
            event = event_of(content)
            name = self._projection.id_of(event)
        except Exception as error:  # noqa: BLE001  # as in `_fold_one`
            return _Named(position, b"", "", reason=_reason_of(error))
        return _Named(position, event, name, not binder.has(name.encode()))

    def _fold_step(self, step: list[_Named], batch: FoldedBatch) -> None:
        """Take the events of a step, up to one with which the batch is full."""
        for named in step:
            if not batch.is_full:
                self._fold_one(named, batch)

    def _fold_one(self, named: _Named, batch: FoldedBatch) -> None:
        position, event, name, is_new, reason = named
        batch.next_position = position + 1
        if reason:
            batch.pass_over(position, reason)
            return
        raw = name.encode()
        try:
            content = checked(name, self._fold(name, batch.known(raw), event))
            (batch.add if is_new else batch.put)(raw, content)
        except Exception as error:  # noqa: BLE001  # one event, whatever is in it, ends no projection
            batch.pass_over(position, _reason_of(error))


def _reason_of(error: Exception) -> str:
    """Return why an event makes no document; a fault of ours is logged, to be found."""
    if isinstance(error, (NoDocument, TooManySections)):
        return str(error)
    log.debug("event cannot be taken", exc_info=error)
    return f"a fault of the server: {error!r:.200}"
