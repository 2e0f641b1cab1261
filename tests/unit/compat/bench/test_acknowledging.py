"""The server that acknowledges only: what it answers to the bench's own works."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat.bench.acknowledging import READY
from compat.bench.connection import Address
from compat.bench.jobs import Job
from compat.bench.wire import wire_append, wire_read
from compat.broker.ports import free_ports
from compat.pravega.servers import running


@pytest.fixture
def address(tmp_path: Path) -> Iterator[Address]:
    (port,) = free_ports(1)
    command = (sys.executable, "-m", "compat.bench.acknowledging", str(port))
    with running(command, tmp_path / "log", lambda said: READY in said):
        yield Address("127.0.0.1", port)


def test_what_is_counted_reads_as_the_first_event(address: Address) -> None:
    job = Job(
        work="wire_read",
        address=address,
        pids=(),
        stream="s",
        body_bytes=1 << 10,
        message_count=50,
        warmup_count=100,
        window=10,
    )
    assert wire_read(job)["rate"] > 0
    assert wire_append(job)["rate"] > 0
