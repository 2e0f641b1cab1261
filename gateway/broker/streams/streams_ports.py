"""Ports of the streams of a virtual host."""

from collections.abc import Callable
from dataclasses import dataclass, field

from gateway.broker.streams.openings import Openings
from gateway.broker.streams.staging_limits import Usage
from gateway.broker.yielding import TurnBudget
from gateway.log.derived.offset_references import REFERENCES_MAX
from gateway.log.log import StreamLog
from gateway.log.ports import LogPorts
from gateway.pending import Pending
from store.api import SegmentStore
from store.errors import StoreError


def _never(_delay_ms: int) -> Pending[None]:
    """Return a Pending that is never settled: nothing is tried again by itself."""
    return Pending()


@dataclass(frozen=True, slots=True)
class StreamsPorts:
    """Ports of the streams.

    Attributes:
        store: The segment store.
        openings: Returns each stream's epoch.
        log_ports: Makes a log's ports from its `failed` and `save`.
        schedule: Calls a function at the end of this turn of the event loop.
        clock_ms: Milliseconds since the epoch.
        fatal: Told when the store takes nothing any more.
        references_max: Publisher references remembered per stream.
        offset_references_max: References under which a stream has offsets stored.
        now_for_age_ms: Given an age in ms, the earliest time it can be now; retention uses it, so
            that a clock set forward deletes nothing (`gateway.log.clock`). None: `clock_ms`.
        is_disk_full: Returns whether there is no space for publishes.
        wait: Returns a Pending that settles after a number of milliseconds.
        usage: Bytes that are staged.
        refused: Told when staged records, or a commit of them, are not stored.
        turns: The time that searches for policies have together in one turn of the event loop.
    """

    store: SegmentStore
    openings: Openings
    log_ports: Callable[..., LogPorts[StreamLog]]
    schedule: Callable[[Callable[[], None]], object]
    clock_ms: Callable[[], int]
    fatal: Callable[[StoreError], object]
    references_max: int
    now_for_age_ms: Callable[[int], int] | None = None
    offset_references_max: int = REFERENCES_MAX
    is_disk_full: Callable[[], bool] = lambda: False
    wait: Callable[[int], Pending[None]] = _never
    usage: Usage = field(default_factory=Usage)
    refused: Callable[[StoreError], object] = lambda _: None
    turns: TurnBudget = field(init=False)

    def __post_init__(self) -> None:
        """Share the time of a turn among all that have these ports."""
        turns = TurnBudget(lambda action: self.wait(0).when_settled(action))
        object.__setattr__(self, "turns", turns)

    def earliest_ms(self, age_ms: int) -> int:
        """Return the earliest time that it can be now, for something of this age."""
        return self.clock_ms() if self.now_for_age_ms is None else self.now_for_age_ms(age_ms)
