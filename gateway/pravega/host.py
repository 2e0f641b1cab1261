"""Parts of the server that every connection of the wire protocol shares."""

from collections.abc import Callable
from dataclasses import dataclass

from gateway.server.shared import Say
from store.api import Operations


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """Store and clock behind all connections.

    Attributes:
        store: The store that requests go to.
        say: Writes a log line that a stranger could cause without end.
        clock_ms: Milliseconds since the epoch.
    """

    store: Operations
    say: Say
    clock_ms: Callable[[], int]
