# cython: language_level=3, annotation_typing=False, nonecheck=True
"""A plain TCP socket at the edge of one connection: bytes in through a shared buffer, frames out.

Reading goes into one buffer for all connections (reads are one at a time), so that an idle
connection costs almost nothing and a busy one reads a megabyte at once. What is sent goes straight
to the socket as far as it takes it; a chunk in a file goes by sendfile, without a copy.
"""

import asyncio
import contextlib
import fcntl
import os
import socket
import struct
import termios
from collections.abc import Callable
from typing import Final

from gateway.network.transport import TlsDetails, Transport
from gateway.server.front import Region
from gateway.server.kernel.sending import receive_into, send_bytes

_SENDFILE_BYTES: Final = 1024 * 1024
_GATHERED_FRAMES: Final = 64
_SMALL_SEND_BYTES: Final = 64 * 1024
_LINGER_S: Final = 2.0
_DISCARDED_BYTES: Final = 64 * 1024
_OF_INT: Final = struct.Struct("@i")
_MSG_MORE: Final = getattr(socket, "MSG_MORE", 0)


class Owner:
    """The owner of an edge: is told of the socket's events."""

    def place(self) -> memoryview:
        """Return where the next bytes are to be read to."""
        raise NotImplementedError

    def received(self, size: int) -> None:
        """Handle the bytes that were read to `place()`."""
        raise NotImplementedError

    def writable(self) -> None:
        """Go on: everything queued has been sent."""
        raise NotImplementedError

    def lost(self) -> None:
        """Learn that the peer is gone, or that the socket was closed. Called once."""
        raise NotImplementedError


