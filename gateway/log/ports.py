"""Ports of a log: all that it asks of its surroundings, and a wait for all that it has taken."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

from gateway.log.derived.snapshot import Snapshot
from gateway.log.open_chunk import ChunkBuffers
from gateway.pending import Pending, nothing
from store.errors import StoreError

L = TypeVar("L")
"""The log."""


@dataclass(slots=True)
class LogPorts(Generic[L]):
    """Ports of a log.

    Attributes:
        buffers: Keeps the buffers of open chunks.
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
        """Return the ports of a log that has failed: the owner of the log is told nothing more."""
        return replace(self, failed=nothing, save=nothing, grown=nothing)


class Barrier:
    """A sink for which a confirm means that everything before it is committed."""

    def __init__(self) -> None:
        self.passed: Pending[None] = Pending()

    def confirm(self, tokens: bytes) -> None:
        """Pass. It is called once, since a barrier stands in one place."""
        del tokens
        self.passed.settle(None)

    def lost(self) -> None:
        """Pass too: nothing more will be committed."""
        self.passed.settle(None)


class _Committing(Protocol):
    """A log, as a barrier sees it."""

    def confirm_when_committed(self, sink: Barrier, token: bytes) -> None: ...


def when_all_committed(log: _Committing) -> Pending[None]:
    """Return a Pending, settled when all taken so far is committed (or the log failed)."""
    barrier = Barrier()
    log.confirm_when_committed(barrier, b"")
    return barrier.passed
