"""`hutch pipeline to-lake`: every row lands once, whatever ends the job."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hutch.stream import messages as m
from pyspark_hutch.jobs.errors import JobFailed, WrongArgument
from tests.spark.commands import ROOT, Run, json_bodies, run
from tests.spark.conftest import Place
from tests.spark.publishing import append, create_super_stream, publish
from tests.spark.queries import eventually

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pyspark_hutch.jobs.lakes import Lake
    from pyspark_hutch.jobs.runs.batches import BatchName, JobResult

__all__ = ["run"]

COUNT = 3_000
BATCH = 1_000
JOB_S = 150
"""For a job with a JVM of its own, on a busy machine."""


class Killed(Exception):
    """The error with which a test ends a job."""


def killed(lake: Lake, number: int) -> Lake:
    """Return a lake that takes a batch and dies, before Spark has noted that the batch is done."""

    class Killing(type(lake)):  # type: ignore[misc]  # its base is known only here
        def write(self, batch: DataFrame, name: BatchName) -> JobResult:
            done: JobResult = super().write(batch, name)
            if name.number == number:
                raise Killed
            return done

    dying = copy(lake)
    dying.__class__ = Killing
    return dying


def lake_of(kind: str, folder: Path) -> Lake:
    if kind == "parquet":
        from pyspark_hutch.jobs.lakes import ParquetLake

        return ParquetLake(str(folder))
    if kind == "delta":
        from pyspark_hutch.jobs.lake_delta import DeltaLake

        return DeltaLake(str(folder))
    from pyspark_hutch.jobs.lake_iceberg import IcebergLake

    return IcebergLake(str(folder), "raw.orders")


def landed(kind: str, folder: Path) -> dict[str, list[Any]]:
    """The rows of a lake, read by another library than Spark."""
    import pyarrow.parquet as pq

    table: Any
    if kind == "parquet":
        table = pq.ParquetDataset(folder).read()
    elif kind == "delta":
        import pyarrow as pa
        from deltalake import DeltaTable

        table = pa.table(DeltaTable(str(folder)).to_pyarrow_table())
    else:
        lake: Any = lake_of(kind, folder)
        table = lake.table().scan().to_arrow()
    found: dict[str, list[Any]] = table.to_pydict()
    return found


@pytest.mark.parametrize("kind", ["parquet", "delta", "iceberg"])
def test_a_job_that_dies_between_lake_and_checkpoint_lands_every_row_once(
    kind: str, spark: SparkSession, place: Place, stream: str, tmp_path: Path
) -> None:
    from pyspark_hutch.jobs.to_lake import to_lake

    folder = tmp_path / "lake"
    lake = lake_of(kind, folder)
    options = {**place.options, "stream": stream, "maxOffsetsPerTrigger": str(BATCH)}
    with place.client() as client:
        publish(client, stream, json_bodies(COUNT))
        with pytest.raises(JobFailed):
            to_lake(spark, options, killed(lake, 2))
        before = len(landed(kind, folder)["offset"])

        again = to_lake(spark, options, lake_of(kind, folder))
        append(client, stream, [b"later"])
        later = to_lake(spark, options, lake)

    assert before == 2 * BATCH
    assert (again.rows, again.batches, later.rows) == (COUNT - before, 1, 1)
    rows = landed(kind, folder)
    assert sorted(rows["offset"]) == list(range(COUNT + 1))
    assert sorted(rows["body"]) == sorted([*json_bodies(COUNT), b"later"])
    assert {"stream", "super_stream", "partition", "timestamp", "body_type"} <= rows.keys()


def test_a_job_that_goes_on_after_a_kill_asks_the_server_what_is_left(
    place: Place, stream: str
) -> None:
    from pyspark_hutch.jobs.runs.batches import RowsLeft
    from pyspark_hutch.jobs.runs.progress import Standing

    with place.client() as client:
        publish(client, stream, json_bodies(30))
    ends = {"endOffset": json.dumps({stream: {"o": 10}}), "latestOffset": "null"}
    left = RowsLeft({**place.options, "stream": stream})

    assert left({"sources": [ends]}, Standing(rows=10)) == Standing(rows=10, left=20, done=10)


def test_a_folder_that_was_not_finished_is_replaced(
    spark: SparkSession, place: Place, stream: str, tmp_path: Path
) -> None:
    from pyspark_hutch.jobs.to_lake import to_lake

    lake = lake_of("parquet", tmp_path)
    options = {**place.options, "stream": stream}
    with place.client() as client:
        publish(client, stream, json_bodies(10))
    with pytest.raises(JobFailed):
        to_lake(spark, options, killed(lake, 1))
    (mark,) = tmp_path.glob("batch=*/_SUCCESS")
    mark.unlink()

    assert to_lake(spark, options, lake).rows == 10
    assert sorted(landed("parquet", tmp_path)["offset"]) == list(range(10))


def test_a_folder_with_another_kind_of_lake_is_refused(
    spark: SparkSession, place: Place, stream: str, tmp_path: Path
) -> None:
    from pyspark_hutch.jobs.to_lake import to_lake

    options = {**place.options, "stream": stream}
    with place.client() as client:
        publish(client, stream, [b"x"])
    to_lake(spark, options, lake_of("delta", tmp_path))

    for kind in ("parquet", "iceberg"):
        with pytest.raises(WrongArgument, match=f"format delta; {kind} needs another folder"):
            to_lake(spark, options, lake_of(kind, tmp_path))
    assert landed("delta", tmp_path)["body"] == [b"x"]


def test_columns_that_are_no_schema_are_one_line(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("to-lake", "orders", tmp_path, "--columns", "nope") == 2
    assert capsys.readouterr().err.startswith("hutch: columns 'nope': [PARSE_SYNTAX_ERROR]")


def test_the_command_lands_a_super_stream_and_chooses_columns(
    run: Run, place: Place, stream: str, tmp_path: Path
) -> None:
    with place.client() as client:
        for part in create_super_stream(client, stream, 2):
            append(client, part, json_bodies(10))

    code = run(
        "to-lake", stream, tmp_path, "--super-stream", "--format", "iceberg", "--table",
        "raw.orders", "--columns", "`partition` int, `offset` bigint",
    )  # fmt: skip

    assert code == 0
    rows = landed("iceberg", tmp_path)
    assert sorted(zip(rows["partition"], rows["offset"], strict=True)) == [
        (part, offset) for part in range(2) for offset in range(10)
    ]


def test_the_python_of_the_page_runs_as_printed(
    spark: SparkSession,
    place: Place,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from pyspark_hutch.jobs import session

    @contextmanager
    def shared(*_: object) -> Iterator[SparkSession]:
        yield spark

    monkeypatch.setattr(session, "session", shared)
    monkeypatch.chdir(tmp_path)
    with place.client() as client:
        client.code_of("delete_stream", m.DeleteStream("orders"))  # another page has one as well
        publish(client, "orders", json_bodies(10))
    page = (ROOT / "docs" / "pipeline.md").read_text(encoding="utf-8")
    first, second = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}

    exec(first.replace("localhost:5552", place.options["endpoints"]), names)
    exec(second, names)

    assert capsys.readouterr().out == "10 rows in 1 batches\n"
    assert names["add_price"]({"body": {"amount": 2}}) == {"body": {"amount": 2, "price": 6}}


def test_a_stream_that_is_not_there_is_one_line(
    run: Run, stream: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("to-lake", stream, tmp_path) == 1
    assert f"hutch: stream '{stream}' does not exist\n" in capsys.readouterr().err


@contextmanager
def process(place: Place, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """Run `hutch pipeline to-lake …` as a person would, in a group of its own."""
    command = [sys.executable, "-m", "gateway", "pipeline", "to-lake", *map(str, arguments)]
    command += ["--endpoints", place.options["endpoints"], "--option", "advertised=ignore"]
    command += ["--master", "local[1]", "--format", "delta"]
    environment = os.environ | {"PYTHONPATH": os.environ.get("PYTHONPATH", str(ROOT))}
    with subprocess.Popen(
        command, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as started:
        try:
            yield started
        finally:
            if started.poll() is None:
                os.killpg(started.pid, signal.SIGKILL)


def commits(folder: Path) -> int:
    return len(list((folder / "_delta_log").glob("*.json")))


def test_a_job_killed_in_the_middle_lands_every_row_once_when_run_again(
    run: Run, place: Place, stream: str, tmp_path: Path
) -> None:
    folder, count = tmp_path / "lake", 8_000
    with place.client() as client:
        publish(client, stream, json_bodies(count), at_once=100)
    with process(place, stream, folder, "--option", "maxOffsetsPerTrigger=200") as job:
        eventually(lambda: commits(folder) > 2 or job.poll() is not None, JOB_S)
        os.killpg(job.pid, signal.SIGKILL)
        job.wait(JOB_S)
    before = commits(folder)

    assert run("to-lake", stream, folder, "--format", "delta") == 0

    assert 2 < before < count / 200, "it was in the middle"
    assert sorted(landed("delta", folder)["offset"]) == list(range(count))


def test_ctrl_c_ends_a_job_after_its_batch(
    run: Run, place: Place, stream: str, tmp_path: Path
) -> None:
    folder, count = tmp_path / "lake", 8_000
    with place.client() as client:
        publish(client, stream, json_bodies(count), at_once=100)
    option = "maxOffsetsPerTrigger=200"
    with process(place, stream, folder, "--continuous", "--option", option) as job:
        eventually(lambda: commits(folder) > 2 or job.poll() is not None, JOB_S)
        os.killpg(job.pid, signal.SIGINT)
        _, said = job.communicate(timeout=JOB_S)
    rows = len(landed("delta", folder)["offset"])

    assert job.returncode == 130, said
    lines = said.splitlines()
    assert lines[-2] == "ending after this batch; Ctrl-C again ends at once"
    assert lines[-1].startswith(f"interrupted: {rows:,} rows, ")
    assert run("to-lake", stream, folder, "--format", "delta") == 0
    assert sorted(landed("delta", folder)["offset"]) == list(range(count))
