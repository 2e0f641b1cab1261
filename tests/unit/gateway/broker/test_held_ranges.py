"""Records that a plan keeps from retention, and what is removed all the same."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.broker.service import ScarceResource
from gateway.broker.streams.retention_holds import HOLD_S
from hutch.stream import messages as m
from hutch.stream import pipeline as p
from hutch.stream.codes import ResponseCode
from hutch.stream.offsets import at_offset
from tests.unit.gateway.broker.retention_rig import (
    CHUNK,
    HOUR_MS,
    create,
    first_chunk,
    tick,
    write,
)
from tests.unit.gateway.stream.link_rig import Broker, LinkRig

OK = ResponseCode.OK


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    broker = Broker(tmp_path / "data")
    yield broker
    broker.close()


@pytest.fixture
def client(broker: Broker) -> LinkRig:
    """A client of a stream `s` of at most seven chunks, of which it has six."""
    client = broker.link(has_pipeline=True)
    create(client, max_length_bytes=str(7 * CHUNK))
    write(client, 6)
    return client


def plan(client: LinkRig, first: int, end: int) -> None:
    generation = client.broker.stream("s").entry.generation
    request = p.PlanStreams((p.RangeToPlan("s", generation, first, end, 1_000_000),))
    answer = client.ask(p.StreamsPlanned, "plan_streams", request)
    assert (answer.code, answer.streams[0].code) == (OK, OK)


def let_time_pass(client: LinkRig, seconds: float) -> None:
    holds = client.broker.streams.logs.holds
    now_s = holds.clock_s() + seconds
    holds.clock_s = lambda: now_s


def test_a_planned_range_stays_though_the_stream_grows_above_its_size(client: LinkRig) -> None:
    plan(client, 4, 6)

    write(client, 20)

    assert first_chunk(client) == 3  # the last border before it
    let_time_pass(client, HOLD_S)
    tick(client.broker)
    assert first_chunk(client) == 21


def test_a_planned_range_stays_though_it_is_too_old(broker: Broker) -> None:
    client = broker.link(has_pipeline=True)
    create(client, max_age="1h")
    write(client, 9)
    plan(client, 0, 3)
    broker.now_ms += 2 * HOUR_MS

    tick(broker)
    assert first_chunk(client) == 0
    let_time_pass(client, HOLD_S)
    tick(broker)

    assert first_chunk(client) == 6


def test_reading_in_the_range_keeps_it(client: LinkRig) -> None:
    plan(client, 0, 6)
    let_time_pass(client, HOLD_S - 1)
    assert client.code("subscribe", m.Subscribe(1, "s", at_offset(0), 1, {})) == OK
    let_time_pass(client, HOLD_S - 1)
    client.deliver(1)
    client.tell("credit", m.Credit(1, 1))
    let_time_pass(client, HOLD_S - 1)

    write(client, 9)
    assert first_chunk(client) == 0
    let_time_pass(client, 1)
    tick(client.broker)

    assert first_chunk(client) == 9


def test_an_administrator_truncates_it_all_the_same(client: LinkRig) -> None:
    plan(client, 0, 6)

    stream = client.broker.stream("s")
    first = client.broker.store_rig.run(client.broker.streams.logs.truncate(stream, offset=4))

    assert (first, first_chunk(client)) == (4, 4)


def test_a_stream_is_deleted_all_the_same(client: LinkRig) -> None:
    plan(client, 0, 6)

    assert client.code("delete_stream", m.DeleteStream("s")) == OK

    create(client, max_length_bytes=str(7 * CHUNK))
    write(client, 10)
    assert first_chunk(client) == 3


def test_a_full_disk_lets_it_go_and_the_log_says_so(
    client: LinkRig, caplog: pytest.LogCaptureFixture
) -> None:
    plan(client, 0, 6)
    write(client, 4)
    assert first_chunk(client) == 0
    assert "planned records are removed" not in caplog.text

    client.broker.service.set_alarm(ScarceResource.DISK)
    tick(client.broker)

    assert first_chunk(client) == 3
    assert "disk is full, so planned records are removed stream=s" in caplog.text


def test_a_plan_waits_for_a_removal_that_is_under_way(client: LinkRig) -> None:
    client.declare(1, "s")
    for number in range(4):
        client.publish(1, (number, bytes(1_000)))
        client.broker.settle("s")
    stream = client.broker.stream("s")
    client.broker.loop.run_until(lambda: stream.evaluation is not None)

    generation = stream.entry.generation
    request = p.PlanStreams((p.RangeToPlan("s", generation, 0, 6, 1_000_000),))
    answer = client.ask(p.StreamsPlanned, "plan_streams", request)

    assert answer.streams[0].borders[0].offset == first_chunk(client) == 3
