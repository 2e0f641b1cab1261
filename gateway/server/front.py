# cython: language_level=3, annotation_typing=False, nonecheck=True
"""The seam between the server and a protocol: the interfaces that each gives the other.

A front is one protocol. The server owns sockets and time, a front owns meaning. Each port has a
`FrontKind`; each client that comes in there is met by a `Front`, which gets the `Ports` of its
connection. The server calls a front once for a run of frames and once for a source's turn, never
once for a message. All calls are on the event loop's thread, and none waits.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from gateway.network.transport import Transport
from gateway.pending import Pending

# What a front hands to the server.


class Region(Protocol):
    """A run of bytes in an open file, for `os.sendfile`."""

    @property
    def fileno(self) -> int:
        """Descriptor of the file; open until `release`."""
        ...

    @property
    def position(self) -> int:
        """Place of the first byte in the file."""
        ...

    @property
    def size(self) -> int:
        """Number of bytes."""
        ...

    @property
    def release(self) -> Callable[[], None]:
        """Call it once, when the bytes are sent or will not be."""
        ...


class WriteBacklog(Protocol):
    """Bytes of clients on their way to a store."""

    def __hash__(self) -> int: ...

    @property
    def in_flight_bytes(self) -> int:
        """Bytes that are in it now."""
        ...

    def when_drained(self, callback: Callable[[], object]) -> None:
        """Call `callback` once there are few of them."""
        ...


class SendPiece:
    """Something to send: bytes, then perhaps a region of a file."""

    __slots__ = ("head", "region")

    def __init__(self, head: bytes, region: Region | None = None) -> None:
        self.head = head
        self.region = region


class DeliverySource:
    """Something of a connection that is delivered from, in turn with its others.

    Attributes:
        is_queued: Whether the server will ask it; the server's own note.
        is_sifting: True if `next` gave nothing but wants to go on looking, after others had their
            turn.
    """

    def __init__(self) -> None:
        self.is_queued = False
        self.is_sifting = False

    def next(self, scratch: bytearray) -> SendPiece | None:
        """Return the next piece to send, None if there is nothing now.

        Args:
            scratch: Room that all connections use in turn; its content does not matter.
        """
        raise NotImplementedError

    def wants_more(self) -> bool:
        """Return whether the client takes more, after `next` gave something."""
        raise NotImplementedError


# What the server gives to a front.


class Ports(Protocol):
    """A connection, as its front sees it. Once it is over, every call does nothing."""

    @property
    def peer(self) -> str:
        """Address of the client, as `127.0.0.1:50000`."""
        ...

    @property
    def local(self) -> str:
        """Address that the client connected to."""
        ...

    @property
    def peer_is_loopback(self) -> bool:
        """True if the client is on this machine."""
        ...

    @property
    def certificate_user(self) -> str | None:
        """User that the client's certificate names, empty if none; None where none is asked for."""
        ...

    @property
    def takes_regions(self) -> bool:
        """True if a region of a file is sent without a copy."""
        ...

    @property
    def transport(self) -> Transport:
        """Facts of the socket that administrators see."""
        ...

    # Out

    def send(self, frame: bytes) -> None:
        """Queue a whole frame; it is sent at the end of the turn."""
        ...

    def wake(self, source: DeliverySource) -> None:
        """Ask a source for its next piece, at the end of the turn."""
        ...

    # In

    def begin_command(self) -> None:
        """Take no more frames until `end_command`; count one for this turn of the connection."""
        ...

    def end_command(self) -> None:
        """Take frames again."""
        ...

    def count_command(self) -> None:
        """Count a command that is done already for this turn of the connection."""
        ...

    def taken(self, count: int, backlog: WriteBacklog | None) -> None:
        """Note the messages of a run of frames.

        Args:
            count: Messages that wait for their confirm from now on.
            backlog: What they went into; None if nothing took them, which counts as a command.
        """
        ...

    def settled(self, count: int) -> None:
        """Note that a number of messages do not wait for their confirm any more."""
        ...

    def hold(self) -> None:
        """Read nothing more from the client until `release`: there is no room for more."""
        ...

    def release(self) -> None:
        """Read again."""
        ...

    # Time

    def wait(self, delay_ms: int) -> Pending[None]:
        """Return a Pending, settled after a delay; as Abandoned when the connection ends before."""
        ...

    def later(self, delay_ms: int, action: Callable[[], object]) -> Callable[[], object]:
        """Do something after a delay; calling the returned function prevents it."""
        ...

    def limit(self, delay_ms: int, step: str) -> None:
        """End the connection after a delay, unless another limit is set before.

        Args:
            delay_ms: How long the client may take for its next step.
            step: The last step that it took, for the log.
        """
        ...

    def beat(self, interval_s: int, send: Callable[[], object]) -> None:
        """Begin the heartbeats that were agreed on, in place of those before.

        Args:
            interval_s: What goes out, or comes in, at least so often; 0 for no heartbeats.
            send: Sends one.
        """
        ...

    def begun(self) -> None:
        """Note that a call, or a request of several frames, has begun; it has to end in time."""
        ...

    # Standing

    def logged_in(self) -> None:
        """Note that the client has logged in: it keeps its socket when others want one."""
        ...

    def admitted(self) -> None:
        """Note that the login is complete: no time limit any more, and reads of full size."""
        ...

    # The end

    def finish(self) -> None:
        """Take nothing more; end the connection when all is sent."""
        ...

    def stop(self, within_s: float) -> None:
        """End the connection after a farewell; cut off a client that reads too slowly."""
        ...

    def abort(self) -> None:
        """End the connection now; queued frames are dropped."""
        ...


