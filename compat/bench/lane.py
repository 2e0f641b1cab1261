"""A publisher and a consumer of one stream, for works that send each message at its time.

Nothing here waits: `send` sends what is due, `take` takes what has come. Times and counts are kept
as they pass, and become latencies afterwards, so that the generator does little for a message.
"""

import socket
import struct
import time
from array import array
from collections.abc import Callable, Sequence
from typing import Final

from compat.bench.confirms import CONFIRM_HEAD, ID_BYTES, unexpected
from compat.bench.connection import OFFSET_NEXT, Connection
from compat.bench.deliveries import FRAME_HEAD, DeliveryReader
from compat.bench.errors import CheckFailed
from compat.bench.frames import (
    DELIVER,
    HEARTBEAT,
    PUBLISH_CONFIRM,
    PUBLISH_HEAD,
    body_of,
    publish_frame,
)

CREDIT: Final = 20_000
# Frames that are stamped and sent together when they are late: some 64 KiB of small messages.
TOGETHER_MAX: Final = 500
ONE_ID: Final = struct.Struct(">Q")


class Marks:
    """Times at which counts were reached, in the order of time."""

    def __init__(self) -> None:
        self._times = array("q")
        self._counts = array("q")
        self.count = 0

    def note(self, time_ns: int, count: int) -> None:
        """Keep that so many were reached by then, if they are more than before."""
        if count > self.count:
            self.count = count
            self._times.append(time_ns)
            self._counts.append(count)

    def latencies_ns(self, from_ns: Sequence[int]) -> "array[int]":
        """Return, for each that was reached, the time from its own time in `from_ns`."""
        found = array("q")
        begin = 0
        for time_ns, count in zip(self._times, self._counts, strict=True):
            found.extend(time_ns - began for began in from_ns[begin:count])
            begin = count
        return found


class Outbox:
    """Sends on a socket that does not block, whole frames after whole frames."""

    def __init__(self, target: socket.socket) -> None:
        """Take the socket, which becomes non-blocking."""
        target.settimeout(0.0)
        self._socket = target
        self._rest = b""

    @property
    def is_full(self) -> bool:
        """Return whether something waits for room in the kernel."""
        return bool(self._rest)

    def send(self, data: bytes | memoryview) -> None:
        """Send bytes, behind what still waits."""
        if self._rest:
            self._rest += data
            return
        try:
            sent = self._socket.send(data)
        except BlockingIOError:
            sent = 0
        if sent < len(data):
            self._rest = bytes(data[sent:])

    def flush(self) -> None:
        """Send what waits, as far as there is room."""
        waiting, self._rest = self._rest, b""
        if waiting:
            self.send(waiting)


class Inbox(DeliveryReader):
    """Reads chunks and confirms from one socket, whichever of them come there.

    Attributes:
        confirmed: Publishing ids of the confirms, in the order of their arrival.
    """

    def __init__(
        self, source: socket.socket, *, body_bytes: int, send: Callable[[bytes], object]
    ) -> None:
        """Prepare for the only subscription and publisher of a connection, if it has them."""
        super().__init__(source, body_bytes=body_bytes, credit=CREDIT, sample_every=1, send=send)
        self.confirmed = array("Q")

    def step(self) -> None:
        """Receive what is there, which may turn out to be nothing."""
        try:
            super().step()
        except BlockingIOError:
            return

    def _pass_other_frame(self, position: int, filled: int) -> int:
        if filled - position < FRAME_HEAD.size:
            return 0
        size, key, _version = FRAME_HEAD.unpack_from(self._data, position)
        if key in {DELIVER, HEARTBEAT}:
            return super()._pass_other_frame(position, filled)
        if key != PUBLISH_CONFIRM:
            raise unexpected(key)
        frame_bytes: int = 4 + size
        if filled - position < frame_bytes:
            return 0
        *_, count = CONFIRM_HEAD.unpack_from(self._data, position)
        if size != CONFIRM_HEAD.size - 4 + count * ID_BYTES:
            raise CheckFailed(f"a confirm of {count} ids has size {size}")
        ids = struct.unpack_from(f">{count}Q", self._data, position + CONFIRM_HEAD.size)
        self.confirmed.extend(ids)
        return frame_bytes


