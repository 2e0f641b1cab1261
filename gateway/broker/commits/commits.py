"""Commits of a virtual host: stages become visible in their streams, all or none, exactly once.

A commit is one conditional update of a table: its number, its head, its parts and its sink's row.
After it nothing fails: the parts enter their streams, now or after the next start. The mark in a
stream, which is the number of the last commit there, says which have entered.
"""

from collections.abc import Callable, Collection, Iterable, Sequence

from gateway.broker.commits.batch import CommitBatch
from gateway.broker.commits.commit_order import CommitPart
from gateway.broker.commits.draft import ChunkPart, Draft, StagesPart
from gateway.broker.commits.finishing import CommitsUnderWay, Committed, Finishing
from gateway.broker.commits.ports import CommitsPorts
from gateway.broker.commits.rows import LAST, HeadRow, SinkRow, head_key, pack_number
from gateway.broker.commits.sinks import RECORD, Nameless, Sinks
from gateway.broker.commits.sources import READ_BYTES
from gateway.broker.commits.stage import Stage
from gateway.broker.commits.stage_filling import StageFilling
from gateway.broker.commits.stages import Stages, require_sink
from gateway.broker.errors import (
    InternalError,
    PreconditionFailed,
    StreamDoesNotExist,
    StreamNotAvailable,
)
from gateway.broker.locks import Locks
from gateway.broker.streams.catalogue import Stream
from gateway.broker.streams.staging_limits import CHUNKS_MAX
from store.api import NOT_EXISTS, TABLE_BATCH_BYTES_MAX, TableEntry
from store.errors import DiskFull, KeyVersionMismatch, StoreError

CheckTarget = Callable[[str], object]
"""Checks the right to write to a stream; raises the reason against it."""


