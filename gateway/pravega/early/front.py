"""The early dialect as the server's connections see it: frames in, requests to their handlers.

The dialect has no errors: a client that breaks a rule, or asks for what cannot be, is cut off, and
the log says why.
"""

from collections.abc import Callable
from typing import Final

from gateway.pravega.early.appenders import Appenders
from gateway.pravega.early.context import EarlyConnection, EarlyContext
from gateway.pravega.early.reads import EarlyReads
from gateway.pravega.early.session import Conversation, Request
from gateway.server.front import ConnectionLimits, Ports
from hutch.pravega import early_messages as m
from hutch.pravega.early_block import Block
from hutch.pravega.early_codec import EARLY
from hutch.pravega.errors import WireError

EARLY_PROTOCOL: Final = "pravega-early"
_FRAMES_A_RUN: Final = 64
"""Frames that are taken before others may have their turn."""


class EarlyFront:
    """One client of the early dialect."""

    def __init__(self, context: EarlyContext, ports: Ports) -> None:
        self._ports = ports
        self._connection = EarlyConnection(context, ports)
        self._session = Conversation()
        self._appenders = Appenders(self._connection)
        self._reads = EarlyReads(self._connection)
        self._leave: Callable[[], object] | None = None

    def start(self) -> None:
        """Set the time limit of the first frame."""
        self._ports.limit(self._connection.context.wire.first_frame_timeout_ms, "first frame")

    # Frames

    def take(self, buffer: bytearray, position: int, end: int) -> int:
        """Handle a run of frames up to one that asks for something; return where to go on."""
        if self._connection.is_over:
            return end
        try:
            if not self._whole_frame(buffer, position, end):
                return position
            self._ports.begin_command()
            position = self._take_run(buffer, position, end)
        except WireError as error:
            self._connection.close(str(error))
            return end
        if not self._connection.is_held:
            self._ports.end_command()
        return position

    def _whole_frame(self, buffer: bytearray, position: int, end: int) -> int:
        """Return the size of the frame at `position`, 0 if it is not complete.

        Raises WireError if with it the client makes the server keep too much.
        """
        size = EARLY.frame_bytes(buffer, position, end)
        kept = size + self._session.kept_bytes
        most = self._connection.context.wire.unfinished_bytes_max
        if kept > most:
            raise WireError(f"{kept} bytes of what is not complete, and {most} are the most")
        return size if position + size <= end else 0

    def _take_run(self, buffer: bytearray, position: int, end: int) -> int:
        view = memoryview(buffer)
        for _ in range(_FRAMES_A_RUN):
            size = self._whole_frame(buffer, position, end)
            if not size:
                break
            request = self._session.take(view[position : position + size])
            position += size
            if request is not None:
                self._handle(request)
                break
        if self._session.unfinished:
            self._ports.begun()
        if self._leave is None and not self._connection.is_over:
            self._leave = self._connection.context.list_connection(self._ports)
            self._ports.logged_in()
            self._ports.admitted()
        return position

    def _handle(self, request: Request) -> None:
        match request:
            case Block():
                self._appenders.store(request)
            case m.BeginAppendBlock():
                self._appenders.begin(request)
            case m.SetupAppend():
                self._appenders.set_up(request)
            case m.ReadSegment():
                self._reads.ask(request)
            case m.KeepAlive():
                self._connection.reply(request)

    def frame_bytes(self, buffer: bytearray, position: int, end: int) -> int:
        """Return the size of the unfinished frame at `position`; 0 if its head is not there."""
        return 0 if self._connection.is_over else EARLY.frame_bytes(buffer, position, end)

    def unfinished(self) -> int:
        """Return the number of the block or message that is not whole; 0 if there is none."""
        return self._session.unfinished

    def held_bytes(self) -> int:
        """Return the bytes that are kept of unfinished messages."""
        return self._session.kept_bytes

    # The end

    def farewell(self) -> None:
        """Cancel the reads that wait: the dialect has no words for an end."""
        self._reads.stop()

    def lost(self) -> None:
        """Remove everything that the connection owned."""
        self._connection.is_over = True
        self._reads.stop()
        if self._leave is not None:
            self._leave()


class EarlyKind:
    """The early dialect, as a port sees it."""

    name = EARLY_PROTOCOL

    def __init__(self, context: EarlyContext, limits: ConnectionLimits) -> None:
        self.context = context
        self.limits = limits

    def meet(self, ports: Ports) -> EarlyFront:
        """Return the front of a client that has just come."""
        return EarlyFront(self.context, ports)
