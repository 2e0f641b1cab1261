# cython: language_level=3, annotation_typing=False, nonecheck=True
"""One client's connection: bytes to its front, frames and pieces of files to the socket.

Frames are taken in order. While a handler waits, or the client has too much unconfirmed or unread,
the socket is not read: that, and nothing else, slows a client down. What the bytes mean is the
front's affair.
"""

import logging
from collections.abc import Callable
from typing import Final, Protocol

from gateway.network.transport import Transport
from gateway.pending import Pending
from gateway.server.connections.delivery import SourceQueue
from gateway.server.connections.edge import Owner, PlainEdge
from gateway.server.connections.inbox import ConnectionInbox
from gateway.server.connections.shared import COMMANDS_READ_BYTES, NOTED_BYTES, Shared
from gateway.server.connections.unfinished import Marks
from gateway.server.front import OVER, DeliverySource, FrontKind, WriteBacklog
from gateway.server.loop.timers import Heartbeats, Timers

log = logging.getLogger(__name__)

_CUT_OFF: Final = "client does not read, cut off peer=%s left_bytes=%d"

_IN_FLIGHT_BYTES_MAX: Final = 32 * 1024 * 1024
_STRANGER_READ_BYTES: Final = 16 * 1024  # the rest stays with the system until the login
_NOTED_BYTES: Final = NOTED_BYTES  # numbers of C when it is compiled
_COMMANDS_A_TURN: Final = 64


class Pause:
    """Reasons not to read a connection, as bits: a Flag costs a microsecond at each look."""

    NONE: Final = 0
    HANDLER: Final = 1
    UNCONFIRMED: Final = 2
    LOG: Final = 4
    BACKLOG: Final = 8
    STOPPING: Final = 16
    TURN: Final = 32
    ALARM: Final = 64


_UNCONFIRMED: Final = Pause.UNCONFIRMED

OUR_PAUSES: Final = ~Pause.BACKLOG
"""All but the one that the peer ends by reading: in these it cannot show that it lives."""


class Keeper(Protocol):
    """Port that a connection came in by."""

    def logged_in(self, edge: PlainEdge) -> None:
        """Note that the client on a socket has logged in."""
        ...

    def closed(self, connection: "Connection") -> None:
        """Note that a connection is over."""
        ...