class Lane:
    """One stream with a publisher and a consumer.

    Attributes:
        sent: Messages sent so far; the next one has this publishing id.
        sendings: Times of messages sent.
        confirms: Times of confirms, in the order of `confirmed`.
        deliveries: Times of deliveries.
    """

    def __init__(
        self, publisher: Connection, subscriber: Connection, *, stream: str, body_bytes: int
    ) -> None:
        """Make the stream, and begin to consume it.

        Args:
            publisher: An open connection for nothing else; it becomes non-blocking.
            subscriber: Another one, or the same.
            stream: Name of the stream; one that is left from a run that failed is replaced.
            body_bytes: Size of every message's body.
        """
        publisher.delete_if_there(stream)
        publisher.create(stream)
        publisher.declare_publisher(0, stream)
        subscriber.subscribe(0, stream, offset_type=OFFSET_NEXT)
        links = [publisher] if publisher is subscriber else [publisher, subscriber]
        self._outboxes = [Outbox(link.socket) for link in links]
        inboxes = [
            Inbox(link.socket, body_bytes=body_bytes, send=outbox.send)
            for link, outbox in zip(links, self._outboxes, strict=True)
        ]
        self.descriptors = [link.socket.fileno() for link in links]
        self._confirming, self._delivering = inboxes[0], inboxes[-1]
        self._inboxes = dict(zip(self.descriptors, inboxes, strict=True))
        frame = publish_frame(publisher_id=0, publishing_ids=[0], body=body_of(body_bytes))
        self._frame_bytes = len(frame)
        self._frames = bytearray(frame * TOGETHER_MAX)
        self._view = memoryview(self._frames)
        self.sent = 0
        self.sendings, self.confirms, self.deliveries = Marks(), Marks(), Marks()
        self._delivering.grant()

    @property
    def waiting(self) -> list[int]:
        """Return the sockets on which something waits for room."""
        pairs = zip(self.descriptors, self._outboxes, strict=True)
        return [descriptor for descriptor, outbox in pairs if outbox.is_full]

    @property
    def confirmed(self) -> "array[int]":
        """Return the ids confirmed so far, in the order of their confirms."""
        return self._confirming.confirmed

    @property
    def chunks(self) -> int:
        """Return how many chunks were delivered."""
        return self._delivering.chunks

    def send(self, due: int) -> None:
        """Send the messages before number `due`, a frame for each, those that are late at once."""
        for outbox in self._outboxes:
            outbox.flush()
        outgoing = self._outboxes[0]
        while self.sent < due and not outgoing.is_full:
            count = min(due - self.sent, TOGETHER_MAX)
            place = PUBLISH_HEAD.size
            for number in range(self.sent, self.sent + count):
                ONE_ID.pack_into(self._frames, place, number)
                place += self._frame_bytes
            outgoing.send(self._view[: count * self._frame_bytes])
            self.sent += count
            self.sendings.note(time.perf_counter_ns(), self.sent)

    def take(self, descriptor: int) -> None:
        """Receive what has come to one of the sockets.

        Raises:
            CheckFailed: A chunk is not the one that must come next.
            BenchError: The server hung up, or sent something else than chunks and confirms.
        """
        inbox = self._inboxes[descriptor]
        inbox.step()
        now = time.perf_counter_ns()
        if inbox is self._confirming:
            self.confirms.note(now, len(inbox.confirmed))
        # A chunk is there when its last byte is.
        if inbox is self._delivering and inbox.has(inbox.records):
            self.deliveries.note(now, inbox.records)

    def has(self, count: int) -> bool:
        """Return whether so many messages are confirmed and delivered."""
        return self.confirms.count >= count and self.deliveries.count >= count

    def check(self) -> None:
        """Require each confirm once. Raises CheckFailed."""
        if sorted(self.confirmed) != list(range(self.sent)):
            once = set(self.confirmed)
            raise CheckFailed(
                f"{len(self.confirmed)} ids confirmed of {self.sent} sent: "
                f"{len(set(range(self.sent)) - once)} missing, "
                f"{len(self.confirmed) - len(once)} more than once"
            )
        if self.deliveries.count != self.sent:
            raise CheckFailed(f"{self.deliveries.count} records came of {self.sent} sent")
