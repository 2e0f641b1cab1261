"""The generator of mewbase's protocol on a real server: what it measures is there, and checked."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from compat.bench.connection import Address, Connection
from compat.bench.errors import CheckFailed
from compat.bench.hutch import Hutch
from compat.bench.jobs import Figures, Job, Work
from compat.bench.mewbase import (
    Link,
    Publisher,
    Reader,
    mewbase_deliver,
    mewbase_publish,
    mewbase_stalled,
)
from compat.bench.mewbase_steps import CHANNEL, fresh_mewbase

WORKS = {
    "mewbase_publish": mewbase_publish,
    "mewbase_deliver": mewbase_deliver,
    "mewbase_stalled": mewbase_stalled,
}
pytestmark = pytest.mark.slow


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Hutch, Address]]:
    unused = Hutch(["unused"], tmp_path, "os")
    with fresh_mewbase(unused) as (hutch, port):
        yield hutch, hutch.address._replace(port=port)


@pytest.mark.parametrize(
    ("work", "figures"),
    [
        ("mewbase_publish", {"rate", "cpu"}),
        ("mewbase_deliver", {"rate", "cpu"}),
        ("mewbase_stalled", {"p50", "p99", "alone_p50", "alone_p99", "ratio", "pss_each"}),
    ],
)
def test_a_work_measures_its_figures(
    served: tuple[Hutch, Address], work: Work, figures: set[str]
) -> None:
    hutch, address = served
    job = Job(
        work=work,
        address=address,
        pids=hutch.pids,
        stream=CHANNEL,
        body_bytes=200,
        message_count=50,
        warmup_count=0 if work == "mewbase_deliver" else 100,
        connection_count=3,
        window=20,
    )

    measured: Figures = WORKS[work](job)

    assert figures <= set(measured)


def test_an_answer_or_an_event_that_is_not_due_is_found_out(
    served: tuple[Hutch, Address],
) -> None:
    hutch, address = served
    with closing(Link(address)) as link, closing(Link(address)) as reading:
        publisher = Publisher(link, CHANNEL, 200)
        publisher.publish(10, 3)
        reader = Reader(reading, CHANNEL, publisher.event, 0)
        last = reader.read(10)
        reader.check(last, 9)
        with pytest.raises(CheckFailed, match="event 9 came"):
            reader.check(last, 8)
        with pytest.raises(CheckFailed, match="other bytes"):
            reader.check(last[:-3] + b"x\0\0", 9)
        with pytest.raises(CheckFailed, match="not answered"):
            publisher.check(bytearray(50))
        with pytest.raises(CheckFailed, match="refused"):
            Reader(reading, "nosuchchannel", publisher.event, 0)
    with Connection(hutch.address) as connection:
        connection.delete(CHANNEL)
