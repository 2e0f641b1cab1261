"""The model behind the seam: shows that it keeps the promises itself."""

import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

from typing_extensions import Buffer

from store.api import (
    CHECKS_KEPT,
    Appended,
    AttributeUpdate,
    Cancel,
    Done,
    Durability,
    FileRegion,
    Reader,
    ReadResult,
    SegmentInfo,
    TableDelta,
    TableEntry,
    TablePage,
    Writer,
)
from store.errors import IsATable, NoSuchSegment, StoreClosed, StoreError
from tests.conformance.harness import Loop
from tests.conformance.model import Model, ModelSegment, ModelWriter, read_segment

T = TypeVar("T")


class ModelStore:
    """Does at once what is called, and tells later."""

    def __init__(self, loop: Loop, model: Model) -> None:
        self._loop = loop
        self._model = model
        self._is_closed = False
        # Bytes that were there before: not in memory until they are checked.
        self._cold = {name: segment.length for name, segment in model.segments.items()}
        # Reads that wait for bytes: tried again after every call.
        self._waiting: list[WaitingRead] = []

    def call(self, done: Done[T], operation: Callable[..., T], *arguments: object) -> None:
        """Do it and tell; then see whether a waiting read can be answered."""
        result: T | StoreError
        try:
            if self._is_closed:
                raise StoreClosed("closed")
            result = operation(*arguments)
        except StoreError as error:
            result = error
        self._loop.call_soon(done, result)
        self._waiting = [read for read in self._waiting if not self._try(read)]

    # Segments

    def create_segment(
        self,
        name: str,
        *,
        done: Done[None],
        durability: Durability | None = None,
        attributes: Sequence[AttributeUpdate] = (),
    ) -> None:
        def create() -> None:
            self._model.create_segment(name, durability=durability, attributes=attributes)
            self._touch(name)

        self.call(done, create)

    def delete_segment(self, name: str, *, done: Done[None]) -> None:
        self.call(done, self._model.delete_segment, name)

    def seal_segment(self, name: str, *, done: Done[int]) -> None:
        self.call(done, self._model.seal_segment, name)

    def truncate_segment(self, name: str, position: int, *, done: Done[None]) -> None:
        self.call(done, self._model.truncate_segment, name, position)

    def merge_segments(
        self,
        target: str,
        source: str,
        *,
        done: Done[int],
        attributes: Sequence[AttributeUpdate] = (),
    ) -> None:
        merge = partial(self._model.merge_segments, attributes=attributes)
        self.call(done, merge, target, source)

    def info(self, name: str, *, done: Done[SegmentInfo]) -> None:
        self.call(done, self._model.info, name)

    def count_segments(self, name: str, *, done: Done[int]) -> None:
        self.call(done, self._model.count_segments, name)

    def list_segments(self, prefix: str, *, done: Done[Sequence[str]]) -> None:
        self.call(done, self._model.list_segments, prefix)

    def open_writer(self, name: str, writer: UUID, *, done: Done[Writer]) -> None:
        def open_it() -> Writer:
            session = self._model.open_writer(name, writer)
            return ModelStoreWriter(self, session, self._model.segment(name))

        self.call(done, open_it)

    def open_reader(self, name: str, *, done: Done[Reader]) -> None:
        def open_it() -> Reader:
            segment = self._model.segment(name)
            if segment.is_table:
                raise IsATable(f"{name!r:.50} is a table")
            return ModelReader(self, self._loop, segment, self._cold.get(name, 0))

        self.call(done, open_it)

    def read(
        self, name: str, position: int, size: int, *, done: Done[ReadResult], wait: bool = False
    ) -> Cancel:
        segment = self._model.segments.get(name)
        if not wait or segment is None or self._is_closed:
            self.call(done, self._model.read, name, position, size)
            return lambda: None
        read = WaitingRead(segment, position, size, done)
        if not self._try(read):
            self._waiting.append(read)
        return read.cancel

    def _try(self, read: "WaitingRead") -> bool:
        """Answer a waiting read if it can be answered; tells whether it was."""
        result = StoreClosed("closed") if self._is_closed else read.result()
        if result is not None:
            self._loop.call_soon(read.tell, result)
        return result is not None

    # Attributes

    def get_attribute(self, name: str, attribute: UUID, *, done: Done[int]) -> None:
        self.call(done, self._model.get_attribute, name, attribute)

    def update_attributes(
        self, name: str, updates: Sequence[AttributeUpdate], *, done: Done[None]
    ) -> None:
        self.call(done, self._model.update_attributes, name, updates)

    # Tables

    def create_table(self, name: str, *, done: Done[None], key_length: int = 0) -> None:
        self.call(done, partial(self._model.create_table, key_length=key_length), name)

    def delete_table(self, name: str, *, done: Done[None], must_be_empty: bool = False) -> None:
        self.call(done, partial(self._model.delete_table, must_be_empty=must_be_empty), name)

    def update_table(
        self,
        name: str,
        entries: Sequence[TableEntry],
        *,
        done: Done[Sequence[int]],
        expected_length: int | None = None,
        durability: Durability | None = None,
    ) -> None:
        def update() -> Sequence[int]:
            return self._model.update_table(
                name, entries, expected_length=expected_length, durability=durability
            )

        self.call(done, update)

    def remove_keys(
        self,
        name: str,
        keys: Sequence[TableEntry],
        *,
        done: Done[None],
        expected_length: int | None = None,
    ) -> None:
        remove = partial(self._model.remove_keys, expected_length=expected_length)
        self.call(done, remove, name, keys)

    def read_table(
        self, name: str, keys: Sequence[bytes], *, done: Done[Sequence[TableEntry | None]]
    ) -> None:
        def look_up() -> Sequence[TableEntry | None]:
            return self._model.read_table(name, keys)

        self.call(done, look_up)

    def iterate_table(self, name: str, *, done: Done[TablePage], **options: Any) -> None:  # noqa: ANN401 - handed on
        self.call(done, partial(self._model.iterate_table, **options), name)

    def read_table_delta(
        self, name: str, position: int, *, done: Done[TableDelta], count: int = 1000
    ) -> None:
        self.call(done, partial(self._model.read_table_delta, count=count), name, position)

    def table_info(self, name: str, *, done: Done[tuple[SegmentInfo, int]]) -> None:
        self.call(done, self._model.table_info, name)

    @property
    def for_removal(self) -> "ModelStore":
        return self  # there is no end to its room

    # Life

    def close(self, *, done: Done[None]) -> None:
        self._is_closed = True
        self._loop.call_soon(done, None)
        self._waiting = [read for read in self._waiting if not self._try(read)]

    def _touch(self, name: str) -> None:
        self._model.segment(name).modified_at_ms = time.time_ns() // 1_000_000


