"""Feeder: runs one projection, which turns the events of a channel into documents, exactly once.

Events are taken in batches. The documents that a batch changes and the projection's place are one
update of the binder's table, so no event is taken twice, whatever ends the server.
"""

import logging
from dataclasses import dataclass
from typing import Final

from gateway.broker.errors import BrokerError, StreamDoesNotExist
from gateway.broker.streams.catalogue import Stream
from gateway.broker.streams.streams import Streams
from gateway.log.damage.errors import LogError
from gateway.log.log import StreamLog
from gateway.log.ports import when_all_committed
from gateway.log.records.openings import Opener
from gateway.log.records.reading import Record, RecordReader, UnreadableSubBatch, reader_from
from gateway.mewbase.binders.binder import Binder, ProjectionPlace
from gateway.mewbase.binders.folding import Folder, InThread
from gateway.mewbase.binders.projection import Change, Projection
from gateway.mewbase.events import NoEvents, records_instead
from gateway.mewbase.sources import EventReading, PassedOver
from gateway.pending import Pending, run
from gateway.settings.mewbase import BadSubBatchRule
from store.errors import KeyVersionMismatch, StoreError

log = logging.getLogger(__name__)

_PAUSE_MS: Final = 100
_PAUSE_MS_MAX: Final = 60_000
_NO_CHANNEL_MS: Final = 500
"""Pause before another look for a channel that does not exist."""
_BATCH_EVENTS: Final = 1_000
_BATCH_BYTES: Final = 1024 * 1024
"""Events that are taken at once, and their bytes; a chunk is not parted."""


@dataclass(frozen=True, slots=True)
class FeederPorts:
    """Ports of feeders.

    Attributes:
        streams: The streams of the virtual host, which are the channels.
        in_thread: Runs a function of a user on a thread.
        reading: State that the readers of events share.
    """

    streams: Streams
    in_thread: InThread
    reading: EventReading


class _ChannelGone(Exception):
    """The channel was deleted, or its log has failed."""


