"""A stream's log over a real store in a directory, on a loop that turns when the test says so."""

import os
import shutil
import struct
import tempfile
import zlib
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest

from gateway.log import log as log_module
from gateway.log.derived.filters import SubscriptionFilter
from gateway.log.derived.index import NO_END
from gateway.log.derived.snapshot import Snapshot
from gateway.log.derived.tracking import open_tracking
from gateway.log.log import StreamLog
from gateway.log.open_chunk import ChunkBuffers, ChunkDelivery
from gateway.log.ports import LogPorts
from gateway.log.reading.cursor import Cursor
from gateway.log.recovery.log_opening import LogNames, LogSettings, open_log
from gateway.log.recovery.persistence import save_log
from gateway.pending import Pending, run
from gateway.stream.consuming import DELIVER_HEAD_BYTES
from store.api import Durability, SegmentStore
from store.errors import StoreError
from store.files import DirectoryFiles
from tests.chunks import Chunk, Entry, SubBatch, chunk_of
from tests.conformance.harness import Loop
from tests.conformance.implementations import open_local
from tests.conformance.model import Model
from tests.conformance.model_store import ModelStore
from tests.simulation.disk import Disk

T = TypeVar("T")

OpenStore = Callable[[Loop, Path], SegmentStore]

FRAME_BYTES_MAX = 1 << 20
NAMES = LogNames(
    stream="orders",
    data_segment="rmq-.2f/_orders-1/0.#epoch.0",
    index_segment="rmq-.2f/_orders-1-index/0.#epoch.0",
    filter_segment="rmq-.2f/_orders-1-filters/0.#epoch.0",
)
SEED = zlib.crc32(NAMES.data_segment.encode())
"""Of the seals of its chunks."""
TABLE = "rmq-.2f/_tracking_kvtable/0.#epoch.0"
GENERATION = 1


@dataclass(slots=True, eq=False)
class Sink:
    """A publisher that remembers what it was told."""

    confirmed: list[int] = field(default_factory=list)
    lost_count: int = 0

    def confirm(self, publishing_ids: bytes) -> None:
        self.confirmed += struct.unpack(f">{len(publishing_ids) // 8}Q", publishing_ids)

    def lost(self) -> None:
        self.lost_count += 1


