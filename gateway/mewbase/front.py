"""mewbase's protocol as the server's connections see it: frames in, requests to their handlers.

A frame is one BSON document. One that cannot be read ends the connection, since nothing behind it
can be found. One whose fields are wrong is answered, if it names a request, and then ends it too.
"""

import logging
from typing import Final

from gateway.broker.access.authentication import Peer
from gateway.mewbase.handlers import publish, query
from gateway.mewbase.handlers.table import HANDLERS
from gateway.mewbase.link import PROTOCOL, ChannelLink, MewbaseContext
from gateway.mewbase.refusals import LoginFailed, RequestRefusal, refusal_of
from gateway.mewbase.session import LoginSession
from gateway.mewbase.wire import reading, writing
from gateway.mewbase.wire.errors import BadRequest, Code, UnreadableFrame
from gateway.mewbase.wire.frames import RESPONSE, SUBRESPONSE, TELL_EXISTS
from gateway.mewbase.wire.reading import Request
from gateway.pending import run
from gateway.server.front import ConnectionLimits, Ports
from gateway.settings.mewbase import Form

log = logging.getLogger(__name__)

_AS_TEXT: Final = {Form.AUTO: None, Form.PAGE: True, Form.CLIENT: False}
_EVENTS_A_COMMAND: Final = 4
"""Events that count as one command of a connection's turn; a turn full of them takes about 2 ms."""
_NOT_YET: Final = RequestRefusal(Code.NOT_AUTHORISED, "Not authenticated!")


class MewbaseFront:
    """One client of the protocol."""

    def __init__(self, host: MewbaseContext, ports: Ports) -> None:
        self._ports = ports
        self._settings = host.settings
        self._session = LoginSession(
            host.settings.initial_frame_bytes_max, _AS_TEXT[host.settings.form]
        )
        self.link = ChannelLink(host, self._session, ports)
        self._event_count = 0
        self._is_over = False

    def start(self) -> None:
        """Set the time limit of CONNECT."""
        self._ports.limit(self._settings.connect_timeout_ms, "CONNECT")

    # Frames

    def take(self, buffer: bytearray, position: int, end: int) -> int:
        """Handle one whole frame; return where to go on."""
        if self._is_over:
            return end
        frame_end = 0
        try:
            size = reading.frame_bytes(buffer, position, end, self._session.frame_limit)
            frame_end = position + size
            if not size or frame_end > end:
                return position
            request = reading.read(buffer, position, frame_end)
        except UnreadableFrame as error:
            self._cut(str(error))
            return end
        except BadRequest as error:
            self._ports.begin_command()
            self._refuse_bad(error)
            self._ports.end_command()
            return frame_end
        if request.type == "PUB" and publish.take(self.link, request):
            self._count_event()
            return frame_end
        self._ports.begin_command()
        self._handle(request)
        return frame_end

    def _count_event(self) -> None:
        """Let the other connections go on after some events."""
        self._event_count += 1
        if self._event_count % _EVENTS_A_COMMAND == 0:
            self._ports.begin_command()
            self._ports.end_command()

    def frame_bytes(self, buffer: bytearray, position: int, end: int) -> int:
        """Return the size of the unfinished frame at `position`; 0 if its size is not there."""
        if self._is_over:
            return 0
        return reading.frame_bytes(buffer, position, end, self._session.frame_limit)

    def _handle(self, request: Request) -> None:
        """Have a request handled; the next frame is taken when that is done."""

        def handled(outcome: BaseException | None) -> None:
            if isinstance(outcome, BaseException):
                self._failed(request, outcome)
            self._ports.end_command()

        if not self._session.is_connected and request.type != "CONNECT":
            self._refuse(request.type, request.request_id, _NOT_YET)
            self._tell_of_no_login()
            self._finish()
            self._ports.end_command()
        elif request.frame is None:
            if request.request_id is not None:
                reason = f"there is no request {request.type[:80]!r}"
                refusal = RequestRefusal(Code.BAD_REQUEST, reason)
                self._refuse(request.type, request.request_id, refusal)
            self._ports.end_command()
        else:
            run(HANDLERS[request.type](self.link, request), handled)

    # What is refused

    def _failed(self, request: Request, error: BaseException) -> None:
        """Answer an error of a handler."""
        if self._is_over:
            return
        refusal = refusal_of(error, is_storing=request.type in ("PUB", "COMMITTX"))
        if refusal is None:
            log.error("handler failed peer=%s", self._ports.peer, exc_info=error)
            self._is_over = True
            self._ports.abort()
            return
        self._refuse(request.type, request.request_id, refusal)
        if isinstance(refusal, LoginFailed):
            self._finish()

    def _refuse(self, frame_type: str, request_id: int | None, refusal: RequestRefusal) -> None:
        line = "request refused peer=%s type=%s code=%d reason=%s"
        log.debug(line, self._ports.peer, frame_type, refusal.code, refusal.reason)
        answer = SUBRESPONSE if frame_type == "SUBSCRIBE" else RESPONSE
        as_text = False
        if self._session.is_connected or frame_type == "CONNECT":
            as_text = self.link.errors_as_text()
        if frame_type == "CONNECT":
            request_id = self._session.named_in_answer(request_id)
        failed = writing.failure(refusal.code, refusal.reason, as_text=as_text)
        if frame_type in TELL_EXISTS:
            failed["exists"] = False
        self._ports.send(writing.answer(answer, rID=request_id, **failed))

    def _refuse_bad(self, error: BadRequest) -> None:
        """Answer a frame whose fields are wrong; only a query leaves the connection open."""
        refusal = RequestRefusal(Code.BAD_REQUEST, str(error))
        if error.frame_type == "CONNECT":
            self._session.take_form(error.names)
        if not self._session.is_connected and error.frame_type != "CONNECT":
            refusal = _NOT_YET
            self._tell_of_no_login()
        elif error.query_id is not None:
            query.refuse(self.link, error.query_id, refusal)
            return
        is_login = error.frame_type == "CONNECT" or not self._session.is_connected
        if error.request_id is not None or is_login:
            self._refuse(error.frame_type, error.request_id, refusal)
        self._say(str(error))
        self._finish()

    def _tell_of_no_login(self) -> None:
        peer = Peer(self._ports.peer_is_loopback, self.link.address, PROTOCOL, shown=self.link.peer)
        reason, helps = "a request came before CONNECT", "CONNECT has a user's name and password"
        self.link.host.authentication.refused(peer, reason, helps)

    def _finish(self) -> None:
        """Take nothing more, and end when all is sent."""
        self._is_over = True
        self._ports.finish()

    def _cut(self, reason: str) -> None:
        self._say(reason)
        self._finish()

    def _say(self, reason: str) -> None:
        peer = self._ports.peer
        self.link.say(log.warning, "protocol error peer=%s error=%s", peer, reason)

    # The end

    def unfinished(self) -> int:
        """Return 0: transactions have limits of their own."""
        return 0

    def held_bytes(self) -> int:
        """Return 0: frames are handled as they come."""
        return 0

    def farewell(self) -> None:
        """Send nothing: the protocol has no words for an end."""

    def lost(self) -> None:
        """Remove everything that the connection owned."""
        self._is_over = True
        self.link.close()


class MewbaseKind:
    """The protocol, as a port sees it."""

    name = PROTOCOL

    def __init__(self, host: MewbaseContext, limits: ConnectionLimits) -> None:
        self.host = host
        self.limits = limits

    def meet(self, ports: Ports) -> MewbaseFront:
        """Return the front of a client that has just come."""
        return MewbaseFront(self.host, ports)
