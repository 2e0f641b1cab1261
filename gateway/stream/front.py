# cython: language_level=3, annotation_typing=False, nonecheck=True
"""The RabbitMQ stream protocol as the server's connections see it: frames in, the server's Close.

    size (u32, of what follows) | key (u16) | version (u16) | the rest

Publish frames go to the kernel in runs. Credit, which clients send for each chunk, goes straight to
its subscription unless it may need an answer. A heartbeat is only counted as a command: its bytes
showed that the client lives when they were read. Every other command goes to its handler by itself.
A breach of the protocol ends the connection: with a Close once it is open, and before that without
an answer.

Source: RabbitMQ stream protocol, Frame Structure, Close.
"""

import logging
from typing import Final

from gateway.server.front import ConnectionLimits, Ports
from gateway.stream.context import StreamContext
from gateway.stream.dispatch import dispatch
from gateway.stream.kernel.publish import u32_at
from gateway.stream.link import PROTOCOL, Link
from gateway.stream.publishing import FRAME_HEAD_BYTES, take, take_with_filters
from gateway.stream.session import Session
from hutch.stream import codec
from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from hutch.stream.commands import State
from hutch.stream.errors import FrameTooLarge, MalformedFrame, ProtocolError

log = logging.getLogger(__name__)

_SIZE_BYTES: Final = codec.SIZE_BYTES
_HEAD_END: Final = codec.SIZE_BYTES + codec.HEAD_BYTES
_PUBLISH_HEAD_BYTES: Final = FRAME_HEAD_BYTES
_PUBLISH_V1: Final = 0x0002_0001  # key and version
_PUBLISH_V2: Final = 0x0002_0002
_CREDIT: Final = 0x0009_0001
_HEARTBEAT: Final = 0x0017_0001
_CREDIT_ID_AT: Final = _HEAD_END
_CREDIT_AT: Final = _CREDIT_ID_AT + 1
_CREDIT_END: Final = _CREDIT_AT + 2
_CLOSE_RESPONSE: Final = b"\x80\x16\x00\x01"
_OPEN: Final = State.OPEN  # bound once: a look at a member of an enum costs a call
_CLOSING: Final = State.CLOSING
_CLOSE_CORRELATION_ID: Final = 1
CLOSE_ANSWER_MS: Final = 10_000
"""Longest wait for the answer to a Close that the server sent, as RabbitMQ's."""
_PHRASES: Final = {
    ResponseCode.UNKNOWN_FRAME: "unknown frame",
    ResponseCode.FRAME_TOO_LARGE: "frame too large",
}