class LogRig:
    """A store, and the log of one stream in it."""

    def __init__(
        self,
        directory: Path,
        *,
        frame_bytes_max: int = FRAME_BYTES_MAX,
        references_max: int = 100,
        durability: Durability = Durability.OS,
        open_store: OpenStore | None = None,
        loop: Loop | None = None,
    ) -> None:
        self.directory = directory
        self.loop = loop or Loop()
        self.frame_bytes_max = frame_bytes_max
        self.references_max = references_max
        self.initial_offset = 0
        self.span_bytes = NO_END
        self.now_ms = 1_000
        self.saves_snapshots = True
        self.saved: list[Snapshot] = []
        self.saving: list[Pending[None]] = []
        self.failures: list[StoreError] = []
        self._buffers = ChunkBuffers(frame_bytes_max - DELIVER_HEAD_BYTES)
        if open_store is None:
            self.store: SegmentStore = open_local(DirectoryFiles(directory), self.loop, durability)
        else:
            self.store = open_store(self.loop, directory)
        self._is_open = True
        self.tracking = self.run(open_tracking(self.store, TABLE, self.loop.call_soon))

    # Running

    def run(self, coroutine: Coroutine[Pending[Any], None, T]) -> T:
        """Run a coroutine of the log to its end."""
        pending: Pending[T] = Pending()
        run(coroutine, pending.settle)
        self.loop.run_until(lambda: pending.is_settled)
        return pending.result()

    def do(self, call: Callable[..., object], *arguments: object, **options: object) -> Any:  # noqa: ANN401 - whatever the operation gives
        """Call an operation of the store and give its value."""
        pending: Pending[Any] = Pending()
        call(*arguments, done=pending.settle, **options)
        self.loop.run_until(lambda: pending.is_settled)
        return pending.result()

    def crash_copy(self, directory: Path) -> Path:
        """Copy what is on the disk now, as a process killed at this moment leaves it.

        A file that a thread removes meanwhile is not in the copy.
        """

        def copy(source: str, target: str) -> None:
            with suppress(FileNotFoundError):
                shutil.copy2(source, target)

        shutil.copytree(self.directory, directory, copy_function=copy)
        return directory

    def close(self) -> None:
        """Close the store in good order."""
        if self._is_open:
            self._is_open = False
            self.do(self.store.close)

    # The log

    def create(self) -> StreamLog:
        """Create the stream and open its log."""
        self.do(self.store.create_segment, NAMES.data_segment)
        return self.open()

    def open(self, *, epoch: int = 1, snapshot: Snapshot | None = None) -> StreamLog:
        """Open the log, with the stored snapshot if none is given."""
        if snapshot is None:
            snapshot = self.run(self.tracking.snapshots.load(GENERATION))
        return self.run(
            open_log(
                self.store,
                NAMES,
                self.ports(),
                snapshot=snapshot,
                replace_snapshot=partial(self.tracking.snapshots.replace, GENERATION),
                epoch=epoch,
                settings=LogSettings(
                    references_max=self.references_max,
                    initial_offset=self.initial_offset,
                    span_bytes=self.span_bytes,
                ),
            )
        )

    def ports(self) -> LogPorts[StreamLog]:
        return LogPorts(
            buffers=self._buffers,
            clock_ms=lambda: self.now_ms,
            schedule=self.loop.call_soon,
            save=self._save,
            failed=lambda _, error: self.failures.append(error),
        )

    def _save(self, log: StreamLog, snapshot: Snapshot) -> None:
        self.saved.append(snapshot)
        if self.saves_snapshots:
            self.saving.append(
                save_log(self.store, self.tracking, GENERATION, NAMES, log, snapshot)
            )

    def save(self, log: StreamLog) -> None:
        """Store the final snapshot, as a graceful stop does."""
        snapshot = log.final_snapshot()
        assert snapshot is not None
        self._save(log, snapshot)
        self.settle(log)

    def settle(self, log: StreamLog) -> None:
        """Turn until everything taken is committed and every snapshot is stored."""
        self.loop.run_until(
            lambda: (
                (log.is_idle or log.failure is not None)
                and all(each.is_settled for each in self.saving)
            )
        )

    def turn_until_appended(self, log: StreamLog) -> None:
        """Turn until the open chunk is on its way; the store's answer is not awaited."""
        self.loop.run_until(lambda: log.in_flight_bytes > 0)

    def commit(
        self,
        log: StreamLog,
        *entries: Entry,
        sink: Sink | None = None,
        values: Iterable[bytes] = (),
    ) -> None:
        """Put entries into a chunk of their own."""
        put(log, entries, sink=sink, values=values)
        self.settle(log)

    # What is stored

    def content(self) -> bytes:
        """All bytes of the segment."""
        info = self.do(self.store.info, NAMES.data_segment)
        content = b""
        while info.start + len(content) < info.length:
            position = info.start + len(content)
            read = self.do(self.store.read, NAMES.data_segment, position, info.length - position)
            content += read.data
        return content

    def content_now(self, log: StreamLog) -> bytes:
        """All bytes of a young segment, without turning the loop."""
        content = b""
        while len(content) < log.reader.length:
            data = log.reader.read_cached(len(content), log.reader.length - len(content))
            assert data
            content += data
        return content

    def chunks(self) -> list[tuple[Chunk, bytes]]:
        """Each stored chunk, taken apart on its own, with what lies between data and seal."""
        return chunks_in(self.content())

    def cursor(
        self,
        log: StreamLog,
        position: int = 0,
        *,
        takes_regions: bool = False,
        wanted: SubscriptionFilter | None = None,
    ) -> "Tap":
        """Read chunks from a position on."""
        return Tap(self, log, position, takes_regions=takes_regions, wanted=wanted)


