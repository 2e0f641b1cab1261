"""Pravega's wire protocol as the server's connections see it: frames in, messages to handlers.

Frames are handled in order; replies come when the store is done. A breach of the protocol has no
reply: the connection is closed.
"""

from collections.abc import Callable
from typing import Final

from gateway.pravega.appends import CODES, Appends
from gateway.pravega.connection import SegmentConnection
from gateway.pravega.context import PROTOCOL, WireContext
from gateway.pravega.handlers.table import HANDLERS
from gateway.server.connections.unfinished import STRANGER_BYTES_MAX
from gateway.server.front import ConnectionLimits, Ports
from hutch.pravega.codec import HEAD, HEAD_BYTES, TODAY, decode, frame_bytes
from hutch.pravega.commands import BY_CLASS, CommandSender
from hutch.pravega.errors import WireError
from hutch.pravega.layout import WireMessage
from hutch.pravega.messages import SetupAppend

TOKEN_WITHIN_BYTES: Final = 16 * 1024
"""A large first request has its token within so many bytes."""
_KNOWN: Final = CODES | {BY_CLASS[message].code for message in HANDLERS}


class PravegaFront:
    """One client of the wire protocol."""

    def __init__(self, context: WireContext, ports: Ports) -> None:
        self._ports = ports
        self._connection = SegmentConnection(context, ports)
        self._appends = Appends(self._connection, ports)
        self._first_frame_ms = context.wire.first_frame_timeout_ms
        self._unfinished_bytes_max = context.wire.unfinished_bytes_max
        self._list = context.list_connection
        self._leave: Callable[[], object] | None = None

    def start(self) -> None:
        """Set the time limit of the first frame, or of the first right token."""
        self._ports.limit(self._first_frame_ms, "first frame")

    # Frames

    def take(self, buffer: bytearray, position: int, end: int) -> int:
        """Handle a run of appends, or one frame of another kind; return where to go on.

        That is the same position if the frame is incomplete.
        """
        if self._connection.is_over:
            return end
        try:
            size = self._size(buffer, position, end)
            if not size or position + size > end:
                return position
            code, _ = HEAD.unpack_from(buffer, position)
            if code in CODES:
                return self._take_appends(buffer, position, end)
            payload = memoryview(buffer)[position + HEAD_BYTES : position + size]
            self._handle(decode(code, payload, CommandSender.CLIENT))
        except WireError as error:
            self._connection.close(str(error))
            return end
        return position + size

    def _take_appends(self, buffer: bytearray, position: int, end: int) -> int:
        position = self._appends.take(buffer, position, end)
        if self._appends.unfinished:
            self._ports.begun()
        return position

    def _size(self, buffer: bytearray, position: int, end: int) -> int:
        """Return the size of the frame at `position`; 0 if its head is not there.

        Raises:
            WireError: The frame need not be waited for: nothing good can come of it.
        """
        size = frame_bytes(buffer, position, end)
        if not size:
            return 0
        code, _ = HEAD.unpack_from(buffer, position)
        if code not in _KNOWN:
            raise WireError(f"no command {code} may come from a client")
        unfinished = size + self._appends.block_bytes
        if unfinished > self._unfinished_bytes_max:
            raise WireError(f"{unfinished} bytes of one append are not finished")
        if self._leave is None and size > STRANGER_BYTES_MAX:
            self._judge_head(code, memoryview(buffer)[position + HEAD_BYTES : end], size)
        return size

    def _judge_head(self, code: int, payload: memoryview, size: int) -> None:
        """Let a client in by the token in a request that is not whole. Raises WireError."""
        if self._connection.admits_by_head(TODAY.by_code[code].message, payload):
            self._known()
        elif len(payload) > TOKEN_WITHIN_BYTES:
            raise WireError(f"a frame of {size} bytes before a token was right")

    def _handle(self, message: WireMessage) -> None:
        if isinstance(message, SetupAppend):
            self._appends.no_block("a set-up")
        self._ports.begin_command()
        admits = self._connection.admits(message)
        if self._connection.is_trusted and self._leave is None:
            self._known()
        if admits:
            HANDLERS[type(message)](self._connection, message)
        if not self._connection.is_held:
            self._ports.end_command()

    def _known(self) -> None:
        """Note that the client is known: list it, and take it as one that has logged in."""
        self._leave = self._list(self._ports)
        self._ports.logged_in()
        self._ports.admitted()

    def frame_bytes(self, buffer: bytearray, position: int, end: int) -> int:
        """Return the size of the unfinished frame at `position`; 0 if its head is not there."""
        return 0 if self._connection.is_over else frame_bytes(buffer, position, end)

    def unfinished(self) -> int:
        """Return the number of the block that is begun; 0 if none is."""
        return self._appends.unfinished

    def held_bytes(self) -> int:
        """Return 0: a block needs a writer, and that a token."""
        return 0

    # The end

    def farewell(self) -> None:
        """Answer the reads that wait: the protocol has no other words for an end."""
        self._connection.reads.farewell()

    def lost(self) -> None:
        """Remove everything that the connection owned."""
        self._connection.over()
        if self._leave is not None:
            self._leave()


class PravegaKind:
    """The wire protocol, as a port sees it."""

    name = PROTOCOL

    def __init__(self, context: WireContext, limits: ConnectionLimits) -> None:
        self.context = context
        self.limits = limits

    def meet(self, ports: Ports) -> PravegaFront:
        """Return the front of a client that has just come."""
        return PravegaFront(self.context, ports)
