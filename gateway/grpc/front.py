"""One client of gRPC: frames of HTTP/2 in, calls to the service, answers out.

`h2` takes the frames apart. Until its caller is let in, a call brings no more than the first window
of its connection, and the connection gives way to others as any that has not logged in.
"""

import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final

from h2 import events
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.exceptions import ProtocolError, StreamClosedError
from h2.settings import SettingCodes, Settings

from gateway.grpc.call import HEAD, IncomingCall, NoCall, framed, trailers
from gateway.grpc.outgoing import OutgoingAnswers
from gateway.grpc.status import CallRefused, CallService, CallStatus
from gateway.network.addresses import host_of
from gateway.pending import Pending, run
from gateway.server.connections.shared import Say
from gateway.server.front import ConnectionLimits, Ports

log = logging.getLogger(__name__)

_CALLS_MAX: Final = 100
"""Calls of a connection at a time."""
_HEADER_BYTES_MAX: Final = 16 * 1024
_WINDOW_BYTES: Final = 65_535
"""Bytes of all calls of a connection that are taken before they are used, by HTTP/2's own rule."""
_CLIENT_WINDOW_BYTES: Final = 2 * 1024 * 1024
"""The same once a caller was let in."""
_PIECE_BYTES: Final = 512
"""Bytes that are taken apart at once: so many are at most some sixty frames."""
_UNFINISHED_BYTES_MAX: Final = 32 * 1024
"""Bytes in which a frame or a block of headers has to end."""

_SETTINGS: Final = {
    SettingCodes.MAX_CONCURRENT_STREAMS: _CALLS_MAX,
    SettingCodes.INITIAL_WINDOW_SIZE: _WINDOW_BYTES,
    SettingCodes.MAX_FRAME_SIZE: 16_384,
    SettingCodes.MAX_HEADER_LIST_SIZE: _HEADER_BYTES_MAX,
    SettingCodes.ENABLE_CONNECT_PROTOCOL: 0,
}