class Commits:
    """Commits, stages and sinks of a virtual host. Create it with `open_commits`.

    Attributes:
        ports: Its ports.
    """

    def __init__(self, ports: CommitsPorts) -> None:
        self.ports = ports
        self.stages = Stages(ports)
        self.filling = StageFilling(ports, self.stages)
        self._locks = Locks()
        self.sinks = Sinks(ports, self._locks)
        self._nameless = Nameless()
        self._finishing = Finishing(ports, self.stages)
        self._last_number = 0
        self._last_version = NOT_EXISTS
        self._is_closed = False

    @property
    def under_way(self) -> list[int]:
        """Numbers of the commits that have parts to enter, or rows left."""
        return self._finishing.numbers

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

        A batch without stages takes no right, so it only moves on a sink that the user has. Else
        nothing is written down, and the number is 0: nothing was published that could be repeated.

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
                stages = self.stages.for_commit(user, sink, batch, numbers)
                await self._ready(self._targets(stages), check)
                async with self._locks.hold(RECORD):
                    if numbers or sink in self.sinks:
                        draft = self._drafted(user, sink, batch, numbers)
                        under_way = await self._record(draft, check)
        if done is not None:
            return await self._repeat(user, done, numbers)
        committed = Committed(0) if under_way is None else await under_way.answer(is_repeat=False)
        if sink:  # attempts of tasks that failed, or were too late
            await self.stages.discard(self.stages.of_sink(user, sink, batch))
        return committed

    async def publish(self, user: str, records: CommitBatch, check: CheckTarget) -> Committed:
        """Publish records in their streams, all or none.

        Args:
            user: The user that does.
            records: For each stream those that become one chunk.
            check: Called with each target, again when nothing can come between.

        Raises:
            PreconditionFailed: They are too large for one commit.
            StreamDoesNotExist: A target was deleted.
            StreamNotAvailable: A target cannot be written now.
            InternalError: The store refused. In all of these cases nothing was published.
        """
        if not records.records:
            return Committed(self._last_number)
        targets = [some.stream for some in records]
        await self._ready(targets, check)
        parts = []
        for some in records:
            parts.append(ChunkPart(self.ports, some))
            if parts[-1].size > READ_BYTES // 2:
                await self.ports.wait(0)  # others have their turn
        draft = Draft(
            user=user,
            targets=targets,
            parts=parts,
            records=records.records,
            size_bytes=sum(part.size for part in parts),
        )
        async with self._locks.hold(RECORD):
            under_way = await self._record(draft, check)
        return await under_way.answer(is_repeat=False)

    def _done(self, user: str, sink: str, batch: int, numbers: Sequence[int]) -> int | None:
        """Return the number of the commit that comes again; None if it is new."""
        if not sink:
            return self._nameless.of(user, numbers)
        row = self.sinks.of(user, sink)
        return row.number if row is not None and batch <= row.batch else None

    async def _repeat(self, user: str, done: int, numbers: Sequence[int]) -> Committed:
        await self.stages.discard(self.stages.own(user, numbers))
        under_way = self._finishing.find(done)
        if under_way is None:
            return Committed(done, is_repeat=True)
        return await under_way.answer(is_repeat=True)

    async def _ready(self, targets: Iterable[Stream], check: CheckTarget) -> None:
        """Open the logs of the targets, and see that they can be written."""
        for target in targets:
            check(target.name)
            stream_log = await self.ports.streams.logs.of(target)
            if stream_log.read_only is not None:
                raise StreamNotAvailable(target.name)

    def _targets(self, stages: Iterable[Stage]) -> Collection[Stream]:
        """Return the streams of some stages, each once. Raises StreamDoesNotExist."""
        return {stage.generation: self.stages.target_of(stage) for stage in stages}.values()

    def _drafted(self, user: str, sink: str, batch: int, numbers: Sequence[int]) -> Draft:
        """Return the commit of some stages, before it is written down."""
        stages = self.stages.for_commit(user, sink, batch, numbers)
        return Draft(
            user=user,
            sink=sink,
            batch=batch,
            stages=stages,
            targets=self._targets(stages),
            parts=[StagesPart(self.ports, self.stages, some) for some in _by_stream(stages)],
            records=sum(stage.records for stage in stages),
            size_bytes=sum(stage.size_bytes for stage in stages),
        )

    def _next_number(self, targets: Iterable[Stream]) -> int:
        """Return a number above the last one, and above the marks of these streams.

        A table that was repaired may have lost the last number.
        """
        marks = [target.log.mark for target in targets if target.log is not None]
        return 1 + max(self._last_number, *marks, 0)

    async def _record(self, draft: Draft, check: CheckTarget) -> CommitsUnderWay:
        """Write a commit down, and let its parts go; the caller has the lock."""
        if self._is_closed:
            raise InternalError(f"{draft.shown}: the server takes no more commits")
        for target in draft.targets:
            if target.is_deleted:
                raise StreamDoesNotExist(target.name)
            check(target.name)
        number, sink = self._next_number(draft.targets), draft.sink
        head = HeadRow(
            user=draft.user,
            sink=sink,
            batch=draft.batch,
            records=draft.records,
            size_bytes=draft.size_bytes,
        )
        at_ms = self.ports.clock_ms()
        row = SinkRow(batch=draft.batch, number=number, at_ms=at_ms, user=draft.user)
        entries = [TableEntry(LAST, pack_number(number), self._last_version)]
        if sink:
            entries.append(self.sinks.entry(sink, row))
        entries.append(TableEntry(head_key(number), head.pack()))
        entries += [part.entry(number) for part in draft.parts]
        _require_fit(draft, entries)
        for stage in draft.stages:
            stage.commit = number
        versions = await self._write(draft, entries)
        self._last_number, self._last_version = number, versions[0]
        if sink:
            self.sinks.put(sink, row, versions[1])
        return self._begin(number, head, draft.stages, [part.part(number) for part in draft.parts])

    async def _write(self, draft: Draft, entries: Sequence[TableEntry]) -> Sequence[int]:
        try:
            return await self.ports.write(entries)
        except StoreError as error:
            self.ports.refused(error)
            # After other errors the update may be there after a restart, so its stages must be.
            if isinstance(error, DiskFull | KeyVersionMismatch):
                for stage in draft.stages:
                    stage.commit = 0
            streams = ", ".join(sorted({repr(target.name) for target in draft.targets})[:10])
            raise InternalError(
                f"{draft.shown} for streams {streams} is not committed: {error}"
            ) from error

    def _begin(
        self, number: int, head: HeadRow, stages: Sequence[Stage], parts: Sequence[CommitPart]
    ) -> CommitsUnderWay:
        if not head.sink:
            self._nameless.note(head.user, stages, number)
        return self._finishing.begin(number, head, stages, parts)

    # Life

    def restore(self, number: int, version: int) -> None:
        """Take over the last number from before the start."""
        self._last_number, self._last_version = number, version

    async def resume(
        self, number: int, head: HeadRow, stages: Sequence[Stage], parts: Sequence[CommitPart]
    ) -> None:
        """Go on with a commit from before the start, until its parts entered or have to wait.

        Args:
            number: Its number; commits are resumed in the order of these.
            head: Its head.
            stages: The stages that it uses up.
            parts: Its parts.
        """
        for stage in stages:
            stage.commit = number
        await self._begin(number, head, stages, parts).answer(is_repeat=False)

    async def look(self) -> None:
        """Drop expired stages, and the rest of commits that are done."""
        await self._finishing.look()
        await self.stages.look()
        await self.sinks.look(self._finishing.numbers)

    async def close(self) -> None:
        """Take no more commits, and wait for those that are being appended to their streams."""
        self._is_closed = True
        await self._locks.all_released()
        await self._finishing.close()

    async def delete_content(self) -> None:
        """Remove all segments of stages; the table is the caller's. Raises StoreError."""
        await self.close()
        numbers = [stage.number for stage in self.stages]
        self.stages.forget(self.stages)
        await self.stages.delete_segments(numbers)


def _by_stream(stages: Iterable[Stage]) -> list[list[Stage]]:
    """Return the stages that have records, in their order, for each stream.

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
    return list(found.values())


def _require_fit(draft: Draft, entries: Sequence[TableEntry]) -> None:
    size = sum(len(entry.key) + len(entry.value) for entry in entries)
    if size > TABLE_BATCH_BYTES_MAX:
        raise PreconditionFailed(
            f"{draft.shown} names too many streams for one commit: its rows have "
            f"{size} bytes of {TABLE_BATCH_BYTES_MAX}"
        )
