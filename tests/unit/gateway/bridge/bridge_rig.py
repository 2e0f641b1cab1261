"""Ends of a route in memory: they give, take and refuse what a test says."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from gateway.bridge import lane as lanes
from gateway.bridge import routes
from gateway.bridge.ends import Arrivals, EndLink, Judge, Parcel, RouteSource, RouteTarget
from hutch.formats.amqp.writing import BasicProperties, pack_message
from tests.waiting import HANG_S

URI = "rabbitmq-stream://h"


def record(body: bytes = b"body", **given: Any) -> bytes:  # noqa: ANN401  # of each property
    return pack_message(body, BasicProperties(**given), exchange="e", routing_key="k")


def parcel(offset: int, size: int = 10, **given: Any) -> Parcel:  # noqa: ANN401  # of each field
    """A message of a stream."""
    place = {"stream": "s", "offset": str(offset)}
    return Parcel(bytes(size), offset, place, **given)


def route(**given: Any) -> routes.Route:  # noqa: ANN401  # of each key
    fields = {
        "name": "r",
        "source": routes.StreamSource(uri=URI, stream="in"),
        "target": routes.StreamTarget(uri=URI, stream="out"),
    }
    return routes.Route(**fields | given)


async def soon(holds: Callable[[], object], within_s: float = HANG_S) -> None:
    """Let others work until something is true. Raises AssertionError if it is not in time."""
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline, f"not within {within_s} s"
        await asyncio.sleep(0.001)


async def ended(work: Awaitable[Any]) -> BaseException | None:
    """Return what ended some work, None for its good end."""
    return (await asyncio.gather(work, return_exceptions=True))[0]


class MemoryLink(EndLink):
    """A connection that a test can break."""

    is_closed = False

    async def close(self) -> None:
        self.is_closed = True


class MemorySource(RouteSource[Any]):
    """Gives what is put into it, and remembers what was done.

    Attributes:
        settled: Marks of messages that were acknowledged.
        saved: How many there were when the place was made lasting.
    """

    def __init__(self, given: routes.Route | None = None, end: Any = None) -> None:  # noqa: ANN401
        super().__init__(given or route(), end or routes.StreamSource(uri=URI, stream="in"))
        self.link = MemoryLink(self.end)
        self.links.append(self.link)
        self.arrivals: Arrivals[Parcel] = Arrivals()
        self.settled: list[object] = []
        self.saved: list[int] = []
        self.is_paused = False
        self.counted: int | None = 0
        self.save_each = 1 << 30
        self.opening: Exception | None = None

    def put(self, *parcels: Parcel) -> None:
        for each in parcels:
            self.arrivals.put(each)

    async def open(self) -> None:
        if self.opening is not None:
            raise self.opening

    async def take(self) -> Sequence[Parcel]:
        return await self.arrivals.take(self.links)

    async def settle(self, parcels: Sequence[Parcel]) -> None:
        self.settled += [each.mark for each in parcels]
        self.unsaved += len(parcels)
        if self.unsaved >= self.save_each:
            await self.save()

    async def save(self) -> None:
        self.saved.append(len(self.settled))
        self.unsaved = 0

    async def pause(self) -> None:
        self.is_paused = True

    async def waiting(self) -> int | None:
        return None if self.counted is None else self.counted + len(self.arrivals)

    async def remove(self) -> None:
        self.settled.append("removed")


class MemoryTarget(RouteTarget[Any]):
    """Keeps what it is sent; a test confirms it, or it does so itself.

    Attributes:
        sent: What came, and has no answer yet.
        confirmed: Marks of messages that it has confirmed.
    """

    def __init__(
        self,
        given: routes.Route | None = None,
        end: Any = None,  # noqa: ANN401  # as the base has it
        judge: Judge = lambda _parcel, _refusal: None,
        *,
        answers: Callable[[Parcel], str | None] | None = None,
    ) -> None:
        super().__init__(given or route(), end or routes.StreamTarget(uri=URI, stream="out"), judge)
        self.link = MemoryLink(self.end)
        self.links.append(self.link)
        self.sent: list[Parcel] = []
        self.confirmed: list[object] = []
        self.answers = answers
        self.opening: Exception | None = None

    async def open(self) -> None:
        if self.opening is not None:
            raise self.opening

    def send(self, parcels: Sequence[Parcel]) -> None:
        self.sent += parcels
        if self.answers is not None:
            for each in list(self.sent):
                self.answer(each, self.answers(each))

    def answer(self, which: Parcel, refusal: str | None = None) -> None:
        self.sent.remove(which)
        if refusal is None:
            self.confirmed.append(which.mark)
        self.judge(which, refusal)

    def answer_all(self) -> None:
        for each in list(self.sent):
            self.answer(each)


@contextmanager
def ends_of(
    source: Callable[..., RouteSource[Any]], target: Callable[..., RouteTarget[Any]]
) -> Iterator[None]:
    """Let routes from stream to stream use these ends."""
    before = lanes.SOURCES[routes.StreamSource], lanes.TARGETS[routes.StreamTarget]
    lanes.SOURCES[routes.StreamSource] = source
    lanes.TARGETS[routes.StreamTarget] = target
    try:
        yield
    finally:
        lanes.SOURCES[routes.StreamSource], lanes.TARGETS[routes.StreamTarget] = before
