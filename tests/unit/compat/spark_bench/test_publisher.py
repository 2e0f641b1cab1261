"""The publisher at a steady rate, against a server of a few lines."""

import time

import pytest

from compat.bench.connection import Connection
from compat.bench.errors import BenchError
from compat.spark_bench.publisher import Job, publishing
from tests.unit.compat.bench.stand_in import StandIn

STREAM = "live"


def job_of(server: StandIn) -> Job:
    with Connection(server.address) as connection:
        connection.create(STREAM)
    return Job(address=server.address, stream=STREAM, rate=500, body_bytes=100)


def stored(server: StandIn) -> int:
    return server.streams[STREAM].next_offset


def test_each_message_that_was_sent_has_its_times() -> None:
    with StandIn() as server:
        begin_ns = time.monotonic_ns()
        with publishing(job_of(server)) as publisher, server.lock:
            assert server.lock.wait_for(lambda: stored(server) >= 20, 30)
        end_ns = time.monotonic_ns()

        assert len(publisher.times.sent_ns) == len(publisher.times.waited_ns) == stored(server)
    assert len(publisher.times.within(begin_ns, end_ns)) == len(publisher.times.sent_ns)
    assert all(waited > 0 for waited in publisher.times.waited_ns)


def test_a_server_that_refuses_messages_ends_it_with_an_error() -> None:
    with (
        StandIn("refuses messages") as server,
        pytest.raises(BenchError, match="failed"),
        publishing(job_of(server)) as publisher,
    ):
        publisher.process.wait(30)
