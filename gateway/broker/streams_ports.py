"""Ports of the streams of a virtual host."""

from collections.abc import Callable
from dataclasses import dataclass

from gateway.broker.openings import Openings
from gateway.log.offset_references import REFERENCES_MAX
from gateway.log.ports import LogPorts
from store.api import SegmentStore
from store.errors import StoreError


@dataclass(frozen=True, slots=True)
class StreamsPorts:
    """Ports of the streams.

    Attributes:
        store: The segment store.
        openings: Gives each stream's epoch.
        log_ports: Makes a log's ports from its `failed` and `save`.
        schedule: Calls a function at the end of this turn of the event loop.
        clock_ms: Milliseconds since the epoch.
        fatal: Told when the store takes nothing any more.
        references_max: Publisher references remembered per stream.
        offset_references_max: References under which a stream has offsets stored.
        now_for_age_ms: Given an age in ms, the earliest time it can be now; retention uses it, so
            that a clock set forward deletes nothing (`gateway.log.clock`). None: `clock_ms`.
        is_disk_full: Tells whether there is no space for publishes.
    """

    store: SegmentStore
    openings: Openings
    log_ports: Callable[..., LogPorts]
    schedule: Callable[[Callable[[], None]], object]
    clock_ms: Callable[[], int]
    fatal: Callable[[StoreError], object]
    references_max: int
    now_for_age_ms: Callable[[int], int] | None = None
    offset_references_max: int = REFERENCES_MAX
    is_disk_full: Callable[[], bool] = lambda: False
