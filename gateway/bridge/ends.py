"""The two ends of a route as it sees them, whatever their protocols."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from gateway.bridge.routes import End, Route

E = TypeVar("E", bound=End)
T = TypeVar("T")

BYTES_MAX: Final = 64 << 20
"""The most that may be under way on a route."""


class EndUnreachable(Exception):
    """An end that cannot be used now; the text is one line."""


class TakenOver(EndUnreachable):
    """An end that another bridge took away."""


@dataclass(slots=True, eq=False)
class Parcel:
    """A message on its way.

    Attributes:
        record: The message as a stream stores it.
        mark: Its place at the source, of the source's own kind.
        place: Stream and offset, if it comes from a stream.
        is_repeated: Whether it is known to have come before.
        refusal: Why it cannot be a record; it is not sent then.
        is_done: Whether the target has it, or the route does without.
    """

    record: bytes
    mark: object
    place: Mapping[str, str] = field(default_factory=dict)
    is_repeated: bool = False
    refusal: str | None = None
    is_done: bool = False


Judge = Callable[[Parcel, str | None], None]
"""Is told that a target has a message, or why it does not take it."""


class EndLink(ABC):
    """A connection.

    Attributes:
        lost: Fails with Unreachable when it is of no further use.
    """

    def __init__(self, end: End) -> None:
        """Begin in the loop that will use it."""
        self.end: Final = end
        self.lost: Final[asyncio.Future[None]] = asyncio.get_running_loop().create_future()
        self.lost.add_done_callback(lambda lost: lost.exception())  # said where it is awaited

    def fail(self, error: BaseException) -> None:
        """Let all that waits for the connection end."""
        if not self.lost.done():
            self.lost.set_exception(self.unreachable(error))

    def unreachable(self, error: BaseException) -> EndUnreachable:
        """Return the text to say of an error."""
        if isinstance(error, EndUnreachable):
            return error
        return EndUnreachable(f"{self.end.name}: {str(error) or type(error).__name__}")

    @abstractmethod
    async def close(self) -> None:
        """Disconnect."""


class Arrivals(Generic[T]):
    """A list of all that has come and was not taken."""

    def __init__(self) -> None:
        self._items: list[T] = []
        self._have_come = asyncio.Event()

    def __len__(self) -> int:
        return len(self._items)

    def put(self, item: T) -> None:
        """Add something."""
        self._items.append(item)
        self._have_come.set()

    async def take(self, links: Sequence[EndLink]) -> list[T]:
        """Return all; wait for something. Raises Unreachable if a connection is lost meanwhile."""
        come = asyncio.ensure_future(self._have_come.wait())
        try:
            await first_lost(links, come)
        finally:
            come.cancel()
        taken, self._items = self._items, []
        self._have_come.clear()
        return taken


def begun(work: Awaitable[T]) -> "asyncio.Future[T]":
    """Begin some work that may end, also with an error, when it is no longer waited for."""
    task = asyncio.ensure_future(work)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return task


async def first_lost(links: Sequence[EndLink], *others: "asyncio.Future[Any]") -> None:
    """Wait until a connection is lost, or another thing is there. Raises Unreachable."""
    lost: list[asyncio.Future[Any]] = [link.lost for link in links]
    await asyncio.wait((*lost, *others), return_when=asyncio.FIRST_COMPLETED)
    for each in lost:
        if each.done():
            each.result()


class RouteEnd(ABC, Generic[E]):
    """One end of a route.

    Attributes:
        links: Its connections, from `open` to `close`.
    """

    def __init__(self, route: Route, end: E) -> None:
        """Keep where to connect."""
        self.route: Final = route
        self.end: Final = end
        self.links: list[EndLink] = []

    @abstractmethod
    async def open(self) -> None:
        """Connect and begin. Raises Unreachable."""

    async def close(self) -> None:
        """Disconnect; unsettled messages come again, unconfirmed ones are there or not."""
        while self.links:
            await self.links.pop().close()


class RouteSource(RouteEnd[E]):
    """The end that messages come from.

    Attributes:
        unsaved: Messages that are done, and would still come again after a kill.
    """

    unsaved = 0

    @abstractmethod
    async def take(self) -> Sequence[Parcel]:
        """Return the next messages; wait for one. Raises Unreachable."""

    @abstractmethod
    async def settle(self, parcels: Sequence[Parcel]) -> None:
        """Acknowledge messages, in the order in which they came."""

    async def waiting(self) -> int | None:
        """Return how many messages are there that were not taken; None if that is not known."""
        return None

    async def save(self) -> None:
        """Make the settled place lasting."""

    async def pause(self) -> None:
        """Ask for no more."""

    @abstractmethod
    async def remove(self) -> None:
        """Connect, and take away all that the route left. Raises Unreachable."""


class RouteTarget(RouteEnd[E]):
    """The end that messages go to."""

    def __init__(self, route: Route, end: E, judge: Judge) -> None:
        """Keep where to connect, and the function that is told the outcome of each message."""
        super().__init__(route, end)
        self.judge: Final = judge

    @abstractmethod
    def send(self, parcels: Sequence[Parcel]) -> None:
        """Begin to send messages, in this order. Raises Unreachable."""
