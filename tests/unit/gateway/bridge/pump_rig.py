"""A pump between two ends in memory."""

import asyncio
from typing import Any

from gateway.bridge.ends import Parcel
from gateway.bridge.pump import Counts, Pump
from tests.unit.gateway.bridge.bridge_rig import (
    MemorySource,
    MemoryTarget,
    parcel,
)

WINDOW = 10


class Rig:
    """A pump between two ends in memory.

    Attributes:
        refusals: What was refused, with the reason.
        is_done: Whether a refused message is done with at once.
        error: Raised for a refused message.
    """

    def __init__(self, window: int = WINDOW) -> None:
        self.counts = Counts()
        self.source = MemorySource()
        self.refusals: list[tuple[object, str]] = []
        self.is_done = True
        self.error: Exception | None = None
        self.pump = Pump(self.source, window, self.counts, self._refused)
        self.target = MemoryTarget(judge=self.pump.judge)
        self.pump.target = self.target
        self.stop = asyncio.Event()
        self.work = asyncio.ensure_future(self.pump.run(self.stop.wait()))

    def _refused(self, which: Parcel, refusal: str) -> bool:
        self.refusals.append((which.mark, refusal))
        if self.error is not None:
            raise self.error
        return self.is_done

    @property
    def sent(self) -> list[object]:
        return [each.mark for each in self.target.sent]

    def put(self, *offsets: int, size: int = 10, **given: Any) -> list[Parcel]:  # noqa: ANN401
        parcels = [parcel(offset, size, **given) for offset in offsets]
        self.source.put(*parcels)
        return parcels

    async def finish(self, within_s: float = 0.05) -> None:
        self.stop.set()
        await self.work
        await self.pump.finish(within_s)


async def idle() -> None:
    """Let all that can be done be done."""
    for _ in range(50):
        await asyncio.sleep(0)
