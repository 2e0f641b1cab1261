"""HTTP/1.1 on one connection, as uvicorn speaks it, with limits on what a stranger can hold.

uvicorn bounds the size of headers; how long they take, how much comes before a login, and how many
connections there are, is bounded here. A connection is a stranger's until a request of it has
logged in.
"""

import asyncio
import json
import logging
import re
from collections.abc import Sequence
from contextlib import suppress
from http import HTTPStatus
from importlib.metadata import version
from typing import Any, Final

import h11
from h11._receivebuffer import ReceiveBuffer
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.utils import get_remote_addr

from gateway.management.http.bodies import LARGE_BYTES_MAX
from gateway.network.first_bytes import LOOK_BYTES, Match, Protocol
from gateway.network.pre_login import PreLogin
from gateway.server.connections.first_look import Look
from gateway.server.connections.shared import Shared
from gateway.server.connections.unfinished import STRANGER_BYTES_MAX, STRANGER_S

log = logging.getLogger(__name__)

HEADER_BYTES_MAX: Final = 16 * 1024
"""Largest request line and headers together."""
_CLIENT_READ_BYTES: Final = 64 * 1024
_STRANGER_READ_BYTES: Final = 16 * 1024  # the rest stays with the system until the login
_shared: Final = memoryview(bytearray(_CLIENT_READ_BYTES))
"""Buffer that all connections are read to, in turn."""
HEADERS_S: Final = STRANGER_S
"""Longest time from a client's first byte to the end of its headers, or without a byte."""
IDLE_S: Final = 30
"""Longest time that a connection stays open without a request."""
_STRANGER_HELD_BYTES: Final = STRANGER_BYTES_MAX // 2
"""With so much of a stranger it is not read; what one read brings comes on top."""
CONNECTIONS_MAX: Final = 128
PROTOCOL: Final = "http"
"""Word for what is spoken here, as of a listener."""
LOGGED_IN: Final = "logged in"
"""The function in a request's state that tells its connection of a login."""


_LOOSE: Final = re.compile(rb"(?<!\r)\n|\n[ \t]")
"""Ends of lines, and lines that go on in the next, that others would read in another way."""
_CHUNK_SIZE: Final = re.compile(rb"[0-9A-Fa-f]{1,20}")
_LENGTH: Final = re.compile(rb"content-length:[ \t]*[0-9]+[ \t]*", re.IGNORECASE)


def _is_ambiguous(lines: Sequence[bytes | bytearray]) -> bool:
    """Return whether a proxy could find the end of the body elsewhere."""
    lengths = [line for line in lines if line[:15].lower() == b"content-length:"]
    if len(lengths) > 1 or any(_LENGTH.fullmatch(line) is None for line in lengths):
        return True
    is_old = bool(lines) and lines[0].endswith(b"HTTP/1.0")
    return is_old and any(line[:18].lower() == b"transfer-encoding:" for line in lines)


class StrictLines(ReceiveBuffer):
    """h11's buffer, which accepts only lines that end with CR LF."""

    def maybe_extract_lines(self) -> list[bytearray] | None:
        """Take a request's line and headers, or what is behind the last chunk."""
        before = bytes(self)
        lines = super().maybe_extract_lines()
        if lines and _LOOSE.search(before, 0, len(before) - len(self)) is not None:
            raise h11.RemoteProtocolError("a line ends with CR LF, and does not go on in the next")
        if lines and _is_ambiguous(lines):
            raise h11.RemoteProtocolError("a body has one length, and chunks only in HTTP/1.1")
        return lines

    def maybe_extract_next_line(self) -> bytearray | None:
        """Take the line before a chunk, if the chunk is no larger than any body may be."""
        line = super().maybe_extract_next_line()
        size = None if line is None else _CHUNK_SIZE.match(line)
        if size is not None and int(size[0], 16) > LARGE_BYTES_MAX:
            raise h11.RemoteProtocolError("a chunk is larger than a body may be")
        return line


class NotStrict(Exception):
    """This version of h11 would parse requests less strictly."""


def make_strict(connection: h11.Connection) -> StrictLines:
    """Let a connection take requests apart strictly; return what it keeps bytes in.

    Raises:
        NotStrict: There is no way in, or it leads nowhere.
    """
    if not isinstance(getattr(connection, "_receive_buffer", None), ReceiveBuffer):
        raise NotStrict(f"h11 {version('h11')} keeps what it receives elsewhere")
    lines = StrictLines()
    connection._receive_buffer = lines  # noqa: SLF001  # there is no other way in
    return lines


def check_strictness() -> None:
    """Try on requests of our own what is refused. Raises NotStrict."""
    head = b"POST / HTTP/1.1\r\nHost: h\r\n"
    chunked = head + b"Transfer-Encoding: chunked\r\n\r\n"
    for request in (
        head + b"Content-Length: 2, 2\r\n\r\n{}",
        head + b"X: y\n\r\n",
        chunked + b"%x\r\n" % (LARGE_BYTES_MAX + 1),
    ):
        connection = h11.Connection(h11.SERVER)
        make_strict(connection)
        connection.receive_data(request)
        try:
            while isinstance(connection.next_event(), h11.Event):
                pass
        except h11.RemoteProtocolError:
            continue
        raise NotStrict(f"h11 {version('h11')} does not ask how lines end")


