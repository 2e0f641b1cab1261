"""Reads and writes by the calls that Spark makes, in this process and without Java.

What the source passes from one process of Spark to another is pickled here, too.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, TypeVar

import pyarrow as pa
import pytest
from pyspark import TaskContext, cloudpickle
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from pyspark_hutch import DefaultSource
from pyspark_hutch.client.pool import POOL

T = TypeVar("T")

TASKS: Final = 2
"""Of a write."""


def read(options: Mapping[str, str], schema: StructType | None = None) -> list[pa.RecordBatch]:
    """Plan a batch read, then read each partition; return all rows."""
    with _ended_connections():
        source = _source(options)
        reader = source.reader(source.schema() if schema is None else schema)
        batches = []
        for number, partition in enumerate(map(_sent, reader.partitions())):
            with _task(number):
                batches += _sent(reader).read(partition)
    return batches


def write(options: Mapping[str, str], rows: pa.Table) -> None:
    """Write rows in several tasks, and commit them."""
    with _ended_connections():
        writer = _source(options).writer(from_arrow_schema(rows.schema), overwrite=False)
        share = -(-len(rows) // TASKS)
        messages = []
        for number in range(TASKS):
            part = rows.slice(number * share, share)
            with _task(number):
                messages.append(_sent(_sent(writer).write(iter(part.to_batches()))))
        writer.commit(messages)


def refusal(action: Callable[[], object]) -> str:
    """Do something that the source must refuse; return the one line that says why."""
    with pytest.raises(Exception) as failure:  # noqa: PT011  # its module is looked at
        action()
    assert failure.type.__module__.startswith(("hutch.", "pyspark_hutch.")), failure.getrepr()
    line = str(failure.value)
    assert "\n" not in line
    return line


def _source(options: Mapping[str, str]) -> DefaultSource:
    return DefaultSource(CaseInsensitiveDict(options))


def _sent(what: T) -> T:
    """Return what another process gets."""
    sent: T = pickle.loads(cloudpickle.dumps(what))  # type: ignore[no-untyped-call]  # Spark's
    return sent


@contextmanager
def _task(number: int) -> Iterator[None]:
    """Let this process be that of a task."""
    context = TaskContext(stageId=0, partitionId=number, attemptNumber=0, localProperties={})
    try:
        yield
    finally:
        assert TaskContext.get() is context
        TaskContext._setTaskContext(None)  # as Spark's worker does


@contextmanager
def _ended_connections() -> Iterator[None]:
    try:
        yield
    finally:
        POOL.close()
