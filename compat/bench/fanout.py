"""The works "fanout" and "fanout_stored": many consumers of one stream."""

import select
import socket
import threading
from contextlib import ExitStack, suppress
from typing import Final, Self

from compat.bench.connection import OFFSET_FIRST, OFFSET_NEXT, Connection
from compat.bench.crowd import allow_descriptors
from compat.bench.deliveries import DeliveryReader
from compat.bench.errors import BenchError
from compat.bench.frames import PublishBlock
from compat.bench.jobs import Figures, Job
from compat.bench.patience import limit_waiting
from compat.bench.pump import STALL_LIMIT_S, Pump, run
from compat.bench.stopwatch import Stopwatch

# Each consumer looks at other chunks, and few of them: copying is what makes the generator slow.
SAMPLE_EVERY: Final = 64


def fanout(job: Job) -> Figures:
    """Publish at full speed to a new stream that many connections are subscribed to.

    From the first send until the last consumer has the last record. A thread publishes, so that
    neither side waits for the other more than the server makes it.

    Returns:
        The rate is that of records received by all consumers together.

    Raises:
        CheckFailed: Offsets have a gap or go back, or a chunk is not what was written.
        BenchError: A connection was ended, or nothing came for a minute.
    """
    allow_descriptors(job.connection_count)
    with ExitStack() as stack:
        writer = stack.enter_context(Connection(job.address))
        writer.delete_if_there(job.stream)
        writer.create(job.stream)
        writer.declare_publisher(0, job.stream)
        poller = stack.enter_context(select.epoll())
        readers = _subscribed(job, OFFSET_NEXT, stack, poller)
        for reader in readers.values():
            reader.grant()
        block = PublishBlock(body_bytes=job.body_bytes, messages_per_frame=job.messages_per_frame)
        block_count = -(-job.message_count // block.message_count)
        pump = Pump(writer, block, block_count=block_count, window=job.window)
        publishing = stack.enter_context(_Publishing(writer, pump, block_count))
        stopwatch = Stopwatch(job.pids)
        with stopwatch:
            publishing.start()
            _read_all(poller, readers, block_count * block.message_count)
        publishing.finish()
        pump.arena.check(block_count=block_count, block_messages=block.message_count)
    with Connection(job.address) as connection:
        connection.delete(job.stream)
    chunks = sum(reader.chunks for reader in readers.values())
    received = block_count * block.message_count * job.connection_count
    return stopwatch.figures(received) | {"records_per_chunk": received / chunks}


def fanout_stored(job: Job) -> Figures:
    """Read `message_count` records that are stored, by many connections at once.

    From the first credit until the last consumer has the last record, `repeats` times.

    Returns:
        The rate is that of records received by all consumers together.

    Raises:
        CheckFailed: Offsets have a gap or go back, or a chunk is not what was written.
        BenchError: A connection was ended, or nothing came for a minute.
    """
    allow_descriptors(job.connection_count)
    stopwatch = Stopwatch(job.pids)
    chunks = 0
    for _ in range(job.repeats):
        with ExitStack() as stack:
            poller = stack.enter_context(select.epoll())
            readers = _subscribed(job, OFFSET_FIRST, stack, poller)
            with stopwatch:
                for reader in readers.values():
                    reader.grant()
                _read_all(poller, readers, job.message_count)
            chunks += sum(reader.chunks for reader in readers.values())
    received = job.message_count * job.connection_count * job.repeats
    return stopwatch.figures(received) | {"records_per_chunk": received / chunks}


def _subscribed(
    job: Job, offset_type: int, stack: ExitStack, poller: select.epoll
) -> dict[int, DeliveryReader]:
    """Subscribe connections, which `stack` closes; return their readers by descriptor."""
    readers: dict[int, DeliveryReader] = {}
    for number in range(job.connection_count):
        connection = stack.enter_context(Connection(job.address))
        connection.subscribe(0, job.stream, offset_type=offset_type)
        limit_waiting(connection.socket)
        readers[connection.socket.fileno()] = DeliveryReader(
            connection.socket,
            body_bytes=job.body_bytes,
            credit=job.credit,
            sample_every=SAMPLE_EVERY,
            sample_first=number % SAMPLE_EVERY,
        )
        poller.register(connection.socket, select.EPOLLIN)
    return readers


class _Publishing:
    """A thread that turns a pump to its end; a context manager that leaves no thread behind."""

    _LIMIT_S: Final = 2 * STALL_LIMIT_S

    def __init__(self, writer: Connection, pump: Pump, block_count: int) -> None:
        self._writer = writer
        self._pump = pump
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="publishing", daemon=True)
        pump.begin(block_count)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # When reading failed the pump still turns: it must end before its socket is closed.
        if self._thread.is_alive():
            with suppress(OSError):
                self._writer.socket.shutdown(socket.SHUT_RDWR)
            self._thread.join(self._LIMIT_S)

    def start(self) -> None:
        self._thread.start()

    def finish(self) -> None:
        self._thread.join(self._LIMIT_S)
        if self._error is not None:
            raise self._error
        if self._thread.is_alive():
            raise BenchError("publishing does not end")

    def _run(self) -> None:
        try:
            run([self._pump])
        except (BenchError, OSError) as error:
            self._error = error


def _read_all(poller: select.epoll, readers: dict[int, DeliveryReader], count: int) -> None:
    left = len(readers)
    while left:
        ready = poller.poll(STALL_LIMIT_S)
        if not ready:
            raise BenchError(f"no consumer got anything for {STALL_LIMIT_S:.0f} s")
        for descriptor, _ in ready:
            reader = readers[descriptor]
            reader.step()
            if reader.has(count):
                poller.unregister(descriptor)
                left -= 1
