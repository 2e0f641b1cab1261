"""The stock Python client `rstream` against a running server."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

import pytest
from rstream import (
    AMQPMessage,
    CompressionType,
    ConfirmationStatus,
    ConsumerOffsetSpecification,
    OffsetType,
    OnClosedErrorInfo,
    Producer,
    RawMessage,
    exceptions,
)
from rstream.recovery import BackOffRecoveryStrategy

from tests.client import Client
from tests.integration.clients.loop import eventually, retry, run
from tests.integration.clients.messages import bodies, body
from tests.integration.clients.rstream_session import (
    BATCH,
    consumer_of,
    producer_of,
    publish,
    read,
    register_codecs,
    subscribe,
)
from tests.integration.conftest import StartServer
from tests.integration.load import committed_offset
from tests.integration.server import Endpoint


def test_a_stream_exists_from_create_to_delete(endpoint: Endpoint, stream: str) -> None:
    async def scenario() -> None:
        async with producer_of(endpoint) as producer:
            assert not await producer.stream_exists(stream)
            await producer.create_stream(stream, arguments={"max-length-bytes": 1_000_000_000})
            assert await producer.stream_exists(stream)
            same = {"max-length-bytes": 1_000_000_000}
            with pytest.raises(exceptions.StreamAlreadyExists):
                await producer.create_stream(stream, arguments=same)
            with pytest.raises(exceptions.PreconditionFailed):
                await producer.create_stream(stream, arguments={"max-age": "1h"})
            await producer.delete_stream(stream)
            assert not await producer.stream_exists(stream)
            with pytest.raises(exceptions.StreamDoesNotExist):
                await producer.delete_stream(stream)

    run(scenario())


def test_a_single_record_is_confirmed_and_read_back(endpoint: Endpoint, stream: str) -> None:
    async def scenario() -> None:
        async with producer_of(endpoint) as producer:
            await producer.create_stream(stream)
            assert [await producer.send_wait(stream, body(i)) for i in range(5)] == [1, 2, 3, 4, 5]
        assert await read(endpoint, stream, 5) == list(enumerate(bodies(5)))

    run(scenario())


def test_a_batch_is_confirmed_and_read_back(endpoint: Endpoint, stream: str) -> None:
    async def scenario() -> None:
        async with producer_of(endpoint) as producer:
            await producer.create_stream(stream)
            confirmed = await publish(producer, stream, bodies(3_500))
            assert sorted(confirmed) == list(range(1, 3_501))
        assert await read(endpoint, stream, 3_500) == list(enumerate(bodies(3_500)))

    run(scenario())


def test_buffered_records_are_confirmed_and_read_back(endpoint: Endpoint, stream: str) -> None:
    async def scenario() -> None:
        confirmed: list[int] = []
        async with producer_of(endpoint) as producer:
            await producer.create_stream(stream)
            for record in bodies(2_000):
                await producer.send(
                    stream, record, on_publish_confirm=lambda s: confirmed.append(s.message_id)
                )
            await eventually(lambda: len(confirmed) == 2_000)
        assert await read(endpoint, stream, 2_000) == list(enumerate(bodies(2_000)))

    run(scenario())


@pytest.mark.parametrize("kind", list(CompressionType), ids=lambda kind: kind.name.lower())
def test_sub_entries_of_every_compression_are_confirmed_and_read_back(
    endpoint: Endpoint, stream: str, kind: CompressionType
) -> None:
    register_codecs()

    async def scenario() -> None:
        confirmed: list[int] = []

        def on_confirm(status: ConfirmationStatus) -> None:
            assert status.is_confirmed, status
            confirmed.append(status.message_id)

        async with producer_of(endpoint) as producer:
            await producer.create_stream(stream)
            for first in range(0, 2_000, 100):
                await producer.send_sub_entry(
                    stream,
                    bodies(100, first=first),
                    compression_type=kind,
                    on_publish_confirm=on_confirm,
                )
            # Simple entries beside them, some in the same chunk as a sub-entry.
            for record in bodies(10, first=2_000):
                await producer.send(stream, record, on_publish_confirm=on_confirm)
            await eventually(lambda: len(confirmed) == 30)
        assert len(set(confirmed)) == 30, "one confirm for a sub-entry of a hundred"
        assert [record for _, record in await read(endpoint, stream, 2_010)] == bodies(2_010)
        with Client.opened(*endpoint) as client:
            assert committed_offset(client, stream) == 2_009, "records count, not entries"

    run(scenario())


def test_reading_starts_where_the_subscription_says(endpoint: Endpoint, stream: str) -> None:
    async def scenario() -> None:
        async with producer_of(endpoint) as producer:
            await producer.create_stream(stream)
            await publish(producer, stream, bodies(100))
            await asyncio.sleep(0.05)
            between_ms = int(time.time() * 1000)
            await asyncio.sleep(0.05)
            await producer.send_wait(stream, body(100))
            expected = list(enumerate(bodies(101)))

            async def check(kind: OffsetType, value: int | None, first: int) -> None:
                where = ConsumerOffsetSpecification(kind, value)
                records = await read(endpoint, stream, 101 - first, where)
                assert records == expected[first:], (kind, value)

            await asyncio.gather(
                check(OffsetType.FIRST, None, 0),
                check(OffsetType.LAST, None, 100),
                check(OffsetType.OFFSET, 60, 60),
                check(OffsetType.OFFSET, 0, 0),
                check(OffsetType.TIMESTAMP, between_ms, 100),
                check(OffsetType.TIMESTAMP, 1, 0),
            )

            async with consumer_of(endpoint) as consumer:
                where = ConsumerOffsetSpecification(OffsetType.NEXT)
                records = await subscribe(consumer, stream, where)
                await publish(producer, stream, bodies(10, first=101))
                await eventually(lambda: len(records) >= 10)
            assert records == list(enumerate(bodies(111)))[101:]

    run(scenario())


def test_one_credit_at_a_time_is_enough(endpoint: Endpoint, stream: str) -> None:
    async def scenario() -> None:
        async with producer_of(endpoint) as producer:
            await producer.create_stream(stream)
            for index in range(30):
                await producer.send_wait(stream, body(index))
        records = await read(endpoint, stream, 30, initial_credit=1)
        assert records == list(enumerate(bodies(30)))

    run(scenario())


def test_a_stored_offset_is_queried_back(endpoint: Endpoint, stream: str) -> None:
    async def scenario() -> None:
        async with producer_of(endpoint) as producer:
            await producer.create_stream(stream)
            await publish(producer, stream, bodies(100))
        async with consumer_of(endpoint) as consumer:
            with pytest.raises(exceptions.OffsetNotFound):
                await consumer.query_offset(stream, "app")
            for offset in (41, 99, 7):
                await consumer.store_offset(stream, "app", offset)
                assert await consumer.query_offset(stream, "app") == offset
            await consumer.store_offset(stream, "other", 5)
            assert await consumer.query_offset(stream, "app") == 7
        async with consumer_of(endpoint) as consumer:
            assert await consumer.query_offset(stream, "app") == 7
        # Offsets that are stored take none away from records.
        assert await read(endpoint, stream, 100) == list(enumerate(bodies(100)))

    run(scenario())


def test_ids_sent_again_are_confirmed_but_stored_once(endpoint: Endpoint, stream: str) -> None:
    def numbered(first: int, count: int) -> list[RawMessage]:
        return [RawMessage(body(i), publishing_id=i + 1) for i in range(first, first + count)]

    async def scenario() -> None:
        async with producer_of(endpoint) as producer:
            await producer.create_stream(stream)
            for first, count in ((0, 100), (50, 100), (0, 10)):
                confirmed = await publish(producer, stream, numbered(first, count), "w")
                assert sorted(confirmed) == list(range(first + 1, first + count + 1))
            client = await producer.default_client
            assert await client.query_publisher_sequence(stream, "w") == 150
            assert await client.query_publisher_sequence(stream, "unknown") == 0
        async with producer_of(endpoint) as producer:
            # The client asks for the last id by itself and goes on after it.
            assert await publish(producer, stream, [body(150)], "w") == [151]
        assert await read(endpoint, stream, 151) == list(enumerate(bodies(151)))

    run(scenario())


def test_records_with_filter_values_are_stored_like_any_others(
    endpoint: Endpoint, stream: str
) -> None:
    async def parity_of(message: AMQPMessage | RawMessage) -> str:
        return "even" if len(bytes(message)) % 2 == 0 else "odd"

    async def scenario() -> None:
        async with producer_of(endpoint, filter_value_extractor=parity_of) as producer:
            await producer.create_stream(stream)
            await publish(producer, stream, bodies(500))
        assert await read(endpoint, stream, 500) == list(enumerate(bodies(500)))

    run(scenario())


def test_deleting_a_stream_is_told_to_who_uses_it(endpoint: Endpoint, stream: str) -> None:
    told: list[tuple[str, str, tuple[str, ...]]] = []

    def teller(who: str) -> Callable[[OnClosedErrorInfo], None]:
        return lambda info: told.append((who, info.reason, tuple(info.streams)))

    async def scenario() -> None:
        async with (
            producer_of(endpoint) as other,
            producer_of(endpoint, on_close_handler=teller("producer")) as producer,
            consumer_of(endpoint, on_close_handler=teller("consumer")) as consumer,
        ):
            await other.create_stream(stream)
            await producer.send_wait(stream, body(0))
            records = await subscribe(consumer, stream)
            await eventually(lambda: len(records) == 1)
            await other.delete_stream(stream)
            await eventually(lambda: len(told) >= 2)
        assert set(told) == {
            ("producer", "Metadata Update", (stream,)),
            ("consumer", "Metadata Update", (stream,)),
        }

    run(scenario())


@pytest.mark.parametrize("stop", ["kill", "terminate"])
def test_nothing_confirmed_is_missing_after_a_restart_under_load(
    start_server: StartServer, stream: str, stop: str
) -> None:
    server = start_server()
    count = 60_000
    confirmed: set[int] = set()

    def on_confirm(status: ConfirmationStatus) -> None:
        if status.is_confirmed:
            confirmed.add(status.message_id)

    async def send_all(producer: Producer) -> None:
        """Send every record that is not confirmed yet, lowest id first."""
        for first in range(0, count, BATCH):
            ids = [i for i in range(first + 1, first + BATCH + 1) if i not in confirmed]
            if ids:
                batch = [RawMessage(body(i - 1), publishing_id=i) for i in ids]
                await producer.send_batch(stream, batch, "w", on_confirm)
                await asyncio.sleep(0.005)
        await eventually(lambda: len(confirmed) == count, 3)

    async def scenario() -> None:
        recovery = BackOffRecoveryStrategy(enable=True, jitter=1)
        async with (
            producer_of(server.endpoint, recovery_strategy=recovery) as producer,
            consumer_of(server.endpoint, recovery_strategy=recovery) as consumer,
        ):
            await producer.create_stream(stream)
            records = await subscribe(consumer, stream)
            stopper = threading.Thread(target=stop_and_restart)
            sending = asyncio.create_task(send_all(producer))
            await eventually(lambda: len(confirmed) > count // 10)
            stopper.start()
            await asyncio.wait([sending])
            await asyncio.to_thread(stopper.join)
            await retry(lambda: send_all(producer))
            assert len(confirmed) == count
            await eventually(lambda: len(records) >= count)
        expected = list(enumerate(bodies(count)))
        assert records == expected, "the consumer came back where it was"
        assert await read(server.endpoint, stream, count) == expected

    def stop_and_restart() -> None:
        getattr(server, stop)()
        server.restart()

    run(scenario())


def test_a_hundred_thousand_records_each_way(endpoint: Endpoint, stream: str) -> None:
    async def scenario() -> None:
        async with producer_of(endpoint) as producer:
            await producer.create_stream(stream)
            await publish(producer, stream, bodies(100_000))
        assert await read(endpoint, stream, 100_000) == list(enumerate(bodies(100_000)))

    run(scenario())
