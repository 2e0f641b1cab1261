"""The segment of a stage that is too large for its row: made, then written without waiting."""

from collections.abc import Callable, Coroutine
from typing import Any

from gateway.broker.streams.staging_limits import WAY_BYTES_MAX, Usage
from gateway.log.names import writer_of
from gateway.pending import Pending
from store.api import Appended, SegmentStore, Writer
from store.errors import StoreError


class StageSegment:
    """A segment to which a stage's chunks go, in order.

    Attributes:
        failure: The first error; nothing more is written after it.
        stored: Number of chunks that are stored.
    """

    def __init__(self, store: SegmentStore, name: str, usage: Usage) -> None:
        self.failure: StoreError | None = None
        self.stored = 0
        self._store = store
        self._name = name
        self._usage = usage
        self._writer: Writer | None = None
        self._number = 0
        self._queued: list[bytes] = []
        self._way_bytes = 0
        self._all_written: list[Pending[None]] = []

    async def make(self, write_row: Callable[[], Coroutine[Pending[Any], None, None]]) -> None:
        """Make the segment behind its row, and send the chunks that were written meanwhile.

        It raises nothing: an error is kept as `failure`.
        """
        try:
            await write_row()
            created: Pending[None] = Pending()
            self._store.create_segment(self._name, done=created.settle)
            await created
            self._writer = await self._open()
        except StoreError as error:
            self._fail(error)
            return
        queued, self._queued = self._queued, []
        for chunk in queued:
            self._send(chunk)

    async def go_on(self, stored: int) -> None:
        """Write behind the chunks that are there since before the start. Raises StoreError."""
        self._writer = await self._open()
        self._number = max(0, self._writer.event_number)
        self.stored = stored

    async def _open(self) -> Writer:
        opened: Pending[Writer] = Pending()
        self._store.open_writer(self._name, writer_of(self._name), done=opened.settle)
        return await opened

    def write(self, chunk: bytes | memoryview) -> None:
        """Take a chunk, which is stored later; its buffer is the caller's again."""
        if self.failure is not None:
            return
        self._way_bytes += len(chunk)
        self._usage.sent(len(chunk))
        if self._writer is None:
            self._queued.append(bytes(chunk))
        else:
            self._send(chunk)

    def _send(self, chunk: bytes | memoryview) -> None:
        assert self._writer is not None
        self._number += 1
        size = len(chunk)

        def done(outcome: Appended | StoreError) -> None:
            if self.failure is None:
                if isinstance(outcome, StoreError):
                    self._fail(outcome)
                else:
                    self._arrived(size)

        self._writer.append(chunk, self._number, done=done)

    def _arrived(self, size: int) -> None:
        self.stored += 1
        self._way_bytes -= size
        self._usage.sent(-size)
        if not self._way_bytes:
            self._tell()

    def _fail(self, error: StoreError) -> None:
        self.failure = error
        self._queued.clear()
        size, self._way_bytes = self._way_bytes, 0
        self._usage.sent(-size)
        self._tell()

    def _tell(self) -> None:
        waiting, self._all_written = self._all_written, []
        for pending in waiting:
            pending.settle(None)

    async def room(self) -> None:
        """Wait while too much is on its way. Raises StoreError."""
        await self._usage.room(lambda: self._way_bytes <= WAY_BYTES_MAX)
        if self.failure is not None:
            raise self.failure

    async def all_written(self) -> None:
        """Wait until everything written so far is stored. Raises StoreError."""
        if self._way_bytes:
            pending: Pending[None] = Pending()
            self._all_written.append(pending)
            await pending
        if self.failure is not None:
            raise self.failure