class Feeder:
    """Runs one projection.

    Attributes:
        projection: The projection.
        binder: Gets its documents.
        begun: Settled when its place in the channel is stored, or it has to wait for the channel.
        passed_over: Events of which it made no document since the start.
        failure: Why it has ended, though the server goes on; empty if it has not.
    """

    def __init__(
        self,
        projection: Projection,
        binder: Binder,
        ports: FeederPorts,
        change: Change | None,
        bad_sub_batches: BadSubBatchRule = BadSubBatchRule.SKIP,
    ) -> None:
        self.projection = projection
        self.binder = binder
        self.begun: Pending[None] = Pending()
        line = "events make no document projection=%s"
        self.passed_over = PassedOver(ports.reading.wait, line, projection.name)
        self.failure = ""
        self._ports = ports
        self._bad_sub_batches = bad_sub_batches
        self._turns = ports.reading.turns
        self._opener = Opener(ports.reading.room)
        self._folder = Folder(projection, change, ports.reading, ports.in_thread)
        self._stored = ProjectionPlace(0, 0)
        self._position = 0
        self._log: StreamLog | None = None
        self._is_idle = False
        self._woken: Pending[None] = Pending()
        self._waiting: list[tuple[int | None, Pending[None]]] = []
        self._is_stopped = False
        self._ended: Pending[None] = Pending()

    def start(self) -> None:
        """Begin."""
        run(self._go(), self._over)

    async def stop(self) -> None:
        """Take no more events, and wait until the batch under way is stored."""
        self._is_stopped = True
        self._wake()
        await self._ended

    async def caught_up(self) -> None:
        """Wait until all events are taken that are stored by now; not if it cannot go on."""
        end = None if self._log is None else self._log.committed_next_offset
        if not self._is_idle and (end is None or self._position < end):
            pending: Pending[None] = Pending()
            self._waiting.append((end, pending))
            await pending

    def _over(self, outcome: BaseException | None) -> None:
        if outcome is not None:
            name, channel = self.projection.name, self.projection.channel
            line = "projection has ended projection=%s channel=%s"
            log.error(line, name, channel, exc_info=outcome)
            self.failure = f"{outcome!r:.200}"
        self._lose_log()
        self._ended.settle(None)

    # The loop

    async def _go(self) -> None:
        pause_ms = 0
        is_told = False
        while not self._is_stopped:
            before = self._stored
            try:
                await self._feed()
            except StreamDoesNotExist:
                if not is_told:
                    self._say_waits("there is no such channel; it begins when one is made")
                is_told = True
                pause_ms = _NO_CHANNEL_MS
            except (StoreError, LogError, BrokerError, NoEvents, _ChannelGone) as error:
                self._say_waits(error)
                is_told = False
                went_on = self._stored != before
                longer_ms = _PAUSE_MS if went_on else max(2 * pause_ms, _PAUSE_MS)
                pause_ms = min(longer_ms, _PAUSE_MS_MAX)
            self._lose_log()
            if not self._is_stopped:
                await self._pause(pause_ms)

    def _say_waits(self, error: object) -> None:
        line = "projection waits projection=%s channel=%s error=%s"
        log.warning(line, self.projection.name, self.projection.channel, error)

    async def _pause(self, pause_ms: int) -> None:
        """Wait for a while, or for the stop."""
        self._woken = Pending()
        self._ports.reading.wait(pause_ms).when_settled(self._wake)
        await self._woken

    def _lose_log(self) -> None:
        """Let nothing wait for events: none are taken now."""
        self._log = None
        self._is_idle = True
        self._say_begun()
        waiting, self._waiting = self._waiting, []
        for _, pending in waiting:
            pending.settle(None)

    def _say_begun(self) -> None:
        if not self.begun.is_settled:
            self.begun.settle(None)

    async def _feed(self) -> None:
        """Take events until the stop, or an error."""
        stream = self._ports.streams.find(self.projection.channel)
        self._is_idle = False
        stream_log = await self._ports.streams.logs.of(stream)
        await self._begin(stream, stream_log)
        self._say_begun()
        reader = await reader_from(
            stream_log,
            self._position,
            self._wake,
            stays_at_bad=self._bad_sub_batches is BadSubBatchRule.FAIL,
            opener=self._opener,
        )
        stream.watchers.add(self)
        self._log = stream_log
        end = stream_log.committed_next_offset
        self._waiting = [(end, pending) for _, pending in self._waiting]
        try:
            self._note_position(self._position)
            while not self._is_stopped:
                await self._take(await self._next(reader, stream))
        finally:
            stream.watchers.discard(self)
            reader.close()

    def stream_gone(self, _stream: Stream) -> None:
        """Look at the channel, which was deleted or has failed."""
        self._wake()

    async def _begin(self, stream: Stream, stream_log: StreamLog) -> None:
        """Find the place in a channel; one that is new is stored."""
        generation = stream.entry.generation
        place = await self.binder.place_of(self.projection.name)
        if place is None or place.generation != generation:
            start = 0
            if self.projection.start == "now":
                await when_all_committed(stream_log)
                start = stream_log.committed_next_offset
            place = ProjectionPlace(generation, start)
            await self.binder.change(self.projection.name, place, {})
        self._stored, self._position = place, place.position

    async def _next(self, reader: RecordReader, stream: Stream) -> list[Record]:
        """Return the next records, some chunks of them; empty at the stop."""
        found: list[Record] = []
        size = 0
        time_slice = await self._turns.slice()
        while not self._is_stopped and len(found) < _BATCH_EVENTS and size < _BATCH_BYTES:
            if stream.is_deleted or reader.failure is not None:
                raise _ChannelGone(str(reader.failure or "it was deleted"))
            self._woken = Pending()
            some = reader.next()
            if isinstance(some, UnreadableSubBatch):
                if found and self._bad_sub_batches is BadSubBatchRule.FAIL:
                    break  # they are stored first
                some = self._instead(some)
            if some is not None:
                found += some
                size += sum(len(record) for _, _, record in some)
            elif found:
                break
            elif reader.failure is None:
                self._note_position(reader.next_offset)
                self._turns.end(time_slice)
                await self._woken
                time_slice = await self._turns.slice()
            time_slice = await self._turns.go_on(time_slice)
        self._turns.end(time_slice)
        return found

    def _instead(self, bad: UnreadableSubBatch) -> list[Record]:
        """Return the records that stand for those of a sub-batch. Raises NoEvents."""
        records = records_instead(bad, self._bad_sub_batches)
        log.warning(
            "events cannot be taken projection=%s from=%d to=%d reason=%s bad_sub_batches=%s",
            self.projection.name,
            bad.offset,
            bad.next_offset - 1,
            bad.reason,
            self._bad_sub_batches.value,
        )
        return records

    def _wake(self) -> None:
        if not self._woken.is_settled:
            self._woken.settle(None)

    def _note_position(self, position: int) -> None:
        """Let those go on that wait for a position."""
        self._position = max(position, self._position)
        waiting, self._waiting = self._waiting, []
        for wanted, pending in waiting:
            if wanted is not None and wanted <= self._position:
                pending.settle(None)
            else:
                self._waiting.append((wanted, pending))

    async def _take(self, records: list[Record]) -> None:
        """Store the documents that events make."""
        while records and not self._is_stopped:
            batch = await self._folder.fold(self.binder, records)
            place = ProjectionPlace(self._stored.generation, batch.next_position)
            try:
                await self.binder.change(self.projection.name, place, batch.changed())
            except KeyVersionMismatch:
                if await self.binder.place_of(self.projection.name) != self._stored:
                    raise
                continue  # another projection changed a document meanwhile
            self._stored = place
            self.passed_over.add(self.projection.channel, batch.passed_over)
            self._note_position(place.position)
            records = [record for record in records if record[0] >= place.position]
