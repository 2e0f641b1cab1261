"""Commits of a virtual host: stages become visible in their streams, all or none, exactly once.

A commit is one conditional update of a table: its number, its head, its parts and its sink's row.
After it nothing fails: the parts enter their streams, now or after the next start. The mark in a
stream, which is the number of the last commit there, says which have entered.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from gateway.broker.commits.entering import enter
from gateway.broker.commits.lanes import Lanes, Outcome, Part
from gateway.broker.commits.limits import CHUNKS_MAX
from gateway.broker.commits.ports import CommitsPorts
from gateway.broker.commits.rows import (
    LAST,
    HeadRow,
    PartRow,
    SinkRow,
    head_key,
    pack_number,
    part_key,
    stage_key,
)
from gateway.broker.commits.sinks import Nameless, Sinks
from gateway.broker.commits.sources import StagesSource
from gateway.broker.commits.stage import Stage
from gateway.broker.commits.stages import Stages, require_sink
from gateway.broker.errors import InternalError, PreconditionFailed, StreamNotAvailable
from gateway.broker.locks import Locks
from gateway.broker.stream import Stream
from gateway.pending import Pending, run
from store.api import NOT_EXISTS, TABLE_BATCH_BYTES_MAX, TableEntry
from store.errors import DiskFull, KeyVersionMismatch, StoreError

log = logging.getLogger(__name__)

_RECORD: Final = "record"

CheckTarget = Callable[[str], object]
"""Checks the right to write to a stream; raises what forbids it."""


@dataclass(frozen=True, slots=True)
class Committed:
    """Answer to a commit.

    Attributes:
        number: Its number; of a batch that is repeated, the number of the sink's last commit.
        is_repeat: Whether the sink had committed the batch, or a later one, before.
        dropped: Streams that were deleted after the commit.
        waiting: Streams that cannot be written now; they get their part later.
    """

    number: int
    is_repeat: bool = False
    dropped: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()


@dataclass(slots=True, eq=False)
class UnderWay:
    """A commit whose parts have not all ended, or that has rows left.

    Attributes:
        number: Its number.
        head: Its head.
        stages: The stages of its parts.
        parts: One for each stream that gets records.
        cleared: Settled when its rows are removed, or could not be.
    """

    number: int
    head: HeadRow
    stages: Sequence[Stage]
    parts: Sequence[Part]
    cleared: Pending[None] = field(default_factory=Pending)

    @property
    def has_ended(self) -> bool:
        """True if every part has entered or was dropped."""
        return all(part.ended.is_settled for part in self.parts)

    async def answer(self, *, is_repeat: bool) -> Committed:
        """Wait until each part has entered, was dropped, or has to wait."""
        outcomes = [(part.stream, await part.first) for part in self.parts]
        now = [
            (name, part.ended.result() if part.ended.is_settled else outcome)
            for part, (name, outcome) in zip(self.parts, outcomes, strict=True)
        ]
        dropped = tuple(name for name, outcome in now if outcome is Outcome.DROPPED)
        waiting = tuple(name for name, outcome in now if outcome is Outcome.WAITING)
        return Committed(self.number, is_repeat, dropped, waiting)


class Commits:
    """Commits, stages and sinks of a virtual host. Create it with `open_commits`."""

    def __init__(self, ports: CommitsPorts) -> None:
        self.stages = Stages(ports)
        self.sinks = Sinks(ports)
        self._nameless = Nameless()
        self._ports = ports
        self._lanes = Lanes(partial(enter, ports), ports.wait)
        self._locks = Locks()
        self._last_number = 0
        self._last_version = NOT_EXISTS
        self._under_way: dict[int, UnderWay] = {}
        self._is_closed = False

    @property
    def under_way(self) -> list[int]:
        """Numbers of the commits that have parts to enter, or rows left."""
        return sorted(self._under_way)

    def state_of(self, user: str, sink: str) -> tuple[int, int]:
        """Return a sink's last batch and the commit's number; -1 and 0 if there is none.

        Raises:
            AccessRefused: The sink is another user's.
        """
        row = self.sinks.of(user, sink)
        return (-1, 0) if row is None else (row.batch, row.number)

    async def commit(
        self, user: str, sink: str, batch: int, numbers: Sequence[int], check: CheckTarget
    ) -> Committed:
        """Publish stages in their streams, all or none, unless the batch was committed before.

        Args:
            user: The owner of the stages and the sink.
            sink: The sink; empty: for as long as the server runs, stages tell of a repetition.
            batch: The batch; those of a sink only grow.
            numbers: The stages, in the order of their records.
            check: Called with each target, again when nothing can come between.

        Raises:
            PreconditionFailed: A stage cannot be committed (`Stages.for_commit`).
            AccessRefused: A stage or the sink is another user's.
            StreamDoesNotExist: A target was deleted.
            StreamNotAvailable: A target cannot be written now.
            InternalError: The store refused. In all of these cases nothing was published.
        """
        require_sink(sink, batch)
        under_way = None
        # A commit that comes again, since its client lost the answer, waits for the first one.
        async with self._locks.hold(f"sink {sink}" if sink else f"user {user}"):
            done = self._done(user, sink, batch, numbers)
            if done is None:
                await self._ready(self.stages.for_commit(user, sink, batch, numbers), check)
                async with self._locks.hold(_RECORD):
                    under_way = await self._record(user, sink, batch, numbers, check)
        if done is not None:
            return await self._repeat(user, done, numbers)
        assert under_way is not None
        committed = await under_way.answer(is_repeat=False)
        if sink:  # attempts of tasks that failed, or were too late
            await self.stages.discard(self.stages.of_sink(user, sink, batch))
        return committed

    def _done(self, user: str, sink: str, batch: int, numbers: Sequence[int]) -> int | None:
        """Return the number of the commit that comes again; None if it is new."""
        if not sink:
            return self._nameless.of(user, numbers)
        row = self.sinks.of(user, sink)
        return row.number if row is not None and batch <= row.batch else None

    async def _repeat(self, user: str, done: int, numbers: Sequence[int]) -> Committed:
        await self.stages.discard(self.stages.own(user, numbers))
        under_way = self._under_way.get(done)
        if under_way is None:
            return Committed(done, is_repeat=True)
        return await under_way.answer(is_repeat=True)

    async def _ready(self, stages: Sequence[Stage], check: CheckTarget) -> None:
        """Open the logs of the targets, and see that they can be written."""
        for target in self._targets(stages):
            check(target.name)
            stream_log = await self._ports.streams.logs.of(target)
            if stream_log.read_only is not None:
                raise StreamNotAvailable(target.name)

    def _targets(self, stages: Iterable[Stage]) -> Collection[Stream]:
        """Return the streams of some stages, each once. Raises StreamDoesNotExist."""
        return {stage.generation: self.stages.target_of(stage) for stage in stages}.values()

    def _next_number(self, targets: Iterable[Stream]) -> int:
        """Return a number above the last one, and above the marks of these streams.

        A table that was repaired may have lost the last number.
        """
        marks = [target.log.mark for target in targets if target.log is not None]
        return 1 + max(self._last_number, *marks, 0)

    async def _record(
        self, user: str, sink: str, batch: int, numbers: Sequence[int], check: CheckTarget
    ) -> UnderWay:
        """Write a commit down, and let its parts go; the caller has the lock."""
        if self._is_closed:
            raise InternalError(f"sink {sink!r}: the server takes no more commits")
        stages = self.stages.for_commit(user, sink, batch, numbers)
        targets = self._targets(stages)
        for target in targets:
            check(target.name)
        by_stream = _by_stream(stages)
        number = self._next_number(targets)
        records = sum(stage.records for stage in stages)
        size_bytes = sum(stage.size_bytes for stage in stages)
        head = HeadRow(user=user, sink=sink, batch=batch, records=records, size_bytes=size_bytes)
        row = SinkRow(batch=batch, number=number, at_ms=self._ports.clock_ms(), user=user)
        entries = [TableEntry(LAST, pack_number(number), self._last_version)]
        if sink:
            entries.append(self.sinks.entry(sink, row))
        entries.append(TableEntry(head_key(number), head.pack()))
        for generation, some in by_stream.items():
            part = PartRow(some[0].stream, tuple(stage.number for stage in some))
            entries.append(TableEntry(part_key(number, generation), part.pack()))
        _require_fit(sink, batch, entries)
        for stage in stages:
            stage.commit = number
        versions = await self._write(sink, batch, stages, entries)
        self._last_number, self._last_version = number, versions[0]
        if sink:
            self.sinks.put(sink, row, versions[1])
        return self._begin(number, head, stages, by_stream)

    async def _write(
        self, sink: str, batch: int, stages: Sequence[Stage], entries: Sequence[TableEntry]
    ) -> Sequence[int]:
        try:
            return await self._ports.write(entries)
        except StoreError as error:
            self._ports.refused(error)
            # After other errors the update may be there after a restart, so its stages must be.
            if isinstance(error, DiskFull | KeyVersionMismatch):
                for stage in stages:
                    stage.commit = 0
            streams = ", ".join(sorted({repr(stage.stream) for stage in stages})[:10])
            raise InternalError(
                f"batch {batch} of sink {sink!r} for streams {streams} is not committed: {error}"
            ) from error

    def _begin(
        self, number: int, head: HeadRow, stages: Sequence[Stage], by: dict[int, list[Stage]]
    ) -> UnderWay:
        """Let the parts of a commit that is written down enter their streams."""
        if not head.sink:
            self._nameless.note(head.user, stages, number)
        parts = [
            Part(number, some[0].stream, gen, StagesSource(self._ports, self.stages, some))
            for gen, some in by.items()
        ]
        under_way = self._under_way[number] = UnderWay(number, head, stages, parts)
        for part in parts:
            self._lanes.put(part)
        run(self._finish(under_way), partial(_ended, under_way))
        return under_way

    async def _finish(self, under_way: UnderWay) -> None:
        """Wait until all parts have ended, and remove what is left of the commit."""
        dropped = 0
        for part in under_way.parts:
            dropped += await part.ended is Outcome.DROPPED
        head = under_way.head
        log.info(
            "commit done virtual_host=%s sink=%r batch=%d number=%d streams=%d dropped=%d "
            "records=%d bytes=%d",
            self._ports.virtual_host,
            head.sink,
            head.batch,
            under_way.number,
            len(under_way.parts) - dropped,
            dropped,
            head.records,
            head.size_bytes,
        )
        await self._clear(under_way)

    async def _clear(self, under_way: UnderWay) -> None:
        """Remove the stages of a commit whose parts have ended, then its rows."""
        number = under_way.number
        self.stages.forget(under_way.stages)
        keys = [
            head_key(number),
            *(part_key(number, part.generation) for part in under_way.parts),
            *(stage_key(stage.number) for stage in under_way.stages),
        ]
        try:
            await self.stages.delete_segments(
                stage.number for stage in under_way.stages if stage.has_segment
            )
            await self._ports.remove(keys)
        except StoreError as error:  # `look` tries again, and so does the next start
            log.warning(
                "rows of a commit not deleted yet virtual_host=%s number=%d error=%s",
                self._ports.virtual_host,
                number,
                error,
            )
        else:
            self._under_way.pop(number, None)

    # Life

    def restore(self, number: int, version: int) -> None:
        """Take over the last number from before the start."""
        self._last_number, self._last_version = number, version

    async def resume(self, number: int, head: HeadRow, parts: dict[int, list[Stage]]) -> None:
        """Go on with a commit from before the start, until its parts entered or have to wait.

        Args:
            number: Its number; commits are resumed in the order of these.
            head: Its head.
            parts: The stages of each part, by the generation of its stream.
        """
        stages = [stage for part in parts.values() for stage in part]
        for stage in stages:
            stage.commit = number
        await self._begin(number, head, stages, parts).answer(is_repeat=False)

    async def look(self) -> None:
        """Drop what has expired, and what is left of commits that are done."""
        for under_way in list(self._under_way.values()):
            if under_way.has_ended and under_way.cleared.is_settled:
                await self._clear(under_way)
        await self.stages.look()
        await self.sinks.look(self._under_way)

    async def close(self) -> None:
        """Take no more commits, and wait for those that are entering their streams."""
        self._is_closed = True
        await self._locks.all_released()
        await self._lanes.stop()
        for under_way in list(self._under_way.values()):
            if under_way.has_ended:
                await under_way.cleared

    async def delete_content(self) -> None:
        """Remove all segments of stages; the table is the caller's. Raises StoreError."""
        await self.close()
        numbers = [stage.number for stage in self.stages]
        self.stages.forget(self.stages)
        await self.stages.delete_segments(numbers)


