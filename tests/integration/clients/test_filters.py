"""Filters of stock clients: what they publish with a value, and what comes when they ask for it."""

from __future__ import annotations

import pytest
from rstream import AMQPMessage, FilterConfiguration

from hutch.stream.offsets import FIRST
from tests.client import Client
from tests.integration.clients.loop import run
from tests.integration.clients.messages import bodies, body
from tests.integration.clients.node import NodeClient
from tests.integration.clients.rstream_session import producer_of, publish, read
from tests.integration.conftest import StartServer
from tests.integration.server import Endpoint

REGIONS = ("emea", "apac", "amer")
PER_REGION = 100


def region_of(index: int) -> str:
    return REGIONS[index // PER_REGION % len(REGIONS)]


async def region(message: AMQPMessage) -> str:
    return region_of(int(bytes(message.body)[1:].split(b"-")[0]))


async def publish_by_region(endpoint: Endpoint, stream: str, count: int) -> None:
    async with producer_of(endpoint, filter_value_extractor=region) as producer:
        await producer.create_stream(stream, exists_ok=True)
        for first in range(0, count, PER_REGION):
            messages = [AMQPMessage(body=body(first + n)) for n in range(PER_REGION)]
            await publish(producer, stream, messages)


def indexes_in(records: list[tuple[int, bytes]]) -> list[int]:
    """Offsets, which are the records' numbers here."""
    return [offset for offset, _ in records]


@pytest.mark.parametrize("wanted", [("emea",), ("apac", "amer")])
def test_a_filtered_consumer_gets_its_regions_and_no_others(
    endpoint: Endpoint, stream: str, wanted: tuple[str, ...]
) -> None:
    async def scenario() -> None:
        await publish_by_region(endpoint, stream, 900)
        expected = [n for n in range(900) if region_of(n) in wanted]
        chosen = FilterConfiguration(values_to_filter=list(wanted))

        records = await read(endpoint, stream, len(expected), filter_input=chosen)

        assert indexes_in(records) == expected

    run(scenario())


def test_messages_without_a_value_come_to_who_asks_for_them_too(
    endpoint: Endpoint, stream: str
) -> None:
    async def scenario() -> None:
        await publish_by_region(endpoint, stream, 300)
        async with producer_of(endpoint) as producer:
            await publish(producer, stream, bodies(50, first=300))

        only = FilterConfiguration(values_to_filter=["amer"])
        assert indexes_in(await read(endpoint, stream, 100, filter_input=only)) == [
            *range(200, 300)
        ]
        both = FilterConfiguration(values_to_filter=["amer"], match_unfiltered=True)
        assert indexes_in(await read(endpoint, stream, 150, filter_input=both)) == [
            *range(200, 350)
        ]

    run(scenario())


def test_filters_work_on_what_was_stored_before_a_restart(
    start_server: StartServer, stream: str
) -> None:
    server = start_server()
    run(publish_by_region(server.endpoint, stream, 900))
    server.terminate()
    server.restart()
    expected = [n for n in range(900) if region_of(n) == "apac"]

    async def scenario() -> None:
        chosen = FilterConfiguration(values_to_filter=["apac"])
        records = await read(server.endpoint, stream, len(expected), filter_input=chosen)
        assert indexes_in(records) == expected

    run(scenario())


def test_the_node_client_gets_its_regions_and_no_others(node: NodeClient, stream: str) -> None:
    node.call("create", stream=stream)
    node.call("declare", publisher="p", stream=stream, values=list(REGIONS))
    for first in range(0, 900, PER_REGION):
        answer = node.call("publish", publisher="p", first=first, count=PER_REGION)
        assert answer["confirmed"] == PER_REGION
    expected = [n for n in range(900) if region_of(n) != "emea"]

    chosen = {"values": ["apac", "amer"], "matchUnfiltered": False}
    node.call("subscribe", consumer="c", stream=stream, offset={"type": "first"}, filter=chosen)
    records = node.take("c", len(expected))

    assert records == [(n, body(n)) for n in expected]


def test_a_filter_that_finds_nothing_delays_no_other_connection(
    endpoint: Endpoint, stream: str
) -> None:
    with Client.opened(*endpoint) as writer, Client.opened(*endpoint) as seeker:
        writer.create(stream)
        writer.declare(1, stream)
        for number in range(2_000):
            writer.publish_filtered(1, [(number, "there", bytes(40_000))])
        writer.confirmed_ids(2_000)
        for subscription_id in range(20):
            properties = {"filter.0": f"not-there-{subscription_id}"}
            seeker.subscribe(subscription_id, stream, FIRST, properties=properties)
        writer.subscribe(1, stream, credit=100)
        for number in range(2_000, 2_020):
            writer.publish(1, {number: b"at once"})
            assert writer.delivery(2).chunk.records() == [b"at once"]
        assert seeker.is_silent(0.2)
