"""Records in and out of a log in one process: what is measured, and what is found wrong."""

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from compat.bench import records as records_module
from compat.bench import steps
from compat.bench.connection import Address
from compat.bench.errors import CheckFailed
from compat.bench.generator import WORKS, perform
from compat.bench.jobs import Figures, Job
from compat.bench.rows import ROWS
from compat.bench.scale import QUICK
from compat.bench.servers import HUTCH_DISK, HUTCH_OS, RABBITMQ, ServerName
from gateway.log.log import StreamLog
from gateway.log.records.reading import RecordReader, reader_from
from gateway.log.records.writing import RecordWriter
from gateway.pending import Pending
from store.errors import DiskFull
from tests.unit.compat.bench.test_campaign import Pretended


def job_in(folder: Path, **fields: Any) -> Job:  # noqa: ANN401 - the fields of a job
    given = {"message_count": 3_000, "warmup_count": 100, "repeats": 2, **fields}
    return Job(work="records", address=Address("nowhere", 1), folder=str(folder), **given)


@pytest.mark.parametrize("durability", ["os", "disk"])
def test_records_are_put_and_read_and_nothing_is_left(tmp_path: Path, durability: str) -> None:
    figures = perform(job_in(tmp_path, durability=durability))

    wanted = {m.key for row in ROWS if row.name.startswith("records_") for m in row.metrics}
    assert figures.keys() == wanted
    assert min(figures.values()) > 0
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_skips_a_record_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def skipping(
        log: StreamLog, offset: int, wake: Callable[[], object]
    ) -> Coroutine[Pending[Any], None, RecordReader]:
        return reader_from(log, offset + 1, wake)

    monkeypatch.setattr(records_module, "reader_from", skipping)
    with pytest.raises(CheckFailed, match="offset 1 came where 0 was awaited"):
        WORKS["records"](job_in(tmp_path))


def test_records_that_are_lost_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def put_and_fail(writer: RecordWriter, record: bytes) -> None:
        put(writer, record)
        writer._log.fail(DiskFull("full"))

    put = RecordWriter.put
    monkeypatch.setattr(RecordWriter, "put", put_and_fail)
    with pytest.raises((CheckFailed, DiskFull)):
        WORKS["records"](job_in(tmp_path))


@pytest.mark.parametrize(
    ("name", "durability"), [(HUTCH_OS, "os"), (HUTCH_DISK, "disk"), (RABBITMQ, None)]
)
def test_the_durability_is_that_of_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: ServerName, durability: str | None
) -> None:
    jobs: list[Job] = []

    def note(job: Job) -> Figures:
        jobs.append(job)
        return {"put": 1.0}

    monkeypatch.setattr(steps, "perform", note)
    server = Pretended(name)
    server.data_folder = tmp_path / "data"
    results = steps.records(server, QUICK, {"records_in"})

    if durability is None:
        assert (results, jobs) == ({}, [])
    else:
        assert results == {"records_in": {"put": 1.0}}
        assert (jobs[0].durability, jobs[0].folder) == (durability, str(tmp_path))
        assert jobs[0].message_count == QUICK.records
