"""The batch that is being put together from the records of one chunk or of many.

Bodies, their ends and their kinds stand in arrays that become the batch's own memory. Values
that all records of a run have (chunk, time, first offset) are kept once, and spread at the end.
"""

from array import array
from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from hutch.formats.amqp.sections import Source
from hutch.formats.sub_batches import BadSubBatch
from pyspark_hutch.columns import WantedColumns
from pyspark_hutch.decoding.bodies import BAD_SUB_BATCH, BODY_TYPES, EXTENTS, NOTHING, RAW, skim
from pyspark_hutch.decoding.fields import Numbers, micros_of
from pyspark_hutch.decoding.sections import SectionRows, sections_of

ROWS_MAX: Final = 10_000
"""Rows of a batch: the number that costs Spark least."""
BATCH_BYTES_MAX: Final = 8 << 20
"""Bytes of the messages of a batch, of more than one: larger batches cost Spark twice as much."""
SECTION_ROWS_MAX: Final = 1_024
"""Records in one call of the loops where sections are wanted: their places are 112 bytes each."""
_BODIES_MIN: Final = 64 << 10
_NO_LIMIT: Final = 1 << 62
_NOT_IN_A_SUB_BATCH: Final = -1


class RunPlace(NamedTuple):
    """The place of a run of records; each record has the next offset.

    Attributes:
        entry: Index of the first record's entry. Simple entries count on, a sub-batch stays.
        sub: Index of the first record in its sub-batch; -1 outside of one.
    """

    offset: int
    timestamp_ms: int
    chunk_id: int
    entry: int
    sub: int = _NOT_IN_A_SUB_BATCH