def _by_stream(stages: Iterable[Stage]) -> dict[int, list[Stage]]:
    """Return the stages that have records, in their order, by the generation of their stream.

    Raises:
        PreconditionFailed: One stream gets too many chunks.
    """
    found: dict[int, list[Stage]] = {}
    for stage in stages:
        if stage.size_bytes:
            found.setdefault(stage.generation, []).append(stage)
    for some in found.values():
        frames = sum(stage.sequence for stage in some)
        if frames > CHUNKS_MAX:
            raise PreconditionFailed(
                f"stream {some[0].stream!r} gets {frames} frames, and one commit may have "
                f"{CHUNKS_MAX} for a stream: stage larger ones"
            )
    return found


def _require_fit(sink: str, batch: int, entries: Sequence[TableEntry]) -> None:
    size = sum(len(entry.key) + len(entry.value) for entry in entries)
    if size > TABLE_BATCH_BYTES_MAX:
        raise PreconditionFailed(
            f"batch {batch} of sink {sink!r} names too many streams for one commit: its rows have "
            f"{size} bytes of {TABLE_BATCH_BYTES_MAX}"
        )


def _ended(under_way: UnderWay, outcome: BaseException | None) -> None:
    """Let a programming error be seen: no caller waits for the end of a commit."""
    if outcome is not None:
        log.error("commit is not finished number=%d", under_way.number, exc_info=outcome)
    under_way.cleared.settle(None)
