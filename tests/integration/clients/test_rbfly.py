"""The stock client `rbfly` against a running server (a test dependency only: it is GPL)."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import rbfly.streams as rbs

from tests.integration.clients.loop import eventually, run
from tests.integration.clients.messages import bodies, body
from tests.integration.conftest import StartServer
from tests.integration.server import Endpoint

# Its type says these are of instances; they are of the class.
FIRST: rbs.Offset = vars(rbs.Offset)["FIRST"]
LAST: rbs.Offset = vars(rbs.Offset)["LAST"]
NEXT: rbs.Offset = vars(rbs.Offset)["NEXT"]


@asynccontextmanager
async def connected(endpoint: Endpoint) -> AsyncIterator[rbs.StreamsClient]:
    """A client for that address; it connects when it is first used."""
    # No path: this client takes it as the virtual host's name without unquoting it.
    client = rbs.streams_client(f"rabbitmq-stream://guest:guest@{endpoint.host}:{endpoint.port}")
    try:
        yield client
    finally:
        await client.disconnect()


async def publish(client: rbs.StreamsClient, stream: str, count: int, *, first: int = 0) -> None:
    """Publish the records; this client's flush returns when all are confirmed."""
    async with client.publisher(stream, cls=rbs.PublisherBatchFast) as publisher:
        for index in range(first, first + count):
            publisher.batch(body(index))
            if index % 5_000 == 4_999:
                await publisher.flush()
        await publisher.flush()


async def read(
    client: rbs.StreamsClient,
    stream: str,
    count: int,
    offset: rbs.Offset = FIRST,
    *,
    quiet_s: float = 0.05,
) -> list[tuple[int, bytes]]:
    """Read until `count` records are there, and a little longer for any too many."""
    records: list[tuple[int, bytes]] = []

    async def collect() -> None:
        async for message in client.subscribe(stream, offset=offset):
            assert isinstance(message, bytes)
            records.append((rbs.get_message_ctx().stream_offset, message))

    task = asyncio.create_task(collect())
    try:
        await eventually(lambda: len(records) >= count or task.done())
        await asyncio.sleep(quiet_s)
    finally:
        task.cancel()
        await asyncio.wait([task])
    if not task.cancelled() and task.exception() is not None:
        await task
    return records


def test_a_stream_exists_from_create_to_delete(endpoint: Endpoint, stream: str) -> None:
    async def scenario() -> None:
        async with connected(endpoint) as client:
            await client.create_stream(stream)
            # It asks for a second time, is told that the stream exists, and accepts that.
            await client.create_stream(stream)
            await publish(client, stream, 1)
            await client.delete_stream(stream)
            with pytest.raises(rbs.error.ProtocolError, match="2"):
                await client.delete_stream(stream)

    run(scenario())


def test_single_records_are_confirmed_and_read_back(endpoint: Endpoint, stream: str) -> None:
    async def scenario() -> None:
        async with connected(endpoint) as client:
            await client.create_stream(stream)
            async with client.publisher(stream) as publisher:
                for record in bodies(20):
                    await publisher.send(record)
            assert await read(client, stream, 20) == list(enumerate(bodies(20)))

    run(scenario())


def test_a_limited_batch_is_confirmed_and_read_back(endpoint: Endpoint, stream: str) -> None:
    async def scenario() -> None:
        async with connected(endpoint) as client:
            await client.create_stream(stream)
            async with client.publisher(stream, cls=rbs.PublisherBatchLimit) as publisher:
                for first in range(0, 1_000, 100):
                    for record in bodies(100, first=first):
                        await publisher.batch(record, max_len=100)
                    await publisher.flush()
            assert await read(client, stream, 1_000) == list(enumerate(bodies(1_000)))

    run(scenario())


