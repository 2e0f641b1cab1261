"""The works "fill_filtered" and "drain_filtered": a stream of which one chunk of ten is wanted.

Every frame carries one filter value, and is confirmed before the next, so that no stored chunk has
two: the records of frame n have offsets from n times the messages of a frame, and value n modulo
VALUES.
"""

import socket
import struct
from typing import Final

from compat.bench.confirms import CONFIRM_HEAD
from compat.bench.connection import OFFSET_FIRST, Connection
from compat.bench.deliveries import DeliveryReader
from compat.bench.errors import BenchError, CheckFailed
from compat.bench.frames import PUBLISH, PUBLISH_CONFIRM, PUBLISH_HEAD, body_of, text
from compat.bench.jobs import Figures, Job
from compat.bench.patience import limit_waiting
from compat.bench.stopwatch import Stopwatch

VALUES: Final = 10
WANTED: Final = 3


def value_of(number: int) -> str:
    """Return the filter value of a frame."""
    return f"region-{number % VALUES}"


def filtered_frame(number: int, messages: int, body_bytes: int) -> bytes:
    """Build a Publish v2 of so many messages, all with the value of this frame."""
    value = text(value_of(number))
    body = struct.pack(">I", body_bytes) + body_of(body_bytes)
    first = number * messages
    entries = b"".join(struct.pack(">Q", first + at) + value + body for at in range(messages))
    return (
        PUBLISH_HEAD.pack(PUBLISH_HEAD.size - 4 + len(entries), PUBLISH, 2, 0, messages) + entries
    )


def fill_filtered(job: Job) -> Figures:
    """Write `message_count` messages, rounded up to whole rounds of values.

    Returns:
        `stored`: how many they are.

    Raises:
        CheckFailed: Something else than the confirms came.
    """
    a_round = VALUES * job.messages_per_frame
    frames = -(-job.message_count // a_round) * VALUES
    with Connection(job.address) as connection:
        connection.delete_if_there(job.stream)
        connection.create(job.stream)
        connection.declare_publisher(0, job.stream)
        limit_waiting(connection.socket)
        for number in range(frames):
            connection.socket.sendall(
                filtered_frame(number, job.messages_per_frame, job.body_bytes)
            )
            _await_confirms(connection.socket, job.messages_per_frame)
    return {"stored": float(frames * job.messages_per_frame)}


def _await_confirms(source: socket.socket, count: int) -> None:
    with source.makefile("rb", buffering=0) as unbuffered:
        while count > 0:
            head = _exactly(unbuffered, CONFIRM_HEAD.size)
            size, key, _version, _publisher, ids = CONFIRM_HEAD.unpack(head)
            if key != PUBLISH_CONFIRM:
                raise CheckFailed(f"command {key:#06x} came where confirms were awaited")
            _exactly(unbuffered, size + 4 - CONFIRM_HEAD.size)
            count -= ids
    if count:
        raise CheckFailed(f"{-count} messages too many were confirmed")


def _exactly(source: socket.SocketIO, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = source.read(size - len(data))
        if not piece:
            raise BenchError("server hung up while confirms were awaited")
        data += piece
    return data


class SelectionReader(DeliveryReader):
    """Counts the records that were wanted; others may come, since filters are not exact.

    Attributes:
        unwanted: Records of other values that came all the same.
    """

    def __init__(
        self, source: socket.socket, *, messages_per_frame: int, body_bytes: int, credit: int
    ) -> None:
        """Prepare as for any subscription; see the module for what is stored."""
        super().__init__(source, body_bytes=body_bytes, credit=credit)
        self._messages_per_frame = messages_per_frame
        self._next_offset = 0
        self.unwanted = 0

    def take_place(self, chunk_id: int, records: int) -> None:
        """Demand that offsets grow, and count what was wanted."""
        if chunk_id < self._next_offset:
            raise CheckFailed(f"chunk {chunk_id} came after offset {self._next_offset}")
        self._next_offset = end = chunk_id + records
        per_frame = self._messages_per_frame
        wanted = 0
        for frame in range(chunk_id // per_frame, (end - 1) // per_frame + 1):
            if frame % VALUES == WANTED:
                wanted += min(end, (frame + 1) * per_frame) - max(chunk_id, frame * per_frame)
        self.records += wanted
        self.unwanted += records - wanted


def drain_filtered(job: Job) -> Figures:
    """Read the records of one value out of `message_count`, `repeats` times.

    Returns:
        The rate is that of records passed by: wanted or not, all that the stream holds.

    Raises:
        CheckFailed: A wanted record is missing, or a chunk is not what was written.
    """
    stopwatch = Stopwatch(job.pids)
    wanted_count = job.message_count // VALUES
    unwanted = 0
    for _ in range(job.repeats):
        with Connection(job.address) as connection:
            connection.subscribe(
                0, job.stream, offset_type=OFFSET_FIRST, properties={"filter.0": value_of(WANTED)}
            )
            limit_waiting(connection.socket)
            reader = SelectionReader(
                connection.socket,
                messages_per_frame=job.messages_per_frame,
                body_bytes=job.body_bytes,
                credit=job.credit,
            )
            with stopwatch:
                reader.grant()
                reader.read_until(wanted_count)
            unwanted += reader.unwanted
    total = job.message_count * job.repeats
    return stopwatch.figures(total) | {"unwanted_share": unwanted / total}
