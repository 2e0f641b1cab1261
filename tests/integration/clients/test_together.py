"""Three stock clients on one stream: each reads what the others wrote."""

from __future__ import annotations

from rstream import AMQPMessage, amqp_decoder

from tests.integration.clients import rstream_session, test_rbfly
from tests.integration.clients.loop import run
from tests.integration.clients.messages import bodies
from tests.integration.clients.node import NodeClient
from tests.integration.server import Endpoint

COUNT = 500


def test_each_client_reads_what_the_others_wrote(
    endpoint: Endpoint, node: NodeClient, stream: str
) -> None:
    expected = bodies(COUNT, "r") + bodies(COUNT) + bodies(COUNT, "n")

    def body_of(data: bytes) -> bytes:
        return bytes(amqp_decoder(data).body)

    async def python_clients_write() -> None:
        async with rstream_session.producer_of(endpoint) as producer:
            await producer.create_stream(stream)
            messages = [AMQPMessage(body=record) for record in bodies(COUNT, "r")]
            await rstream_session.publish(producer, stream, messages)
        async with test_rbfly.connected(endpoint) as client:
            await test_rbfly.publish(client, stream, COUNT)

    async def python_clients_read() -> None:
        records = await rstream_session.read(endpoint, stream, len(expected), decoder=body_of)
        assert records == list(enumerate(expected))
        async with test_rbfly.connected(endpoint) as client:
            records = await test_rbfly.read(client, stream, len(expected))
            assert records == list(enumerate(expected))

    run(python_clients_write())
    node.call("declare", publisher="p", stream=stream)
    node.call("publish", publisher="p", mark="n", count=COUNT)
    run(python_clients_read())
    node.call("subscribe", consumer="c", stream=stream, offset={"type": "first"})
    assert node.take("c", len(expected)) == list(enumerate(expected))
