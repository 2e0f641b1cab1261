"""One connection of the early dialect as its parts see it, and the parts that all share."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from gateway.network.addresses import host_of
from gateway.pravega.segment_access import ListConnection, unlisted
from gateway.pravega.traffic import AppendsUnderWay
from gateway.server.connections.shared import Say
from gateway.server.front import Ports
from gateway.settings.wire import EarlySettings, WireSettings
from hutch.pravega.early_codec import EARLY, cut
from hutch.pravega.layout import WireMessage
from store.api import Operations
from store.errors import StoreError

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlyContext:
    """Store and settings behind all connections.

    Attributes:
        store: The store that requests go to.
        say: Writes a log line that a client without a login could cause without end.
        is_closed: Returns of a segment's name whether this port may not touch it.
        settings: Settings of the dialect.
        wire: Settings that it shares with today's dialect.
        under_way: The appends of all connections.
        list_connection: Lists connections for administrators.
    """

    store: Operations
    say: Say
    is_closed: Callable[[str], bool]
    settings: EarlySettings = field(default_factory=EarlySettings)
    wire: WireSettings = field(default_factory=WireSettings)
    under_way: AppendsUnderWay = field(default_factory=AppendsUnderWay)
    list_connection: ListConnection = unlisted


def is_of_the_server(segment: str) -> bool:
    """Return whether a segment belongs to the server itself, whatever it serves."""
    return _scope_of(segment) == "hutch"


def is_of_the_gateway(segment: str) -> bool:
    """Return whether a segment belongs to the server, or lies in a virtual host's scope."""
    return is_of_the_server(segment) or _scope_of(segment).startswith("rmq-")


def _scope_of(segment: str) -> str:
    return segment.partition("/")[0]


class EarlyConnection:
    """Takes the replies of one connection.

    Attributes:
        context: Store and settings behind all connections.
        ports: The connection.
        under_way: Its appends.
        is_over: Whether the connection has ended.
        is_held: Whether the next frame waits until `release`.
    """

    def __init__(self, context: EarlyContext, ports: Ports) -> None:
        self.context = context
        self.ports = ports
        self.under_way = AppendsUnderWay(context.under_way)
        self.is_over = False
        self.is_held = False

    def frame_of(self, message: WireMessage) -> bytes:
        """Return the bytes of a reply, in parts if it is larger than the setting."""
        return cut(EARLY.encode(message), self.context.settings.part_bytes_max)

    def reply(self, message: WireMessage) -> None:
        """Send a message; nothing once the connection is over."""
        if not self.is_over:
            self.ports.send(self.frame_of(message))

    def may_touch(self, segment: str) -> bool:
        """Return whether the client may touch a segment; if not, close."""
        if not self.context.is_closed(segment):
            return True
        self.close(f"segment {segment!r} is closed to this port")
        return False

    def close(self, reason: str | StoreError) -> None:
        """Log why, send the queue, and end the connection: the dialect has no errors."""
        if self.is_over:
            return
        self.is_over = True
        peer = self.ports.peer
        line = "connection closed peer=%s error=%s"
        self.context.say(log.warning, host_of(peer), line, peer, str(reason))
        self.ports.finish()

    def hold(self) -> None:
        """Let the next frame wait until `release`: it depends on the answer to this one."""
        self.is_held = True

    def release(self) -> None:
        """Take the next frame."""
        self.is_held = False
        self.ports.end_command()
