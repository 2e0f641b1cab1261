"""Ports of a log: all that it asks of its surroundings."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from gateway.log.derived.snapshot import Snapshot
from gateway.log.open_chunk import ChunkBuffers
from gateway.pending import nothing
from store.errors import StoreError

L = TypeVar("L")
"""The log."""


@dataclass(slots=True)
class LogPorts(Generic[L]):
    """Ports of a log.

    Attributes:
        buffers: Gives the buffers of open chunks.
        clock_ms: Milliseconds since the epoch.
        schedule: Calls a function at the end of this turn of the event loop.
        save: Stores a snapshot and the index, so that the next opening has less to scan.
        failed: Told once when the log cannot go on; every publisher and consumer must be let go.
        grown: Told when enough was committed that there may be something to remove.
    """

    buffers: ChunkBuffers
    clock_ms: Callable[[], int]
    schedule: Callable[[Callable[[], None]], object]
    failed: Callable[[L, StoreError], None]
    save: Callable[[L, Snapshot], object]
    grown: Callable[[L], object] = nothing

    def over(self) -> "LogPorts[L]":
        """Return the same for a log that has failed: the owner of the log is told nothing more."""
        return replace(self, failed=nothing, save=nothing, grown=nothing)
