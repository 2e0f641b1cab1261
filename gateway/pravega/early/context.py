"""Parts of the server that every connection of the early dialect shares."""

from collections.abc import Callable
from dataclasses import dataclass, field

from gateway.pravega.access.entering import Entered, unnoted
from gateway.pravega.under_way import UnderWay
from gateway.server.connections.shared import Say
from gateway.settings.early import EarlySettings
from gateway.settings.wire import WireSettings
from store.api import Operations


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlyContext:
    """Store and settings behind all connections.

    Attributes:
        store: The store that requests go to.
        say: Writes a log line that a stranger could cause without end.
        is_closed: Tells of a segment's name that this port may not touch it.
        settings: Settings of the dialect.
        wire: Settings that it shares with today's dialect.
        under_way: The appends of all connections.
        entered: Notes connections for administrators.
    """

    store: Operations
    say: Say
    is_closed: Callable[[str], bool]
    settings: EarlySettings = field(default_factory=EarlySettings)
    wire: WireSettings = field(default_factory=WireSettings)
    under_way: UnderWay = field(default_factory=UnderWay)
    entered: Entered = unnoted


def is_of_the_server(segment: str) -> bool:
    """Return whether a segment belongs to the server itself, whatever it serves."""
    return _scope_of(segment) == "hutch"


def is_of_the_gateway(segment: str) -> bool:
    """Return whether a segment belongs to the server, or lies in a virtual host's scope."""
    return is_of_the_server(segment) or _scope_of(segment).startswith("rmq-")


def _scope_of(segment: str) -> str:
    return segment.partition("/")[0]
