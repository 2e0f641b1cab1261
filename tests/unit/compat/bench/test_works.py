"""The works against a server that behaves, and against one that errs."""

import os
import threading
from dataclasses import replace
from typing import Any

import pytest

from compat.bench import crowd, frames
from compat.bench.connection import Connection
from compat.bench.errors import BenchError, CheckFailed
from compat.bench.generator import WORKS, perform
from compat.bench.jobs import Job, Work
from tests.unit.compat.bench.stand_in import Fault, StandIn

LATENCIES: tuple[Work, ...] = ("confirm_latency", "delivery_latency")


@pytest.fixture(autouse=True)
def _small_and_impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "BLOCK_BYTES", 1 << 17)
    monkeypatch.setattr(crowd, "SETTLE_S", 0.0)


def job_of(work: Work, server: StandIn, **fields: Any) -> Job:  # noqa: ANN401 - the fields of a job
    job = Job(
        work=work,
        address=server.address,
        messages_per_frame=100,
        message_count=4_000,
        warmup_count=500,
        window=2_000,
    )
    return replace(job, **fields)


@pytest.mark.parametrize("per_frame", [1, 100, 1000])
@pytest.mark.parametrize("window", [1, 10_000])
def test_ingest_publishes_whole_blocks_and_cleans_up(per_frame: int, window: int) -> None:
    with StandIn() as server:
        job = job_of("ingest", server, messages_per_frame=per_frame, window=window)
        figures = WORKS["ingest"](replace(job, message_count=3_000, warmup_count=0))
        assert figures["stored"] >= 3_000
        assert figures["rate"] > 0
        assert "cpu" not in figures
        assert server.streams == {}


@pytest.mark.parametrize("per_frame", [1, 100])
@pytest.mark.parametrize("window", [1, 100, 1_000])
def test_an_ingest_whose_messages_leave_as_they_come_sends_little_at_a_time(
    per_frame: int, window: int
) -> None:
    with StandIn() as server:
        # A cut frame must be completed even where the window has no room for another.
        job = job_of("ingest", server, messages_per_frame=per_frame, window=window)
        job = replace(job, as_they_come=True, send_bytes_max=700, message_count=1_000)
        assert WORKS["ingest"](replace(job, warmup_count=0))["stored"] >= 1_000
        assert server.streams == {}


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("loses a confirm", CheckFailed),
        ("confirms twice", CheckFailed),
        ("loses a message", CheckFailed),
        ("refuses messages", BenchError),
    ],
)
def test_ingest_finds_what_a_server_does_wrong(fault: Fault, error: type[Exception]) -> None:
    with StandIn(fault) as server, pytest.raises(error):
        WORKS["ingest"](job_of("ingest", server))


def test_a_drain_reads_what_an_ingest_kept_as_often_as_asked() -> None:
    with StandIn() as server:
        stored = int(WORKS["ingest"](job_of("ingest", server, keep=True))["stored"])
        job = job_of("drain", server, message_count=stored, repeats=3, credit=10)
        figures = WORKS["drain"](job)
        assert figures["records_per_chunk"] == 100
        assert WORKS["delete"](job) == {}
        assert server.streams == {}


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("skips an offset", CheckFailed),
        ("damages data", CheckFailed),
        ("announces a wrong crc", CheckFailed),
        ("hangs up", BenchError),
    ],
)
def test_a_drain_finds_what_a_server_does_wrong(fault: Fault, error: type[Exception]) -> None:
    with StandIn(fault) as server:
        stored = int(WORKS["ingest"](job_of("ingest", server, keep=True))["stored"])
        with pytest.raises(error):
            WORKS["drain"](job_of("drain", server, message_count=stored, credit=10))


def test_latencies_are_those_of_single_messages() -> None:
    with StandIn() as server:
        for work in LATENCIES:
            job = job_of(work, server, message_count=50, warmup_count=5)
            figures = WORKS[job.work](job)
            assert 0 < figures["p50"] <= figures["p99"]
            assert server.streams == {}


def test_a_confirm_of_another_message_is_found_in_a_ping_pong() -> None:
    with StandIn("loses a confirm") as server, pytest.raises(CheckFailed, match="was answered"):
        WORKS["confirm_latency"](job_of("confirm_latency", server))


def test_a_stream_of_single_messages_has_a_chunk_for_each() -> None:
    with StandIn() as server:
        WORKS["fill_single"](job_of("fill_single", server, message_count=200))
        assert [records for _, records, _ in server.streams["bench"].chunks] == [1] * 200


def test_a_server_that_joins_what_it_stores_is_found() -> None:
    with StandIn("joins stored chunks") as server, pytest.raises(CheckFailed, match="not alone"):
        WORKS["fill_single"](job_of("fill_single", server, message_count=200))


def test_idle_connections_are_opened_and_closed() -> None:
    with StandIn() as server:
        figures = WORKS["idle_connections"](job_of("idle_connections", server, connection_count=20))
        assert figures["pss_each"] * 20 == pytest.approx(figures["pss"])
        assert server.connection_count == 21