class StreamFront:
    """One client of the stream protocol."""

    def __init__(self, host: StreamContext, ports: Ports) -> None:
        settings = host.settings
        self._settings = settings
        self._ports = ports
        self._session = Session(
            settings.frame_bytes_max, settings.initial_frame_bytes_max, settings.heartbeat_s
        )
        self.link = Link(host, self._session, ports)
        self._step = self._session.state
        self._skip_bytes = 0
        self._is_lost = False

    def start(self) -> None:
        """Set the time limit of the first step."""
        self._limit_step()

    def _limit_step(self) -> None:
        self._limit(self._settings.handshake_step_timeout_ms)

    def _limit(self, delay_ms: int) -> None:
        self._ports.limit(delay_ms, self._step.name or "")

    # Frames

    def take(self, buffer: bytearray, position: int, end: int) -> int:
        """Handle one frame, or a run of Publish frames; return where to go on.

        That is the same position if the frame is incomplete.
        """
        if self._session.state is _CLOSING:
            return self._look_for_answer(buffer, position, end)
        if end - position < _SIZE_BYTES:
            return position
        size = u32_at(buffer, position)
        frame_end = position + _SIZE_BYTES + size
        try:
            if size > self._session.frame_limit:
                raise FrameTooLarge(size, self._session.frame_limit)
            if frame_end > end:
                return position
            return self._take_frame(buffer, position, frame_end, end)
        except ProtocolError as error:
            self._fail(error)
            self._ports.end_command()
            self._skip_bytes = max(frame_end - end, 0)
            return min(frame_end, end)

    def _take_frame(self, buffer: bytearray, position: int, frame_end: int, end: int) -> int:
        """Handle one whole frame, or a run of Publish frames; return where to go on."""
        if self._session.state is _OPEN and frame_end - position >= _HEAD_END:
            kind = u32_at(buffer, position + _SIZE_BYTES)
            if kind in {_PUBLISH_V1, _PUBLISH_V2}:
                if frame_end - position < _PUBLISH_HEAD_BYTES:
                    raise MalformedFrame("publish is cut short", 4)
                if kind == _PUBLISH_V1:
                    return take(self.link, buffer, position, end)
                return take_with_filters(self.link, buffer, position, frame_end)
            if kind == _CREDIT and self._take_credit(buffer, position, frame_end):
                return frame_end
            if kind == _HEARTBEAT and frame_end - position == _HEAD_END:
                self._ports.count_command()
                return frame_end
        self._ports.begin_command()
        dispatch(self.link, memoryview(buffer)[position + 4 : frame_end], self._handled)
        return frame_end

    def _take_credit(self, buffer: bytearray, position: int, frame_end: int) -> bool:
        """Handle a Credit frame; False if its handler must, which can answer."""
        if frame_end - position != _CREDIT_END:
            return False
        subscription = self.link.subscriptions.get(buffer[position + _CREDIT_ID_AT])
        if subscription is None or subscription.is_single:
            return False
        place = slice(position + _CREDIT_AT, frame_end)
        self._ports.count_command()
        subscription.add_credit(int.from_bytes(buffer[place], "big", signed=True))
        return True

    def frame_bytes(self, buffer: bytearray, position: int, end: int) -> int:
        """Return the size of the unfinished frame at `position`; 0 if its size is not there."""
        if self._session.state is _CLOSING or end - position < codec.SIZE_BYTES:
            return 0
        size = int.from_bytes(buffer[position : position + codec.SIZE_BYTES], "big")
        return codec.SIZE_BYTES + size

    def _handled(self, error: BaseException | None) -> None:
        """Go on when a handler has finished."""
        if self._is_lost:
            return
        if isinstance(error, ProtocolError):
            self._fail(error)
        elif error is not None:
            log.error("handler failed peer=%s", self._ports.peer, exc_info=error)
            self._ports.abort()
            return
        if self._session.is_done:
            self._ports.finish()
        elif self._session.state is not self._step:
            self._step_changed()
        self._ports.end_command()

    def _step_changed(self) -> None:
        self._step = self._session.state
        if self._session.user:
            self._ports.logged_in()
        if self._session.is_open:
            self._ports.admitted()
        else:
            self._limit_step()

    # The end

    def _fail(self, error: ProtocolError) -> None:
        """End the connection: with a Close once it is open, without an answer before."""
        self.link.say(log.warning, "protocol error peer=%s error=%s", self._ports.peer, error)
        self._session.fail()
        if self._session.is_done:
            self._ports.finish()
            return
        self.link.close()
        close = m.Close(error.close_code, _PHRASES[error.close_code])
        self.link.send("close", close, _CLOSE_CORRELATION_ID)
        self._limit(CLOSE_ANSWER_MS)

    def _look_for_answer(self, buffer: bytearray, position: int, end: int) -> int:
        """Skip all but the answer to the server's Close, which ends the connection.

        Returns the position of a head that is not complete yet.
        """
        while True:
            skipped = min(self._skip_bytes, end - position)
            self._skip_bytes -= skipped
            position += skipped
            if end - position < codec.SIZE_BYTES + codec.HEAD_BYTES:
                return position
            head = position + codec.SIZE_BYTES
            if buffer[head : head + codec.HEAD_BYTES] == _CLOSE_RESPONSE:
                self._session.end()
                self._ports.finish()
                return end
            self._skip_bytes = head - position + int.from_bytes(buffer[position:head], "big")

    def unfinished(self) -> int:
        """Return 0: each frame is a whole."""
        return 0

    def held_bytes(self) -> int:
        """Return 0: frames are handled as they come."""
        return 0

    def farewell(self) -> None:
        """Send nothing: RabbitMQ ends a connection without a Close."""

    def lost(self) -> None:
        """Remove everything that the connection owned."""
        self._is_lost = True
        self.link.close()


class StreamKind:
    """The stream protocol, as a port sees it."""

    name = PROTOCOL

    def __init__(self, host: StreamContext, limits: ConnectionLimits) -> None:
        self.host = host
        self.limits = limits

    def meet(self, ports: Ports) -> StreamFront:
        """Return the front of a client that has just come."""
        return StreamFront(self.host, ports)
