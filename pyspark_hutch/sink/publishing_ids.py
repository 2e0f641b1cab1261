"""Publishing ids of rows, and the names of the producers that they count for.

A server drops a row whose id is not above the last one of its producer. So ids begin at 1, since a
server answers 0 for a producer that it does not know, and they are the same whenever a row comes
again. Names are few: a server remembers 255 producers of a stream.
"""

from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
import pyarrow as pa

from pyspark_hutch.encoding.arrays import Counts
from pyspark_hutch.encoding.errors import BadColumn
from pyspark_hutch.encoding.frames import Ids

BATCHES_MAX: Final = 1 << 31
"""Ids stay below 2^63, since some clients have no larger numbers."""

NUMBER_MAX: Final = (1 << 63) - 2
"""The largest number of a row in a column; its id is one more."""

ROWS_MAX: Final = (1 << 32) - 1
REFERENCE_BYTES_MAX: Final = 255


@dataclass(frozen=True, slots=True)
class TaskIdentity:
    """The place of a task in its query.

    Attributes:
        partition: Its number among the tasks of a batch.
        query: The id of a streaming query; None for a batch write.
        batch: The number of the batch; 0 for a batch write.
    """

    partition: int
    query: str | None = None
    batch: int = 0

    def own(self, name: str) -> str:
        """Return a producer's name that no other streaming query has."""
        return name if self.query is None else f"{name}-{self.query[:8]}"


@dataclass(frozen=True, slots=True)
class ProducerRun:
    """Rows of a batch that one producer publishes.

    Attributes:
        reference: The producer's name; empty for none.
        rows: Their indices in the batch, ascending; None for all.
        ids: Of these rows.
    """

    reference: str
    rows: Counts | None
    ids: Ids


class Numbering(Protocol):
    """Assigns rows their ids; sees each row of a task once, in order."""

    def runs(self, batch: pa.RecordBatch) -> list[ProducerRun]:
        """Number the rows of the next batch."""


class Unnamed:
    """Counts rows, for confirms alone: no server compares these ids."""

    def __init__(self) -> None:
        self._next = 1

    def runs(self, batch: pa.RecordBatch) -> list[ProducerRun]:
        first, self._next = self._next, self._next + len(batch)
        return [ProducerRun("", None, np.arange(first, self._next, dtype=np.uint64))]


class NumberedByPlace:
    """Numbers the rows of a task as they come, which is only safe if they always come so."""

    def __init__(self, producer: str, task: TaskIdentity) -> None:
        if task.batch >= BATCHES_MAX:
            raise BadColumn("batch", f"{task.batch} is above what ids have room for")
        self._reference = reference_of(f"{task.own(producer)}-p{task.partition}")
        self._base = task.batch << 32
        self._next = 1

    def runs(self, batch: pa.RecordBatch) -> list[ProducerRun]:
        first, self._next = self._next, self._next + len(batch)
        if self._next > ROWS_MAX:
            raise BadColumn("rows", "a task has more than 2^32 rows; use more partitions")
        ids = np.arange(self._base + first, self._base + self._next, dtype=np.uint64)
        return [ProducerRun(self._reference, None, ids)]


class NumberedByColumn:
    """Takes ids from a column, and the producer of each row from another.

    An id is the column's number + 1, so offsets may be taken as they are. For each producer they
    must ascend, which is checked before anything of the batch is published.
    """

    def __init__(self, producer: str, id_column: str, key_column: str | None) -> None:
        self._producer = producer
        self._id_column = id_column
        self._key_column = key_column
        self._last: dict[str, int] = {}

    def runs(self, batch: pa.RecordBatch) -> list[ProducerRun]:
        numbers = self._numbers(batch)
        runs = []
        for key, rows in self._by_key(batch):
            chosen = numbers if rows is None else numbers[rows]
            self._check_order(key, chosen)
            name = f"{self._producer}-{key}" if self._key_column else self._producer
            runs.append(ProducerRun(reference_of(name), rows, (chosen + 1).astype(np.uint64)))
        return runs

    def _numbers(self, batch: pa.RecordBatch) -> Counts:
        column = batch.column(self._id_column)
        if column.null_count:
            raise BadColumn(self._id_column, "null, where each row needs its number")
        numbers: Counts = column.cast(pa.int64()).to_numpy(zero_copy_only=False)
        if len(numbers) and numbers.min() < 0:
            raise BadColumn(self._id_column, f"{numbers.min()} is negative")
        if len(numbers) and numbers.max() > NUMBER_MAX:
            raise BadColumn(self._id_column, f"{numbers.max()} is above what ids have room for")
        return numbers

    def _by_key(self, batch: pa.RecordBatch) -> list[tuple[str, Counts | None]]:
        if self._key_column is None:
            return [("", None)] if len(batch) else []
        column = batch.column(self._key_column)
        if column.null_count:
            raise BadColumn(self._key_column, "null, where each row needs its producer")
        encoded = column.cast(pa.string()).dictionary_encode()
        indices = np.asarray(encoded.indices)
        keys: list[str] = encoded.dictionary.to_pylist()
        if len(keys) == 1:
            return [(keys[0], None)]
        return [(key, np.flatnonzero(indices == index)) for index, key in enumerate(keys)]

    def _check_order(self, key: str, numbers: Counts) -> None:
        if not len(numbers):
            return
        before = np.concatenate([[self._last.get(key, -1)], numbers[:-1]])
        wrong = np.flatnonzero(numbers <= before)
        if len(wrong):
            at = int(wrong[0])
            of_key = f" of producer {key!r}" if self._key_column else ""
            raise BadColumn(
                self._id_column,
                f"{numbers[at]} comes behind {before[at]}{of_key}; numbers must ascend, and all "
                "rows of a producer must be in one task",
            )
        self._last[key] = int(numbers[-1])


def reference_of(name: str) -> str:
    """Check the length of a producer's name; raises BadColumn."""
    if len(name.encode()) > REFERENCE_BYTES_MAX:
        raise BadColumn("producer", f"the name {name[:40]!r}… has more than 255 bytes")
    return name
