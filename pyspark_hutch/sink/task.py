"""Publishes or stages the rows of one task."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

import numpy as np
import pyarrow as pa

from pyspark_hutch.client.cluster import Cluster
from pyspark_hutch.encoding.columns import KEY, NAME, NUMBER, ColumnKind, check_columns
from pyspark_hutch.encoding.errors import BadColumn
from pyspark_hutch.encoding.frames import Ids
from pyspark_hutch.encoding.messages import Messages, messages_of
from pyspark_hutch.encoding.routes import (
    RoutedByColumn,
    RoutedByHash,
    RoutedByKey,
    Routing,
    ToStream,
)
from pyspark_hutch.encoding.sub_batches import Packing
from pyspark_hutch.options.errors import WrongOption
from pyspark_hutch.options.write_settings import StreamWriteSettings
from pyspark_hutch.sink.commits import Staged
from pyspark_hutch.sink.plan import may_be_staged
from pyspark_hutch.sink.publishers import TaskPublishing
from pyspark_hutch.sink.publishing_ids import (
    NumberedByColumn,
    NumberedByPlace,
    Numbering,
    TaskIdentity,
    Unnamed,
)
from pyspark_hutch.sink.stages import Purpose, TaskStaging
from pyspark_hutch.sink.targets import Targets, routes

PRODUCER_NAME: Final = "hutch"
"""The producer's name of a streaming write without one; the query's id goes with it."""

_ORDERED: Final = ColumnKind(
    "a type that has an order: no struct, map or array", lambda kind: not pa.types.is_nested(kind)
)


@dataclass(frozen=True, slots=True)
class RowsWritten:
    """The result of a task.

    Attributes:
        rows: Confirmed by the server.
        skipped: Rows that the server had from an earlier try.
        producers: Streams and names under which it published with ids that servers compare.
    """

    rows: int
    skipped: int
    producers: tuple[tuple[str, str], ...] = field(default=(), compare=False)


def require_one_task_each(written: Iterable[RowsWritten]) -> None:
    """Check that no producer published in two tasks; raises BadColumn.

    A server drops rows below a producer's last id. So where two tasks share one, rows of the
    slower task may be lost, and neither task can see that.
    """
    seen: set[tuple[str, str]] = set()
    for one in written:
        for stream, reference in one.producers:
            if (stream, reference) in seen:
                raise BadColumn(
                    "producer",
                    f"rows of {reference!r} for stream {stream!r} were in two tasks, so some may "
                    "be lost; bring all rows of a key into one task, in order, as with "
                    "repartition(key).sortWithinPartitions(number) in foreachBatch",
                )
            seen.add((stream, reference))


def check_schema(schema: pa.Schema, settings: StreamWriteSettings) -> None:
    """Check the columns of the rows before any task runs.

    Raises:
        BadColumn: A column is missing, unknown or of another type.
        WrongOption: An option needs a column that is not there.
    """
    may_be_staged(settings, schema.names)
    check_columns(
        schema,
        extra=_extra(settings),
        ignore_unknown=settings.ignore_unknown_columns,
        raw=settings.body_format == "raw",
        sub_batches=packing_of(settings).option,
    )
    if settings.stream is None and settings.super_stream is None and "stream" not in schema.names:
        raise WrongOption(
            "rows have no target: set option stream or superStream, or add a column 'stream'"
        )


def packing_of(settings: StreamWriteSettings) -> Packing:
    """Return how rows become entries."""
    return Packing(settings.compression, settings.sub_batch_size)


def write_rows(
    cluster: Cluster,
    settings: StreamWriteSettings,
    targets: Targets,
    task: TaskIdentity,
    batches: Iterable[pa.RecordBatch],
) -> RowsWritten:
    """Publish the rows of a task and wait until all are confirmed.

    Args:
        cluster: The servers.
        settings: Of the write.
        targets: As `prepare` found them.
        task: Names producers.
        batches: The rows, whose columns `check_schema` has allowed.

    Raises:
        ClientError: The server refuses, or does not come back.
        EncodingError: A row cannot be written.
    """
    publishing = TaskPublishing(
        cluster, packing_of(settings), settings.in_flight_max, settings.confirm_timeout_ms
    )
    try:
        _hand_over(cluster, settings, targets, _numbering(settings, task), batches, publishing)
        publishing.finish()
    except BaseException:
        publishing.abort()
        raise
    return RowsWritten(publishing.rows, publishing.skipped, publishing.producers)


def stage_rows(
    cluster: Cluster,
    settings: StreamWriteSettings,
    targets: Targets,
    purpose: Purpose,
    partition: int,
    batches: Iterable[pa.RecordBatch],
) -> Staged:
    """Stage the rows of a task, for the driver to commit; no reader sees them before.

    Args:
        cluster: The servers.
        settings: Of the write.
        targets: As `prepare` found them.
        purpose: The commit.
        partition: The number of the task in its batch.
        batches: The rows, whose columns `check_schema` has allowed.

    Raises:
        ClientError: The server refuses, or does not come back.
        EncodingError: A row cannot be written.
    """
    staging = TaskStaging(
        cluster,
        packing_of(settings),
        purpose,
        settings.confirm_timeout_ms,
        frame_rows_max=settings.in_flight_max,
    )
    try:
        _hand_over(cluster, settings, targets, Unnamed(), batches, staging)
        return Staged(purpose, partition, staging.finish())
    except BaseException:
        staging.abort()
        raise


class RowOutlet(Protocol):
    """The way out of a task: rows of a producer for a stream, in order."""

    def open(self, streams: Sequence[str], reference: str) -> None:
        """Prepare for streams that are new."""

    def publish(self, stream: str, reference: str, messages: Messages, ids: Ids) -> None:
        """Send rows of one producer to one stream."""


def _hand_over(
    cluster: Cluster,
    settings: StreamWriteSettings,
    targets: Targets,
    numbering: Numbering,
    batches: Iterable[pa.RecordBatch],
    outgoing: RowOutlet,
) -> None:
    """Number, encode and route rows, batch by batch."""
    routing = _routing(cluster, settings, targets)
    is_raw = settings.body_format == "raw"
    for batch in _ordered(batches, settings):
        for run in numbering.runs(batch):
            rows = batch if run.rows is None else batch.take(pa.array(run.rows))
            messages = messages_of(rows, raw=is_raw)
            shares = routing.split(rows)
            outgoing.open([share.stream for share in shares], run.reference)
            for share in shares:
                taken, ids = messages, run.ids
                if share.rows is not None:
                    taken, ids = messages.take(share.rows), _chosen(run.ids, share.rows)
                outgoing.publish(share.stream, run.reference, taken, ids)


def _chosen(ids: Ids, rows: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> Ids:
    chosen: Ids = ids[rows]
    return chosen


def _extra(settings: StreamWriteSettings) -> dict[str, ColumnKind]:
    extra: dict[str, ColumnKind] = {}
    if settings.super_stream is not None:
        is_named = settings.routing == "column"
        kind = KEY if settings.routing == "hash" else NAME
        extra["stream" if is_named else settings.routing_key_column] = kind
    if settings.dedup is not None:
        extra |= dict.fromkeys(settings.dedup.order_by, _ORDERED)
        if settings.dedup.key_column is not None:
            extra[settings.dedup.key_column] = NAME
        if settings.dedup.id_column is not None:
            extra[settings.dedup.id_column] = NUMBER
    return extra


def _routing(cluster: Cluster, settings: StreamWriteSettings, targets: Targets) -> Routing:
    if targets.stream is not None:
        return ToStream(targets.stream)
    if targets.super_stream is None:
        return RoutedByColumn(None)
    super_stream, column = targets.super_stream, settings.routing_key_column
    if settings.routing == "column":
        return RoutedByColumn(targets.partitions)
    if settings.routing == "key":

        def lookup(keys: Sequence[str]) -> dict[str, tuple[str, ...]]:
            return dict(routes(cluster, super_stream, keys))

        return RoutedByKey(super_stream, lookup, column)
    return RoutedByHash(targets.partitions, column)


def _numbering(settings: StreamWriteSettings, task: TaskIdentity) -> Numbering:
    dedup = settings.dedup
    if dedup is None:
        return Unnamed()
    if dedup.id_column is not None:
        # With a name of its own a new checkpoint of a query goes on where the old one was; without
        # one, no other query's rows count as written.
        producer = dedup.producer_name or task.own(PRODUCER_NAME)
        return NumberedByColumn(producer, dedup.id_column, dedup.key_column)
    return NumberedByPlace(dedup.producer_name or PRODUCER_NAME, task)


def _ordered(
    batches: Iterable[pa.RecordBatch], settings: StreamWriteSettings
) -> Iterator[pa.RecordBatch]:
    """Sort the rows of the task if the settings say so; all of them are in memory then."""
    if settings.dedup is None or not settings.dedup.order_by:
        yield from batches
        return
    held = list(batches)
    if held:
        order = [(name, "ascending") for name in settings.dedup.order_by]
        yield from pa.Table.from_batches(held).sort_by(order).combine_chunks().to_batches()
