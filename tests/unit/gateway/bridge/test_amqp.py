"""Queues and exchanges as sources of a route, on a channel of the test's own."""

import asyncio
import gc
from datetime import UTC, datetime
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import aiormq
import pytest
from aiormq.abc import DeliveredMessage

from gateway.bridge import amqp
from gateway.bridge.amqp import AmqpLink, QueueMessages
from gateway.bridge.ends import BYTES_MAX, EndUnreachable, Parcel, first_lost
from gateway.bridge.routes import ExchangeSource, QueueSource
from hutch.formats.amqp.message import message_of
from hutch.formats.amqp.values import Moment
from hutch.formats.amqp.writing import BasicProperties, pack_message
from tests.unit.gateway.bridge.amqp_rig import URI, Channel, delivered
from tests.unit.gateway.bridge.bridge_rig import ended, route

QUEUE = QueueSource(uri=URI, queue="q")
EXCHANGE = ExchangeSource(uri=URI, exchange="e", keys=["a", "b.*"])


async def source_of(end: Any = QUEUE, window: int = 10) -> QueueMessages:  # noqa: ANN401
    source = QueueMessages(route(source=end, window=window), end)
    await source.open()
    return source


# ---- a queue ---------------------------------------------------------------------------------


async def test_a_queue_is_looked_for_and_read_alone(channel: Channel) -> None:
    await source_of()

    assert channel.asked == [
        ("connect", "r", False),
        ("queue_declare", "q", ("passive", True)),
        ("basic_qos", ("prefetch_count", 10)),
        ("basic_consume", "q", ("exclusive", True)),
    ]


async def test_an_exchange_is_read_by_a_durable_queue_of_the_routes_own(channel: Channel) -> None:
    await source_of(EXCHANGE)

    assert channel.asked[1:5] == [
        ("exchange_declare", "e", ("passive", True)),
        ("queue_declare", "hutch-bridge-r", ("durable", True)),
        ("queue_bind", "hutch-bridge-r", "e", "a"),
        ("queue_bind", "hutch-bridge-r", "e", "b.*"),
    ]
    assert channel.asked[-1] == ("basic_consume", "hutch-bridge-r", ("exclusive", True))


@pytest.mark.parametrize(
    "fault",
    [
        aiormq.ChannelNotFoundEntity("NOT_FOUND - no queue 'q'"),
        aiormq.ChannelInvalidStateError("closed"),
        ConnectionResetError("reset"),
        TimeoutError(),
    ],
)
async def test_what_a_broker_does_not_do_is_said_with_the_end(
    channel: Channel, fault: Exception
) -> None:
    channel.faults["queue_declare"] = fault

    error = await ended(source_of())

    assert isinstance(error, EndUnreachable)
    assert str(error).startswith("queue 'q' at h: ")
    assert "secret" not in str(error)


async def test_messages_come_with_what_acknowledges_them(channel: Channel) -> None:
    source = await source_of()
    await channel.consumer(delivered(1))
    await channel.consumer(delivered(2, redelivered=True))

    first, second = await source.take()

    assert (first.mark, second.mark) == (1, 2)
    assert (first.is_repeated, second.is_repeated) == (False, True)
    await source.settle([first, second])
    assert channel.asked[-1] == ("basic_ack", 2, ("multiple", True))


async def test_a_closed_channel_that_is_to_acknowledge_is_a_lost_end(channel: Channel) -> None:
    source = await source_of()
    await channel.consumer(delivered(1))
    channel.faults["basic_ack"] = aiormq.ChannelInvalidStateError("closed")

    assert isinstance(await ended(source.settle(await source.take())), EndUnreachable)


async def test_a_queue_that_is_deleted_while_it_is_read_is_lost(channel: Channel) -> None:
    source = await source_of()

    for callback in channel.on_consumer_cancel_callbacks:
        callback(None)

    error = await ended(source.take())
    assert str(error) == "queue 'q' at h: the queue is no longer there"


async def test_what_waits_is_what_the_queue_has_and_what_was_not_taken(channel: Channel) -> None:
    source = await source_of()
    channel.message_count = 7
    await channel.consumer(delivered(1))

    assert await source.waiting() == 8


async def test_a_paused_queue_is_read_no_more_and_only_once(channel: Channel) -> None:
    source = await source_of()
    await channel.consumer(delivered(1))

    await source._cancel()
    await source._cancel()
    await source.settle(await source.take())

    assert channel.names().count("basic_cancel") == 1
    assert channel.names().count("basic_consume") == 1