class BoundedProtocol(H11Protocol):
    """One connection."""

    def __init__(
        self,
        strangers: PreLogin["BoundedProtocol"],
        shared: Shared,
        look: Look,
        **kwargs: Any,  # noqa: ANN401  # as uvicorn calls it
    ) -> None:
        """Take what the connections of a server share, and what uvicorn gives."""
        super().__init__(**kwargs)
        self._strangers = strangers
        self._say = shared.say
        self._input = shared.strangers_input
        self.peer = ""
        self.is_stranger = True
        self.app_state = {LOGGED_IN: self._logged_in}
        self._headers_timer: asyncio.TimerHandle | None = None
        self._look: Look | None = look
        self._first = b""
        self._received = make_strict(self.conn)

    def _logged_in(self) -> None:
        if self.is_stranger:
            self.is_stranger = False
            self._strangers.remove(self)
            self._input.forget(self)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection; if there are as many as may be, another one goes for it."""
        address, port = get_remote_addr(transport) or ("", 0)
        self.peer = f"{address}:{port}"
        is_full = len(self.connections) >= CONNECTIONS_MAX
        stranger = self._strangers.in_the_way(address, is_full=is_full)
        leaving = self._longest_silent() if is_full and stranger is None else stranger
        if leaving is not None:
            leaving.displace()
        elif is_full:
            line = "http connection refused, all ask something connections=%d"
            self._say(log.warning, address, line, CONNECTIONS_MAX)
            transport.abort()
            self.transport = transport
            self.flow = None  # type: ignore[assignment]
            return
        super().connection_made(transport)
        self._strangers.add(self, address)
        self._arm()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a connection."""
        self._disarm()
        self._strangers.remove(self)
        self._input.forget(self)
        if self.flow is not None:
            super().connection_lost(exc)
        # They refer to this, by the function of a login; a request under way has its own.
        self.cycle = self.scope = None  # type: ignore[assignment]  # as uvicorn begins
        self.app_state = {}

    def displace(self) -> None:
        """End the connection for another one."""
        address = self._strangers.address_of(self)
        if address:
            line = "http connection without a login gives way to another address=%s"
            self._say(log.warning, address, line, address)
        self.abort()

    def abort(self) -> None:
        """End the connection now; it hears of its end a moment later."""
        self._strangers.remove(self)
        self._input.forget(self)
        self.connections.discard(self)
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Take bytes; those of headers within a time."""
        if self._headers_timer is None and self.conn.their_state is h11.IDLE:
            self._arm()
        if self._look is not None:
            data = self._judged(self._look, data)
        if self.conn.their_state is h11.IDLE and not self.conn.trailing_data[0]:
            data = data.removeprefix(b"\r\n")  # some end a body with it
        if not data:
            return
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._disarm()
        if self.is_stranger and not self.transport.is_closing():
            self._bound()

    def _bound(self) -> None:
        """Read no more of a stranger that has sent much; note how much it is."""
        is_asking = self.cycle is not None  # before the first request
        waiting = len(self.cycle.body) if is_asking else 0
        held = waiting + len(self._received)
        if held >= _STRANGER_HELD_BYTES:
            self.flow.pause_reading()  # until a login lets its body be asked for
        self._input.bound(self, held)

    def _judged(self, look: Look, data: bytes) -> bytes:
        """Return the first bytes if they may be of HTTP; empty if they are not, or too few."""
        self._first += data
        found = look.foreign(self._first[:LOOK_BYTES])
        if isinstance(found, Protocol):
            self._look = None
            self.transport.write(look.tell(found, self.peer))
            self.transport.close()
        elif found is Match.NO:
            self._look = None
            return self._first
        return b""

    def _longest_silent(self) -> "BoundedProtocol | None":
        """Return the connection that asks nothing for the longest time; None if all ask."""
        silent = [
            (since_s, one)
            for one in self.connections
            if isinstance(one, BoundedProtocol) and (since_s := one.silent_since_s) is not None
        ]
        return min(silent, key=lambda pair: pair[0])[1] if silent else None

    @property
    def silent_since_s(self) -> float | None:
        """Since when a whole request is waited for, by the loop's clock; None during a request."""
        if self._headers_timer is not None:
            return self._headers_timer.when() - HEADERS_S
        if self.timeout_keep_alive_task is not None:
            return self.timeout_keep_alive_task.when() - IDLE_S
        return None

    def _arm(self) -> None:
        self._headers_timer = self.loop.call_later(HEADERS_S, self._too_slow)

    def _disarm(self) -> None:
        if self._headers_timer is not None:
            self._headers_timer.cancel()
            self._headers_timer = None

    def _too_slow(self) -> None:
        self._headers_timer = None
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self.transport.abort()

    def send_400_response(self, msg: str) -> None:
        """Say that this is no request, in the form of all other answers; then hang up."""
        reason = f"{msg} Headers have {HEADER_BYTES_MAX} bytes at most."
        body = json.dumps({"error": "bad_request", "reason": reason}).encode()
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            (b"connection", b"close"),
        ]
        with suppress(h11.LocalProtocolError):  # an answer is under way
            for event in (
                h11.Response(status_code=HTTPStatus.BAD_REQUEST, headers=headers),
                h11.Data(data=body),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


class SmallReads(asyncio.BufferedProtocol):
    """One connection, read in small pieces; everything that happens there goes on to its protocol.

    Reads of asyncio bring up to 256 KiB that a protocol has to take.
    """

    def __init__(self, protocol: BoundedProtocol) -> None:
        self._protocol = protocol
        self.connection_lost = protocol.connection_lost  # type: ignore[method-assign]
        self.pause_writing = protocol.pause_writing  # type: ignore[method-assign]
        self.resume_writing = protocol.resume_writing  # type: ignore[method-assign]
        self.eof_received = protocol.eof_received  # type: ignore[method-assign]

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Learn of the socket."""
        self._protocol.connection_made(transport)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        """Return where the next bytes are read to."""
        return _shared[:_STRANGER_READ_BYTES] if self._protocol.is_stranger else _shared

    def buffer_updated(self, nbytes: int) -> None:
        """Hand over what was read."""
        self._protocol.data_received(bytes(_shared[:nbytes]))
