"""Works on Pravega's wire protocol: appends, reads, and an append seen by a reader at the tail.

Frames are built before the clock runs, and of many acknowledgements only the last is looked at: the
generator is to cost little beside a fast server. Every append is one event in a frame of its own.
"""

import select
import socket
import struct
import time
from array import array
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Final, TypeVar
from uuid import UUID

from compat.bench.bad_clients import bad_clients
from compat.bench.connection import Address
from compat.bench.errors import BenchError, CheckFailed
from compat.bench.frames import body_of
from compat.bench.jobs import Figures, Job
from compat.bench.latency import percentiles
from compat.bench.patience import WAIT_LIMIT_S, limit_waiting
from compat.bench.stopwatch import Stopwatch
from hutch.pravega.codec import HEAD, HEAD_BYTES, decode, encode
from hutch.pravega.commands import BY_CLASS, CommandSender
from hutch.pravega.layout import WireMessage
from hutch.pravega.messages import (
    AppendBlockEnd,
    AppendSetup,
    CreateSegment,
    DataAppended,
    GetStreamSegmentInfo,
    Hello,
    ReadSegment,
    SegmentCreated,
    SegmentRead,
    SetupAppend,
    StreamSegmentInfo,
)

WRITER: Final = UUID(int=1)
WARMUP_BYTES: Final = 100
# Number and request id are the last of a frame.
NUMBER_FROM_END: Final = 16
# Writer, then the number up to which all is stored.
ACK: Final = struct.Struct(">ii16sq24x")
ACK_CODE: Final = BY_CLASS[DataAppended].code
READ_BYTES: Final = 1 << 20
SEND_BYTES: Final = 1 << 18
RECEIVE_BYTES: Final = 1 << 16
FILL_BYTES: Final = 1 << 16
FILL_WINDOW: Final = 100

M = TypeVar("M", bound=WireMessage)


