# cython: language_level=3, annotation_typing=False, nonecheck=True
"""One client's connection: bytes to frames, frames to handlers, replies and chunks to the socket.

Frames are handled in order. While a handler waits, or the client has too much unconfirmed or
unread, the socket is not read: that, and nothing else, slows a client down.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from gateway.log.log import StreamLog
from gateway.network.transport import Transport
from gateway.pending import Abandoned, Pending
from gateway.server.delivery import Delivery
from gateway.server.edge import PlainEdge
from gateway.server.heartbeats import HeartbeatPorts, Heartbeats
from gateway.server.in_flight import NOTED_BYTES
from gateway.server.pauses import OUR_PAUSES, Pause
from gateway.server.shared import Shared
from gateway.stream import publishing
from gateway.stream.consuming import Subscription
from gateway.stream.dispatch import dispatch
from gateway.stream.link import Link
from gateway.stream.session.inbox import Inbox
from gateway.stream.session.session import Session
from gateway.stream.wire import codec
from gateway.stream.wire import messages as m
from gateway.stream.wire.codes import ResponseCode
from gateway.stream.wire.commands import State
from gateway.stream.wire.errors import FrameTooLarge, MalformedFrame, ProtocolError

log = logging.getLogger(__name__)

_PUBLISH_V1: Final = b"\x00\x02\x00\x01"
_PUBLISH_V2: Final = b"\x00\x02\x00\x02"
_CLOSE_RESPONSE: Final = b"\x80\x16\x00\x01"
_HEARTBEAT: Final = codec.encode_command("heartbeat", m.Heartbeat())
_OPEN: Final = State.OPEN  # bound once: a look at a member of an enum costs a call
_IN_FLIGHT_BYTES_MAX: Final = 32 * 1024 * 1024
# JavaScript resumes who awaits an answer when all that was read with it is handled: a first chunk
# that is read with the answer comes to consumers whose owners have not got them yet.
_FIRST_CHUNK_S: Final = 0.001
_STRANGER_READ_BYTES: Final = 16 * 1024  # the rest stays with the system until Open
_COMMANDS_A_TURN: Final = 64
_SERVER_CLOSE_CORRELATION_ID: Final = 1
_PHRASES: Final = {
    ResponseCode.UNKNOWN_FRAME: "unknown frame",
    ResponseCode.FRAME_TOO_LARGE: "frame too large",
}


class Connection:
    """Owns the edge and the link of one client."""

    def __init__(
        self,
        shared: Shared,
        edge: PlainEdge,
        peer: str,
        *,
        is_loopback: bool,
        certificate_user: str | None = None,
    ) -> None:
        settings = shared.settings
        self.peer = peer
        self.peer_is_loopback = is_loopback
        self.certificate_user = certificate_user
        self.takes_regions = edge.takes_regions
        self._shared = shared
        self._edge = edge
        self._session = Session(
            settings.frame_bytes_max, settings.initial_frame_bytes_max, settings.heartbeat_s
        )
        self.link = Link(shared.host, self._session, self)
        self._inbox = Inbox(shared.receive_buffer)
        self._delivery = Delivery(edge, self._session, shared.scratch)
        self._heartbeats: Heartbeats | None = None
        self._pause: int = Pause.NONE
        self._unconfirmed_count = 0
        self._backlog_bytes = 0
        self._is_flush_scheduled = False
        self._is_delivery_scheduled = False
        self._is_handling = False
        self._is_ending = False
        self._is_over = False
        self._skip_bytes = 0
        self._commands_left = _COMMANDS_A_TURN
        self._after_reply: list[Callable[[], object]] = []
        self._waits: dict[Pending[None], asyncio.TimerHandle] = {}
        self._step_timer: asyncio.TimerHandle | None = None
        self._step = self._session.state

    def start(self) -> None:
        """Begin to serve the client."""
        self._arm_step_timer(self._shared.settings.handshake_step_timeout_ms)
        self._edge.start(self)

    # From the edge

    def place(self) -> memoryview:
        """Where the next bytes are read to; a stranger is read in small pieces."""
        place = self._inbox.place()
        return place if self._session.state is _OPEN else place[:_STRANGER_READ_BYTES]

    def received(self, size: int) -> None:
        """Handle what was read."""
        buffer, end = self._inbox.received(size)
        self._handle(buffer, 0, end)

    def writable(self) -> None:
        """The socket takes more."""
        self._backlog_bytes = 0
        self._resume(Pause.BACKLOG)
        self._serve()

    def lost(self) -> None:
        """Remove everything that the connection owned."""
        if self._is_over:
            return
        self._is_over = True
        if not self._edge.received_bytes:  # whoever watches the port, every few seconds
            log.debug("peer left before its first byte peer=%s", self.peer)
        if self._heartbeats is not None:
            self._heartbeats.stop()
        if self._step_timer is not None:
            self._step_timer.cancel()
        for pending, timer in self._waits.items():  # who waits may hold what others wait for
            timer.cancel()
            self._shared.loop.call_soon(pending.settle, Abandoned())
        self._waits.clear()
        self.link.close()
        self._shared.closed(self)

    # Bytes to frames

    def _handle(self, buffer: bytearray, position: int, end: int) -> None:
        """Handle the complete frames in [position, end) of `buffer` and keep the rest."""
        self._is_handling = True
        self._commands_left = _COMMANDS_A_TURN
        try:
            while not self._is_over and not self._session.is_done and not self._pause:
                if self._session.is_closing:
                    position = self._look_for_answer(buffer, position, end)
                    break
                next_position = self._handle_next(buffer, position, end)
                if next_position == position:
                    break
                position = next_position
        except Exception:
            log.exception("connection failed peer=%s", self.peer)
            self._edge.abort()
        finally:
            self._is_handling = False
        if self._is_over:
            return
        if not self._session.is_done:
            is_judged = not self._pause and not self._session.is_closing
            limit = self._session.frame_limit if is_judged else 0
            self._inbox.keep(buffer, position, end, limit)
        if self._pause:
            self._edge.pause_reading()
        self._after_handling()

    def _handle_next(self, buffer: bytearray, position: int, end: int) -> int:
        """Handle one frame, or a run of Publish frames; the same position if it is incomplete."""
        if end - position < codec.SIZE_BYTES:
            return position
        size = int.from_bytes(buffer[position : position + codec.SIZE_BYTES], "big")
        frame_end = position + codec.SIZE_BYTES + size
        try:
            if size > self._session.frame_limit:
                raise FrameTooLarge(size, self._session.frame_limit)
            if frame_end > end:
                return position
            return self._handle_frame(buffer, position, frame_end, end)
        except ProtocolError as error:
            self._fail(error)
            self._skip_bytes = max(frame_end - end, 0)
            return min(frame_end, end)

    def _look_for_answer(self, buffer: bytearray, position: int, end: int) -> int:
        """The server has said Close: only the answer counts, and ends the connection.

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
                self._session.is_done = True
                return end
            self._skip_bytes = head - position + int.from_bytes(buffer[position:head], "big")

    def _handle_frame(self, buffer: bytearray, position: int, frame_end: int, end: int) -> int:
        """Handle one frame, or a run of Publish frames; return where to go on."""
        if self._session.state is _OPEN:
            if buffer.startswith(_PUBLISH_V1, position + 4):
                if frame_end - position < publishing.FRAME_HEAD_BYTES:
                    raise MalformedFrame("publish is cut short", 4)
                return self._account(publishing.take(self.link, buffer, position, end))
            if buffer.startswith(_PUBLISH_V2, position + 4):
                if frame_end - position < publishing.FRAME_HEAD_BYTES:
                    raise MalformedFrame("publish is cut short", 4)
                return self._account(
                    publishing.take_with_filters(self.link, buffer, position, frame_end)
                )
        self._count_command()
        self._pause |= Pause.HANDLER
        dispatch(self.link, memoryview(buffer)[position + 4 : frame_end], self._handled)
        return frame_end

    def _count_command(self) -> None:
        """Let the other connections have their turn after so many commands."""
        self._commands_left -= 1
        if self._commands_left == 0:
            self._pause_for(Pause.TURN)
            self._shared.loop.call_soon(self._resume, Pause.TURN)

    def _account(self, intake: publishing.Intake) -> int:
        self._unconfirmed_count += intake.entries
        if self._unconfirmed_count >= self._shared.settings.unconfirmed_entries_max:
            self._pause_for(Pause.UNCONFIRMED)
        stream_log = intake.log
        if stream_log is None:
            self._count_command()  # refused, which is work for nothing
        elif stream_log.in_flight_bytes > NOTED_BYTES:
            self._bound_in_flight(stream_log)
        return intake.position

    def _bound_in_flight(self, stream_log: StreamLog) -> None:
        """Stop reading when this stream, or all together, have too much on its way."""
        if self._shared.in_flight.is_too_much(stream_log):
            self._pause_for(Pause.LOG)
            self._shared.in_flight.when_drained(self._shared.loop, lambda: self._resume(Pause.LOG))
        elif stream_log.in_flight_bytes > _IN_FLIGHT_BYTES_MAX:
            self._pause_for(Pause.LOG)
            stream_log.when_drained(lambda: self._resume(Pause.LOG))

    def _handled(self, error: BaseException | None) -> None:
        """A handler is through; go on with what came after its frame."""
        if self._is_over:
            return
        if isinstance(error, ProtocolError):
            self._fail(error)
        elif error is not None:
            log.error("handler failed peer=%s", self.peer, exc_info=error)
            self._edge.abort()
            return
        self._pause &= ~Pause.HANDLER
        if not self._is_handling:
            self._go_on()

    def _fail(self, error: ProtocolError) -> None:
        """End the connection: with a Close once it is open, without a word before."""
        self.link.say(log.warning, "protocol error peer=%s error=%s", self.peer, error)
        self._pause &= ~Pause.HANDLER
        if not self._session.is_open:
            self._session.is_done = True
            return
        self._session.is_closing = True
        self.link.close()
        code = error.close_code
        close, number = m.Close(code, _PHRASES[code]), _SERVER_CLOSE_CORRELATION_ID
        self.send(codec.encode_command("close", close, correlation_id=number))
        self._arm_step_timer(self._shared.settings.close_timeout_ms)

    # Pausing

    def _pause_for(self, reason: int) -> None:
        self._pause |= reason
        self._edge.pause_reading()

    def _resume(self, reason: int) -> None:
        if self._is_over or not self._pause & reason:
            return
        self._pause &= ~reason
        if not self._is_handling:
            self._go_on()

    def _go_on(self) -> None:
        """Handle what was kept; read again when nothing stands against it."""
        self._handle(*self._inbox.take_kept())
        if not self._pause and not self._is_over:
            self._edge.resume_reading()

    def _after_handling(self) -> None:
        if self._session.is_done:
            self._close_when_sent()
        elif self._session.state is not self._step:
            self._step_changed()
        self._flush()

    # Ports of the link

    def send(self, frame: bytes) -> None:
        """Queue a frame; it is sent at the end of the turn."""
        if self._is_over:
            return
        self._edge.write(frame)
        self._backlog_bytes += len(frame)
        if not self._is_flush_scheduled and not self._is_handling:
            self._is_flush_scheduled = True
            self._shared.schedule(self._flush_scheduled)

    def after_reply(self, action: Callable[[], object]) -> None:
        """Do something once the reply is queued."""
        self._after_reply.append(action)

    def replied(self) -> None:
        """The reply is queued."""
        actions, self._after_reply = self._after_reply, []
        for action in actions:
            action()

    def wait(self, delay_ms: int) -> Pending[None]:
        """Return what is settled after a delay, or as Abandoned once the connection is over."""
        pending: Pending[None] = Pending()

        def over() -> None:
            del self._waits[pending]
            pending.settle(None)

        if self._is_over:
            pending.settle(Abandoned())
        else:
            self._waits[pending] = self._shared.loop.call_later(delay_ms / 1000, over)
        return pending

    def later(self, delay_ms: int, action: Callable[[], object]) -> Callable[[], object]:
        """Do something after a delay, unless what is returned is called before."""
        return self._shared.loop.call_later(delay_ms / 1000, action).cancel

    def tuned(self) -> None:
        """Start the heartbeats."""
        if self._heartbeats is not None:
            self._heartbeats.stop()
        edge = self._edge
        self._heartbeats = Heartbeats(
            self._shared.loop,
            self._session.heartbeat_s,
            HeartbeatPorts(
                lambda: edge.sent_bytes,
                self._bytes_of_life,
                lambda: not self._pause & OUR_PAUSES,
                self._send_heartbeat,
                self._heartbeat_missed,
            ),
        )

    def _bytes_of_life(self) -> int:
        """What shows that the peer lives; while it has to read first, that it does."""
        is_behind = self._pause & Pause.BACKLOG
        return self._edge.received_bytes + (self._edge.sent_bytes if is_behind else 0)

    def _send_heartbeat(self) -> None:
        if not self._session.is_open:
            self._edge.abort()  # as the reference does when Open has not come by then
            return
        if not self._session.is_closing:
            self.send(_HEARTBEAT)

    def _heartbeat_missed(self) -> None:
        log.warning("heartbeat missed peer=%s", self.peer)
        self._edge.abort()

    def wake_delivery(self, subscription: Subscription) -> None:
        """Serve a subscription at the end of this turn."""
        self._delivery.wake(subscription)
        if not self._is_delivery_scheduled:
            self._is_delivery_scheduled = True
            self._shared.schedule(self._deliver_scheduled)

    def begin_delivery(self, subscription: Subscription) -> None:
        """Serve a new subscription once its client had time to take in the answer."""
        self._shared.loop.call_later(_FIRST_CHUNK_S, subscription.wake)

    def entries_settled(self, count: int) -> None:
        """Fewer entries wait for their confirm."""
        self._unconfirmed_count -= count
        if not self._pause & Pause.UNCONFIRMED:
            return
        if self._unconfirmed_count <= self._shared.settings.unconfirmed_entries_resume:
            self._shared.schedule(self._resume_unconfirmed)

    def _resume_unconfirmed(self) -> None:
        self._resume(Pause.UNCONFIRMED)

    # Sending

    def _flush_scheduled(self) -> None:
        self._is_flush_scheduled = False
        self._flush()

    def _flush(self) -> None:
        """Send what is queued; stop reading from a client that does not read."""
        if self._is_over:
            return
        if self._edge.is_drained or self._edge.flush():
            self._backlog_bytes = 0
            return
        settings = self._shared.settings
        if self._backlog_bytes > settings.backlog_bytes_max:
            log.warning("client does not read, cut off peer=%s", self.peer)
            self._edge.abort()
        elif self._backlog_bytes > settings.backlog_pause_bytes:
            self._pause_for(Pause.BACKLOG)

    def _deliver_scheduled(self) -> None:
        self._is_delivery_scheduled = False
        self._serve()

    def _serve(self) -> None:
        if self._is_over or self._session.is_closing or self._session.is_done:
            return
        self._edge.flush()
        if self._delivery.serve() and not self._is_delivery_scheduled:
            self._is_delivery_scheduled = True
            self._shared.loop.call_soon(self._deliver_scheduled)

    # Time limits and the end

    def _step_changed(self) -> None:
        self._step = self._session.state
        if self._session.user:
            self._shared.logged_in(self._edge)
        if self._session.is_closing or self._is_ending:
            return  # as when the frame behind Open is wrong: the timer is that of the end
        if self._session.is_open:
            if self._step_timer is not None:
                self._step_timer.cancel()
                self._step_timer = None
        else:
            self._arm_step_timer(self._shared.settings.handshake_step_timeout_ms)

    def _arm_step_timer(self, delay_ms: int) -> None:
        if self._is_ending:
            return
        if self._step_timer is not None:
            self._step_timer.cancel()
        self._step_timer = self._shared.loop.call_later(delay_ms / 1000, self._step_over)

    def _step_over(self) -> None:
        self.link.say(log.info, "time limit reached peer=%s state=%s", self.peer, self._step.name)
        self._close_when_sent()
        self._flush()

    def _close_when_sent(self, delay_s: float = 0.0) -> None:
        """End the connection when all is sent; cut off a peer that does not read it in time."""
        self._edge.close_when_sent()
        if self._is_over or (self._is_ending and not delay_s):
            return
        self._is_ending = True
        if self._step_timer is not None:
            self._step_timer.cancel()
        limit_s = delay_s or self._shared.settings.close_timeout_ms / 1000
        self._step_timer = self._shared.loop.call_later(limit_s, self._edge.abort)

    @property
    def local(self) -> str:
        """Address that the client connected to."""
        return self._edge.local

    def hold(self) -> None:
        """Read nothing more from the client, whose publishers there is no room for."""
        self._pause_for(Pause.ALARM)

    def release(self) -> None:
        """There is room again."""
        self._resume(Pause.ALARM)

    def stop_reading(self) -> None:
        """Take nothing more from the client: the server is stopping."""
        self._pause_for(Pause.STOPPING)

    def stop(self, within_s: float = 0.0) -> None:
        """Send what is queued, then end the connection; 0: within the time limit of a Close."""
        self._session.is_done = True
        self._close_when_sent(within_s)
        self._edge.flush()

    def abort(self) -> None:
        """End the connection now."""
        self._edge.abort()

    def let_go_of_deleted(self) -> None:
        """End the connection if since the last call its client has kept a deleted file."""
        if self._edge.is_stuck_on_deleted():
            log.warning("client does not read what is deleted, cut off peer=%s", self.peer)
            self._edge.abort()

    @property
    def transport(self) -> Transport:
        """What administrators are told of the socket."""
        return self._edge.transport()
