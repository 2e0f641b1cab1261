"""The generator of Pravega's protocol on a real store: what it measures is there, and checked."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from compat.bench.connection import Address
from compat.bench.errors import CheckFailed
from compat.bench.jobs import Figures, Job, Work
from compat.bench.wire import (
    ACK,
    SEGMENT,
    WRITER,
    Appender,
    Link,
    acknowledged,
    wire_append,
    wire_latency,
    wire_read,
    wire_tail,
)
from compat.pravega.servers import Served, hutch
from store.wire.codec import encode
from store.wire.messages import DataAppended, KeepAlive

WORKS = {
    "wire_append": wire_append,
    "wire_latency": wire_latency,
    "wire_read": wire_read,
    "wire_tail": wire_tail,
}


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with hutch(tmp_path) as found:
        yield found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("work", "figures"),
    [
        ("wire_append", {"rate", "cpu"}),
        ("wire_latency", {"p50", "p99", "cpu"}),
        ("wire_read", {"rate"}),
        ("wire_tail", {"p50", "p99"}),
    ],
)
def test_a_work_measures_its_figures(served: Served, work: Work, figures: set[str]) -> None:
    job = Job(
        work=work,
        address=Address(*served.address),
        pids=(served.pid,),
        body_bytes=1024,
        message_count=50,
        warmup_count=100,
        window=20,
    )

    measured: Figures = WORKS[work](job)

    assert figures <= set(measured)


@pytest.mark.slow
def test_what_is_stored_without_the_appender_is_found_out(served: Served) -> None:
    link = Link(Address(*served.address))
    appender = Appender(link, SEGMENT, 10)
    appender.send_one()
    appender.await_one()
    assert appender.check() == 18

    appender.frames(1)  # is never sent

    with pytest.raises(CheckFailed, match="18 bytes of 2 events"):
        appender.check()
    link.close()


def test_only_acknowledgements_are_taken_for_one() -> None:
    ack = bytearray(encode(DataAppended(WRITER, 7, 6, 1, 100)))

    assert len(ack) == ACK.size
    assert acknowledged(ack, 0) == 7
    with pytest.raises(CheckFailed, match="command 100"):
        acknowledged(bytearray(encode(KeepAlive()).ljust(ACK.size)), 0)