class Front(Protocol):
    """A protocol, as one connection sees it: no I/O, no clock."""

    def start(self) -> None:
        """Begin: set the first time limit, and greet if the protocol wants the server to."""
        ...

    def take(self, buffer: bytearray, position: int, end: int) -> int:
        """Take one whole frame, or several, from the front of [position, end).

        What the client broke is the front's to answer: by `Ports.send`, `finish` or `abort`.

        Returns:
            Where to go on; `position` if the first frame is not complete.
        """
        ...

    def frame_bytes(self, buffer: bytearray, position: int, end: int) -> int:
        """Return the size of the unfinished frame at `position`, with its head.

        Asked after `take` left it. 0 while it is not known, or where it is of no interest; what is
        kept of such a frame has to fit into the receive buffer, so `take` bounds it.
        """
        ...

    def unfinished(self) -> int:
        """Return a number of the oldest thing of several frames that is begun; 0 if nothing is.

        It changes when that thing ends. One that lasts too long ends the connection.
        """
        ...

    def held_bytes(self) -> int:
        """Return the number of bytes held that the client sent before its login."""
        ...

    def farewell(self) -> None:
        """Notify the client that the server ends the connection, if the protocol has words."""
        ...

    def lost(self) -> None:
        """Remove everything that the connection owned: it is over."""
        ...


class Over:
    """The front of a connection that is over: nothing comes in, and nothing goes out."""

    def start(self) -> None:
        """Do nothing."""

    def take(self, buffer: bytearray, position: int, end: int) -> int:
        """Pass everything over."""
        del buffer, position
        return end

    def frame_bytes(self, buffer: bytearray, position: int, end: int) -> int:
        """Return 0."""
        del buffer, position, end
        return 0

    def unfinished(self) -> int:
        """Return 0."""
        return 0

    def held_bytes(self) -> int:
        """Return 0."""
        return 0

    def farewell(self) -> None:
        """Do nothing."""

    def lost(self) -> None:
        """Do nothing."""


OVER: Final[Front] = Over()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """Bounds of each connection of a front.

    Attributes:
        close_timeout_ms: How long a client may take to read what is queued at the end.
        unconfirmed_max: Number of unconfirmed messages from which on the client is not read.
        unconfirmed_resume: With no more than this it is read again.
        backlog_pause_bytes: With more queued for the client it is not read.
        backlog_bytes_max: With more it is cut off.
    """

    close_timeout_ms: int
    unconfirmed_max: int
    unconfirmed_resume: int
    backlog_pause_bytes: int
    backlog_bytes_max: int


class FrontKind(Protocol):
    """A protocol, as a port sees it."""

    @property
    def name(self) -> str:
        """Word for it that administrators see, as `stream`; over TLS the server adds `/ssl`."""
        ...

    @property
    def limits(self) -> ConnectionLimits: ...

    def meet(self, ports: Ports) -> Front:
        """Return the front of a client that has just come."""
        ...
