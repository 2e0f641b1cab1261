"""Confirms of live publishers while a pipeline commits 100 MB at a time; no Spark takes part.

The rows go the way of the sink: staged in frames as a task does it, then committed.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from compat.bench.connection import Address, Connection
from compat.spark_bench import stock
from compat.spark_bench.errors import SparkBenchError
from compat.spark_bench.publisher import Job, publishing
from compat.spark_bench.rows import FIXED_1024
from compat.spark_bench.stage import options_of
from compat.spark_bench.waits import Ground, Took, percentile
from pyspark_hutch.client.cluster import Cluster
from pyspark_hutch.client.pool import Name
from pyspark_hutch.options.write_rules import write_settings
from pyspark_hutch.sink.commits import commit
from pyspark_hutch.sink.stages import Purpose
from pyspark_hutch.sink.targets import prepare
from pyspark_hutch.sink.task import stage_rows

BODY_BYTES: Final = 1024
LIVE: Final = "live"
COMMITTED: Final = "committed"
RATE: Final = 1_000
LIVE_BODY_BYTES: Final = 100
SETTLES_S: Final = 0.5
_ALONE: Final = Purpose("", 0)
_NS_IN_MS: Final = 1e6


def longest_confirm(ground: Ground) -> Took:
    """Commit to the stream of a live publisher; return its longest confirm."""
    address = ground.servers.hutch.address
    with _streams(address, LIVE):
        waited_ns = _waits(address, lambda: _commit_all(ground, LIVE))
    return Took(max(waited_ns) / _NS_IN_MS)


def confirms_of_a_neighbour(ground: Ground) -> Took:
    """Commit beside a live publisher; then a stock client publishes. Return the p99 of both."""
    address = ground.servers.hutch.address
    count = ground.scale.commits * _rows_of(ground)
    job = stock.Job(address=address, stream=COMMITTED, count=count, body_bytes=BODY_BYTES)
    with _streams(address, LIVE, COMMITTED):
        ours_ns = _waits(address, lambda: _commit_all(ground, COMMITTED))
    with _streams(address, LIVE, COMMITTED):
        other_ns = _waits(address, lambda: stock.publish(job))
    return Took(percentile(ours_ns, 0.99) / _NS_IN_MS, percentile(other_ns, 0.99) / _NS_IN_MS)


def _waits(address: Address, work: Callable[[], object]) -> list[int]:
    """Return how long the confirms of a live publisher took during some work."""
    job = Job(address=address, stream=LIVE, rate=RATE, body_bytes=LIVE_BODY_BYTES)
    with publishing(job) as publisher:
        time.sleep(SETTLES_S)
        begin_ns = time.monotonic_ns()
        work()
        end_ns = time.monotonic_ns()
    return publisher.times.within(begin_ns, end_ns)


def _commit_all(ground: Ground, stream: str) -> None:
    """Stage and commit, one after the other; nothing is remembered of these commits.

    Raises:
        SparkBenchError: Rows were not published.
        ClientError: The server refuses.
    """
    options = options_of(ground.servers.hutch.address) | {"stream": stream}
    settings = write_settings(options, is_streaming=False)
    cluster = Cluster(settings.connection, Name("bench-spark"))
    targets = prepare(cluster, settings)
    batches = list(FIXED_1024.batches(_rows_of(ground)))
    for _ in range(ground.scale.commits):
        staged = [stage_rows(cluster, settings, targets, _ALONE, 0, batches)]
        committed = commit(cluster, _ALONE, staged, settings.confirm_timeout_ms)
        if committed.dropped or committed.waiting:
            raise SparkBenchError(f"rows of a commit are not in {stream!r}: {committed}")


def _rows_of(ground: Ground) -> int:
    return ground.scale.commit_bytes // BODY_BYTES


@contextmanager
def _streams(address: Address, *names: str) -> Iterator[None]:
    """Make streams for a block, empty even if they were there."""
    with Connection(address) as connection:
        for name in names:
            connection.delete_if_there(name)
            connection.create(name)
    yield
    with Connection(address) as connection:
        for name in names:
            connection.delete(name)
