"""Writing to streams in tests of the sink: a fake server that takes messages, settings, rows."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from hutch.stream import messages as m
from hutch.stream.codec import Decoded
from hutch.stream.codes import ResponseCode
from hutch.stream.offsets import FIRST
from pyspark_hutch.client.cluster import Cluster
from pyspark_hutch.client.pool import POOL, Name
from pyspark_hutch.encoding.messages import messages_of
from pyspark_hutch.encoding.sub_batches import Packing
from pyspark_hutch.options.write_rules import write_settings
from pyspark_hutch.options.write_settings import StreamWriteSettings
from pyspark_hutch.sink.publishers import TaskPublishing
from pyspark_hutch.sink.publishing_ids import TaskIdentity
from pyspark_hutch.sink.targets import prepare
from pyspark_hutch.sink.task import RowsWritten, check_schema, write_rows
from tests.chunks import SubBatch, entry_at
from tests.client import Client
from tests.fake_server import OK, FakeServer, Talk
from tests.integration.server import HutchServer
from tests.reading_rig import cluster_of
from tests.waiting import HANG_S

Place = tuple[str, str]
"""Stream and reference."""


class FakeSink(FakeServer):
    """A server that keeps what is published, and drops what it has of a named producer.

    Attributes:
        stored: The messages of each stream, in their order.
        last_ids: The last id of each named producer.
        is_confirming: Whether messages are confirmed as they come; else `release` does it.
        has_withheld: Set when a message waits for its confirm.
        withheld: Entries that are not confirmed, of all connections.
    """

    def __init__(self, *streams: str, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(tls)
        self.streams = {stream: [] for stream in streams}
        self.stored: dict[str, list[bytes]] = {stream: [] for stream in streams}
        self.frames: list[int] = []
        self.last_ids: dict[Place, int] = {}
        self.is_confirming = True
        self.has_withheld = threading.Event()
        self._owed: list[tuple[Talk, int, tuple[int, ...]]] = []
        self._publishers: dict[tuple[Talk, int], Place] = {}
        self._lock = threading.Lock()
        self.handlers |= {
            "declare_publisher": self._declare,
            "delete_publisher": self._delete,
            "query_publisher_sequence": self._sequence,
            "publish": self._publish,
        }

    @property
    def withheld(self) -> int:
        with self._lock:
            return sum(len(ids) for _, _, ids in self._owed)

    def release(self) -> None:
        """Confirm what waits, and all that comes from now on."""
        with self._lock:
            self.is_confirming = True
            owed, self._owed = self._owed, []
        for talk, publisher_id, ids in owed:
            talk.push("publish_confirm", m.PublishConfirm(publisher_id, ids))

    def publishers(self) -> int:
        """Count the publishers that are declared on connections."""
        return len(self._publishers)

    def _declare(self, talk: Talk, asked: Decoded) -> None:
        wanted = asked.message
        assert isinstance(wanted, m.DeclarePublisher)
        is_taken = (talk, wanted.publisher_id) in self._publishers
        code = ResponseCode.PRECONDITION_FAILED if is_taken else OK
        if wanted.stream not in self.streams:
            code = ResponseCode.STREAM_DOES_NOT_EXIST
        if code == OK:
            self._publishers[talk, wanted.publisher_id] = (wanted.stream, wanted.reference)
        talk.reply(asked, m.Status(code))

    def _delete(self, talk: Talk, asked: Decoded) -> None:
        assert isinstance(asked.message, m.DeletePublisher)
        del self._publishers[talk, asked.message.publisher_id]
        talk.reply(asked, m.Status(OK))

    def _sequence(self, talk: Talk, asked: Decoded) -> None:
        wanted = asked.message
        assert isinstance(wanted, m.QueryPublisherSequence)
        last = self.last_ids.get((wanted.stream, wanted.reference), 0)
        talk.reply(asked, m.PublisherSequence(OK, last))

    def _publish(self, talk: Talk, asked: Decoded) -> None:
        publisher_id, entries = published(asked)
        ids = tuple(publishing_id for publishing_id, _ in entries)
        self.store(talk, publisher_id, entries)
        with self._lock:
            if not self.is_confirming:
                self._owed.append((talk, publisher_id, ids))
                self.has_withheld.set()
                return
        talk.push("publish_confirm", m.PublishConfirm(publisher_id, ids))

    def store(
        self, talk: Talk, publisher_id: int, entries: Sequence[tuple[int, bytes | SubBatch]]
    ) -> None:
        """Keep messages, as a server that confirms them."""
        stream, reference = place = self._publishers[talk, publisher_id]
        self.frames.append(len(entries))
        for publishing_id, entry in entries:
            if reference:
                if publishing_id <= self.last_ids.get(place, 0):
                    continue
                self.last_ids[place] = publishing_id
            records = entry.records() if isinstance(entry, SubBatch) else [entry]
            self.stored[stream] += records


def published(asked: Decoded) -> tuple[int, list[tuple[int, bytes | SubBatch]]]:
    """Take a Publish frame apart: publisher, publishing ids and entries."""
    assert isinstance(asked.message, m.KernelBody)
    body = bytes(asked.message.body)
    position, found = 5, []
    while position < len(body):
        publishing_id = int.from_bytes(body[position : position + 8])
        entry, position = entry_at(body, position + 8)
        found.append((publishing_id, entry))
    assert len(found) == int.from_bytes(body[1:5])
    return body[0], found


class Sender:
    """Sends raw bodies as a task does.

    Args:
        server: Where to.
        compression: Of sub-batches.
        sub_batch_size: Rows in each; 1 for none.
        changes: Of connection settings.
    """

    def __init__(
        self,
        server: FakeServer | HutchServer,
        *,
        compression: str = "none",
        sub_batch_size: int = 1,
        **changes: object,
    ) -> None:
        self.packing = Packing(compression, sub_batch_size)
        self.cluster = cluster_of(server, **({"pool_idle_timeout_ms": 0} | changes))


class Publisher(Sender):
    """Publishes raw bodies by a `TaskPublishing`, numbered from 1.

    Args:
        server: Where to.
        in_flight_max: Rows that may wait for their confirm.
        confirm_timeout_ms: The longest wait for one.
        options: Of the sender.
    """

    def __init__(
        self,
        server: FakeServer | HutchServer,
        *,
        in_flight_max: int = 10_000,
        confirm_timeout_ms: int = 5_000,
        **options: Any,  # noqa: ANN401  # those of Sender
    ) -> None:
        super().__init__(server, **options)
        self.publishing = TaskPublishing(
            self.cluster, self.packing, in_flight_max, confirm_timeout_ms
        )
        self._next: dict[Place, int] = {}

    def publish(self, stream: str, bodies: Sequence[bytes], reference: str = "") -> None:
        first = self._next.get((stream, reference), 1)
        self._next[stream, reference] = first + len(bodies)
        ids = np.arange(first, first + len(bodies), dtype=np.uint64)
        messages = messages_of(batch_of(bodies), raw=True)
        self.publishing.publish(stream, reference, messages, ids)

    def write(self, stream: str, bodies: Sequence[bytes], reference: str = "") -> None:
        """Publish and finish; abort as a task does if that fails."""
        try:
            self.publish(stream, bodies, reference)
            self.publishing.finish()
        except BaseException:
            self.publishing.abort()
            raise


def batch_of(bodies: Sequence[bytes], **columns: Sequence[Any]) -> pa.RecordBatch:
    """Build a batch of rows: bodies and further columns."""
    return pa.RecordBatch.from_pydict({"body": pa.array(bodies, pa.binary())} | columns)


class Where(Protocol):
    """Something that listens."""

    @property
    def host(self) -> str: ...

    @property
    def port(self) -> int: ...


def settings_for(server: Where, **options: object) -> StreamWriteSettings:
    """Build settings as a batch write has them; bodies are raw unless the options say otherwise."""
    return write_settings(_options(server, options), is_streaming=False)


def streaming_settings_for(server: Where, **options: object) -> StreamWriteSettings:
    """Build the same as a streaming write has them."""
    return write_settings(_options(server, options), is_streaming=True)


def _options(server: Where, changes: Mapping[str, object]) -> dict[str, str]:
    return {
        "endpoints": f"{server.host}:{server.port}",
        "bodyFormat": "raw",
        "planner.retryIntervalMs": "50",
        "pool.idleTimeoutMs": "0",
    } | {name: str(value) for name, value in changes.items()}


def write(
    settings: StreamWriteSettings,
    *batches: pa.RecordBatch,
    task: TaskIdentity | None = None,
    before_batch: Callable[[int], object] = lambda _: None,
    closes: bool = True,
) -> RowsWritten:
    """Write batches as one task does, with all checks before.

    Args:
        settings: Of the write.
        batches: Rows.
        task: The first one of a batch write unless given.
        before_batch: Is called before each batch is handed over.
        closes: Whether connections are ended, so that the next task makes its own.
    """

    with as_task(settings, batches, before_batch, closes=closes) as (cluster, handed):
        targets = prepare(cluster, settings)
        return write_rows(cluster, settings, targets, task or TaskIdentity(0), handed)


@contextmanager
def as_task(
    settings: StreamWriteSettings,
    batches: Sequence[pa.RecordBatch],
    before_batch: Callable[[int], object],
    *,
    closes: bool = True,
) -> Iterator[tuple[Cluster, Iterable[pa.RecordBatch]]]:
    """Check the rows of a task; give what it needs to write them. `write` tells the rest."""

    def handed() -> Iterable[pa.RecordBatch]:
        for index, batch in enumerate(batches):
            before_batch(index)
            yield batch

    check_schema(batches[0].schema, settings)
    try:
        yield Cluster(settings.connection, Name("test", "task"), retries_first=True), handed()
    finally:
        if closes:
            POOL.close()


def bodies_of(count: int, first: int = 0, size: int = 0) -> list[bytes]:
    """Build bodies that differ, of at least so many bytes."""
    return [b"%d" % number + bytes(size) for number in range(first, first + count)]


def bodies_in(server: Where, stream: str) -> list[bytes]:
    """Read all messages of a stream, as they were published."""
    with Client.opened(server.host, server.port, timeout_s=HANG_S) as client:
        stats = client.ask(m.StreamStatsReply, "stream_stats", m.StreamStats(stream))
        count = stats.statistics["committed_offset"] + 1
        if not count:
            return []
        client.subscribe(1, stream, FIRST)
        return [body for _, body in client.records(count, subscription_id=1)]
