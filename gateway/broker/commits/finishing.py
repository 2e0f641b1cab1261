"""The end of a commit that is written down: its parts enter their streams, its rows go."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from gateway.broker.commits.appending import enter
from gateway.broker.commits.commit_order import CommitOrder, CommitPart, PartOutcome
from gateway.broker.commits.ports import CommitsPorts
from gateway.broker.commits.rows import HeadRow, head_key, part_key, stage_key
from gateway.broker.commits.stage import Stage
from gateway.broker.commits.stages import Stages
from gateway.pending import Pending, run
from store.errors import StoreError

log = logging.getLogger(__name__)


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
class CommitsUnderWay:
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
    parts: Sequence[CommitPart]
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
        dropped = tuple(name for name, outcome in now if outcome is PartOutcome.DROPPED)
        waiting = tuple(name for name, outcome in now if outcome is PartOutcome.WAITING)
        return Committed(self.number, is_repeat, dropped, waiting)


class Finishing:
    """The commits of a virtual host that are written down, and not cleared yet."""

    def __init__(self, ports: CommitsPorts, stages: Stages) -> None:
        self._ports = ports
        self._stages = stages
        self._order = CommitOrder(partial(enter, ports), ports.wait)
        self._under_way: dict[int, CommitsUnderWay] = {}

    @property
    def numbers(self) -> list[int]:
        """Numbers of the commits, in order."""
        return sorted(self._under_way)

    def find(self, number: int) -> CommitsUnderWay | None:
        """Return a commit; None if it is cleared."""
        return self._under_way.get(number)

    def begin(
        self, number: int, head: HeadRow, stages: Sequence[Stage], parts: Sequence[CommitPart]
    ) -> CommitsUnderWay:
        """Let the parts of a commit enter their streams, behind those of earlier ones."""
        under_way = self._under_way[number] = CommitsUnderWay(number, head, stages, parts)
        for part in parts:
            self._order.put(part)
        run(self._finish(under_way), partial(_ended, under_way))
        return under_way

    async def _finish(self, under_way: CommitsUnderWay) -> None:
        """Wait until all parts have ended, and remove the rest of the commit."""
        dropped = 0
        for part in under_way.parts:
            dropped += await part.ended is PartOutcome.DROPPED
        head = under_way.head
        log.log(
            logging.INFO if under_way.stages else logging.DEBUG,
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

    async def _clear(self, under_way: CommitsUnderWay) -> None:
        """Remove the stages of a commit whose parts have ended, then its rows."""
        number = under_way.number
        self._stages.forget(under_way.stages)
        keys = [
            head_key(number),
            *(part_key(number, part.generation) for part in under_way.parts),
            *(stage_key(stage.number) for stage in under_way.stages),
        ]
        try:
            await self._stages.delete_segments(
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

    async def look(self) -> None:
        """Remove the rest of commits that are done."""
        for under_way in list(self._under_way.values()):
            if under_way.has_ended and under_way.cleared.is_settled:
                await self._clear(under_way)

    async def close(self) -> None:
        """Wait for parts on their way to their streams; the others follow after the start."""
        await self._order.stop()
        for under_way in list(self._under_way.values()):
            if under_way.has_ended:
                await under_way.cleared


def _ended(under_way: CommitsUnderWay, outcome: BaseException | None) -> None:
    """Let a programming error be seen: no caller waits for the end of a commit."""
    if outcome is not None:
        log.error("commit is not finished number=%d", under_way.number, exc_info=outcome)
    under_way.cleared.settle(None)