async def test_more_than_64_mib_under_way_wait_with_fewer_messages_at_a_time(
    channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert BYTES_MAX == 64 << 20
    monkeypatch.setattr(amqp, "BYTES_MAX", 1_000)
    source = await source_of(window=100)
    for tag in range(4):
        await channel.consumer(delivered(tag, bytes(250)))
    assert "basic_cancel" not in channel.names()

    await channel.consumer(delivered(4, bytes(250)))
    await channel.consumer(delivered(5, bytes(250)))
    assert channel.names().count("basic_cancel") == 1

    parcels = await source.take()
    await source.settle(parcels[:5])
    assert channel.asked[-1][0] == "basic_ack"
    await source.settle(parcels[5:])
    assert channel.asked[-2:] == [
        ("basic_qos", ("prefetch_count", 2)),
        ("basic_consume", "q", ("exclusive", True)),
    ]


async def test_with_a_window_of_one_a_queue_is_read_on_behind_a_message_above_64_mib(
    channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(amqp, "BYTES_MAX", 1_000)
    source = await source_of(window=1)
    await channel.consumer(delivered(1, bytes(1_001)))
    assert channel.names()[-1] == "basic_cancel"

    await source.settle(await source.take())

    assert channel.names()[-1] == "basic_consume"


async def test_a_channel_that_breaks_at_a_pause_is_no_error_of_the_message(
    channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(amqp, "BYTES_MAX", 1)
    source = await source_of()
    channel.faults["basic_cancel"] = aiormq.ChannelInvalidStateError("closed")

    await channel.consumer(delivered(1))

    assert len(await source.take()) == 1


@pytest.mark.parametrize(("end", "deleted"), [(EXCHANGE, True), (QUEUE, False)])
async def test_a_queue_is_removed_if_the_route_has_made_it(
    channel: Channel,
    end: Any,  # noqa: ANN401
    deleted: bool,  # noqa: FBT001  # of the table
) -> None:
    await QueueMessages(route(source=end), end).remove()

    assert (("queue_delete", "hutch-bridge-r") in channel.asked) == deleted


# ---- a connection ----------------------------------------------------------------------------


async def test_a_broker_that_is_not_there_is_said_without_a_password() -> None:
    end = QueueSource(uri="amqp://ann:secret@127.0.0.1:1", queue="q")

    error = await ended(AmqpLink.to(end, "r", has_confirms=False))

    assert isinstance(error, EndUnreachable)
    assert str(error).startswith("queue 'q' at 127.0.0.1:1: ")
    assert "secret" not in str(error)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (aiormq.ConnectionClosed(320, "CONNECTION_FORCED"), "CONNECTION_FORCED"),
        (None, "the channel was closed"),
    ],
)
async def test_a_channel_that_closes_is_a_lost_end(error: Exception | None, words: str) -> None:
    link = AmqpLink(QUEUE)
    closing: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    closing.add_done_callback(link._closed)

    if error is None:
        closing.cancel()
    else:
        closing.set_exception(error)

    assert words in str(await ended(first_lost([link])))


async def test_an_answer_that_is_no_longer_waited_for_still_comes_and_may_be_an_error() -> None:
    complaints: list[object] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _loop, context: complaints.append(context))
    fails, failed = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        await fails.wait()
        failed.set()
        raise aiormq.ConnectionClosed(320, "shutdown")

    asked = asyncio.ensure_future(AmqpLink(QUEUE).do(work()))
    await asyncio.sleep(0)
    asked.cancel()
    await asyncio.gather(asked, return_exceptions=True)
    fails.set()
    await failed.wait()
    await asyncio.sleep(0)
    gc.collect()

    assert complaints == []


async def test_a_connection_is_closed_however_it_ends() -> None:
    async def broken() -> None:
        raise aiormq.ConnectionClosed(320, "it had gone")

    link = AmqpLink(QUEUE)
    link.connection = SimpleNamespace(close=broken)  # type: ignore[assignment]

    await link.close()


# ---- its messages as records -----------------------------------------------------------------

MADE = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


async def record_of(channel: Channel, message: DeliveredMessage) -> Parcel:
    source = await source_of()
    await channel.consumer(message)
    (parcel,) = await source.take()
    return parcel


async def test_every_property_is_in_the_record(channel: Channel) -> None:
    message = delivered(
        content_type="text/plain",
        content_encoding="gzip",
        delivery_mode=2,
        priority=5,
        correlation_id="c",
        reply_to="q",
        expiration="60000",
        message_id="m",
        timestamp=MADE,
        message_type="t",
        user_id="ann",
        app_id="app",
        headers={"a": "1", "x-b": [1, {"c": None}]},
    )
    expected = BasicProperties(
        content_type="text/plain",
        content_encoding="gzip",
        delivery_mode=2,
        priority=5,
        correlation_id="c",
        reply_to="q",
        expiration=60_000,
        message_id="m",
        timestamp=int(MADE.timestamp()),
        type="t",
        user_id="ann",
        app_id="app",
        headers={"a": "1", "x-b": [1, {"c": None}]},
    )

    parcel = await record_of(channel, message)

    assert parcel.record == pack_message(b"body", expected, exchange="e", routing_key="k")
    assert parcel.refusal is None


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (MADE, Moment(int(MADE.timestamp()) * 1_000)),
        (bytearray(b"\0\xff"), b"\0\xff"),
        (Decimal("1.5"), 1.5),
        (0.5, 0.5),
        (None, None),
        (True, True),
        (1 << 40, 1 << 40),
    ],
)
async def test_a_header_is_stored_as_what_it_is(
    channel: Channel, value: object, stored: object
) -> None:
    headers = {"a": value, "x-list": [value], "x-table": {"b": value}}
    parcel = await record_of(channel, delivered(headers=headers))

    message = message_of(parcel.record)
    assert message is not None
    assert message.application_properties == {"a": stored}
    annotations = message.message_annotations or {}
    assert (annotations["x-list"], annotations["x-table"]) == ([stored], {"b": stored})


def nested(depth: int) -> Any:  # noqa: ANN401
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"expiration": "soon"}, "invalid literal for int"),
        ({"expiration": "-1"}, "invalid expiration -1: it is negative"),
        ({"headers": {"x-deep": nested(17)}}, "headers are nested too deeply"),
        ({"headers": {"a": object()}}, "a header is a object"),
    ],
)
async def test_a_message_that_cannot_be_a_record_is_refused_with_its_body(
    channel: Channel, given: dict[str, Any], reason: str
) -> None:
    parcel = await record_of(channel, delivered(3, **given))

    assert parcel.refusal is not None
    assert parcel.refusal.startswith(f"as a record: {reason}")
    assert (parcel.record, parcel.mark) == (b"body", 3)
