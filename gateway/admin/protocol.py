"""HTTP/1.1 on one connection, as uvicorn speaks it, with limits on what a stranger can hold.

uvicorn bounds the size of headers; how long they take, and how many connections there are, is
bounded here.
"""

import asyncio
import json
import logging
import re
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final

import h11
from h11._receivebuffer import ReceiveBuffer
from uvicorn.protocols.http.h11_impl import H11Protocol

from gateway.admin.bodies import LARGE_BYTES_MAX

log = logging.getLogger(__name__)

HEADER_BYTES_MAX: Final = 16 * 1024
"""Of a request's line and all of its headers."""
HEADERS_S: Final = 10.0
"""How long a client may take from its first byte to the end of its headers, or say nothing."""
IDLE_S: Final = 30
"""How long a connection stays without a request after the last."""
CONNECTIONS_MAX: Final = 128


_LOOSE: Final = re.compile(rb"(?<!\r)\n|\n[ \t]")
"""Ends of lines, and lines that go on in the next, that others would read in another way."""
_CHUNK_SIZE: Final = re.compile(rb"[0-9A-Fa-f]{1,20}")


class StrictLines(ReceiveBuffer):
    """What h11 has received, and takes apart only where every line ends with CR LF."""

    def maybe_extract_lines(self) -> list[bytearray] | None:
        """Take a request's line and headers, or what is behind the last chunk."""
        before = bytes(self)
        lines = super().maybe_extract_lines()
        if lines and _LOOSE.search(before, 0, len(before) - len(self)) is not None:
            raise h11.RemoteProtocolError("a line ends with CR LF, and does not go on in the next")
        return lines

    def maybe_extract_next_line(self) -> bytearray | None:
        """Take the line before a chunk, if the chunk is no larger than any body may be."""
        line = super().maybe_extract_next_line()
        size = None if line is None else _CHUNK_SIZE.match(line)
        if size is not None and int(size[0], 16) > LARGE_BYTES_MAX:
            raise h11.RemoteProtocolError("a chunk is larger than a body may be")
        return line


class BoundedProtocol(H11Protocol):
    """One connection."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401  # as uvicorn calls it
        super().__init__(*args, **kwargs)
        self._headers_timer: asyncio.TimerHandle | None = None
        self.conn._receive_buffer = StrictLines()  # noqa: SLF001  # there is no other way in

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection; if there are as many as may be, one that asks nothing goes for it."""
        if len(self.connections) >= CONNECTIONS_MAX and not self._displace():
            log.warning("http connection refused, there are %d", CONNECTIONS_MAX)
            transport.abort()
            self.transport = transport
            self.flow = None  # type: ignore[assignment]
            return
        super().connection_made(transport)
        self._arm()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a connection."""
        self._disarm()
        if self.flow is not None:
            super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take bytes; those of headers within a time."""
        if self._headers_timer is None and self.conn.their_state is h11.IDLE:
            self._arm()
        if self.conn.their_state is h11.IDLE and not self.conn.trailing_data[0]:
            data = data.removeprefix(b"\r\n")  # some end a body with it
            if not data:
                return
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._disarm()

    def _displace(self) -> bool:
        """End the connection that asks nothing for the longest time; False if all ask something."""
        silent = [
            (since_s, one)
            for one in self.connections
            if isinstance(one, BoundedProtocol) and (since_s := one.silent_since_s) is not None
        ]
        if not silent:
            return False
        _, longest = min(silent, key=lambda pair: pair[0])
        self.connections.discard(longest)  # it hears of its end a moment later
        longest.transport.abort()
        return True

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
