"""One connection of the early dialect as the parts that answer its requests see it."""

import logging

from gateway.network.addresses import host_of
from gateway.pravega.early.context import EarlyContext
from gateway.pravega.under_way import UnderWay
from gateway.server.front import Ports
from hutch.pravega.early_codec import EARLY, cut
from hutch.pravega.layout import Message
from store.errors import StoreError

log = logging.getLogger(__name__)


class EarlyDesk:
    """Takes the replies of one connection.

    Attributes:
        host: Store and settings behind all connections.
        ports: The connection.
        under_way: Its appends.
        is_over: Whether the connection has ended.
        is_held: Whether the next frame waits until `release`.
    """

    def __init__(self, host: EarlyContext, ports: Ports) -> None:
        self.host = host
        self.ports = ports
        self.under_way = UnderWay(host.under_way)
        self.is_over = False
        self.is_held = False

    def frame_of(self, message: Message) -> bytes:
        """Return the bytes of a reply, in parts if it is larger than the setting."""
        return cut(EARLY.encode(message), self.host.settings.part_bytes_max)

    def reply(self, message: Message) -> None:
        """Send a message; nothing once the connection is over."""
        if not self.is_over:
            self.ports.send(self.frame_of(message))

    def may_touch(self, segment: str) -> bool:
        """Return whether the client may touch a segment; if not, close."""
        if not self.host.is_closed(segment):
            return True
        self.close(f"segment {segment!r} is closed to this port")
        return False

    def close(self, reason: str | StoreError) -> None:
        """Log why, send what is queued, and end the connection: the dialect has no errors."""
        if self.is_over:
            return
        self.is_over = True
        peer = self.ports.peer
        line = "connection closed peer=%s error=%s"
        self.host.say(log.warning, host_of(peer), line, peer, str(reason))
        self.ports.finish()

    def hold(self) -> None:
        """Let the next frame wait until `release`: it depends on the answer to this one."""
        self.is_held = True

    def release(self) -> None:
        """Take the next frame."""
        self.is_held = False
        self.ports.end_command()
