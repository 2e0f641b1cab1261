"""A route of which both ends are in memory, and what it logs."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from gateway.bridge import lane as lanes
from gateway.bridge import routes
from gateway.bridge.ends import Parcel
from gateway.bridge.lane import Lane
from tests.unit.gateway.bridge.bridge_rig import (
    URI,
    MemorySource,
    MemoryTarget,
    route,
)

DEAD = routes.StreamTarget(uri=URI, stream="dead")


class Rig:
    """A route of which both ends are in memory, made anew for each connection.

    Attributes:
        sources, targets, dead: All that were made so far.
        source_fails, target_fails: Why the next ones cannot be opened; a None among them can.
        answers: What a target says at once; None: a test answers.
        dead_answers: The same for the stream of refused messages.
        first: Messages that each source begins with.
    """

    def __init__(self) -> None:
        self.sources: list[MemorySource] = []
        self.targets: list[MemoryTarget] = []
        self.dead: list[MemoryTarget] = []
        self.source_fails: list[Exception | None] = []
        self.target_fails: list[Exception | None] = []
        self.answers: Callable[[Parcel], str | None] | None = lambda _: None
        self.dead_answers: Callable[[Parcel], str | None] | None = lambda _: None
        self.first: list[Parcel] = []
        self.counted: int | None = 0
        self.stop = asyncio.Event()

    def source(self, *given: Any) -> MemorySource:  # noqa: ANN401  # as the class has it
        made = MemorySource(*given)
        made.opening = self.source_fails.pop(0) if self.source_fails else None
        made.counted = self.counted
        made.put(*self.first)
        self.sources.append(made)
        return made

    def target(self, *given: Any) -> MemoryTarget:  # noqa: ANN401  # as the class has it
        if given[1] is DEAD:
            self.dead.append(MemoryTarget(*given, answers=self.dead_answers))
            return self.dead[-1]
        made = MemoryTarget(*given, answers=self.answers)
        made.opening = self.target_fails.pop(0) if self.target_fails else None
        self.targets.append(made)
        return made

    def lane(
        self,
        *,
        waits: bool = False,
        until_empty: bool = False,
        **given: Any,  # noqa: ANN401  # of each key
    ) -> Lane:
        return Lane(route(**given), waits=waits, until_empty=until_empty)


def lines_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.name == lanes.log.name]
