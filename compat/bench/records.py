"""The work "records": records put into a log and read from it, in this process, without a server.

That is what a front pays that has no chunks on its wire. The store lies in a folder of the job's
own, and an event loop turns as in the server: a turn puts records until there is no more room.
"""

import asyncio
import tempfile
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Final, TypeVar

from compat.bench.errors import CheckFailed
from compat.bench.frames import body_of
from compat.bench.jobs import Figures, Job
from compat.bench.stopwatch import Stopwatch
from gateway.log.log import StreamLog
from gateway.log.open_chunk import ChunkBuffers
from gateway.log.ports import LogPorts
from gateway.log.records.reading import RecordReader, UnreadableSubBatch, reader_from
from gateway.log.records.writing import NoRoom, RecordWriter
from gateway.log.recovery.log_opening import LogNames, LogSettings, open_log
from gateway.pending import Pending, run
from store.api import Durability, SegmentStore
from store.files import DirectoryFiles
from store.local.store import LocalStore

CHUNK_BYTES_MAX: Final = 1 << 20
PATIENCE_S: Final = 120.0

T = TypeVar("T")


def records(job: Job) -> Figures:
    """Put `message_count` records into a new stream, and read them `repeats` times.

    Returns:
        Microseconds a record: `put` and `read` by the wall clock, `put_cpu` and `read_cpu` of all
        threads of this process.

    Raises:
        CheckFailed: Records were lost, or others read than were put.
    """
    with tempfile.TemporaryDirectory(prefix="records-", dir=job.folder) as folder:
        return asyncio.run(_measured(job, Path(folder)))


async def _measured(job: Job, folder: Path) -> Figures:
    loop = asyncio.get_running_loop()
    store = LocalStore.open(
        DirectoryFiles(folder),
        call_soon_threadsafe=loop.call_soon_threadsafe,
        call_soon=loop.call_soon,
        durability=Durability(job.durability),
    )
    log = await _awaited(_log_in(store))
    await _put(log, job, job.warmup_count)
    putting, reading = Stopwatch(()), Stopwatch(())
    with putting:
        await _put(log, job, job.message_count)
    total = job.warmup_count + job.message_count
    if log.committed_next_offset != total:
        raise CheckFailed(f"{log.committed_next_offset} of {total} records are stored")
    for _ in range(job.repeats):
        with reading:
            await _read(log, job, total)
    closed: asyncio.Future[Any] = loop.create_future()
    store.close(done=closed.set_result)
    await closed
    return {
        **_figures("put", putting, job.message_count),
        **_figures("read", reading, total * job.repeats),
    }


def _figures(name: str, stopwatch: Stopwatch, count: int) -> Figures:
    figures = stopwatch.figures(count)
    each_us = 1e6 / figures["rate"]
    return {name: each_us, f"{name}_cpu": each_us * figures["generator_share"]}


async def _log_in(store: SegmentStore) -> StreamLog:
    """Create a stream's log that takes no snapshots."""
    names = LogNames(
        stream="bench",
        data_segment="bench",
        index_segment="bench-index",
        filter_segment="bench-filters",
    )
    created: Pending[None] = Pending()
    store.create_segment(names.data_segment, done=created.settle)
    await created

    async def replace_nothing(_snapshot: object) -> None:
        """Keep no snapshot."""

    ports: LogPorts[StreamLog] = LogPorts(
        buffers=ChunkBuffers(CHUNK_BYTES_MAX),
        clock_ms=lambda: time.time_ns() // 1_000_000,
        schedule=asyncio.get_running_loop().call_soon,
        failed=lambda _log, _error: None,
        save=lambda _log, _snapshot: None,
    )
    return await open_log(
        store,
        names,
        ports,
        snapshot=None,
        replace_snapshot=replace_nothing,
        epoch=1,
        settings=LogSettings(references_max=1),
    )


def _awaited(coroutine: Coroutine[Pending[Any], None, T]) -> "asyncio.Future[T]":
    """Await a coroutine of the log."""
    future: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    def done(outcome: T | BaseException) -> None:
        if isinstance(outcome, BaseException):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)

    run(coroutine, done)
    return future


class _Putting:
    """Puts records until there is no room, and goes on when there is."""

    def __init__(self, log: StreamLog, record: bytes, count: int) -> None:
        self._writer = RecordWriter(log, self)
        self._record = record
        self._count = count
        self._left = count
        self._stored = 0
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def put(self) -> None:
        """Put what there is room for."""
        put, record, left = self._writer.put, self._record, self._left
        try:
            while left:
                put(record)
                left -= 1
        except NoRoom:
            self._writer.when_room(self.put)
        finally:
            self._left = left

    def committed(self, count: int) -> None:
        """End with the last."""
        self._stored += count
        if self._stored == self._count:
            self.done.set_result(None)

    def lost(self, count: int) -> None:
        """Fail."""
        if not self.done.done():
            self.done.set_exception(CheckFailed(f"{count} records were lost"))


async def _put(log: StreamLog, job: Job, count: int) -> None:
    if count:
        putting = _Putting(log, body_of(job.body_bytes), count)
        putting.put()
        await asyncio.wait_for(putting.done, PATIENCE_S)


async def _read(log: StreamLog, job: Job, count: int) -> None:
    """Read a stream from its beginning. Raises CheckFailed."""
    more = asyncio.Event()
    reader: RecordReader = await _awaited(reader_from(log, 0, more.set))
    expected, record = 0, body_of(job.body_bytes)
    while expected < count:
        found = reader.next()
        if found is None:
            if reader.failure is not None:
                raise CheckFailed(f"offset {expected} cannot be read: {reader.failure}")
            await asyncio.wait_for(more.wait(), PATIENCE_S)
            more.clear()
            continue
        if isinstance(found, UnreadableSubBatch):
            raise CheckFailed(f"offset {found.offset} cannot be read: {found.reason}")
        if found[0][0] != expected or found[-1][2] != record:
            raise CheckFailed(f"offset {found[0][0]} came where {expected} was awaited")
        expected += len(found)
    reader.close()
