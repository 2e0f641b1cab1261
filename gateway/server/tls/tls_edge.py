"""A TLS connection at the edge: as a plain socket, with OpenSSL between it and the bytes.

OpenSSL works on memory and never on the socket: one read of the socket brings many records, and no
call of OpenSSL waits for the system. What is sent is sealed only when the socket has taken all that
was sealed before, so that a slow reader costs no more than a plain one.
"""

import asyncio
import contextlib
import os
import socket
import ssl
import time
from collections.abc import Callable
from typing import Final, cast

from gateway.network.transport import TlsDetails
from gateway.server.connections.edge import Owner, PlainEdge
from gateway.server.front import Region

_READ_BYTES: Final = 64 * 1024
_READ_BYTES_MIN: Final = 16 * 1024
_RECORD_BYTES: Final = 16 * 1024
_SEALED_BYTES: Final = 4 * _RECORD_BYTES

_raw: Final = memoryview(bytearray(_READ_BYTES))
_plain: Final = memoryview(bytearray(_SEALED_BYTES))
"""Buffer that all connections are read to, and sealed from, in turn: nothing stays there."""


class Sealing:
    """OpenSSL's half of a connection: its input and its output, in memory."""

    __slots__ = ("incoming", "outgoing", "tls")

    def __init__(self, context: ssl.SSLContext) -> None:
        self.incoming = ssl.MemoryBIO()
        self.outgoing = ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_side=True)


class TlsEdge(PlainEdge):
    """A connected socket on which the handshake is done."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        connected: socket.socket,
        closed: Callable[[PlainEdge], object] | None,
        sealing: Sealing,
        sealed: memoryview,
    ) -> None:
        """Take a socket over.

        Args:
            loop: The event loop.
            connected: The socket.
            closed: Told when its descriptor is free, after the farewell.
            sealing: What shook hands over it.
            sealed: What is still to be sent of that.
        """
        super().__init__(loop, connected, closed)
        self._tls = sealing.tls
        self._incoming = sealing.incoming
        self._outgoing = sealing.outgoing
        self._sealed = sealed
        self._is_taking = False
        self._is_ended = False
        self._is_end_sealed = False
        self.received_bytes = sealing.incoming.pending  # what came with the end of the handshake

    def peer_certificate(self) -> bytes | None:
        """Return the certificate that the client showed, DER."""
        return self._tls.getpeercert(binary_form=True)

    def certificate_has_run_out(self) -> bool:
        """Return whether the client's certificate is too old: that of a session taken up again."""
        if not self._tls.session_reused:
            return False  # it has just been looked at
        found = self._tls.getpeercert() or {}
        end = str(found.get("notAfter", ""))
        return not end or ssl.cert_time_to_seconds(end) < time.time()

    def tls_details(self) -> TlsDetails:
        cipher = self._tls.cipher()
        name = "" if cipher is None else cipher[0]
        return TlsDetails(self._tls.version() or "", name, self.peer_certificate())

    @property
    def is_drained(self) -> bool:
        """True if everything queued is with the operating system."""
        return not self.queue and not self._sealed

    def queued_bytes(self) -> int:
        return super().queued_bytes() + len(self._sealed)

    # Reading

    def resume_reading(self) -> None:
        """Read again; first the bytes that have been read from the socket already."""
        super().resume_reading()
        if self.is_reading and not self._is_taking and self._has_kept():
            self.loop.call_soon(self._take)

    def _has_kept(self) -> bool:
        return self._incoming.pending > 0 or self._tls.pending() > 0 or self._is_ended

    def readable(self) -> None:
        if self.owner is None:
            return
        room = max(_READ_BYTES_MIN, len(self.owner.place()))
        try:
            size = self.connected.recv_into(_raw, min(room, _READ_BYTES))
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self.abort()
            return
        if size == 0:
            self.abort()
            return
        self.received_bytes += size
        self._incoming.write(_raw[:size])
        self._take()

    def _take(self) -> None:
        """Hand over the bytes that have come, as long as the owner reads."""
        self._is_taking = True
        try:
            while self.is_reading and self.owner is not None and self._has_kept():
                if self._is_ended:
                    self.abort()
                    return
                size = self._open_into(self.owner.place())
                if size:
                    self.owner.received(size)
        finally:
            self._is_taking = False
        if self._outgoing.pending and not self.is_closed:
            self.flush()

    def _open_into(self, place: memoryview) -> int:
        """Open whole records into `place`, as many as there are and fit; return how many bytes."""
        room = len(place)
        size = 0
        try:
            while size < room:
                count = cast(int, self._tls.read(room - size, place[size:]))
                size += count
                if not count:
                    self._is_ended = True  # the peer says that it sends nothing more
                    break
                if not self._incoming.pending:
                    break
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError:
            self._is_ended = True
        return size

    # Writing

    def send_queued(self) -> None:
        while self._sealed or self.queue or self._outgoing.pending or self._seal_end():
            if not self._sealed:
                self._seal()
            sent = self.connected.send(self._sealed)
            self.sent_bytes += sent
            self._sealed = self._sealed[sent:]

    def _seal(self) -> None:
        """Make records of the first frames in the queue."""
        size = 0
        while self.queue and size < _SEALED_BYTES:
            size += self._take_first(_plain[size:])
        position = 0
        while position < size:
            position += self._tls.write(_plain[position : min(position + _RECORD_BYTES, size)])
        self._sealed = memoryview(self._outgoing.read())

    def _take_first(self, place: memoryview) -> int:
        """Copy of the first in the queue what fits; return how many bytes."""
        first = self.queue[0]
        if not isinstance(first, bytes | memoryview):
            return self._take_region(first, place)
        size = min(len(first), len(place))
        if size == len(first):
            place[:size] = first
            self.queue.pop(0)
        else:
            view = memoryview(first)
            place[:size] = view[:size]
            self.queue[0] = view[size:]
        return size

    def _take_region(self, region: Region, place: memoryview) -> int:
        left = region.size - self.region_sent
        size = os.preadv(region.fileno, [place[:left]], region.position + self.region_sent)
        if size == 0:
            raise OSError("the file ends before the region")
        self.region_sent += size
        if size == left:
            self.region_sent = 0
            self.queue.pop(0)
            region.release()
        return size

    # Closing

    def _seal_end(self) -> bool:
        """Say that nothing more comes, once all is sent; True if that is to be sent now."""
        if not self.closes_when_sent or self._is_end_sealed:
            return False
        self._is_end_sealed = True
        with contextlib.suppress(ssl.SSLError):
            self._tls.unwrap()  # does not wait for the answer
        return self._outgoing.pending > 0

    def abort(self) -> None:
        """Close now; queued frames are dropped."""
        self._sealed = memoryview(b"")
        super().abort()

    def start(self, owner: Owner) -> None:
        """Begin reading for `owner`; first the bytes that came behind the handshake."""
        super().start(owner)
        if self._sealed:
            self.flush()
