"""Messages at a pace, to a server that behaves and to one that errs."""

import select
import time
from dataclasses import replace
from typing import Any

import pytest

from compat.bench import paced as paced_module
from compat.bench.errors import BenchError, CheckFailed
from compat.bench.jobs import Job
from compat.bench.paced import due_ns, paced
from tests.unit.compat.bench.stand_in import Fault, StandIn


def job_of(server: StandIn) -> Job:
    return Job(
        work="paced",
        address=server.address,
        connection_count=2,
        messages_per_s=2_000,
        message_count=400,
        warmup_count=20,
    )


def test_a_pace_takes_its_time_and_every_message_is_confirmed_and_delivered() -> None:
    with StandIn() as server:
        began = time.perf_counter()
        figures = paced(job_of(server))
        assert time.perf_counter() - began >= 0.2
        assert server.streams == {}
        assert server.connection_count == 3
    for kind in ("", "confirm_", "late_"):
        assert 0 < figures[f"{kind}p50"] <= figures[f"{kind}p99"] <= figures[f"{kind}p999"]
    assert figures["late_p50"] <= figures["confirm_p50"]
    assert figures["records_per_chunk"] == 1


def test_a_connection_may_have_both_the_publisher_and_the_consumer_of_a_stream() -> None:
    with StandIn() as server:
        figures = paced(replace(job_of(server), stream_count=5, connection_count=5))
        assert server.connection_count == 6
        assert server.streams == {}
    assert figures["rate"] <= 2_100


def test_messages_are_due_at_even_times_without_drift() -> None:
    times = [due_ns(7, number, 3) for number in range(7)]
    assert times[::3] == [7, 1_000_000_007, 2_000_000_007]
    assert times[1] == 333_333_340


def test_a_pause_is_charged_to_all_that_was_due_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    sleeps = [0.3]
    waiting = select.select

    def waiting_too_long(*arguments: Any) -> Any:  # noqa: ANN401 - those of select
        if sleeps:
            time.sleep(sleeps.pop())
        return waiting(*arguments)

    monkeypatch.setattr(select, "select", waiting_too_long)
    with StandIn() as server:
        job = replace(job_of(server), warmup_count=0, message_count=600)
        figures = paced(job)
    # Every message was due in the pause, and the first ones waited for all of it.
    assert figures["late_p99"] >= 200_000
    assert figures["p99"] >= figures["late_p99"]


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("loses a confirm", CheckFailed),
        ("confirms twice", CheckFailed),
        ("skips an offset", CheckFailed),
        ("damages data", CheckFailed),
        ("announces a wrong crc", CheckFailed),
        ("refuses messages", BenchError),
        ("hangs up", BenchError),
    ],
)
@pytest.mark.parametrize("connections", [1, 2])
def test_a_pace_finds_what_a_server_does_wrong(
    fault: Fault, error: type[Exception], connections: int
) -> None:
    with StandIn(fault) as server, pytest.raises(error):
        paced(replace(job_of(server), connection_count=connections))


def test_a_server_that_delivers_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paced_module, "STALL_LIMIT_S", 0.1)
    monkeypatch.setattr(paced_module, "LONGEST_SLEEP_S", 0.01)
    with (
        StandIn("loses a message") as server,
        pytest.raises(BenchError, match=r"nothing came|came where"),
    ):
        paced(job_of(server))
