"""Filling of a virtual host's stages by clients: open one, add entries, close it."""

import logging

from typing_extensions import Buffer

from gateway.broker.commits.ports import CommitsPorts
from gateway.broker.commits.rows import stage_key
from gateway.broker.commits.sources import StagesSource, resume
from gateway.broker.commits.stage import Stage
from gateway.broker.commits.stage_segment import StageSegment
from gateway.broker.commits.stages import Stages, require_sink, unknown
from gateway.broker.errors import (
    InternalError,
    PreconditionFailed,
)
from gateway.broker.streams.catalogue import Stream
from gateway.broker.streams.staging_limits import (
    CHUNKS_MAX,
    INLINE_BYTES_MAX,
    MEMORY_BYTES_MAX,
    STAGES_MAX,
)
from gateway.log.damage.errors import LogError
from gateway.log.units import pack_blank
from gateway.pending import start
from hutch.formats.chunk import seal_seed
from store.api import TableEntry
from store.errors import CorruptSegment, NoSuchSegment, StoreError

log = logging.getLogger(__name__)


class StageFilling:
    """Fills stages for clients, up to where they can be committed."""

    def __init__(self, ports: CommitsPorts, stages: Stages) -> None:
        self._ports = ports
        self._stages = stages
        self._usage = ports.usage

    def open(self, user: str, sink: str, batch: int, stream_name: str) -> Stage:
        """Open a stage.

        Args:
            user: Its owner; no other user may use it.
            sink: The sink that it is for, at most SINK_BYTES_MAX bytes; empty: none is remembered.
            batch: The batch, 0 … BATCH_MAX.
            stream_name: The stream that gets its records.

        Raises:
            StreamDoesNotExist: No such stream.
            PreconditionFailed: Something is above its bound.
        """
        require_sink(sink, batch)
        stream = self._ports.streams.find(stream_name)
        self._usage.require(user, 1)
        if self._stages.count_of(user) >= STAGES_MAX:
            raise PreconditionFailed(f"user {user!r} has {STAGES_MAX} stages: discard some")
        stage = Stage(
            number=self._ports.streams.storage.new_generation(),
            user=user,
            sink=sink,
            batch=batch,
            stream=stream.name,
            generation=stream.entry.generation,
            seal_seed=self._seal_seed(stream),
            used_ms=self._ports.clock_ms(),
        )
        self._stages.put(stage)
        return stage

    async def add(
        self, user: str, number: int, sequence: int, entries: int, records: int, data: Buffer
    ) -> int:
        """Add entries to a stage; they may be stored later.

        It returns when there is room for more. Entries that the stage has are dropped, whatever is
        in them: the client sends them again if it did not get the answer.

        Args:
            user: The user that asks.
            number: The stage's.
            sequence: Counts from 0 in each stage.
            entries: Number of entries, 1 … 65,535.
            records: Number of records in them.
            data: The entries in their stored form (`hutch.formats.entries`).

        Returns:
            How many frames, from the first one on, need not be kept: they outlive a kill of the
            server, and with `store.durability` disk a power cut as well.

        Raises:
            PreconditionFailed: The stage is unknown or closed, the sequence is above the next one,
                the counts do not agree with the data, or the user has too much staged. Nothing
                was taken.
            AccessRefused: It is another user's.
            StreamDoesNotExist: Its stream was deleted.
            InternalError: The store refused; the stage cannot be closed any more.
        """
        stage = await self._counted(user, number)
        if sequence < stage.sequence:
            return stage.stored
        if stage.closing is not None:
            raise PreconditionFailed(f"stage {number} is closed")
        self._stages.target_of(stage)
        if sequence > stage.sequence:
            raise PreconditionFailed(
                f"stage {number}: sequence {sequence} came instead of {stage.sequence}"
            )
        if sequence >= CHUNKS_MAX:
            raise PreconditionFailed(f"stage {number} has {CHUNKS_MAX} frames: send larger ones")
        try:
            chunk = pack_blank(
                entries, records, data, seal_seed=stage.seal_seed, room=self._usage.scratch
            )
        except (LogError, ValueError) as error:
            raise PreconditionFailed(
                f"stage {number}: sequence {sequence} is not {entries} entries with "
                f"{records} records: {error}"
            ) from error
        self._usage.require(user, len(chunk))
        stage.sequence += 1
        stage.records += records
        stage.used_ms = self._ports.clock_ms()
        self._take(stage, chunk)
        if stage.segment is not None:
            try:
                await stage.segment.room()
            except StoreError as error:
                raise self._not_stored(stage, error) from error
        return stage.stored

    async def _counted(self, user: str, number: int) -> Stage:
        """Return a user's stage; one that was open before the start is counted first.

        Raises:
            PreconditionFailed: It is unknown, was lost, or is in a commit.
            AccessRefused: It is another user's.
            StreamDoesNotExist: It has to be counted, and its stream was deleted.
            InternalError: It cannot be read now.
        """
        stage = self._stages.of(user, number)
        if stage.has_segment and stage.segment is None and stage.closing is None:
            if stage.resuming is None:
                stage.resuming = start(self._resume(stage))
            await stage.resuming
            stage = self._stages.of(user, number)
        return stage

    async def _resume(self, stage: Stage) -> None:
        stage.seal_seed = self._seal_seed(self._stages.target_of(stage))
        try:
            stage.segment = await resume(
                self._ports, stage, StagesSource(self._ports, self._stages.data_of, [stage])
            )
        except CorruptSegment as error:
            log.warning(
                "open stage is lost virtual_host=%s stage=%d stream=%s error=%s",
                self._ports.virtual_host,
                stage.number,
                stage.stream,
                error,
            )
            await self._stages.discard([stage])
        except StoreError as error:
            stage.resuming = None
            raise self._not_stored(stage, error) from error

    def _seal_seed(self, stream: Stream) -> int:
        return seal_seed(self._ports.streams.storage.names_of(stream.entry).data_segment)

    def _take(self, stage: Stage, chunk: memoryview) -> None:
        """Store a chunk, or hold it; its buffer is the caller's again."""
        size = len(chunk)
        stage.size_bytes += size
        self._usage.add(stage.user, size)
        if stage.segment is not None:
            stage.segment.write(chunk)
            return
        assert stage.held is not None
        stage.held.append(bytes(chunk))
        self._usage.memory_bytes += size
        is_large = stage.size_bytes > INLINE_BYTES_MAX
        if is_large or self._usage.memory_bytes > MEMORY_BYTES_MAX:
            self._move_to_segment(stage)

    def _move_to_segment(self, stage: Stage) -> None:
        name = self._ports.segment_of(stage.number)
        stage.segment = StageSegment(self._ports.store, name, self._usage)
        stage.has_segment = True
        held = stage.held or []
        self._stages.let_go(stage)
        for chunk in held:
            stage.segment.write(chunk)
        stage.making = start(stage.segment.make(lambda: self._write_row(stage, is_closed=False)))

    async def _write_row(self, stage: Stage, data: bytes = b"", *, is_closed: bool) -> None:
        row = stage.row(is_closed=is_closed)
        await self._ports.write([TableEntry(stage_key(stage.number), row.pack(data))])

    async def close(self, user: str, number: int) -> Stage:
        """Close a stage; it is then as durable as the store's setting says.

        Closing it again does nothing.

        Raises:
            PreconditionFailed: It is unknown.
            AccessRefused: It is another user's.
            StreamDoesNotExist: It was open before the start, and its stream was deleted.
            InternalError: The store refused; it is open still.
        """
        stage = await self._counted(user, number)
        stage.used_ms = self._ports.clock_ms()
        if stage.closing is None:
            stage.closing = start(self._close(stage))
        try:
            await stage.closing
        except StoreError as error:
            stage.closing = None
            raise self._not_stored(stage, error) from error
        if self._stages.find(number) is None:
            raise unknown(number)
        return stage

    async def _close(self, stage: Stage) -> None:
        if stage.segment is not None:
            await stage.segment.all_written()
            await self._write_row(stage, is_closed=True)
            return
        await self._write_row(stage, b"".join(stage.held or ()), is_closed=True)
        if self._usage.memory_bytes > MEMORY_BYTES_MAX // 2:
            self._stages.let_go(stage)

    def _not_stored(self, stage: Stage, error: StoreError) -> Exception:
        if self._stages.find(stage.number) is None or isinstance(error, NoSuchSegment):
            return unknown(stage.number)
        self._ports.refused(error)
        shown = f"stage {stage.number} of stream {stage.stream!r}"
        return InternalError(f"{shown} is not stored: {error}")
