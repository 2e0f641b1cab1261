"""A client that publishes at a steady rate and times each confirm, in a process of its own.

    python -m compat.spark_bench.publisher < job

The job is a line of JSON. A line is printed when messages flow. The end of standard input ends it:
then it awaits the confirms that are missing and prints when each message was sent, and how long its
confirm took. A message is sent when its time has come, whether those before are confirmed or not.
So a pause of the server is seen by all the messages that fall into it.
"""

import json
import select
import struct
import subprocess
import sys
import time
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Final, NamedTuple

from compat.bench.confirms import CONFIRM_HEAD, ID_BYTES
from compat.bench.connection import Address, Connection
from compat.bench.errors import BenchError
from compat.bench.frames import HEARTBEAT, PUBLISH_CONFIRM, PUBLISH_HEAD, body_of, publish_frame
from compat.bench.machine import REPOSITORY

A_SECOND_NS: Final = 1_000_000_000
LAST_CONFIRM_NS: Final = 60 * A_SECOND_NS
RECEIVE_BYTES: Final = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Messages to publish: of `body_bytes` to a stream that is there, so many a second."""

    address: Address
    stream: str
    rate: int
    body_bytes: int


class Times(NamedTuple):
    """Times of messages, in the order of their confirms.

    Attributes:
        sent_ns: When each was sent, on the clock `time.monotonic_ns`.
        waited_ns: From there to its confirm.
    """

    sent_ns: list[int]
    waited_ns: list[int]

    def within(self, begin_ns: int, end_ns: int) -> list[int]:
        """Return how long the messages waited that were on their way in this time."""
        pairs = zip(self.sent_ns, self.waited_ns, strict=True)
        return [waited for sent, waited in pairs if begin_ns <= sent + waited and sent <= end_ns]


@dataclass(slots=True)
class Publisher:
    """A process that publishes.

    Attributes:
        times: Known when it has ended.
    """

    process: "subprocess.Popen[str]"
    times: Times = field(default_factory=lambda: Times([], []))


@contextmanager
def publishing(job: Job) -> Iterator[Publisher]:
    """Publish during the block; messages flow when it begins.

    Raises:
        BenchError: The publisher failed.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "compat.spark_bench.publisher"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=REPOSITORY,
    )
    assert process.stdin is not None, "it is a pipe"
    assert process.stdout is not None, "it is a pipe"
    publisher = Publisher(process)
    try:
        process.stdin.write(json.dumps(asdict(job)) + "\n")
        process.stdin.flush()
        if process.stdout.readline():
            yield publisher
        said, errors = process.communicate()
        if process.returncode:
            raise BenchError(f"the publisher failed: {errors.strip()[-500:]}")
        publisher.times = Times(*json.loads(said))
    finally:
        process.kill()
        process.wait()


class _Flow:
    """Messages of one connection, each sent at its time."""

    def __init__(self, connection: Connection, job: Job) -> None:
        connection.declare_publisher(0, job.stream)
        self._socket = connection.socket
        self._socket.settimeout(60)
        body = body_of(job.body_bytes)
        self._frame = bytearray(publish_frame(publisher_id=0, publishing_ids=[0], body=body))
        self._step_ns = A_SECOND_NS // job.rate
        self._due_ns = time.monotonic_ns()
        self._all_sent: array[int] = array("q")
        self._came = bytearray()
        self.times = Times([], [])

    @property
    def missing(self) -> int:
        """Messages without a confirm."""
        return len(self._all_sent) - len(self.times.sent_ns)

    def pause_s(self) -> float:
        """Return the time until the next message is due."""
        return max(0, self._due_ns - time.monotonic_ns()) / A_SECOND_NS

    def send(self) -> None:
        """Send a message if one is due."""
        now_ns = time.monotonic_ns()
        if now_ns < self._due_ns:
            return
        struct.pack_into(">Q", self._frame, PUBLISH_HEAD.size, len(self._all_sent))
        self._all_sent.append(now_ns)
        self._socket.sendall(self._frame)
        self._due_ns += self._step_ns

    def take_confirms(self) -> None:
        """Take what has come; there is something.

        Raises:
            BenchError: The server hung up, or sent something else.
        """
        came = self._socket.recv(RECEIVE_BYTES)
        now_ns = time.monotonic_ns()
        if not came:
            raise BenchError("the server hung up")
        self._came += came
        position = 0
        while len(self._came) - position >= CONFIRM_HEAD.size:
            size, key, _version, _publisher, count = CONFIRM_HEAD.unpack_from(self._came, position)
            if len(self._came) - position < 4 + size:
                break
            if key == PUBLISH_CONFIRM:
                first = position + CONFIRM_HEAD.size
                self._note(self._came[first : first + count * ID_BYTES], now_ns)
            elif key != HEARTBEAT:
                raise BenchError(f"command {key:#06x} came among confirms")
            position += 4 + size
        del self._came[:position]

    def _note(self, ids: bytearray, now_ns: int) -> None:
        for (number,) in struct.iter_unpack(">Q", ids):
            self.times.sent_ns.append(self._all_sent[number])
            self.times.waited_ns.append(now_ns - self._all_sent[number])


def main() -> None:
    """Do the job that the first line of standard input describes."""
    fields = json.loads(sys.stdin.readline())
    job = Job(**fields | {"address": Address(*fields["address"])})
    with Connection(job.address) as connection:
        flow = _Flow(connection, job)
        print("flows", flush=True)
        ready: list[object] = []
        while sys.stdin not in ready:
            ready, _, _ = select.select([connection.socket, sys.stdin], [], [], flow.pause_s())
            if connection.socket in ready:
                flow.take_confirms()
            flow.send()
        until_ns = time.monotonic_ns() + LAST_CONFIRM_NS
        while flow.missing:
            if time.monotonic_ns() > until_ns:
                raise BenchError(f"{flow.missing} messages are not confirmed")
            if select.select([connection.socket], [], [], 1)[0]:
                flow.take_confirms()
    print(json.dumps(flow.times))


if __name__ == "__main__":
    main()
