"""The middle of a route: messages from the source to the target, acknowledged in order."""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from gateway.bridge.ends import (
    BYTES_MAX,
    EndUnreachable,
    Parcel,
    RouteSource,
    RouteTarget,
    begun,
    first_lost,
)

STALLED_S: Final = 60.0
GATHER_S: Final = 0.002
QUIET_S: Final = 2.0
"""Time without a message after which a source that cannot tell counts as empty."""


@dataclass(slots=True)
class Counts:
    """Counts of a route's messages since the process began.

    Attributes:
        taken: Messages of the source, repeated ones too.
        last_at: When the last one was taken, as `time.monotonic()`; None before the first.
        highest: The highest offset that was taken, by stream.
        waiting: At the source; None if that is not known.
    """

    taken: int = 0
    delivered: int = 0
    repeated: int = 0
    refused: int = 0
    under_way: int = 0
    waiting: int | None = None
    last_at: float | None = None
    is_connected: bool = False
    highest: dict[str, int] = field(default_factory=dict)

    def take(self, parcels: Iterable[Parcel]) -> None:
        """Count messages that were taken."""
        self.last_at = time.monotonic()
        for parcel in parcels:
            self.taken += 1
            is_known = parcel.is_repeated
            if parcel.place:
                stream, offset = parcel.place["stream"], int(parcel.place["offset"])
                is_known = offset <= self.highest.get(stream, -1)
                self.highest[stream] = max(offset, self.highest.get(stream, -1))
            self.repeated += is_known


class Pump:
    """Carries messages between two open ends until one is lost, or the work is done.

    Attributes:
        target: Where messages go.
        unsettled: Messages that were taken and are not acknowledged.
    """

    target: RouteTarget[Any]

    def __init__(
        self,
        source: RouteSource[Any],
        window: int,
        counts: Counts,
        refused: Callable[[Parcel, str], bool],
    ) -> None:
        """Take an end that is open.

        Args:
            source: Where messages come from.
            window: Messages under way, and those that would come again after a kill.
            counts: Are kept up to date.
            refused: Is told of a message that the target does not take; returns whether it can be
                acknowledged, else `done` is called for it later.
        """
        self.unsettled = 0
        self._source = source
        self._window = window
        self._counts = counts
        self._refused = refused
        self._under_way: deque[Parcel] = deque()
        self._bytes = 0
        self._is_judged = asyncio.Event()
        self._has_room = asyncio.Event()
        self._judged_at = time.monotonic()
        self._failure: Exception | None = None
        self._stops_at: Parcel | None = None
        self._settling: asyncio.Future[None] | None = None

    async def run(self, *ends: Awaitable[object]) -> None:
        """Carry messages until one of these ends. Raises Unreachable, and what refusals do."""
        await self._first(self._fill(), self._drain(), first_lost(self.target.links), *ends)

    async def finish(self, within_s: float) -> None:
        """Take nothing more, and wait for all under way; then make the place lasting.

        A consumer of a queue is not cancelled first: quorum queues of RabbitMQ would give what is
        not acknowledged in another order the next time.
        """
        await self._source.pause()
        if self._settling is not None:
            await self._settling
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._first(self._drain(), first_lost(self.target.links), self._emptied())
        await self._source.save()

    @staticmethod
    async def _first(*works: Awaitable[object]) -> None:
        """Wait until one of several ends, and end the others."""
        tasks = [asyncio.ensure_future(work) for work in works]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _fill(self) -> None:
        """Send messages that come, as far as there is room."""
        while True:
            if self._under_way:  # what comes together costs less
                await asyncio.sleep(GATHER_S)
            parcels = deque(await self._source.take())
            self._counts.take(parcels)
            self.unsettled += len(parcels)
            while parcels:
                self._has_room.clear()
                if batch := self._batch(parcels):
                    self._send(batch)
                else:
                    await self._has_room.wait()

    def _batch(self, parcels: deque[Parcel]) -> list[Parcel]:
        """Take as many from the front as there is room for; always one if nothing is under way."""
        room = self._window - len(self._under_way) - self._source.unsaved
        batch: list[Parcel] = []
        while self._failure is None and parcels and len(batch) < max(room, not self._under_way):
            size = len(parcels[0].record)
            if self._under_way and self._bytes + size > BYTES_MAX:
                break
            self._bytes += size
            batch.append(parcels.popleft())
            self._under_way.append(batch[-1])
        return batch

    def _send(self, batch: Sequence[Parcel]) -> None:
        if len(self._under_way) == len(batch):
            self._judged_at = time.monotonic()
        self._counts.under_way = len(self._under_way)
        self.target.send([parcel for parcel in batch if parcel.refusal is None])
        for parcel in batch:
            if parcel.refusal is not None:
                self.judge(parcel, parcel.refusal)

    def judge(self, parcel: Parcel, refusal: str | None) -> None:
        """Take the target's word on a message."""
        if refusal is None:
            self._counts.delivered += 1
            self.done(parcel)
            return
        self._counts.refused += 1
        try:
            if self._refused(parcel, refusal):
                self.done(parcel)
        except Exception as error:  # noqa: BLE001  # ends the route, in `_drain`
            self.fail(error, parcel)

    def done(self, parcel: Parcel) -> None:
        """Let a message be acknowledged."""
        parcel.is_done = True
        self._judged_at = time.monotonic()
        self._is_judged.set()

    def fail(self, error: Exception, stops_at: Parcel | None = None) -> None:
        """End the work with an error, when all before a message is acknowledged."""
        if self._failure is None:
            self._failure, self._stops_at = error, stops_at
        self._is_judged.set()

    async def _drain(self) -> None:
        """Acknowledge the messages that are done, from the oldest on."""
        while True:
            self._is_judged.clear()
            done: list[Parcel] = []
            while self._under_way and self._under_way[0].is_done:
                done.append(self._under_way.popleft())
                self._bytes -= len(done[-1].record)
            if done:
                self._settling = begun(self._source.settle(done))
                await asyncio.shield(self._settling)  # `finish` waits for one that is under way
                self.unsettled -= len(done)
            oldest = self._under_way[0] if self._under_way else None
            if self._failure is not None and self._stops_at in (None, oldest):
                await self._source.save()
                raise self._failure
            self._counts.under_way = len(self._under_way)
            self._has_room.set()
            await self._next_judgement()

    async def _next_judgement(self) -> None:
        """Wait for the target's next word. Raises Unreachable if it has none for long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(STALLED_S / 4):
                await self._is_judged.wait()
            return
        waited_s = time.monotonic() - self._judged_at
        if (count := len(self._under_way)) and waited_s > STALLED_S:
            raise EndUnreachable(f"no confirm for {waited_s:.0f} s, {count} messages under way")

    async def _emptied(self) -> None:
        while self._under_way:
            self._has_room.clear()
            await self._has_room.wait()