class OpenBatch:
    """The rows of the next batch.

    Attributes:
        row: How many there are.
        used: Bytes of `bodies` in use.
    """

    def __init__(self, wanted: WantedColumns) -> None:
        self.schema = wanted.schema()
        names = set(self.schema.names)
        self.sections: list[SectionRows] = (
            sections_of(wanted) if wanted.body_format == "amqp" else []
        )
        self.has_bodies = "body" in names
        self.is_amqp = wanted.body_format == "amqp" and (
            self.has_bodies or "body_type" in names or bool(self.sections)
        )
        self.step = EXTENTS if self.sections else 0
        self.extents = np.zeros(EXTENTS * (SECTION_ROWS_MAX if self.sections else 1), np.int64)
        self._constants = _constants(wanted)
        self._makers = [self._maker(name) for name in self.schema.names]
        self._capacity = _BODIES_MIN
        self._begin()

    def _begin(self) -> None:
        """Take fresh memory: that of the batch before belongs to the caller."""
        self.row = 0
        self.used = 0
        self._weight = 0
        self._allowance = BATCH_BYTES_MAX if self.has_bodies or self.sections else _NO_LIMIT
        self._runs = array("q")
        self._bad: dict[int, BadSubBatch] = {}
        self._buffer = pa.allocate_buffer(self._capacity if self.has_bodies else 0)
        self.bodies = np.frombuffer(self._buffer, np.uint8)
        self._ends_buffer = pa.allocate_buffer(4 * (ROWS_MAX + 1))
        self.ends = np.frombuffer(self._ends_buffer, np.int32)
        self.ends[0] = 0
        self.kinds = np.empty(ROWS_MAX, np.uint8)

    def rows_left(self) -> int:
        """The most records that the loops may take in one call."""
        left = ROWS_MAX - self.row
        return min(left, SECTION_ROWS_MAX) if self.step else left

    def budget(self) -> int:
        """The most bytes of messages that the loops may take in one call."""
        left = self._allowance - self._weight
        return min(left, len(self.bodies) - self.used) if self.has_bodies else left

    def make_room(self, size: int) -> bool:
        """Make room for a message of this size; False if it belongs into the next batch."""
        if self._weight + size > self._allowance:
            if self.row:
                return False
            self._allowance = size
        if self.has_bodies and self.used + size > len(self.bodies):
            least = self.used + size
            self._grow(max(least, min(2 * len(self.bodies), BATCH_BYTES_MAX)))
        return True

    def _grow(self, capacity: int) -> None:
        larger = pa.allocate_buffer(capacity)
        bodies = np.frombuffer(larger, np.uint8)
        bodies[: self.used] = self.bodies[: self.used]
        self._buffer, self.bodies = larger, bodies

    def took(self, row: int, used: int, weight: int, place: RunPlace, source: Source) -> None:
        """Note the rows that a call of the loops took: those up to `row`, all of one run."""
        count = row - self.row
        self._runs.extend((count, *place))
        for section in self.sections:
            section.gather(source, self.extents[: count * EXTENTS], self.row)
        self.row = row
        self.used = used
        self._weight += weight

    def put(self, kind: int, body: bytes, message: bytes, place: RunPlace) -> None:
        """Add the record of a message whose body was put together."""
        if self.has_bodies:
            stop = self.used + len(body)
            if stop > len(self.bodies):
                self._grow(max(stop, 2 * len(self.bodies)))
            self.bodies[self.used : stop] = np.frombuffer(body, np.uint8)
            self.ends[self.row + 1] = self.used = stop
        self.kinds[self.row] = kind
        if self.sections and kind not in {RAW, BAD_SUB_BATCH}:
            extents = np.array(skim(message, 0, len(message))[3])
            for section in self.sections:
                section.gather(message, extents, self.row)
        self._runs.extend((1, *place))
        self.row += 1
        self._weight += max(len(message), len(body))

    def put_bad(self, bad: BadSubBatch, body: bytes, place: RunPlace) -> None:
        """Add a row for a sub-batch that cannot be opened."""
        self._bad[self.row] = bad
        self.put(BAD_SUB_BATCH, body, body, place)

    def batch(self) -> pa.RecordBatch:
        """Return the rows, and begin anew."""
        runs = np.frombuffer(self._runs, np.int64).reshape(-1, 1 + len(RunPlace._fields))
        columns = [make(runs) for make in self._makers]
        batch = pa.RecordBatch.from_arrays(columns, schema=self.schema)
        for section in self.sections:
            section.clear()
        self._capacity = min(max(self.used + self.used // 8, _BODIES_MIN), BATCH_BYTES_MAX)
        self._begin()
        return batch

    def _maker(self, name: str) -> Callable[[Numbers], pa.Array]:
        """Return the function that makes a column from the runs."""
        if name in self._constants:
            return lambda _: self._constants[name].slice(0, self.row)
        makers: dict[str, Callable[[Numbers], pa.Array]] = {
            "offset": _offsets,
            "timestamp": lambda runs: micros_of(np.repeat(runs[:, 2], runs[:, 0])),
            "chunk_id": lambda runs: _plain(np.repeat(runs[:, 3], runs[:, 0])),
            "entry_index": _entries,
            "sub_index": _subs,
            "body": lambda _: self._bodies(),
            "body_type": lambda _: self._body_types(),
            "bad_sub_batch": lambda _: self._bad_sub_batches(),
        }
        for section in self.sections:
            makers.update(section.makers(lambda: self.row))
        return makers.get(name) or (lambda _: pa.nulls(self.row, self.schema.field(name).type))

    def _bodies(self) -> pa.Array:
        kinds = self.kinds[: self.row]
        validity = None
        if self.is_amqp and (kinds == NOTHING).any():
            validity = pa.py_buffer(np.packbits(kinds != NOTHING, bitorder="little"))
        buffers = [validity, self._ends_buffer, self._buffer]
        return pa.Array.from_buffers(pa.binary(), self.row, buffers)

    def _bad_sub_batches(self) -> pa.Array:
        kind = self.schema.field("bad_sub_batch").type
        if not self._bad:
            return pa.nulls(self.row, kind)
        said: list[dict[str, object] | None] = [None] * self.row
        for row, bad in self._bad.items():
            codec, records, size, _, _ = bad.head
            values = (str(bad), codec, records, size)
            said[row] = dict(zip(kind.names, values, strict=True))
        return pa.array(said, kind)

    def _body_types(self) -> pa.Array:
        kinds = self.kinds[: self.row]
        first = int(kinds[0])
        if (kinds == first).all():
            return self._constants[_TYPE_KEYS[first]].slice(0, self.row)
        return pa.array(BODY_TYPES, pa.string()).take(pa.array(kinds))


_TYPE_KEYS: Final = tuple(f"body_type {name}" for name in BODY_TYPES)


def _constants(wanted: WantedColumns) -> dict[str, pa.Array]:
    """Make the columns in which all rows are alike, as long as a batch gets."""
    values: list[tuple[str, object, pa.DataType]] = [
        ("stream", wanted.stream, pa.string()),
        ("super_stream", wanted.super_stream, pa.string()),
        ("partition", wanted.partition, pa.int32()),
    ]
    values += [(key, name, pa.string()) for key, name in zip(_TYPE_KEYS, BODY_TYPES, strict=True)]
    return {key: pa.repeat(pa.scalar(value, kind), ROWS_MAX) for key, value, kind in values}


def _plain(numbers: Numbers) -> pa.Array:
    return pa.Array.from_buffers(pa.int64(), len(numbers), [None, pa.py_buffer(numbers)])


def _steps(runs: Numbers) -> Numbers:
    """Return each record its index in its run."""
    counts = runs[:, 0]
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)


def _offsets(runs: Numbers) -> pa.Array:
    return _plain(np.repeat(runs[:, 1], runs[:, 0]) + _steps(runs))


def _entries(runs: Numbers) -> pa.Array:
    is_simple = np.repeat(runs[:, 5], runs[:, 0]) == _NOT_IN_A_SUB_BATCH
    indexes = np.repeat(runs[:, 4], runs[:, 0]) + np.where(is_simple, _steps(runs), 0)
    return pa.array(indexes.astype(np.int32))


def _subs(runs: Numbers) -> pa.Array:
    firsts = np.repeat(runs[:, 5], runs[:, 0])
    indexes = (firsts + _steps(runs)).astype(np.int32)
    return pa.array(indexes, mask=firsts == _NOT_IN_A_SUB_BATCH)
