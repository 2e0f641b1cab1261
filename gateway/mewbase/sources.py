"""State that the readers of events share: of the whole server, and of one connection."""

import logging
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from gateway.broker.yielding import TurnBudget
from gateway.log.records.openings import Opener, OpeningRoom
from gateway.pending import Pending
from gateway.server.front import Ports

log = logging.getLogger(__name__)

T = TypeVar("T")

_QUIET_MS: Final = 10_000
"""Time between two lines about events that were passed over."""
_IDLE_MS: Final = 100
"""Time after which a client that takes nothing costs no memory."""


class PassedOver:
    """Events that were passed over; a line of the log from time to time.

    Attributes:
        count: Number of them since the start.
    """

    def __init__(self, wait: Callable[[int], Pending[None]], line: str, *names: str) -> None:
        """Begin with none.

        Args:
            wait: Returns a Pending that settles after so many milliseconds.
            line: What the log says, before the channel and the numbers.
            names: What is put into the line.
        """
        self.count = 0
        self._names = names
        self._line = line + " channel=%s events=%d first=%d reason=%s since_start=%d"
        self._wait = wait
        self._untold: list[tuple[str, int, str]] = []
        self._untold_count = 0
        self._is_quiet = False

    def add(self, channel: str, events: Sequence[tuple[int, str]]) -> None:
        """Count events of a channel, by their positions and their faults."""
        if events:
            self.count += len(events)
            self._untold_count += len(events)
            self._untold = self._untold or [(channel, *events[0])]
            if not self._is_quiet:
                self._tell()

    def _tell(self) -> None:
        """Write a line, and no other for a while."""
        self._is_quiet = bool(self._untold)
        if not self._untold:
            return
        ((channel, first, reason),) = self._untold
        numbers = self._untold_count, first, reason, self.count
        log.warning(self._line, *self._names, channel, *numbers)
        self._untold, self._untold_count = [], 0
        self._wait(_QUIET_MS).when_settled(self._tell)


class EventReading:
    """State that all readers of events of the server share.

    Attributes:
        wait: Returns a Pending that settles after so many milliseconds.
        turns: The time that they have in each turn of the event loop.
        room: The memory for large sub-batches that are open.
        passed_over: Events that subscriptions could not look into.
    """

    def __init__(self, wait: Callable[[int], Pending[None]], room: OpeningRoom) -> None:
        self.wait = wait
        self.turns = TurnBudget(lambda action: wait(0).when_settled(action))
        self.room = room
        self.passed_over = PassedOver(wait, "events are passed over")
        self._is_reading = False
        self._line: deque[Pending[None]] = deque()

    async def alone(self, work: Coroutine[Any, None, T]) -> T:
        """Read some documents, which may have 1 MiB each, while no other reader does."""
        if self._is_reading:
            turn: Pending[None] = Pending()
            self._line.append(turn)
            await turn
        self._is_reading = True
        time_slice = await self.turns.slice()
        try:
            return await work
        finally:
            self.turns.end(time_slice)
            self._is_reading = bool(self._line)
            if self._line:  # in a turn of its own: one may follow the other without a wait
                self.wait(0).when_settled(partial(self._line.popleft().settle, None))


class SourcePorts:
    """The surroundings of one connection's subscriptions and queries.

    Attributes:
        ports: The connection.
        reading: State that all readers share.
        opener: Opens its large sub-batches.
    """

    def __init__(self, ports: Ports, reading: EventReading) -> None:
        self.ports = ports
        self.reading = reading
        self.opener = Opener(reading.room)


class Holding:
    """The time after which a reader lets go of the records that it holds."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._stop: Callable[[], object] | None = None

    def begin(self, let_go: Callable[[], object]) -> None:
        """Call `let_go` if the client takes nothing more."""
        if self._stop is None:
            self._stop = self._ports.later(_IDLE_MS, let_go)

    def end(self) -> None:
        """Note that the client takes more, or that nothing is held."""
        if self._stop is not None:
            self._stop()
            self._stop = None