class Connection(Owner):
    """Owns the edge and the front of one client, and is the front's `Ports`."""

    def __init__(
        self,
        shared: Shared,
        kind: FrontKind,
        edge: PlainEdge,
        keeper: Keeper,
        peer: str,
        *,
        is_loopback: bool,
        certificate_user: str | None = None,
    ) -> None:
        self.peer = peer
        self.peer_is_loopback = is_loopback
        self.certificate_user = certificate_user
        self.takes_regions = edge.takes_regions
        self._shared = shared
        self._schedule = shared.schedule
        self._rest = shared.schedule.rest
        self._limits = kind.limits
        self._unconfirmed_max = kind.limits.unconfirmed_max
        self.edge = edge
        self._keeper = keeper
        self.inbox = ConnectionInbox(shared.receive_buffer)
        self._delivery = SourceQueue(edge, shared.scratch)
        self._timers = Timers(shared.loop)
        self._heartbeats: Heartbeats | None = None
        self.pause: int = Pause.NONE
        self._unconfirmed_count = 0
        self._backlog_bytes = 0
        self._commands_left = _COMMANDS_A_TURN
        self.is_stranger = True
        self._gives_commands = False
        self._is_flush_scheduled = False
        self._is_delivery_scheduled = False
        self._is_handling = False
        self._is_done = False
        self._is_ending = False
        self._is_over = False
        # Made once: each look-up of a method makes an object.
        self._call_flush = self._flush_scheduled
        self._call_deliver = self._deliver_scheduled
        self.front = kind.meet(self)

    def start(self, first: Owner) -> None:
        """Begin to serve the client; `first` owns the edge until it gives it to the connection."""
        self.front.start()
        self.edge.start(first)

    # From the edge

    def place(self) -> memoryview:
        """Return where the next bytes are read to; all but messages are read in small pieces."""
        if self.is_stranger:
            return self.inbox.place()[:_STRANGER_READ_BYTES]
        if not self._gives_commands:
            return self.inbox.place()
        if self.inbox.is_empty():
            return self._shared.commands_place  # a new view costs as much as the read
        return self.inbox.place()[:COMMANDS_READ_BYTES]

    def received(self, size: int) -> None:
        """Handle the bytes that were read."""
        self._rest.received_bytes += size
        buffer, end = self.inbox.received(size)
        self._handle(buffer, 0, end)

    def writable(self) -> None:
        """Go on: the socket takes more."""
        self._backlog_bytes = 0
        self._resume(Pause.BACKLOG)
        self._serve()

    def lost(self) -> None:
        """Remove everything that the connection owned."""
        if self._is_over:
            return
        self._is_over = True
        if not self.edge.received_bytes:  # as of a probe that watches the port every few seconds
            log.debug("peer left before its first byte peer=%s", self.peer)
        if self._heartbeats is not None:
            self._heartbeats.stop()
        self._timers.stop()
        self._shared.unfinished.forget(self)
        self._shared.strangers_input.forget(self)
        self.front.lost()
        self._keeper.closed(self)
        # Not here: compiled code up the stack may be in what goes, and does not count that.
        self._shared.loop.call_soon(self._let_go)

    def _let_go(self) -> None:
        """Refer to nothing that refers to this, and hold no bytes: the collector may come late."""
        self.front = OVER
        self.inbox = ConnectionInbox(self._shared.receive_buffer)
        self._delivery = SourceQueue(self.edge, self._shared.scratch)
        self._heartbeats = None
        self._call_flush = self._call_deliver = _nothing

    # Bytes to frames

    def _handle(self, buffer: bytearray, position: int, end: int) -> None:
        """Handle the complete frames in [position, end) of `buffer` and keep the rest."""
        self._is_handling = True
        self._commands_left = _COMMANDS_A_TURN
        try:
            while position < end and not self._is_over and not self._is_done and not self.pause:
                next_position = self.front.take(buffer, position, end)
                if next_position == position:
                    break
                position = next_position
                self.inbox.frames_taken += 1
        except Exception:
            log.exception("connection failed peer=%s", self.peer)
            self.edge.abort()
        finally:
            self._is_handling = False
        if self._is_over:
            return
        if position < end and not self._is_done:
            frame_bytes = 0 if self.pause else self.front.frame_bytes(buffer, position, end)
            self.inbox.keep(buffer, position, end, frame_bytes)
            self.begun()
        if self.is_stranger:
            held = self.inbox.kept_bytes() + self.front.held_bytes()
            self._shared.strangers_input.bound(self, held)
        if self.pause:
            self.edge.pause_reading()
        self._after_handling()

    def _after_handling(self) -> None:
        if self._is_done:
            self._close_when_sent()
        self._flush()

    def begin_command(self) -> None:
        """Take no more frames until `end_command`; count one for this turn."""
        self.count_command()
        self._gives_commands = True
        self.pause |= Pause.HANDLER

    def end_command(self) -> None:
        """Take frames again."""
        self._resume(Pause.HANDLER)

    def count_command(self) -> None:
        """Let the other connections have their turn after a number of commands."""
        self._commands_left -= 1
        if self._commands_left == 0:
            self._pause_for(Pause.TURN)
            self._shared.loop.call_soon(self._resume, Pause.TURN)

    def taken(self, count: int, backlog: WriteBacklog | None) -> None:
        """Note messages that wait for their confirm, and the backlog that took them."""
        self._unconfirmed_count += count
        self._gives_commands = False
        if self._unconfirmed_count >= self._unconfirmed_max:
            self._pause_for(Pause.UNCONFIRMED)
        if backlog is None:
            self.count_command()  # refused, which is work for nothing
        elif backlog.in_flight_bytes > _NOTED_BYTES:
            self._bound_in_flight(backlog)

    def _bound_in_flight(self, backlog: WriteBacklog) -> None:
        """Stop reading when this backlog, or all together, have too much on their way."""
        if self._shared.in_flight.is_too_much(backlog):
            self._pause_for(Pause.LOG)
            self._shared.in_flight.when_drained(self._shared.loop, lambda: self._resume(Pause.LOG))
        elif backlog.in_flight_bytes > _IN_FLIGHT_BYTES_MAX:
            self._pause_for(Pause.LOG)
            backlog.when_drained(lambda: self._resume(Pause.LOG))

    def settled(self, count: int) -> None:
        """Note that fewer messages wait for their confirm."""
        self._unconfirmed_count -= count
        if not self.pause & _UNCONFIRMED:
            return
        if self._unconfirmed_count <= self._limits.unconfirmed_resume:
            self._schedule.call_soon(self._resume, Pause.UNCONFIRMED)

    # Pausing

    def _pause_for(self, reason: int) -> None:
        self.pause |= reason
        self.edge.pause_reading()

    def _resume(self, reason: int) -> None:
        if self._is_over or not self.pause & reason:
            return
        self.pause &= ~reason
        if not self._is_handling:
            self._go_on()

    def _go_on(self) -> None:
        """Handle the kept bytes; read again when nothing stands against it."""
        self._handle(*self.inbox.take_kept())
        if not self.pause and not self._is_over:
            self.edge.resume_reading()

    def hold(self) -> None:
        """Read nothing more from the client: there is no room for more."""
        self._pause_for(Pause.ALARM)

    def release(self) -> None:
        """Read again: there is room."""
        self._resume(Pause.ALARM)

    def stop_reading(self) -> None:
        """Take nothing more from the client: the server is stopping."""
        self._pause_for(Pause.STOPPING)

    # Sending

    def send(self, frame: bytes) -> None:
        """Queue a frame; it is sent at the end of the turn."""
        if self._is_over:
            return
        self.edge.write(frame)
        self._backlog_bytes += len(frame)
        if not self._is_flush_scheduled and not self._is_handling:
            self._is_flush_scheduled = True
            self._schedule.add(self._call_flush)

    def _flush_scheduled(self) -> None:
        self._is_flush_scheduled = False
        self._flush()

    def _flush(self) -> None:
        """Send the queued frames; stop reading from a client that does not read."""
        if self._is_over:
            return
        if self.edge.flush():
            self._backlog_bytes = 0
        elif self._backlog_bytes > self._limits.backlog_bytes_max:
            self.cut_off()
        elif self._backlog_bytes > self._limits.backlog_pause_bytes:
            self._pause_for(Pause.BACKLOG)

    def wake(self, source: DeliverySource) -> None:
        """Ask a source for its next piece, at the end of this turn."""
        if self._is_over:
            return
        self._delivery.wake(source)
        if not self._is_delivery_scheduled:
            self._is_delivery_scheduled = True
            self._schedule.add(self._call_deliver)

    def _deliver_scheduled(self) -> None:
        self._is_delivery_scheduled = False
        self._serve()

    def _serve(self) -> None:
        if self._is_over or self._is_done:
            return
        if self.edge.flush() and self._delivery.serve() and not self._is_delivery_scheduled:
            self._is_delivery_scheduled = True
            self._shared.loop.call_soon(self._call_deliver)

    # Time

    def wait(self, delay_ms: int) -> Pending[None]:
        """Return a Pending, settled after a delay, or as Abandoned once the connection is over."""
        return self._timers.wait(delay_ms)

    def later(self, delay_ms: int, action: Callable[[], object]) -> Callable[[], object]:
        """Do something after a delay, unless the returned function is called before."""
        return self._timers.later(delay_ms, action)

    def limit(self, delay_ms: int, step: str) -> None:
        """End the connection after a delay, unless another limit is set before."""
        if not self._is_ending:
            self._timers.limit(delay_ms / 1000, lambda: self.time_is_up(step))

    def time_is_up(self, step: str) -> None:
        """End a client that took too long."""
        self._shared.tell(log.info, "time limit reached peer=%s state=%s", self.peer, step)
        self.finish()

    def begun(self) -> None:
        """Note that the client has begun something; it ends in time, or the connection does."""
        if not self._is_over:
            self._shared.unfinished.watch(self)

    def begun_marks(self) -> Marks:
        """Return the marks of the frame that is begun; see `Unfinished`."""
        is_waiting = self._is_done or self.pause != Pause.NONE
        kept = 0 if is_waiting else self.inbox.kept_bytes()
        return self.inbox.frames_taken if kept else 0, 0 if is_waiting else self.front.unfinished()

    def beat(self, interval_s: int, send: Callable[[], object]) -> None:
        """Begin the heartbeats, in place of those before."""
        if self._heartbeats is not None:
            self._heartbeats.stop()
        self._heartbeats = Heartbeats(self._shared.heartbeats, interval_s, SignsOfLife(self), send)

    # Standing, and the end

    def logged_in(self) -> None:
        """Note that the client keeps its socket when others want one."""
        self._keeper.logged_in(self.edge)

    def admitted(self) -> None:
        """Note that the login is complete: no time limit any more, and reads of full size."""
        self.is_stranger = False
        self._shared.strangers_input.forget(self)
        if not self._is_ending:
            self._timers.no_limit()

    def finish(self) -> None:
        """Take nothing more; end the connection when all is sent."""
        self._is_done = True
        if not self._is_handling:
            self._after_handling()

    def stop(self, within_s: float = 0.0) -> None:
        """Send a farewell and the queued frames, then end; 0: within the time limit of the end."""
        self.front.farewell()
        self._is_done = True
        self._close_when_sent(within_s)
        self.edge.flush()

    def _close_when_sent(self, within_s: float = 0.0) -> None:
        """End the connection when all is sent; cut off a peer that does not read it in time."""
        self.edge.close_when_sent()
        if self._is_over or (self._is_ending and not within_s):
            return
        self._is_ending = True
        self._timers.limit(within_s or self._limits.close_timeout_ms / 1000, self.cut_off)

    def cut_off(self) -> None:
        """End a client that does not read the frames queued for it."""
        self._shared.tell(log.warning, _CUT_OFF, self.peer, self.edge.left_bytes())
        self.edge.abort()

    def abort(self) -> None:
        """End the connection now."""
        self.edge.abort()

    # For administrators

    @property
    def local(self) -> str:
        """Address that the client connected to."""
        return self.edge.local

    @property
    def transport(self) -> Transport:
        """Facts of the socket that administrators see."""
        return self.edge.transport()


def _nothing() -> None:
    pass


class SignsOfLife:
    """A connection as its heartbeats see it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def sent_bytes(self) -> int:
        """Return how many bytes went out."""
        return self._connection.edge.sent_bytes

    def bytes_of_life(self) -> int:
        """Return a count that grows while the peer lives; where it is behind, with bytes sent."""
        edge = self._connection.edge
        is_behind = self._connection.pause & Pause.BACKLOG
        return edge.received_bytes + (edge.sent_bytes if is_behind else 0)

    def listens(self) -> bool:
        """Return whether the peer can show that it lives."""
        return not self._connection.pause & OUR_PAUSES

    def heartbeat_missed(self) -> None:
        """End the connection: the peer was silent for too long."""
        log.warning("heartbeat missed peer=%s", self._connection.peer)
        self._connection.abort()