def test_reading_starts_where_the_subscription_says(endpoint: Endpoint, stream: str) -> None:
    async def scenario() -> None:
        async with connected(endpoint) as client:
            await client.create_stream(stream)
            await publish(client, stream, 100)
            await asyncio.sleep(0.05)
            between_s = time.time()
            await asyncio.sleep(0.05)
            await publish(client, stream, 1, first=100)
            expected = list(enumerate(bodies(101)))

            assert await read(client, stream, 101, FIRST) == expected
            assert await read(client, stream, 1, LAST) == expected[100:]
            assert await read(client, stream, 41, rbs.Offset.offset(60)) == expected[60:]
            timestamp = rbs.Offset.timestamp(between_s)
            assert await read(client, stream, 1, timestamp) == expected[100:]

            following = asyncio.create_task(read(client, stream, 10, NEXT, quiet_s=0.1))
            await asyncio.sleep(0.3)
            await publish(client, stream, 10, first=101)
            assert await following == list(enumerate(bodies(111)))[101:]

    run(scenario())


def test_reading_resumes_after_a_stored_offset(endpoint: Endpoint, stream: str) -> None:
    async def scenario() -> None:
        expected = list(enumerate(bodies(100)))
        app = rbs.Offset.reference("app")
        async with connected(endpoint) as client:
            await client.create_stream(stream)
            await publish(client, stream, 100)
            assert await read(client, stream, 100, app) == expected, "no offset is stored yet"
            await client.write_offset(stream, "app", 41)
            assert await read(client, stream, 58, app) == expected[42:]
        async with connected(endpoint) as client:
            assert await read(client, stream, 58, app) == expected[42:]

    run(scenario())


def test_ids_sent_again_are_confirmed_but_stored_once(endpoint: Endpoint, stream: str) -> None:
    async def send(client: rbs.StreamsClient, first: int, count: int) -> None:
        async with client.publisher(stream, name="w", cls=rbs.PublisherBatchFast) as publisher:
            for index in range(first, first + count):
                publisher.batch(rbs.stream_message_ctx(body(index), publish_id=index + 1))
            await publisher.flush()

    async def scenario() -> None:
        async with connected(endpoint) as client:
            await client.create_stream(stream)
            for first, count in ((0, 100), (50, 100), (0, 10)):
                await send(client, first, count)
            assert await read(client, stream, 150) == list(enumerate(bodies(150)))
        async with connected(endpoint) as client, client.publisher(stream, name="w") as publisher:
            assert publisher.message_id == 151, "one past the last id that the server has"

    run(scenario())


def test_deleting_a_stream_is_told_to_who_uses_it(
    endpoint: Endpoint, stream: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with connected(endpoint) as client, connected(endpoint) as other:
            await client.create_stream(stream)
            await publish(client, stream, 10)
            reader = asyncio.create_task(read(client, stream, 11))
            await asyncio.sleep(0.2)
            await other.delete_stream(stream)
            # The client has no use for a metadata update, but it says that one came.
            await eventually(lambda: "unknown key; key=0x0010" in caplog.text)
            reader.cancel()
            await asyncio.wait([reader])

    with caplog.at_level(logging.WARNING, "rbfly"):
        run(scenario())


@pytest.mark.parametrize("stop", ["kill", "terminate"])
def test_the_client_comes_back_after_a_restart_and_nothing_is_missing(
    start_server: StartServer, stream: str, stop: str
) -> None:
    server = start_server()

    async def scenario() -> None:
        async with connected(server.endpoint) as client:
            await client.create_stream(stream)
            reader = asyncio.create_task(read(client, stream, 4_000))
            async with client.publisher(stream, name="w", cls=rbs.PublisherBatchFast) as publisher:
                for record in bodies(2_000):
                    publisher.batch(record)
                await publisher.flush()
                # On the loop's thread, so that the client finds the server up again: it
                # waits 30 s after a refused connection.
                getattr(server, stop)()
                server.restart()
                for record in bodies(2_000, first=2_000):
                    publisher.batch(record)
                await publisher.flush()
                assert publisher.message_id == 4_001
            assert await reader == list(enumerate(bodies(4_000)))
            assert await read(client, stream, 4_000) == list(enumerate(bodies(4_000)))

    run(scenario())


def test_a_hundred_thousand_records_each_way(endpoint: Endpoint, stream: str) -> None:
    async def scenario() -> None:
        async with connected(endpoint) as client:
            await client.create_stream(stream)
            await publish(client, stream, 100_000)
            assert await read(client, stream, 100_000) == list(enumerate(bodies(100_000)))

    run(scenario())
