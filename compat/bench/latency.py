"""The works with one message on its way at a time: latencies, and chunks of one message."""

import socket
import struct
import time
from array import array
from collections.abc import Sequence
from random import Random
from typing import Final

from compat.bench.confirms import CONFIRM_BYTES_MAX, CONFIRM_HEAD
from compat.bench.connection import OFFSET_NEXT, Connection
from compat.bench.deliveries import DeliveryReader
from compat.bench.errors import BenchError, CheckFailed
from compat.bench.frames import PUBLISH_CONFIRM, PUBLISH_HEAD, body_of, publish_frame
from compat.bench.jobs import Figures, Job
from compat.bench.patience import limit_waiting
from compat.bench.stopwatch import Stopwatch

# Chunks whose borders are looked up after a stream of one-message chunks was written.
CHUNKS_PROBED: Final = 64
CREDIT: Final = 20_000


class PingPong:
    """Publishes one message at a time and waits for its confirm."""

    def __init__(self, connection: Connection, stream: str, body_bytes: int) -> None:
        """Declare a publisher on a stream; the connection's socket becomes blocking."""
        connection.declare_publisher(0, stream)
        self._socket = connection.socket
        limit_waiting(self._socket)
        self._frame = bytearray(
            publish_frame(publisher_id=0, publishing_ids=[0], body=body_of(body_bytes))
        )
        self._answer = bytearray(CONFIRM_BYTES_MAX)
        self._next_id = 0

    def publish(self) -> None:
        """Send the next message."""
        struct.pack_into(">Q", self._frame, PUBLISH_HEAD.size, self._next_id)
        self._socket.sendall(self._frame)
        self._next_id += 1

    def await_confirm(self) -> None:
        """Wait for the confirm of the message sent last.

        Raises:
            CheckFailed: Another frame came, or the confirm of another message.
        """
        _receive_all(self._socket, memoryview(self._answer))
        self._check()

    def round_trip_ns(self) -> int:
        """Send the next message and wait for its confirm; what is checked is not timed.

        Raises:
            CheckFailed: Another frame came, or the confirm of another message.
        """
        place = memoryview(self._answer)
        struct.pack_into(">Q", self._frame, PUBLISH_HEAD.size, self._next_id)
        began = time.perf_counter_ns()
        self._socket.sendall(self._frame)
        _receive_all(self._socket, place)
        ended = time.perf_counter_ns()
        self._next_id += 1
        self._check()
        return ended - began

    def _check(self) -> None:
        data = self._answer
        _size, key, _version, _publisher, count = CONFIRM_HEAD.unpack_from(data)
        (confirmed,) = struct.unpack_from(">Q", data, CONFIRM_HEAD.size)
        if (key, count, confirmed) != (PUBLISH_CONFIRM, 1, self._next_id - 1):
            raise CheckFailed(
                f"message {self._next_id - 1} was answered by command {key:#04x}, "
                f"{count} ids from {confirmed}"
            )


def confirm_latency(job: Job) -> Figures:
    """Time one message after the other, from its send to its confirm."""
    times = array("q")
    with Connection(job.address) as connection:
        _create(connection, job.stream)
        ping = PingPong(connection, job.stream, job.body_bytes)
        for _ in range(job.warmup_count):
            ping.round_trip_ns()
        stopwatch = Stopwatch(job.pids)
        with stopwatch:
            for _ in range(job.message_count):
                times.append(ping.round_trip_ns())
    _finish(job)
    return stopwatch.figures(job.message_count) | percentiles(times)


def delivery_latency(job: Job) -> Figures:
    """Time one message after the other, from its send to a subscriber on another connection.

    The next one is sent when the confirm has come too.
    """
    times = array("q")
    with Connection(job.address) as publisher, Connection(job.address) as subscriber:
        _create(publisher, job.stream)
        subscriber.subscribe(0, job.stream, offset_type=OFFSET_NEXT)
        limit_waiting(subscriber.socket)
        reader = DeliveryReader(
            subscriber.socket, body_bytes=job.body_bytes, credit=CREDIT, sample_every=1
        )
        reader.grant()
        ping = PingPong(publisher, job.stream, job.body_bytes)
        for _ in range(job.warmup_count):
            _delivery_ns(ping, reader)
        stopwatch = Stopwatch(job.pids)
        with stopwatch:
            for _ in range(job.message_count):
                times.append(_delivery_ns(ping, reader))
    _finish(job)
    return stopwatch.figures(job.message_count) | percentiles(times)


def _delivery_ns(ping: PingPong, reader: DeliveryReader) -> int:
    began = time.perf_counter_ns()
    ping.publish()
    reader.read_until(reader.records + 1)
    ended = time.perf_counter_ns()
    ping.await_confirm()
    return ended - began


def fill_single(job: Job) -> Figures:
    """Write a stream whose chunks have one message each, and leave it.

    Raises:
        CheckFailed: The server stored several messages in one chunk.
    """
    with Connection(job.address) as connection:
        _create(connection, job.stream)
        ping = PingPong(connection, job.stream, job.body_bytes)
        stopwatch = Stopwatch(job.pids)
        with stopwatch:
            for _ in range(job.message_count):
                ping.publish()
                ping.await_confirm()
    with Connection(job.address) as connection:
        # Seeded by the length, so that every server is asked for the same chunks.
        chosen = Random(job.message_count).sample(  # noqa: S311 - a sample, not a secret
            range(job.message_count), min(CHUNKS_PROBED, job.message_count)
        )
        for offset in chosen:
            chunk_id = connection.chunk_id_of(job.stream, offset)
            if chunk_id != offset:
                raise CheckFailed(f"offset {offset} is stored in chunk {chunk_id}, not alone")
    return stopwatch.figures(job.message_count)


def percentiles(times_ns: Sequence[int], prefix: str = "") -> Figures:
    """Return three percentiles of latencies as `p50`, `p99` and `p999` behind a prefix, in µs."""
    ordered = sorted(times_ns)
    return {
        f"{prefix}p50": ordered[len(ordered) // 2] / 1000,
        f"{prefix}p99": ordered[len(ordered) * 99 // 100] / 1000,
        f"{prefix}p999": ordered[len(ordered) * 999 // 1000] / 1000,
    }


def _receive_all(source: socket.socket, target: memoryview) -> None:
    filled = 0
    while filled < len(target):
        received = source.recv_into(target[filled:])
        if not received:
            raise BenchError("server hung up while a confirm was awaited")
        filled += received


def _create(connection: Connection, stream: str) -> None:
    connection.delete_if_there(stream)
    connection.create(stream)


def _finish(job: Job) -> None:
    if not job.keep:
        with Connection(job.address) as connection:
            connection.delete(job.stream)
