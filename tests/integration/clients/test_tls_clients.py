"""The stock clients over TLS, unchanged: publishing, reading, and finding a stream by Metadata."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
import rbfly.streams as rbs
from rstream import Consumer, Producer, SlasMechanism

from compat.certificates import Certificates
from tests.integration.clients.loop import eventually, run
from tests.integration.clients.messages import bodies, body
from tests.integration.clients.rstream_session import FIRST, LOGIN, publish, subscribe
from tests.integration.conftest import external_endpoint
from tests.integration.server import Endpoint, HutchServer
from tests.integration.tls_rig import (
    HOST,
    certified_server,
    context_of,
    tls_endpoint,
)


@pytest.fixture(scope="module")
def tls_server(
    made: Certificates, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[HutchServer]:
    if external_endpoint() is not None:
        pytest.skip("needs a server whose certificates are known")
    with certified_server(tmp_path_factory.mktemp("tls") / "data", made) as server:
        yield server


@pytest.fixture
def secure(tls_server: HutchServer) -> Endpoint:
    """By the name that the certificate is for."""
    return Endpoint(HOST, tls_endpoint(tls_server).port)


def test_rstream_publishes_and_reads_over_tls(
    secure: Endpoint, made: Certificates, stream: str
) -> None:
    async def scenario() -> None:
        tls = context_of(made.ca)
        async with Producer(*secure, **LOGIN, ssl_context=tls) as producer:
            await producer.create_stream(stream)
            confirmed = await publish(producer, stream, bodies(3_500))
            assert sorted(confirmed) == list(range(1, 3_501))
        async with Consumer(*secure, **LOGIN, ssl_context=tls) as consumer:
            records = await subscribe(consumer, stream, FIRST)
            await eventually(lambda: len(records) >= 3_500)
        assert records == list(enumerate(bodies(3_500)))

    run(scenario())


def test_rstream_logs_in_by_its_certificate(
    secure: Endpoint, made: Certificates, stream: str
) -> None:
    async def scenario() -> None:
        async with Producer(
            *secure,
            username="",
            password="",
            ssl_context=context_of(made.ca, made.client),
            sasl_configuration_mechanism=SlasMechanism.MechanismExternal,
        ) as producer:
            await producer.create_stream(stream)
            assert await producer.send_wait(stream, body(0)) == 1

    run(scenario())


def test_rbfly_publishes_and_reads_over_tls(
    secure: Endpoint, made: Certificates, stream: str
) -> None:
    async def scenario() -> None:
        uri = f"rabbitmq-stream+tls://guest:guest@{secure.host}:{secure.port}"
        client = rbs.streams_client(uri, ssl=context_of(made.ca))
        records: list[object] = []

        async def collect() -> None:
            async for message in client.subscribe(stream, offset=vars(rbs.Offset)["FIRST"]):
                records.append(message)  # noqa: PERF401 - those before it is cancelled count

        try:
            await client.create_stream(stream)
            async with client.publisher(stream, cls=rbs.PublisherBatchFast) as publisher:
                for index in range(2_000):
                    publisher.batch(body(index))
                await publisher.flush()
            reading = asyncio.create_task(collect())
            await eventually(lambda: len(records) >= 2_000 or reading.done())
            reading.cancel()
            await asyncio.wait([reading])
        finally:
            await client.disconnect()
        assert records == bodies(2_000)

    run(scenario())