class GrpcFront:
    """One client."""

    def __init__(self, kind: "GrpcKind", ports: Ports) -> None:
        self._kind = kind
        self._ports = ports
        self._http = H2Connection(H2Configuration(client_side=False, header_encoding=None))
        self._http.local_settings = Settings(client=False, initial_values=_SETTINGS)
        self._calls: dict[int, IncomingCall] = {}
        self._outgoing = OutgoingAnswers(self._http)
        self._leave: Callable[[], object] | None = None
        self._quiet_bytes = 0
        self._is_greeted = False
        self._is_over = False
        self._is_taking = False

    def start(self) -> None:
        """Set the time limit of the login; the settings wait for the client's first bytes."""
        self._ports.limit(self._kind.login_timeout_ms, "first call")

    # In

    def take(self, buffer: bytearray, position: int, end: int) -> int:
        """Take a piece of the bytes that came, whatever frames it holds; return where to go on."""
        if self._is_over:
            return end
        if not self._is_greeted:
            self._is_greeted = True
            self._http.initiate_connection()
        stop = min(end, position + _PIECE_BYTES)
        self._ports.count_command()
        self._is_taking = True
        try:
            for event in self._taken_apart(bytes(memoryview(buffer)[position:stop])):
                self._ports.count_command()
                self._handle(event)
        except ProtocolError as error:
            self._fail(str(error) or type(error).__name__)
            return end
        finally:
            self._is_taking = False
        self._send()
        return stop

    def _taken_apart(self, data: bytes) -> list[events.Event]:
        """Return the events of a piece. Raises ProtocolError."""
        found = self._http.receive_data(data)
        given_up = {each.stream_id for each in found if isinstance(each, events.StreamReset)}
        if given_up:  # `h2` answers no call that has ended by what came with it
            found = [each for each in found if not _is_of(each, given_up)]
            for number in given_up:
                self._forget(number)
        self._quiet_bytes = 0 if found else self._quiet_bytes + len(data)
        if self._quiet_bytes > _UNFINISHED_BYTES_MAX:
            raise ProtocolError("a frame, or a block of headers, does not end")
        return found

    def _handle(self, event: events.Event) -> None:
        match event:
            case events.RequestReceived():
                self._begin(event.stream_id, event.headers)
            case events.DataReceived():
                self._add(event.stream_id, event.data, event.flow_controlled_length or 0)
            case events.StreamEnded():
                self._end(event.stream_id)
            case events.WindowUpdated() | events.RemoteSettingsChanged():
                self._outgoing.go_on()
            case events.ConnectionTerminated():  # `h2` sends nothing more, not even answers
                self._close()

    def frame_bytes(self, buffer: bytearray, position: int, end: int) -> int:  # noqa: ARG002
        """Return 0: `take` leaves nothing."""
        return 0

    # Calls

    def _begin(self, number: int, headers: Any) -> None:  # noqa: ANN401  # h2 has names of its own
        try:
            call = IncomingCall(headers)
            self._kind.service.request_bytes_max(call.path)
        except NoCall as error:
            self._end_early(number, [(b":status", b"%d" % error.status)])
            return
        except CallRefused as refused:
            self._refuse(number, refused)
            return
        self._calls[number] = call
        self._ports.begun()
        host = host_of(self._ports.peer)
        let_in = self._kind.service.let_in(call.authorization, host)
        self._run(number, call, let_in, lambda caller: self._let_in(number, call, caller))

    def _let_in(self, number: int, call: IncomingCall, caller: object) -> None:
        call.caller = caller
        self._known()
        self._http.acknowledge_received_data(call.unacknowledged_bytes, number)
        if call.is_whole:
            self._answer(number, call)

    def _known(self) -> None:
        """Note that the client is known: list it, and take it as one that has logged in."""
        if self._leave is None:
            self._leave = self._kind.list_connection(self._ports)
            self._ports.logged_in()
            self._ports.admitted()
            self._http.increment_flow_control_window(_CLIENT_WINDOW_BYTES - _WINDOW_BYTES)

    def _add(self, number: int, data: bytes, size: int) -> None:
        call = self._calls.get(number)
        if call is None:
            self._http.acknowledge_received_data(size, number)
            return
        try:
            call.add(data, self._kind.service.request_bytes_max(call.path))
        except CallRefused as refused:
            self._refuse(number, refused)
        if call.is_let_in:
            self._http.acknowledge_received_data(size, number)
        else:
            call.unacknowledged_bytes += size

    def _end(self, number: int) -> None:
        call = self._calls.get(number)
        if call is not None:
            call.is_whole = True
            if call.is_let_in:
                self._answer(number, call)

    def _answer(self, number: int, call: IncomingCall) -> None:
        try:
            answer = self._kind.service.answer(call.path, call.caller, call.message())
        except CallRefused as refused:
            self._refuse(number, refused)
            return
        self._run(number, call, answer, lambda message: self._finish(number, message))

    def _run(
        self,
        number: int,
        call: IncomingCall,
        step: Coroutine[Pending[Any], None, Any],
        go_on: Callable[[Any], object],
    ) -> None:
        """Do a step of a call, and go on unless the call was forgotten or refused meanwhile."""

        def done(outcome: object) -> None:
            if self._is_over or self._calls.get(number) is not call:
                return
            if isinstance(outcome, CallRefused):
                self._refuse(number, outcome)
            elif isinstance(outcome, BaseException):
                log.error("a call failed peer=%s", self._ports.peer, exc_info=outcome)
                self._refuse(number, CallRefused(CallStatus.INTERNAL, "the server failed"))
            else:
                go_on(outcome)
            self._send()

        run(step, done)

    def _finish(self, number: int, message: bytes) -> None:
        self._calls.pop(number, None)
        with suppress(StreamClosedError):  # its client gave it up with what was taken just now
            self._http.send_headers(number, HEAD)
            self._outgoing.add(number, framed(message), trailers(CallStatus.OK))

    def _refuse(self, number: int, refused: CallRefused) -> None:
        """End a call without an answer, also one that is not whole."""
        self._calls.pop(number, None)
        self._end_early(number, [*HEAD, *trailers(refused.status, str(refused))])

    def _end_early(self, number: int, headers: list[tuple[bytes, bytes]]) -> None:
        """Answer by headers alone, and want no more of the request."""
        with suppress(StreamClosedError):
            self._http.send_headers(number, headers, end_stream=True)
            self._http.reset_stream(number, ErrorCodes.NO_ERROR)

    def _forget(self, number: int) -> None:
        """Forget a call that its client gave up; its change is made in any case."""
        self._calls.pop(number, None)
        self._outgoing.forget(number)

    # Out

    def _send(self) -> None:
        if not self._is_taking and (data := self._http.data_to_send()):
            self._ports.send(data)

    # The end

    def unfinished(self) -> int:
        """Return the number of the first call that is not at its end; 0 if there is none."""
        return min((*self._calls, *self._outgoing.calls()), default=0)

    def held_bytes(self) -> int:
        """Return how much is held of headers and requests."""
        return self._quiet_bytes + sum(each.unacknowledged_bytes for each in self._calls.values())

    def _fail(self, reason: str) -> None:
        """End the connection of a client that breaks the protocol; `h2` has made the farewell."""
        peer = self._ports.peer
        line = "protocol error peer=%s error=%s"
        self._kind.say(log.warning, host_of(peer), line, peer, reason)
        self._close()

    def _close(self) -> None:
        self._is_over = True
        if data := self._http.data_to_send():
            self._ports.send(data)
        self._ports.finish()

    def farewell(self) -> None:
        """Send GOAWAY: the connection takes no more calls."""
        if not self._is_over:
            self._http.close_connection()
            self._send()
            self._is_over = True

    def lost(self) -> None:
        """Remove everything that the connection owned."""
        self._is_over = True
        self._calls.clear()
        _let_go(self._http)
        if self._leave is not None:
            self._leave()


def _let_go(http: H2Connection) -> None:
    """Take a connection of `h2` its table of its own methods: the one ring of objects in it.

    It takes no more frames. Where another version has no such table, the collector frees it.
    """
    getattr(http, "_frame_dispatch_table", {}).clear()


def _is_of(event: events.Event, calls: set[int]) -> bool:
    """Return whether an event is of one of some calls; their bytes are to be acknowledged still."""
    is_data = isinstance(event, events.DataReceived)
    return not is_data and getattr(event, "stream_id", None) in calls


class GrpcKind:
    """gRPC, as a port sees it."""

    def __init__(  # what all its connections share
        self,
        name: str,
        service: CallService,
        limits: ConnectionLimits,
        *,
        say: Say,
        login_timeout_ms: int,
        list_connection: Callable[[Ports], Callable[[], object]],
    ) -> None:
        """Take the settings that all connections share.

        Args:
            name: What is called here, for administrators.
            service: Answers the calls.
            limits: Bounds of each connection.
            say: Writes a log line that a client without a login could cause without end.
            login_timeout_ms: Time until the first caller is let in.
            list_connection: Lists a connection for administrators.
        """
        self.name = name
        self.service = service
        self.limits = limits
        self.say = say
        self.login_timeout_ms = login_timeout_ms
        self.list_connection = list_connection

    def meet(self, ports: Ports) -> GrpcFront:
        """Return the front of a client that has just come."""
        return GrpcFront(self, ports)
