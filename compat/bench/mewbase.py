"""Works on mewbase's protocol: events published, events delivered, and delivery beside others.

Frames are built before the clock runs, and answers are looked at after it: the generator is to cost
little beside the server.
"""

import select
import socket
import struct
import time
from array import array
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Final

import bson
from bson.raw_bson import RawBSONDocument

from compat.bench.connection import Address
from compat.bench.errors import BenchError, CheckFailed
from compat.bench.jobs import Figures, Job
from compat.bench.latency import percentiles
from compat.bench.patience import WAIT_LIMIT_S, limit_waiting
from compat.bench.stopwatch import Stopwatch
from compat.bench.usage import memory_of

SEND_BYTES: Final = 1 << 18
RECEIVE_BYTES: Final = 1 << 20
ACKED_BYTES: Final = 1 << 20
SETTLE_S: Final = 2.0
_I32: Final = struct.Struct("<i")
_I64: Final = struct.Struct("<q")
_SMALLEST: Final = len(bson.encode({"data": b""}))


def frame(kind: str, **fields: object) -> bytes:
    """Return a frame."""
    return bytes(bson.encode({"type": kind, "frame": fields}))


class Link:
    """One connection of a client that has logged in."""

    def __init__(self, address: Address) -> None:
        self.socket: Final = socket.create_connection((address.host, address.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        limit_waiting(self.socket)
        who = {"username": address.user, "password": address.password}
        self.ask(frame("CONNECT", version="0.1", authInfo=who))

    def close(self) -> None:
        """Close it."""
        self.socket.close()

    def ask(self, request: bytes) -> None:
        """Send a request. Raises CheckFailed if it is refused."""
        self.socket.sendall(request)
        answer = bson.decode(self.receive())["frame"]
        if answer["ok"] is not True:
            raise CheckFailed(f"a request is refused: {answer}")

    def receive(self) -> bytes:
        """Return the next frame. Raises BenchError at the end of the connection."""
        head = self.bytes(_I32.size)
        (size,) = _I32.unpack(head)
        return bytes(head + self.bytes(size - len(head)))

    def bytes(self, size: int) -> bytearray:
        """Return so many bytes. Raises BenchError at the end of the connection."""
        data = bytearray(size)
        view, filled = memoryview(data), 0
        while filled < size:
            received = self.socket.recv_into(view[filled:])
            if not received:
                raise BenchError("the server hung up")
            filled += received
        return data


class Publisher:
    """Publishes events of one size, whose requests are numbered from 0 on."""

    def __init__(self, link: Link, channel: str, body_bytes: int) -> None:
        self.event: Final = bson.encode({"data": bytes(body_bytes - _SMALLEST)})
        whole = RawBSONDocument(self.event)
        self._frame = bytearray(frame("PUB", channel=channel, sessID=-1, event=whole, rID=0))
        self._number_at = self._frame.rindex(b"\x10rID\0") + 5
        self._answer = frame("RESPONSE", rID=0, ok=True)
        self._answered_at = self._answer.index(b"\x10rID\0") + 5
        self._link = link
        self._number = 0

    def frames(self, events: int) -> bytearray:
        """Build the frames of the next events."""
        built = self._frame * events
        for place in range(self._number_at, len(built), len(self._frame)):
            _I32.pack_into(built, place, self._number)
            self._number += 1
        return built

    def pipeline(self, frames: bytearray, window: int) -> bytearray:
        """Send frames, at most `window` of them unanswered; return all answers.

        Raises BenchError: The server hung up or is silent.
        """
        connection, size, view = self._link.socket, len(self._frame), memoryview(frames)
        wanted = len(frames) // size * len(self._answer)
        sent, received = 0, bytearray()
        while len(received) < wanted:
            allowed = min((len(received) // len(self._answer) + window) * size, len(frames))
            writing = [connection] if sent < allowed else []
            readable, writable, _ = select.select([connection], writing, [], WAIT_LIMIT_S)
            if not readable and not writable:
                raise BenchError("the server is silent")
            if writable:
                part = view[sent : min(allowed, sent + SEND_BYTES)]
                sent += connection.send(part, socket.MSG_DONTWAIT)
            if readable:
                data = connection.recv(RECEIVE_BYTES)
                if not data:
                    raise BenchError("the server hung up")
                received += data
        return received

    def check(self, answers: bytearray) -> None:
        """Look at answers. Raises CheckFailed if they are not those of the last requests."""
        count = len(answers) // len(self._answer)
        expected = bytearray(self._answer * count)
        first = self._number - count
        for number in range(count):
            place = number * len(self._answer) + self._answered_at
            _I32.pack_into(expected, place, first + number)
        if answers != expected:
            raise CheckFailed("an event was not answered, or was refused")

    def publish(self, events: int, window: int) -> None:
        """Publish events and look at the answers."""
        self.check(self.pipeline(self.frames(events), window))

    def send_one(self) -> None:
        """Send the next event."""
        _I32.pack_into(self._frame, self._number_at, self._number)
        self._number += 1
        self._link.socket.sendall(self._frame)

    def await_one(self) -> None:
        """Wait for the answer to the event that was sent last. Raises CheckFailed."""
        self.check(self._link.bytes(len(self._answer)))


class Reader:
    """A subscription, and what a RECEV of an event of one size looks like."""

    def __init__(self, link: Link, channel: str, event: bytes, start: int | None) -> None:
        fields: dict[str, object] = {} if start is None else {"startPos": bson.Int64(start)}
        link.ask(frame("SUBSCRIBE", channel=channel, rID=1, **fields))
        whole = RawBSONDocument(event)
        zero = bson.Int64(0)
        self._recev = frame("RECEV", subID=0, timestamp=zero, pos=zero, event=whole)
        self._position_at = self._recev.index(b"\x12pos\0") + 5
        self._link = link
        self._event = event

    @property
    def frame_bytes(self) -> int:
        """Size of each frame."""
        return len(self._recev)

    def check(self, received: bytes | bytearray, position: int) -> None:
        """Look at a RECEV. Raises CheckFailed if it is of another event."""
        (found,) = _I64.unpack_from(received, self._position_at)
        if found != position or not received.endswith(self._event + b"\0\0"):
            raise CheckFailed(f"event {found} came, or other bytes, where {position} was due")

    def read(self, count: int) -> bytearray:
        """Take so many events, and acknowledge them on the way; return the last frame."""
        size, taken, acked = self.frame_bytes, 0, 0
        buffer, last = bytearray(RECEIVE_BYTES), bytearray()
        view = memoryview(buffer)
        while taken < count * size:
            received = self._link.socket.recv_into(buffer)
            if not received:
                raise BenchError("the server hung up")
            taken += received
            last = (last + view[:received])[-size:]
            if taken - acked > ACKED_BYTES:
                acked = taken
                position = bson.Int64(taken // size - 1)
                self._link.socket.sendall(frame("ACKEV", subID=0, pos=position))
        return last


def mewbase_publish(job: Job) -> Figures:
    """Publish `message_count` events, `window` of them unanswered."""
    stopwatch = Stopwatch(job.pids)
    with closing(Link(job.address)) as link:
        publisher = Publisher(link, job.stream, job.body_bytes)
        publisher.publish(job.warmup_count, job.window)
        frames = publisher.frames(job.message_count)
        with stopwatch:
            answers = publisher.pipeline(frames, job.window)
        publisher.check(answers)
    return stopwatch.figures(job.message_count)


def mewbase_deliver(job: Job) -> Figures:
    """Read `message_count` events from the first one on."""
    stopwatch = Stopwatch(job.pids)
    with closing(Link(job.address)) as link, closing(Link(job.address)) as reading:
        publisher = Publisher(link, job.stream, job.body_bytes)
        publisher.publish(job.message_count, job.window)
        with stopwatch:
            reader = Reader(reading, job.stream, publisher.event, 0)
            last = reader.read(job.message_count)
        reader.check(last, job.message_count - 1)
    return stopwatch.figures(job.message_count)


def mewbase_stalled(job: Job) -> Figures:
    """Time single events to a reader, alone and beside `connection_count` that take nothing.

    Those want all of `warmup_count` events, and neither read nor acknowledge.
    """
    with closing(Link(job.address)) as link, closing(Link(job.address)) as reading:
        publisher = Publisher(link, job.stream, job.body_bytes)
        publisher.publish(job.warmup_count, job.window)
        reader = Reader(reading, job.stream, publisher.event, None)
        count, place = job.message_count, job.warmup_count
        alone = percentiles(_times_of(publisher, reading, reader, range(place, place + count)))
        before = memory_of(job.pids).pss
        with _stalled(job):
            time.sleep(SETTLE_S)
            grown = memory_of(job.pids).pss - before
            place += count
            beside = percentiles(_times_of(publisher, reading, reader, range(place, place + count)))
    return beside | {
        "alone_p50": alone["p50"],
        "alone_p99": alone["p99"],
        "ratio": beside["p50"] / alone["p50"],
        "pss_each": grown / job.connection_count,
    }


@contextmanager
def _stalled(job: Job) -> Iterator[None]:
    """Let clients subscribe and take nothing while the block lasts."""
    with ExitStack() as stack:
        for _ in range(job.connection_count):
            link = stack.enter_context(closing(Link(job.address)))
            link.socket.sendall(frame("SUBSCRIBE", channel=job.stream, rID=1, startPos=0))
        yield


def _times_of(
    publisher: Publisher, reading: Link, reader: Reader, positions: range
) -> "array[int]":
    """Return the nanoseconds from the send of each event to its arrival."""
    times, clock = array("q"), time.perf_counter_ns
    for position in positions:
        began = clock()
        publisher.send_one()
        received = reading.bytes(reader.frame_bytes)
        times.append(clock() - began)
        reader.check(received, position)
        publisher.await_one()
        if position % 1000 == 0:
            reading.socket.sendall(frame("ACKEV", subID=0, pos=bson.Int64(position)))
    return times
