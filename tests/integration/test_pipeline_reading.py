"""Describe and plan against a running server: a planned range outlives retention until it is read.

A second stream with the same limits and records, of which nothing is planned, shows when retention
has been at work.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import islice, pairwise
from typing import Final

import pytest

from hutch.client import Client, Login, at_offset
from hutch.stream import messages as m
from hutch.stream import pipeline as p
from hutch.stream.codes import ResponseCode
from tests.integration.administrator import ctl
from tests.integration.conftest import StartServer
from tests.integration.server import HutchServer
from tests.waiting import HANG_S

RECORDS: Final = 40
STREAMS: Final = ("held", "other")
KEPT_BYTES: Final = 20_000
"""What retention leaves once it is through, and then leaves alone."""
LIMITS: Final = {"max-length-bytes": str(KEPT_BYTES), "stream-max-segment-size-bytes": "2000"}
EACH_SECOND: Final = {"HUTCH_STREAMS__RETENTION_INTERVAL_S": "1"}
SPAN: Final = 5_000


@pytest.fixture
def server(start_server: StartServer) -> HutchServer:
    return start_server("--durability", "os", environment=EACH_SECOND)


@pytest.fixture
def client(server: HutchServer) -> Iterator[Client]:
    with connect(server) as client:
        yield client


def connect(server: HutchServer) -> Client:
    return Client(*server.endpoint, login=Login(asks_for_pipeline=True))


def describe(
    client: Client, *names: str, pattern: str | None = None
) -> tuple[p.StreamDescription, ...]:
    request = p.DescribeStreams(names, pattern)
    answer = client.connection.ask(p.StreamsDescribed, "describe_streams", request)
    assert answer.code == ResponseCode.OK, answer.reason
    return answer.streams


def plan(client: Client, *ranges: p.RangeToPlan) -> tuple[p.StreamPlan, ...]:
    request = p.PlanStreams(ranges)
    answer = client.connection.ask(p.StreamsPlanned, "plan_streams", request)
    assert answer.code == ResponseCode.OK, answer.reason
    return answer.streams


def publish(client: Client, first: int, count: int) -> None:
    """Publish records of 1,000 bytes to both streams, each in a chunk of its own."""
    for number in range(first, first + count):
        for stream in STREAMS:
            client.publish(stream, [number.to_bytes(1_000)])


def eventually(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + HANG_S
    while not holds():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.05)


def first_of(client: Client, stream: str) -> int:
    return describe(client, stream)[0].first_offset


def fill(client: Client) -> p.StreamDescription:
    """Publish to both streams, wait until retention is through; describe the one to be held."""
    for stream in STREAMS:
        client.create_stream(stream, LIMITS)
    publish(client, 0, RECORDS)
    eventually(
        lambda: all(stream.size_bytes <= KEPT_BYTES for stream in describe(client, *STREAMS))
    )
    held, other = describe(client, pattern="^(held|other)$")
    assert (held.name, other.name) == STREAMS
    assert held.first_offset > 0
    assert held.next_offset == other.next_offset == RECORDS
    return held


def range_of(described: p.StreamDescription) -> p.RangeToPlan:
    return p.RangeToPlan(
        described.name,
        described.generation,
        described.first_offset,
        described.next_offset,
        SPAN,
    )


def test_a_planned_range_is_read_whole_though_retention_has_gone_past_it(client: Client) -> None:
    held = fill(client)
    [planned] = plan(client, range_of(held))
    borders = planned.borders
    assert borders[0] == p.RangeBorder(held.first_offset, 0)
    assert borders[-1] == p.RangeBorder(held.next_offset, held.size_bytes)
    assert len(borders) > 2
    assert all(
        after.size_bytes - before.size_bytes <= SPAN + 3_200 for before, after in pairwise(borders)
    )

    publish(client, RECORDS, RECORDS)
    eventually(lambda: first_of(client, "other") >= RECORDS)

    assert first_of(client, "held") == held.first_offset
    for before, after in pairwise(borders):
        subscription = client.subscribe("held", at_offset(before.offset))
        count = after.offset - before.offset
        found = list(islice(subscription, count))
        expected = range(before.offset, after.offset)
        assert found == [(number, number.to_bytes(1_000)) for number in expected]


def test_a_plan_does_not_outlive_the_server_and_stops_no_administrator(
    client: Client, server: HutchServer
) -> None:
    held = fill(client)
    plan(client, range_of(held))
    publish(client, RECORDS, RECORDS)
    eventually(lambda: first_of(client, "other") >= RECORDS)
    ctl(server, "truncate_stream", "held", "--before-offset", str(held.first_offset + 8))
    assert held.first_offset < first_of(client, "held") <= held.first_offset + 8

    server.terminate()
    server.start()

    with connect(server) as again:
        before = describe(again, "held")[0]
        assert (before.generation, before.next_offset) == (held.generation, 2 * RECORDS)
        eventually(lambda: first_of(again, "held") >= RECORDS)
        again.delete_stream("held")


def test_a_thousand_streams_are_described_and_planned_in_one_call_each(
    client: Client, server: HutchServer
) -> None:
    names = [f"t{number:03}" for number in range(1_000)]
    made = [("create_stream", m.CreateStream(name, {})) for name in names]
    assert set(client.connection.requests(made)) == {m.OK}
    client.publish("t007", [b"one", b"two"])
    server.terminate()
    server.start()

    with connect(server) as again:
        described = describe(again, pattern="^t[0-9]{3}$")
        planned = plan(again, *map(range_of, described))

    assert [each.name for each in described] == [each.name for each in planned] == names
    codes = [each.code for each in described] + [each.code for each in planned]
    assert set(codes) == {ResponseCode.OK}
    assert [each.name for each in described if each.next_offset] == ["t007"]
    assert [each.borders[-1].offset for each in planned if len(each.borders) > 1] == [2]


def test_a_client_that_does_not_ask_for_them_loses_its_connection(server: HutchServer) -> None:
    frame = bytes.fromhex("4800 0001 00000001 00000000 ffff")
    with Client(*server.endpoint) as plain:
        assert "hutch.pipeline" not in plain.connection.peer_properties
        plain.connection.send_bytes(len(frame).to_bytes(4) + frame)
        with pytest.raises(Exception, match="unknown frame"):
            plain.metadata("t007")