def model_store() -> OpenStore:
    """Give a store that gives what it checked once, and nothing else that was there before."""
    model = Model()
    return lambda loop, _: ModelStore(loop, model)


def store_on_a_disk_without_a_cache() -> OpenStore:
    """Give a local store that keeps nothing in memory but what it checked last."""
    disk = Disk(is_cold=True)
    return lambda loop, _: open_local(disk, loop, Durability.OS)


FORGETFUL = (model_store, store_on_a_disk_without_a_cache)
"""Each makes stores that open the same bytes again, and have little of them in memory."""


class Tap:
    """A cursor whose deliveries are read at once."""

    def __init__(
        self,
        rig: LogRig,
        log: StreamLog,
        position: int,
        *,
        takes_regions: bool,
        wanted: SubscriptionFilter | None,
    ) -> None:
        self.rig = rig
        self.wake_count = 0
        self.sift_count = 0
        self.regions_released = 0
        self.cursor = Cursor(
            log,
            position,
            self._woken,
            chunk_bytes_max=rig.frame_bytes_max - DELIVER_HEAD_BYTES,
            takes_regions=takes_regions,
            wanted=wanted,
        )
        self._scratch = bytearray(rig.frame_bytes_max)

    def _woken(self) -> None:
        self.wake_count += 1

    def next(self) -> ChunkDelivery | None:
        return self.cursor.next(self._scratch)

    def await_next(self) -> ChunkDelivery:
        """The next delivery, as soon as there is one."""
        while True:
            woken = self.wake_count
            delivery = self.next()
            if delivery is not None:
                return delivery
            if not self.cursor.is_sifting:
                self._await_wake(woken)

    def _await_wake(self, woken: int) -> None:
        self.rig.loop.run_until(lambda: self.wake_count > woken)

    def all_now(self) -> list[Chunk]:
        """What is there to be delivered, until only new chunks could give more.

        Or until something cannot be read.
        """
        found: list[Chunk] = []
        while self.cursor.position < self.cursor.log.committed_length:
            woken = self.wake_count
            delivery = self.next()
            if delivery is not None:
                chunk = chunk_of(bytes_of(delivery))
                assert delivery.chunk_id == chunk.chunk_id
                assert delivery.next_offset == chunk.chunk_id + chunk.record_count
                found.append(chunk)
            elif self.cursor.is_sifting:
                self.sift_count += 1
            elif self.cursor.failure is not None:
                break
            elif self.cursor.position < self.cursor.log.committed_length:
                self._await_wake(woken)
        return found


def bytes_of(delivery: ChunkDelivery) -> bytes:
    """Header and data of a delivery; its region is read and released."""
    data = delivery.head
    if delivery.region is not None:
        region = delivery.region
        data += os.pread(region.fileno, region.size, region.position)
        region.release()
    assert len(data) == delivery.size
    return data


def put(
    log: StreamLog,
    entries: Sequence[Entry],
    *,
    sink: Sink | None = None,
    first_id: int = 1,
    reference: bytes = b"",
    values: Iterable[bytes] = (),
) -> None:
    """Copy entries into the open chunk, as the kernel does; their ids count up from `first_id`.

    `values`: the filter values of the entries, b"" for none; not given: all are without.
    """
    encoded = [encode(entry) for entry in entries]
    chunk = log.open_chunk(sum(map(len, encoded)))
    if values:
        chunk.filters = {*(chunk.filters or ()), *values}
    for number, (entry, data) in enumerate(zip(entries, encoded, strict=True), first_id):
        while chunk.written + len(data) > chunk.capacity and chunk.entry_count:
            chunk = log.make_room(len(data))
        while chunk.written + len(data) > len(chunk.buffer):
            chunk = log.make_room(len(data))
        chunk.buffer[chunk.written : chunk.written + len(data)] = data
        records = entry.record_count if isinstance(entry, SubBatch) else 1
        chunk.took(chunk.written + len(data), 1, records)
        if reference:
            chunk.note_sequence(reference, number)
        if sink is not None:
            chunk.add_confirm(sink, number.to_bytes(8))


