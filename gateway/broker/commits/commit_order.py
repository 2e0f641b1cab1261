"""Order of the parts of commits: those of one stream enter it one after the other, by number.

A part that cannot be written is tried again with a growing pause. Meanwhile those behind it wait.
"""

import enum
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Final

from gateway.log.units import UnitSource
from gateway.pending import Pending, run

log = logging.getLogger(__name__)

PAUSE_MS: Final = 100
PAUSE_MS_MAX: Final = 60_000
"""The first pause before another try, and the longest; each is twice the one before."""


class PartOutcome(enum.Enum):
    """Result of a part so far."""

    ENTERED = enum.auto()
    """It is in its stream."""
    DROPPED = enum.auto()
    """Its stream was deleted."""
    WAITING = enum.auto()
    """Its stream cannot be written now."""


@dataclass(slots=True, eq=False)
class CommitPart:
    """A commit's part for one stream.

    Attributes:
        commit: The commit's number.
        stream: The stream's name.
        generation: The stream's generation.
        source: The chunks.
        first: Settled at the first outcome.
        ended: Settled at the last one, which is not WAITING.
    """

    commit: int
    stream: str
    generation: int
    source: UnitSource
    first: Pending[PartOutcome] = field(default_factory=Pending)
    ended: Pending[PartOutcome] = field(default_factory=Pending)

    def tell(self, outcome: PartOutcome) -> None:
        """Settle the waits that this outcome ends."""
        if not self.first.is_settled:
            self.first.settle(outcome)
        if outcome is not PartOutcome.WAITING:
            self.ended.settle(outcome)


Enter = Callable[[CommitPart], Coroutine[Pending[Any], None, PartOutcome]]
"""Tries once to bring a part into its stream."""


@dataclass(slots=True, eq=False)
class _Queue:
    parts: deque[CommitPart] = field(default_factory=deque)
    is_waiting: bool = False
    """True if the first part cannot be written now."""


class CommitOrder:
    """A queue of parts for each stream, by its generation."""

    def __init__(self, enter: Enter, wait: Callable[[int], Pending[None]]) -> None:
        """`wait` returns a Pending that settles after a number of milliseconds."""
        self._enter = enter
        self._wait = wait
        self._queues: dict[int, _Queue] = {}
        self._is_stopped = False

    def put(self, part: CommitPart) -> None:
        """Let a part enter behind all that were put before."""
        queue = self._queues.get(part.generation)
        if queue is not None:
            queue.parts.append(part)
            if queue.is_waiting:
                part.tell(PartOutcome.WAITING)
            return
        queue = self._queues[part.generation] = _Queue(deque([part]))
        run(self._go(part.generation, queue), _ended)

    async def _go(self, generation: int, queue: _Queue) -> None:
        pause_ms = 0
        while queue.parts and not self._is_stopped:
            outcome = await self._try(queue.parts[0])
            if outcome is not PartOutcome.WAITING:
                queue.is_waiting = False
                pause_ms = 0
                queue.parts.popleft().tell(outcome)
                continue
            queue.is_waiting = True
            for part in queue.parts:
                part.tell(outcome)
            pause_ms = min(2 * pause_ms or PAUSE_MS, PAUSE_MS_MAX)
            if not self._is_stopped:
                await self._wait(pause_ms)
        for part in queue.parts:
            part.tell(PartOutcome.WAITING)
        del self._queues[generation]

    async def _try(self, part: CommitPart) -> PartOutcome:
        try:
            return await self._enter(part)
        except Exception:  # one stream's fault must not keep the commit unanswered
            log.exception("part of a commit fails stream=%s number=%d", part.stream, part.commit)
            return PartOutcome.WAITING

    async def stop(self) -> None:
        """Try no part again, and wait until those under way are through.

        Parts that wait now, or have not begun, enter after the next start.
        """
        self._is_stopped = True
        for queue in list(self._queues.values()):
            if queue.parts and not queue.is_waiting:
                await queue.parts[0].first


def _ended(outcome: BaseException | None) -> None:
    """Let a programming error be seen: no caller waits for these coroutines."""
    if outcome is not None:
        log.error("commits of a stream have ended", exc_info=outcome)
