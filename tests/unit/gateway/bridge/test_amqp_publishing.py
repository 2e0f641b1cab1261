"""Exchanges and queues as targets of a route, on a channel of the test's own."""

import asyncio
from collections.abc import Callable
from typing import Any

import aiormq
import pytest
from aiormq.abc import DeliveredMessage
from pamqp import commands as spec
from pamqp.header import ContentHeader

from gateway.bridge.amqp import BasicPublisher, _parcel
from gateway.bridge.ends import Parcel
from gateway.bridge.routes import ExchangeTarget, QueueTarget
from hutch.formats.amqp.basic import basic_of
from hutch.formats.amqp.values import Moment
from hutch.formats.amqp.writing import BasicProperties, pack_message
from tests.unit.gateway.bridge.amqp_rig import URI, Channel, delivered
from tests.unit.gateway.bridge.bridge_rig import route, soon


class Publishing:
    """A publisher, and what it said of each message."""

    def __init__(self, channel: Channel, end: Any, said: list[tuple[Parcel, str | None]]) -> None:  # noqa: ANN401
        self.said = said
        self.channel = channel
        self.target = BasicPublisher(route(target=end), end, lambda *told: said.append(told))

    async def send(self, *parcels: Parcel) -> None:
        self.target.send(parcels)
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    async def properties(self, record: bytes, **place: str) -> spec.Basic.Properties:
        """Return the properties with which a record goes out."""
        await self.send(Parcel(record, 1, place))
        found: spec.Basic.Properties = self.channel.published[-1][0]["properties"]
        return found

    @property
    def outcomes(self) -> list[str | None]:
        return [refusal for _, refusal in self.said]


@pytest.fixture
def publishing(channel: Channel) -> Callable[[Any], Any]:
    async def opened(end: Any) -> Publishing:  # noqa: ANN401
        made = Publishing(channel, end, [])
        await made.target.open()
        return made

    return opened


RETURN = spec.Basic.Return(312, "NO_ROUTE", "", "out")
RETURNED = DeliveredMessage(
    delivery=RETURN,
    header=ContentHeader(),
    body=b"",
    channel=None,  # type: ignore[arg-type]  # it is not asked for
)
TO_QUEUE = QueueTarget(uri=URI, queue="out")
TO_EXCHANGE = ExchangeTarget.model_validate(
    {"uri": URI, "exchange": "out", "routing_key": "eu.{routing_key}"}
)
PLAIN = pack_message(b"body", BasicProperties(), exchange="e", routing_key="k")


@pytest.mark.parametrize(
    ("end", "looked_for", "exchange", "key"),
    [
        (TO_QUEUE, ("queue_declare", "out", ("passive", True)), "", "out"),
        (TO_EXCHANGE, ("exchange_declare", "out", ("passive", True)), "out", "eu.k"),
    ],
)
async def test_a_message_is_published_with_confirms_and_must_find_a_queue(
    channel: Channel,
    publishing: Any,  # noqa: ANN401
    end: Any,  # noqa: ANN401
    looked_for: tuple[Any, ...],
    exchange: str,
    key: str,
) -> None:
    target = await publishing(end)
    assert channel.asked == [("connect", "r", True), looked_for]

    await target.send(Parcel(PLAIN, 1))

    ((sent, confirm),) = channel.published
    assert (sent["body"], sent["exchange"], sent["routing_key"]) == (b"body", exchange, key)
    assert sent["mandatory"] is True
    assert target.said == []
    confirm.set_result(None)
    await soon(lambda: target.outcomes == [None])


@pytest.mark.parametrize(
    ("error", "refusal"),
    [
        (aiormq.exceptions.PublishError(RETURNED, RETURN), "no queue takes it"),
        (
            aiormq.exceptions.DeliveryError(None, spec.Basic.Nack(1)),
            "the broker refused it (basic.nack)",
        ),
    ],
)
async def test_what_the_broker_refuses_is_refused(
    channel: Channel,
    publishing: Any,  # noqa: ANN401
    error: Exception,
    refusal: str,
) -> None:
    target = await publishing(TO_QUEUE)
    await target.send(Parcel(PLAIN, 1))

    channel.published[0][1].set_exception(error)

    await soon(lambda: target.outcomes == [refusal])
    assert not target.target.link.lost.done()


async def test_a_lost_channel_refuses_nothing(channel: Channel, publishing: Any) -> None:  # noqa: ANN401
    target = await publishing(TO_QUEUE)
    await target.send(Parcel(PLAIN, 1), Parcel(PLAIN, 2))

    channel.published[0][1].set_exception(aiormq.ConnectionClosed(320, "shutdown"))
    channel.published[1][1].cancel()

    await soon(target.target.link.lost.done)
    assert target.said == []


async def test_a_size_that_a_broker_does_not_take_is_remembered(
    channel: Channel,
    publishing: Any,  # noqa: ANN401
) -> None:
    words = "PRECONDITION_FAILED - message size 9 is larger than configured max size 4"
    target = await publishing(TO_QUEUE)
    await target.send(
        Parcel(pack_message(b"12345", BasicProperties(), exchange="", routing_key=""), 1)
    )
    channel.published[0][1].set_exception(aiormq.ChannelPreconditionFailed(406, words))
    await soon(target.target.link.lost.done)

    again = await publishing(TO_QUEUE)
    await again.send(
        *(
            Parcel(pack_message(body, BasicProperties(), exchange="", routing_key=""), body)
            for body in (b"1234", b"12345")
        )
    )

    assert again.outcomes == ["5 bytes are more than the 4 that the broker takes"]
    assert [each["body"] for each, _ in channel.published[1:]] == [b"1234"]


