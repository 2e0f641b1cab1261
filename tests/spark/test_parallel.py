"""Many streams at once, and the memory that a task takes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hutch.client.conversation import PIPELINED_MAX
from hutch.stream import messages as m
from tests.integration.server import HutchServer
from tests.spark.conftest import Place, Read
from tests.spark.proxy import Change, Proxy, as_it_is, without_pipeline
from tests.spark.publishing import append, publish

STREAMS = 1_000
MIB = 1024 * 1024
TASK_BYTES_MAX = 64 * MIB

READER = """
import gc, json, resource, sys, time
from pathlib import Path

import pyarrow as pa
from pyspark_hutch.client.cluster import Cluster
from pyspark_hutch.client.pool import Name
from pyspark_hutch.columns import WantedColumns
from pyspark_hutch.options.read_rules import read_settings
from pyspark_hutch.planning.batch import plan_batch
from pyspark_hutch.split_task import rows_of

def peak():
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024

settings = read_settings(json.loads(sys.argv[1]), is_streaming=False)
cluster = Cluster(settings.connection, Name("memory"))
(split,) = plan_batch(cluster, settings)
wanted = WantedColumns(stream=split.place.stream)
warm = pa.RecordBatch.from_pylist([{"body": b"x"}])
before = peak()
rows, largest, size = 0, 0, 0
for batch in rows_of(cluster, split, settings, wanted):
    rows += batch.num_rows
    size += batch.nbytes
    largest = max(largest, batch.nbytes)
    time.sleep(0.02)
print(json.dumps([rows, size, largest, peak() - before]))
"""


@pytest.mark.parametrize("change", [as_it_is, without_pipeline])
def test_a_thousand_streams_are_planned_in_one_request_or_in_many_that_do_not_wait(
    hutch: HutchServer, place: Place, stream: str, read: Read, change: Change
) -> None:
    names = [f"{stream[-20:]}-{number}" for number in range(STREAMS)]
    with place.client() as client:
        asked = [client.send_request("create_stream", m.CreateStream(name, {})) for name in names]
        for correlation_id in asked:
            client.answer_to(correlation_id, 60)
        append(client, names[7], [b"a row"])
        append(client, names[-1], [b"a row"])

    with Proxy(place.host, place.port) as proxy:
        proxy.on_answer = change
        through = Place("hutch", proxy.host, proxy.port)
        rows = read(through, "stream string", stream=",".join(names)).collect()
        requests, turns, opened = proxy.requests, proxy.turns, proxy.opened

    assert sorted(row.stream for row in rows) == sorted([names[7], names[-1]])
    if change is as_it_is:
        assert requests["plan_streams"] == 1
        # Each of the two tasks looks once more, for its own stream.
        assert requests["describe_streams"] == 1 + 2
        assert requests["stream_stats"] == requests["metadata"] == 0
    else:
        assert requests["stream_stats"] in (STREAMS + 1, STREAMS + 2)
    # A round trip for each part of the pipeline, a few of the handshakes and of the tasks.
    assert turns <= opened * 8 + 2 * STREAMS / PIPELINED_MAX + 20
    assert hutch.is_running


@pytest.mark.parametrize(
    ("body_bytes", "count", "at_once"), [(100, 400_000, 5_000), (MIB // 2, 160, 1)]
)
def test_a_task_takes_little_memory_however_slow_spark_is(
    place: Place, stream: str, body_bytes: int, count: int, at_once: int
) -> None:
    with place.client() as client:
        client.timeout_s = 60
        publish(client, stream, [bytes(body_bytes)] * count, at_once=at_once)
    options = place.options | {"stream": stream}

    done = subprocess.run(
        [sys.executable, "-c", READER, json.dumps(options)],
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
        cwd=Path("/"),
    )

    assert done.returncode == 0, done.stderr
    rows, size, largest, taken = json.loads(done.stdout)
    assert rows == count
    assert size >= body_bytes * count
    assert largest <= 9 * MIB
    assert taken - largest <= TASK_BYTES_MAX