def test_idle_connections_send_heartbeats_in_the_second_part_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(crowd, "HEARTBEAT_S", 2)
    with StandIn() as server:
        job = job_of("idle_cpu", server, connection_count=20, stream_count=3, seconds=0.3)
        figures = WORKS["idle_cpu"](replace(job, pids=(os.getpid(),)))
        assert figures["connections"] == 20
        assert figures["quiet"] >= 0
        assert figures["heartbeats"] >= 0
        assert server.connection_count == 1 + 2 * 20
        assert server.streams == {}
    assert 1 <= server.heartbeat_count <= 7  # one every 0.1 s


@pytest.mark.parametrize("per_frame", [1, 20])
def test_many_streams_get_a_frame_each_in_turn(per_frame: int) -> None:
    with StandIn() as server:
        job = job_of("many_streams", server, stream_count=12, connection_count=3)
        job = replace(job, messages_per_frame=per_frame, window=8 * per_frame)
        figures = WORKS["many_streams"](replace(job, message_count=600, warmup_count=12))
        assert figures["rate"] > 0
        assert server.streams == {}


@pytest.mark.parametrize("per_frame", [1, 20])
@pytest.mark.parametrize("fault", ["confirms for another publisher", "loses a message"])
def test_many_streams_find_what_a_server_does_wrong(fault: Fault, per_frame: int) -> None:
    with StandIn(fault) as server:
        job = job_of("many_streams", server, stream_count=4, connection_count=1)
        job = replace(job, messages_per_frame=per_frame, window=8 * per_frame)
        with pytest.raises(CheckFailed):
            WORKS["many_streams"](replace(job, message_count=40 * per_frame, warmup_count=0))


def test_partitions_are_written_in_turn_over_one_connection() -> None:
    with StandIn() as server:
        job = job_of("super_stream", server, stream_count=3, message_count=20_000)
        assert WORKS["super_stream"](job)["rate"] > 0
        assert server.connection_count == 2
        assert server.streams == {}


@pytest.mark.parametrize("fault", ["loses a confirm", "loses a message"])
def test_partitions_find_what_a_server_does_wrong(fault: Fault) -> None:
    with StandIn(fault) as server, pytest.raises(CheckFailed):
        WORKS["super_stream"](job_of("super_stream", server, stream_count=3))


def test_every_consumer_of_a_stream_gets_all_that_is_written() -> None:
    with StandIn() as server:
        job = job_of("fanout", server, connection_count=7, credit=4)
        figures = WORKS["fanout"](job)
        assert figures["rate"] > 0
        assert figures["records_per_chunk"] == 100
        assert server.streams == {}


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("skips an offset", CheckFailed),
        ("damages data", CheckFailed),
        ("hangs up", BenchError),
        ("loses a confirm", CheckFailed),
    ],
)
def test_a_fanout_finds_what_a_server_does_wrong(fault: Fault, error: type[Exception]) -> None:
    with StandIn(fault) as server, pytest.raises(error):
        WORKS["fanout"](job_of("fanout", server, connection_count=2))


def test_a_fanout_that_failed_leaves_no_thread_publishing() -> None:
    with StandIn("skips an offset") as server:
        for _ in range(20):
            with pytest.raises(CheckFailed):
                WORKS["fanout"](job_of("fanout", server, connection_count=2, message_count=50_000))
            assert "publishing" not in {thread.name for thread in threading.enumerate()}


def filled(server: StandIn) -> Job:
    """Write a stream of ten values; return the job that reads one of them."""
    job = job_of("fill_filtered", server)
    stored = int(WORKS["fill_filtered"](job)["stored"])
    assert stored == 4_000
    return replace(job, work="drain_filtered", message_count=stored, repeats=2, credit=10)


def test_a_filtered_drain_counts_all_that_the_stream_holds_and_what_came_unwanted() -> None:
    with StandIn() as server:
        figures = WORKS["drain_filtered"](filled(server))
        # At least up to the last wanted chunk: 34 of 40, of which 4 are wanted.
        assert 30 / 40 <= figures["unwanted_share"] <= 36 / 40


@pytest.mark.parametrize("fault", ["damages data", "announces a wrong crc"])
def test_a_filtered_drain_finds_what_a_server_does_wrong(fault: Fault) -> None:
    with StandIn() as server:
        job = filled(server)
        server.fault = fault
        with pytest.raises(CheckFailed):
            WORKS["drain_filtered"](job)


def test_a_refused_request_is_an_error() -> None:
    with (
        StandIn() as server,
        Connection(server.address) as connection,
        pytest.raises(BenchError, match="code 2"),
    ):
        connection.delete("nobody made it")


def test_a_job_done_in_a_process_of_its_own_gives_figures_or_the_reason() -> None:
    with StandIn() as server:
        job = job_of("fill_single", server, message_count=20)
        assert perform(job)["rate"] > 0
        server.fault = "hangs up"
        with pytest.raises(BenchError, match="hung up"):
            perform(replace(job, work="drain", message_count=20, credit=1))