class Link:
    """One connection, on which one request is answered after the other."""

    def __init__(self, address: Address) -> None:
        self.socket: Final = socket.create_connection((address.host, address.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        limit_waiting(self.socket)
        self.ask(Hello(17, 5), Hello)

    def close(self) -> None:
        """Close it."""
        self.socket.close()

    def ask(self, request: WireMessage, kind: type[M]) -> M:
        """Send a request and return the answer.

        Raises:
            CheckFailed: It is another answer.
        """
        self.socket.sendall(encode(request))
        return self.answer(kind)

    def answer(self, kind: type[M]) -> M:
        """Return the next answer. Raises CheckFailed if it is another one."""
        code, length = HEAD.unpack(self.bytes(HEAD_BYTES))
        found = decode(code, self.bytes(length), CommandSender.SERVER)
        if not isinstance(found, kind):
            raise CheckFailed(f"{kind.__name__} was expected: {found}")
        return found

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


class Appender:
    """A writer on a new segment, whose events are numbered from 1 on."""

    def __init__(self, link: Link, segment: str, body_bytes: int) -> None:
        link.ask(CreateSegment(1, segment, 0, 0, "", 0), SegmentCreated)
        link.ask(SetupAppend(1, WRITER, segment, ""), AppendSetup)
        self.stored = HEAD.pack(0, body_bytes) + body_of(body_bytes)
        self._link = link
        self._segment = segment
        self._number = 0
        end = AppendBlockEnd(WRITER, len(self.stored), self.stored, 1, 0, 1)
        self._frame: Final = bytearray(encode(end))

    def frames(self, events: int) -> bytearray:
        """Build the frames of the next events."""
        size = len(self._frame)
        built = self._frame * events
        for place in range(size - NUMBER_FROM_END, len(built), size):
            self._number += 1
            struct.pack_into(">q", built, place, self._number)
        return built

    def pipeline(self, frames: bytearray, window: int) -> None:
        """Send frames, at most `window` of them unacknowledged; return when all are stored.

        Raises:
            CheckFailed: Something else than acknowledgements came.
            BenchError: The server hung up or is silent.
        """
        connection, size, view = self._link.socket, len(self._frame), memoryview(frames)
        last = self._number
        before = last - len(frames) // size
        acked, sent, received = before, 0, bytearray()
        while acked < last:
            allowed = min(acked - before + window, last - before) * size
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
                if whole := len(received) // ACK.size * ACK.size:
                    acked = acknowledged(received, whole - ACK.size)
                    del received[:whole]

    def send_one(self) -> None:
        """Send the next event."""
        self._number += 1
        struct.pack_into(">q", self._frame, len(self._frame) - NUMBER_FROM_END, self._number)
        self._link.socket.sendall(self._frame)

    def await_one(self) -> None:
        """Wait until the event that was sent last is stored. Raises CheckFailed."""
        if acknowledged(self._link.bytes(ACK.size), 0) != self._number:
            raise CheckFailed("an event was acknowledged that was not sent last")

    def check(self) -> int:
        """Return the bytes that are stored. Raises CheckFailed if that is not all."""
        info = self._link.ask(GetStreamSegmentInfo(1, self._segment, ""), StreamSegmentInfo)
        if info.write_offset != self._number * len(self.stored):
            raise CheckFailed(f"{info.write_offset} bytes of {self._number} events are stored")
        return info.write_offset


def acknowledged(received: bytearray, place: int) -> int:
    """Return the number in an acknowledgement. Raises CheckFailed if it is another message."""
    code, length, _writer, number = ACK.unpack_from(received, place)
    if (code, length) != (ACK_CODE, ACK.size - HEAD_BYTES):
        raise CheckFailed(f"command {code} of {length} bytes came for an append")
    return int(number)


def segment_of(job: Job, use: str = "timed") -> str:
    """Return the name of a segment that this job alone uses; several may come to one server."""
    return f"bench/{job.stream}-{use}/0.#epoch.0"


@contextmanager
def warmed(job: Job) -> Iterator[Link]:
    """Yield a connection to a server that has taken `warmup_count` appends of 100 B."""
    with closing(Link(job.address)) as link:
        warming = Appender(link, segment_of(job, "warm"), WARMUP_BYTES)
        warming.pipeline(warming.frames(job.warmup_count), job.window)
        warming.check()
        yield link


def wire_append(job: Job) -> Figures:
    """Append `message_count` events, `window` of them unacknowledged."""
    stopwatch = Stopwatch(job.pids)
    with warmed(job) as link:
        appender = Appender(link, segment_of(job), job.body_bytes)
        frames = appender.frames(job.message_count)
        with stopwatch:
            appender.pipeline(frames, job.window)
        appender.check()
    return stopwatch.figures(job.message_count)


def wire_latency(job: Job) -> Figures:
    """Append one event after the other, each when the one before is stored."""
    stopwatch = Stopwatch(job.pids)
    with warmed(job) as link:
        appender = Appender(link, segment_of(job), job.body_bytes)
        with stopwatch:
            times = _times_of(appender, job.message_count)
        appender.check()
    return stopwatch.figures(job.message_count) | percentiles(times)


def wire_beside(job: Job) -> Figures:
    """Append one event after the other, alone and then beside clients that break the protocol."""
    with warmed(job) as link:
        appender = Appender(link, segment_of(job), job.body_bytes)
        alone = percentiles(_times_of(appender, job.message_count))
        with bad_clients(job.address):
            beside = percentiles(_times_of(appender, job.message_count))
        appender.check()
    return beside | {
        "alone_p50": alone["p50"],
        "alone_p99": alone["p99"],
        "ratio": beside["p50"] / alone["p50"],
    }


def _times_of(appender: Appender, count: int) -> "array[int]":
    """Return the nanoseconds that each of so many appends takes."""
    times, clock = array("q"), time.perf_counter_ns
    for _ in range(count):
        began = clock()
        appender.send_one()
        appender.await_one()
        times.append(clock() - began)
    return times


def wire_read(job: Job) -> Figures:
    """Read a segment of `message_count` events of 64 KiB from its beginning, and compare it."""
    stopwatch, segment = Stopwatch(job.pids), segment_of(job)
    with warmed(job) as link:
        appender = Appender(link, segment, FILL_BYTES)
        appender.pipeline(appender.frames(job.message_count), FILL_WINDOW)
        total, size = appender.check(), len(appender.stored)
        pattern = memoryview(appender.stored * (2 + READ_BYTES // size))
        offset = 0
        with stopwatch:
            while offset < total:
                got = link.ask(_read_at(segment, offset), SegmentRead)
                begin = offset % size
                if got.offset != offset or got.data != pattern[begin : begin + len(got.data)]:
                    raise CheckFailed(f"other bytes are read at {offset}")
                offset += len(got.data)
    return stopwatch.figures(total)


def wire_tail(job: Job) -> Figures:
    """Time one event after the other from its send until a reader at the tail has all of it."""
    times, clock, segment = array("q"), time.perf_counter_ns, segment_of(job)
    with warmed(job) as link, closing(Link(job.address)) as reader:
        appender = Appender(link, segment, job.body_bytes)
        size = len(appender.stored)
        for offset in range(0, job.message_count * size, size):
            # The wait has begun when a later request is answered.
            reader.socket.sendall(encode(_read_at(segment, offset)))
            reader.ask(GetStreamSegmentInfo(1, segment, ""), StreamSegmentInfo)
            began = clock()
            appender.send_one()
            data = reader.answer(SegmentRead).data
            while data and len(data) < size:  # Pravega cuts at the blocks of its cache
                data += reader.ask(_read_at(segment, offset + len(data)), SegmentRead).data
            times.append(clock() - began)
            if data != appender.stored:
                raise CheckFailed(f"other bytes are read at {offset}")
            appender.await_one()
    return percentiles(times)


def _read_at(segment: str, offset: int) -> ReadSegment:
    return ReadSegment(segment, offset, READ_BYTES, "", 1)