async def test_a_field_that_a_message_lacks_is_refused_and_the_next_one_goes(
    channel: Channel,
    publishing: Any,  # noqa: ANN401
) -> None:
    target = await publishing(TO_EXCHANGE)

    await target.send(Parcel(b"no AMQP", 1), Parcel(PLAIN, 2))

    assert target.outcomes == ["it has no routing_key, which 'eu.{routing_key}' needs"]
    assert len(channel.published) == 1


@pytest.mark.parametrize(
    "record",
    [
        pack_message(b"", BasicProperties(), exchange="", routing_key="x" * 253),
        pack_message(
            b"", BasicProperties(headers={"x-a": {"x" * 256: 1}}), exchange="", routing_key="k"
        ),
    ],
    ids=["routing key", "name in a header"],
)
async def test_what_the_protocol_has_no_place_for_is_refused(
    channel: Channel,
    publishing: Any,  # noqa: ANN401
    record: bytes,
) -> None:
    target = await publishing(TO_EXCHANGE)

    await target.send(Parcel(record, 1), Parcel(PLAIN, 2))
    await soon(lambda: target.said)

    assert [each.mark for each, refusal in target.said if refusal] == [1]
    assert not target.target.link.lost.done()
    assert len(channel.published) == 1


async def test_messages_of_one_id_go_one_after_the_other(
    channel: Channel,
    publishing: Any,  # noqa: ANN401
) -> None:
    record = pack_message(b"", BasicProperties(message_id="m"), exchange="", routing_key="")
    target = await publishing(TO_QUEUE)

    await target.send(Parcel(record, 1), Parcel(record, 2), Parcel(PLAIN, 3))
    assert len(channel.published) == 1

    channel.published[0][1].set_result(None)
    await soon(lambda: len(channel.published) == 3)
    channel.published[2][1].set_result(None)
    channel.published[1][1].set_result(None)
    await soon(lambda: len(target.said) == 3)
    assert [each.mark for each, _ in target.said] == [1, 3, 2]


async def test_a_message_goes_out_with_its_properties_and_comes_in_as_the_same(
    publishing: Any,  # noqa: ANN401
) -> None:
    given = BasicProperties(
        content_type="text/plain",
        content_encoding="gzip",
        delivery_mode=2,
        priority=5,
        correlation_id="c",
        reply_to="q",
        expiration=60_000,
        message_id="m",
        timestamp=1_700_000_000,
        type="t",
        user_id="ann",
        app_id="app",
        headers={"a": b"\0\xff", "b": Moment(1_000), "x-c": [1, {"d": None}], "e": 0.5},
    )
    record = pack_message(b"body", given, exchange="e", routing_key="k")
    target = await publishing(TO_QUEUE)
    sent = await target.properties(record)

    message = delivered()
    message.header.unmarshal(ContentHeader(body_size=4, properties=sent).marshal())
    parcel = _parcel(message)

    assert basic_of(parcel.record) == basic_of(record)


@pytest.mark.parametrize(("user", "shown"), [("ann", "ann"), ("bob", None), (None, None)])
async def test_a_message_says_its_user_only_if_the_route_logs_in_as_that(
    publishing: Any,  # noqa: ANN401
    user: str | None,
    shown: str | None,
) -> None:
    record = pack_message(b"", BasicProperties(user_id=user), exchange="", routing_key="")

    assert (await (await publishing(TO_QUEUE)).properties(record)).user_id == shown


@pytest.mark.parametrize(
    ("given", "place", "shown"),
    [
        ("m", {"stream": "s", "offset": "7"}, "m"),
        (None, {"stream": "s", "offset": "7"}, "s/7"),
        (None, {"stream": "x" * 255, "offset": "7"}, "x" * 253 + "/7"),
    ],
)
async def test_a_message_without_an_id_has_its_place_as_one(
    publishing: Any,  # noqa: ANN401
    given: str | None,
    place: dict[str, str],
    shown: str | None,
) -> None:
    record = pack_message(b"", BasicProperties(message_id=given), exchange="", routing_key="")

    assert (await (await publishing(TO_QUEUE)).properties(record, **place)).message_id == shown


async def test_a_message_of_no_stream_has_an_id_of_its_own(publishing: Any) -> None:  # noqa: ANN401
    target = await publishing(TO_QUEUE)

    first = (await target.properties(PLAIN)).message_id
    second = (await target.properties(PLAIN)).message_id

    assert first != second
    assert min(len(str(first)), len(str(second))) == 32


async def test_a_record_that_is_no_message_goes_as_its_bytes(
    channel: Channel,
    publishing: Any,  # noqa: ANN401
) -> None:
    properties = await (await publishing(TO_QUEUE)).properties(b"no AMQP")

    assert channel.published[0][0]["body"] == b"no AMQP"
    assert properties.content_type == "application/octet-stream"