class PlainEdge:
    """A connected socket: its owner gets what comes in, the peer what was queued.

    An edge of another kind than plain TCP overrides `readable`, `send_queued`, `queued_bytes` and
    `tls_details`.

    Attributes:
        loop: The event loop.
        connected: The socket.
        queue: What was written and is still to be sent, in order.
        region_sent: How much of the first in the queue was sent, if that is a region.
        owner: Told what happens; None before the start and after the end.
        is_reading: It looks for what comes in.
        is_closed: The socket is closed.
        closes_when_sent: FIN follows what is queued.
        received_bytes: Bytes that came in.
        sent_bytes: Bytes that went out.
    """

    takes_regions = True

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        connected: socket.socket,
        closed: Callable[["PlainEdge"], object] | None = None,
    ) -> None:
        """Take a socket over; `closed` is told when its descriptor is free, after the farewell."""
        connected.setblocking(False)  # noqa: FBT003  # the standard library's signature
        with contextlib.suppress(OSError):
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.loop = loop
        self.connected = connected
        self._closed = closed
        self._fileno = connected.fileno()
        self.queue: list[bytes | memoryview | Region] = []
        self.region_sent = 0
        self.owner: Owner | None = None
        self.is_reading = False
        self._is_writing = False
        self.is_closed = False
        self.closes_when_sent = False
        self._lingering: asyncio.TimerHandle | None = None
        self._stuck_at = -1
        self.received_bytes = 0
        self.sent_bytes = 0

    def start(self, owner: Owner) -> None:
        """Begin reading for `owner`."""
        self.owner = owner
        self.resume_reading()

    @property
    def is_drained(self) -> bool:
        """True if everything queued is with the operating system."""
        return not self.queue

    @property
    def local(self) -> str:
        """Address that the peer connected to; empty once the socket is closed."""
        try:
            host, port = self.connected.getsockname()[:2]
        except OSError:
            return ""
        return f"{host}:{port}"

    def transport(self) -> Transport:
        """Return what administrators are told of the socket."""
        return Transport(self.received_bytes, self.sent_bytes, self.tls_details())

    def tls_details(self) -> TlsDetails | None:
        """Return what administrators are told of TLS; None without it."""
        return None

    # Reading

    def pause_reading(self) -> None:
        """Leave what comes in the operating system's buffer."""
        if self.is_reading:
            self.is_reading = False
            self.loop.remove_reader(self._fileno)

    def resume_reading(self) -> None:
        """Read again."""
        if not self.is_reading and not self.is_closed and not self.closes_when_sent:
            self.is_reading = True
            self.loop.add_reader(self._fileno, self.readable)

    def readable(self) -> None:
        """Read what the socket has, and hand it to the owner."""
        if self.owner is None:
            return
        try:
            size = receive_into(self._fileno, self.owner.place())
        except OSError:
            size = 0
        if size > 0:
            self.received_bytes += size
            self.owner.received(size)
        elif size == 0:
            self.abort()

    # Writing

    def write(self, frame: bytes | memoryview) -> None:
        """Queue bytes; `flush` sends them."""
        if not self.is_closed:
            self.queue.append(frame)

    def write_region(self, region: Region) -> None:
        """Queue a region of a file; it is released when it has been sent or dropped."""
        if self.is_closed:
            region.release()
        else:
            self.queue.append(region)

    def flush(self) -> bool:
        """Send as much as the socket takes; True if that was all."""
        if self._is_writing or self.is_closed:
            return False
        return self._send()

    def _send(self) -> bool:
        try:
            self.send_queued()
        except (BlockingIOError, InterruptedError):
            if not self._is_writing:
                self._is_writing = True
                self.loop.add_writer(self._fileno, self._write_on)
            return False
        except OSError:
            self.abort()
            return False
        if self._is_writing:
            self._is_writing = False
            self.loop.remove_writer(self._fileno)
        if self.closes_when_sent:
            self._finish()
        return True

    def send_queued(self) -> None:
        """Send everything queued. Raises BlockingIOError: the socket takes no more now."""
        while self.queue:
            self._send_first()

    def _send_first(self) -> None:
        first = self.queue[0]
        if type(first) is bytes and len(self.queue) == 1:
            self._send_last(first)
        elif isinstance(first, bytes | memoryview):
            self._send_bytes()
        else:
            self._send_region(first)

    def _write_on(self) -> None:
        if self._send() and self.owner is not None and not self.is_closed:
            self.owner.writable()

    def _send_last(self, frame: bytes) -> None:
        """Send the only frame: the common case."""
        size = len(frame)
        if size > _SMALL_SEND_BYTES:
            sent = self.connected.send(frame)  # others run meanwhile
        else:
            sent = send_bytes(self._fileno, frame)
            if sent < 0:
                raise BlockingIOError
        self.sent_bytes += sent
        if sent == size:
            self.queue.pop()
        else:
            self.queue[0] = memoryview(frame)[sent:]

    def _send_bytes(self) -> None:
        """Send the frames in front, as many as fit in one call; more to come is announced."""
        frames: list[bytes | memoryview] = []
        for item in self.queue:
            if len(frames) == _GATHERED_FRAMES or not isinstance(item, bytes | memoryview):
                break
            frames.append(item)
        flags = _MSG_MORE if len(frames) < len(self.queue) else 0
        if len(frames) == 1:
            sent = self.connected.send(frames[0], flags)
        else:
            sent = self.connected.sendmsg(frames, (), flags)
        self.sent_bytes += sent
        whole = 0
        for frame in frames:
            if sent < len(frame):
                self.queue[whole] = memoryview(frame)[sent:]
                break
            sent -= len(frame)
            whole += 1
        del self.queue[:whole]

    def _send_region(self, region: Region) -> None:
        left = region.size - self.region_sent
        sent = os.sendfile(
            self._fileno,
            region.fileno,
            region.position + self.region_sent,
            min(left, _SENDFILE_BYTES),
        )
        if sent == 0:
            raise OSError("the file ends before the region")
        self.sent_bytes += sent
        self.region_sent += sent
        if sent == left:
            self.region_sent = 0
            self.queue.pop(0)
            region.release()

    def left_bytes(self) -> int:
        """Return how many bytes the peer has not taken: they are queued here, or in the system."""
        waiting = bytes(_OF_INT.size)
        with contextlib.suppress(OSError):  # not every system tells it
            waiting = fcntl.ioctl(self._fileno, termios.TIOCOUTQ, waiting)
        return self.queued_bytes() + int(_OF_INT.unpack(waiting)[0])

    def queued_bytes(self) -> int:
        """Return how many bytes the socket has not taken."""
        size = -self.region_sent
        for each in self.queue:
            size += len(each) if isinstance(each, bytes | memoryview) else each.size
        return size

    def is_stuck_on_deleted(self) -> bool:
        """Return whether it sends from a deleted file, and nothing went out since the last call."""
        if not self.queue or not any(map(_is_of_deleted, self.queue)):
            self._stuck_at = -1
            return False
        is_stuck = self._stuck_at == self.sent_bytes
        self._stuck_at = self.sent_bytes
        return is_stuck

    # Closing

    def close_when_sent(self) -> None:
        """Send what is queued, then FIN; what still comes in is not handled."""
        if self.closes_when_sent or self.is_closed:
            return
        self.pause_reading()
        self.closes_when_sent = True
        if self.is_drained:
            self._send()

    def _finish(self) -> None:
        """Send FIN, then take in bytes for a moment: unread ones would make it RST."""
        try:
            self.connected.shutdown(socket.SHUT_WR)
        except OSError:
            self.abort()
            return
        owner, self.owner = self.owner, None
        if owner is not None:
            owner.lost()
        self.loop.add_reader(self._fileno, self._discard)
        self.is_reading = True
        self._lingering = self.loop.call_later(_LINGER_S, self.abort)

    def _discard(self) -> None:
        try:
            is_over = not self.connected.recv(_DISCARDED_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            is_over = True
        if is_over:
            self.abort()

    def abort(self) -> None:
        """Close now; what is queued is dropped."""
        if self.is_closed:
            return
        self.is_closed = True
        if self._lingering is not None:
            self._lingering.cancel()
        self.pause_reading()
        if self._is_writing:
            self._is_writing = False
            self.loop.remove_writer(self._fileno)
        for item in self.queue:
            if not isinstance(item, bytes | memoryview):
                item.release()
        self.queue.clear()
        self.connected.close()
        if self._closed is not None:
            self._closed(self)
        owner, self.owner = self.owner, None
        if owner is not None:
            owner.lost()


def _is_of_deleted(item: bytes | memoryview | Region) -> bool:
    """Return whether an item is a region of a deleted file, which takes space until its release."""
    return not isinstance(item, bytes | memoryview) and os.fstat(item.fileno).st_nlink == 0