class WaitingRead:
    """A read at the tail."""

    def __init__(
        self, segment: ModelSegment, position: int, size: int, done: Done[ReadResult]
    ) -> None:
        self._segment = segment
        self._position = position
        self._size = size
        self._done = done
        self._is_given_up = False

    def cancel(self) -> None:
        self._is_given_up = True

    def tell(self, result: ReadResult | StoreError) -> None:
        if not self._is_given_up:
            self._done(result)

    def result(self) -> ReadResult | StoreError | None:
        """Give the answer, None while there is none."""
        try:
            result = read_segment(self._segment, self._position, self._size)
        except StoreError as error:
            return error
        return result if result.data or result.end_of_segment else None


class ModelStoreWriter:
    """A session of the model behind the seam."""

    def __init__(self, store: ModelStore, session: ModelWriter, segment: ModelSegment) -> None:
        self._store = store
        self._session = session
        self._segment = segment

    @property
    def event_number(self) -> int:
        return self._session.event_number

    @property
    def length(self) -> int:
        return self._session.length

    def append(
        self,
        data: Buffer,
        event_number: int,
        *,
        done: Done[Appended],
        expected_length: int | None = None,
        durability: Durability | None = None,
    ) -> None:
        def append() -> Appended:
            appended = self._session.append(
                data, event_number, expected_length=expected_length, durability=durability
            )
            self._segment.modified_at_ms = time.time_ns() // 1_000_000
            return appended

        self._store.call(done, append)


class ModelReader:
    """Reads what the model holds, never in a file, and gives no more at once than it promised.

    In memory is what was written since the store was opened. What was checked is so until it has
    been given once.
    """

    def __init__(
        self, store: ModelStore, loop: Loop, segment: ModelSegment, cold_bytes: int
    ) -> None:
        self._store = store
        self._loop = loop
        self._segment = segment
        self._cold_bytes = cold_bytes
        # Checked and not given yet: where each run of bytes begins and ends.
        self._owed: list[tuple[int, int]] = []

    @property
    def start(self) -> int:
        return self._existing().start

    @property
    def length(self) -> int:
        return self._existing().length

    def read_cached(self, position: int, size: int) -> bytes | None:
        data = read_segment(self._existing(), position, size).data
        if position >= self._cold_bytes:
            return data or None
        for run in self._owed:
            first, end = run
            if first <= position < end:
                data = data[: end - position]
                self._owed.remove(run)
                rest = (first, position), (position + len(data), end)
                self._owed += [(begin, stop) for begin, stop in rest if begin < stop]
                return data
        return None

    def region(self, position: int, size: int) -> FileRegion | None:  # noqa: ARG002 - no files
        return None

    def is_cached(self, position: int, size: int) -> bool:
        is_warm = position >= self._cold_bytes
        is_owed = any(run[0] <= position and position + size <= run[1] for run in self._owed)
        return not self._segment.is_deleted and (is_warm or is_owed)

    def check(
        self,
        position: int,
        size: int,
        look: Callable[[memoryview], T],
        *,
        done: Done[T],
        fills: bool = False,  # noqa: ARG002 - nothing is lost here
    ) -> None:
        def run() -> T:
            read_segment(self._segment, position, 1)
            data = self._segment.data[position : position + size]
            results: list[T | StoreError] = []

            def run_look() -> None:
                try:
                    results.append(look(memoryview(data)))
                except StoreError as error:
                    results.append(error)

            thread = threading.Thread(target=run_look)
            thread.start()
            thread.join()
            self._owed = [*self._owed, (position, position + len(data))][-CHECKS_KEPT:]
            if isinstance(results[0], StoreError):
                raise results[0]
            return results[0]

        self._store.call(done, run)

    def _existing(self) -> ModelSegment:
        if self._segment.is_deleted:
            raise NoSuchSegment(f"no segment {self._segment.name!r:.50}")
        return self._segment
