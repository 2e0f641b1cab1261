"""A client that sets up TLS: everything up to where its protocol begins.

The handshakes' arithmetic takes a millisecond each and is done on threads, at a lower priority than
the event loop's: a flood of handshakes holds up handshakes. A slow client is cut off.
"""

import asyncio
import os
import socket
import ssl
import threading
from collections.abc import Callable
from typing import Final

from gateway.network.first_bytes import LOOK_BYTES, Match, Protocol
from gateway.pending import Pending
from gateway.server.connections.edge import PlainEdge
from gateway.server.connections.first_look import Look
from gateway.server.loop.threads import Threads
from gateway.server.tls.tls_edge import Sealing, TlsEdge

_READ_BYTES: Final = 16 * 1024
_NICENESS: Final = 5


class Greeting:
    """A socket on which the handshake is under way."""

    def __init__(  # noqa: PLR0913  # what a handshake needs, and callbacks
        self,
        loop: asyncio.AbstractEventLoop,
        connected: socket.socket,
        context: ssl.SSLContext,
        threads: Threads,
        *,
        done: Callable[["Greeting", TlsEdge], object],
        failed: Callable[["Greeting", str, PlainEdge | None], object],
        closed: Callable[["Greeting | PlainEdge"], object],
        look: Look,
        peer: str,
    ) -> None:
        """Take a socket over.

        Args:
            loop: The event loop.
            connected: The socket.
            context: The server's certificate, and whose certificates it believes.
            threads: Where the arithmetic is done.
            done: Told when the client may speak, and gets the edge that it speaks over.
            failed: Told when it never will, and why, empty if that is logged; gets what says
                farewell on the socket, None where that is closed.
            closed: Told when the descriptor is free, of this object or of the edge.
            look: Knows clients that do not speak TLS at all.
            peer: The client's address and port.
        """
        connected.setblocking(False)  # noqa: FBT003  # the standard library's signature
        self._loop = loop
        self._socket = connected
        self._sealing = Sealing(context)
        self._threads = threads
        self._done = done
        self._failed = failed
        self._closed = closed
        self._look: Look | None = look
        self._peer = peer
        self._first = b""
        self._sealed = memoryview(b"")
        self._is_over = False
        self._reader = False
        self._timer: asyncio.TimerHandle | None = None

    def start(self, within_s: float) -> None:
        """Begin, and end it if it takes longer."""
        self._timer = self._loop.call_later(within_s, self.end, "it took too long")
        self._read_on()

    def _read_on(self) -> None:
        self._reader = True
        self._loop.add_reader(self._socket.fileno(), self._readable)

    def _stop_reading(self) -> None:
        if self._reader:
            self._reader = False
            self._loop.remove_reader(self._socket.fileno())

    def _readable(self) -> None:
        try:
            data = self._socket.recv(_READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self.end(str(error))
            return
        if not data:
            self.end("the client went away")
            return
        if self._look is not None:
            self._first += data
            data = self._judged(self._look, self._first)
            if not data:
                return
        self._sealing.incoming.write(data)
        self._stop_reading()
        step = self._threads.run(self._step)
        step.when_settled(lambda: self._stepped(step))

    def _judged(self, look: Look, first: bytes) -> bytes:
        """Return the first bytes if they may be of TLS; empty if they are not, or too few."""
        found = look.foreign(first[:LOOK_BYTES])
        if isinstance(found, Protocol):
            self._stop_reading()
            self._refuse("", look.tell(found, self._peer))
        elif found is Match.NO:
            self._look = None
            return first
        return b""

    def _step(self) -> bool:
        """Go on with the handshake, on a thread; True if it is done."""
        if self._is_over:
            return False
        try:
            self._sealing.tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        return True

    def _stepped(self, step: Pending[bool]) -> None:
        if self._is_over:
            return
        try:
            is_done = step.result()
        except ssl.SSLError as error:
            self._refuse(reason_of(error), bytes(self._sealed) + self._sealing.outgoing.read())
            return
        except OSError as error:
            self.end(str(error))
            return
        self._sealed = memoryview(bytes(self._sealed) + self._sealing.outgoing.read())
        if not self._send():
            return
        if is_done:
            self._finish()
        else:
            self._read_on()

    def _send(self) -> bool:
        """Send all there is; False if the client is gone."""
        try:
            if self._sealed:
                self._sealed = self._sealed[self._socket.send(self._sealed) :]
        except (BlockingIOError, InterruptedError):
            return True  # goes with the next: some kilobytes always fit, but for an attacker
        except OSError as error:
            self.end(str(error))
            return False
        return True

    def _finish(self) -> None:
        self._is_over = True
        assert self._timer is not None
        self._timer.cancel()
        edge = TlsEdge(self._loop, self._socket, self._closed, self._sealing, self._sealed)
        self._done(self, edge)

    def _refuse(self, reason: str, answer: bytes) -> None:
        """Send the reason to the client, as an alert of TLS, then the end."""
        self._is_over = True
        assert self._timer is not None
        self._timer.cancel()
        farewell = PlainEdge(self._loop, self._socket, self._closed)
        self._failed(self, reason, farewell)
        if answer:
            farewell.write(answer)
            farewell.flush()
        farewell.close_when_sent()

    def end(self, reason: str) -> None:
        """End it without a word."""
        if self._is_over:
            return
        self._is_over = True
        if self._timer is not None:
            self._timer.cancel()
        self._stop_reading()
        self._socket.close()
        self._closed(self)
        self._failed(self, reason, None)

    def abort(self) -> None:
        """End it for another client."""
        self.end("it gave way to another client")


def reason_of(error: ssl.SSLError) -> str:
    """Say in words why a handshake failed."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate is not believed: {error.verify_message}"
    return (error.reason or str(error)).lower().replace("_", " ")


def lower_priority() -> None:
    """Let the event loop go first where both want the processor; for the threads to begin with."""
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
