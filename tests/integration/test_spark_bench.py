"""The Spark bench's publisher at a steady rate, against a running server."""

from __future__ import annotations

import time

import pytest

from compat.bench.connection import Address, Connection
from compat.bench.errors import BenchError
from compat.spark_bench.publisher import Job, Publisher, publishing
from tests.integration.server import HutchServer
from tests.waiting import HANG_S, wait_until

STREAM = "live"
WANTED = 20


def job_of(server: HutchServer) -> Job:
    address = Address(server.host, server.port)
    with Connection(address) as connection:
        connection.create(STREAM)
    return Job(address=address, stream=STREAM, rate=500, body_bytes=100)


def stored(job: Job) -> int:
    with Connection(job.address) as connection:
        return connection.stream_stats(STREAM)["committed_offset"] + 1


def await_its_end(publisher: Publisher, job: Job) -> None:
    with Connection(job.address) as connection:
        connection.delete(STREAM)
    publisher.process.wait(HANG_S)


def test_each_message_that_was_sent_has_its_times(server: HutchServer) -> None:
    job = job_of(server)
    begin_ns = time.monotonic_ns()
    with publishing(job) as publisher:
        wait_until(lambda: stored(job) >= WANTED)
    end_ns = time.monotonic_ns()

    assert len(publisher.times.sent_ns) == len(publisher.times.waited_ns) == stored(job)
    assert len(publisher.times.within(begin_ns, end_ns)) == len(publisher.times.sent_ns)
    assert all(waited > 0 for waited in publisher.times.waited_ns)


def test_a_server_that_refuses_messages_ends_it_with_an_error(server: HutchServer) -> None:
    job = job_of(server)
    with pytest.raises(BenchError, match="failed"), publishing(job) as publisher:
        await_its_end(publisher, job)