def encode(entry: Entry) -> bytes:
    """An entry as it stands in a chunk."""
    if isinstance(entry, SubBatch):
        return entry.encoded()
    return len(entry).to_bytes(4) + entry


def chunks_in(content: bytes) -> list[tuple[Chunk, bytes]]:
    """Take a run of events apart: each chunk, and what lies between its data and its seal."""
    found: list[tuple[Chunk, bytes]] = []
    position = 0
    while position < len(content):
        zero, size = struct.unpack_from(">II", content, position)
        assert zero == 0
        event = content[position + 8 : position + 8 + size]
        assert len(event) == size
        data_size = int.from_bytes(event[36:40])
        found.append((chunk_of(event[: 48 + data_size]), event[48 + data_size : -4]))
        position += 8 + size
    return found


def event_of(
    entries: Sequence[Entry],
    *,
    chunk_id: int = 0,
    epoch: int = 1,
    timestamp_ms: int = 0,
    trailer: bytes = b"",
    rest: bytes = b"",
    kind: int = 0,
    seed: int = SEED,
) -> bytes:
    """A stored chunk, written apart from the server's own code."""
    data = b"".join(map(encode, entries))
    records = sum(e.record_count if isinstance(e, SubBatch) else 1 for e in entries)
    header = struct.pack(
        ">BBHIqQQIII4x",
        0x50,
        kind,
        len(entries),
        records,
        timestamp_ms,
        epoch,
        chunk_id,
        zlib.crc32(data),
        len(data),
        len(trailer),
    )
    seal = zlib.crc32(header + trailer + rest, seed).to_bytes(4)
    event = header + data + trailer + rest + seal
    return struct.pack(">II", 0, len(event)) + event


def file_with(rig: LogRig, content: bytes) -> Path:
    """Give the file that holds the segment's content."""
    found = []
    for path in rig.directory.rglob("*"):
        with suppress(FileNotFoundError):  # of a segment that was deleted just now
            if path.is_file() and content in path.read_bytes():
                found.append(path)
    (path,) = found
    return path


def change_on_disk(rig: LogRig, content: bytes, *damage: tuple[int, int]) -> None:
    """Change bytes of the segment's content in the file that holds it."""
    path = file_with(rig, content)
    start = path.read_bytes().index(content)
    with path.open("r+b") as file:
        for place, value in damage:
            file.seek(start + place)
            file.write(bytes([value]))


def state_of(log: StreamLog) -> dict[str, Any]:
    """Everything that an opening must find again."""
    return {
        "next": log.committed_next_offset,
        "length": log.committed_length,
        "first": log.first_chunk_id,
        "last": (log.last_chunk_id, log.last_chunk_position),
        "sequences": dict(log.sequences._last),
        "index": (list(log.index.offsets), list(log.index.positions)),
        "timestamps": list(log.index.timestamps_ms),
        "timestamp": log._timestamp_ms,
        "epoch": log.epoch,
    }


@contextmanager
def passing_rig(**options: Any) -> Iterator[LogRig]:  # noqa: ANN401 - those of LogRig
    """Make a rig for one of many examples; its directory goes with it."""
    with tempfile.TemporaryDirectory() as directory:
        rig = LogRig(Path(directory), **options)
        try:
            yield rig
        finally:
            rig.close()


def write_history(rig: LogRig, log: StreamLog, count: int = 12) -> None:
    """Chunks of several publishers, times and sizes."""
    for number in range(count):
        rig.now_ms += 10
        put(log, [b"%d" % number] * (number % 3 + 1), first_id=number * 10)
        reference = b"p%d" % (number % 4)
        put(log, [SubBatch.of([b"a", bytes(number)])], reference=reference, first_id=number)
        rig.settle(log)


def snapshot_after_chunks(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Have a snapshot stored after so many small chunks."""
    counted = -(-log_module.SNAPSHOT_BYTES // count)
    monkeypatch.setattr(log_module, "SNAPSHOT_CHUNK_BYTES", counted)
