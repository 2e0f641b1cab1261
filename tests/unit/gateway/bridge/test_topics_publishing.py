"""A topic as the target of a route: what paho is given, and what it says."""

import asyncio
import struct
from types import SimpleNamespace
from typing import Any

import pytest

from gateway.bridge import topics
from gateway.bridge.ends import Parcel
from gateway.bridge.routes import TopicTarget
from gateway.bridge.topics import TopicPublisher
from hutch.formats.amqp.writing import BasicProperties, pack_message
from hutch.formats.mqtt import MqttMessage, pack_mqtt
from tests.unit.gateway.bridge.bridge_rig import route
from tests.unit.gateway.bridge.topics_rig import GONE, URI, Rig, code


class Publishing:
    def __init__(self, rig: Rig, window: int = 10, **given: Any) -> None:  # noqa: ANN401
        self.rig = rig
        self.said: list[tuple[object, str | None]] = []
        end = TopicTarget.model_validate({"uri": URI, "topic": "{topic}"} | given)
        self.target = TopicPublisher(
            route(target=end, window=window),
            end,
            lambda parcel, refusal: self.said.append((parcel.mark, refusal)),
        )

    async def open(self, **connected: Any) -> "Publishing":  # noqa: ANN401  # of the answer
        await self.target.open()
        self.rig.paho.on_connect(self.rig.paho, None, {}, 0, SimpleNamespace(**connected))
        return self

    def send(self, *messages: MqttMessage | bytes) -> None:
        packed = [each if isinstance(each, bytes) else pack_mqtt(each) for each in messages]
        self.target.send([Parcel(record, mark) for mark, record in enumerate(packed, 1)])

    def confirm(self, mid: int, number: int = 0) -> None:
        self.rig.paho.on_publish(None, None, mid, code(number), None)

    @property
    def topics(self) -> list[str]:
        return [topic for topic, *_ in self.rig.paho.published]


def message(topic: str = "a/b", **given: Any) -> MqttMessage:  # noqa: ANN401  # of each field
    return MqttMessage(topic=topic, payload=b"body", **given)


async def test_the_callbacks_of_the_library_are_called_as_before(rig: Rig) -> None:
    await Publishing(rig).open()

    assert len(rig.paho.connected) == 1


@pytest.mark.parametrize(
    ("given", "expected"),
    [({}, (1, False)), ({"qos": 2, "retain": True}, (2, True))],
)
async def test_a_message_goes_to_its_topic_and_is_done_when_that_is_confirmed(
    rig: Rig, given: dict[str, Any], expected: tuple[int, bool]
) -> None:
    target = await Publishing(rig, **given).open()

    target.send(message("a/b"), message("c"))

    assert [each[:4] for each in rig.paho.published] == [
        ("a/b", b"body", *expected),
        ("c", b"body", *expected),
    ]
    assert target.said == []
    target.confirm(2)
    target.confirm(1)
    target.confirm(99)
    assert target.said == [(2, None), (1, None)]


async def test_messages_that_no_broker_confirms_are_done_at_once(rig: Rig) -> None:
    target = await Publishing(rig, qos=0).open()

    target.send(message(), message())

    assert target.said == [(1, None), (2, None)]


async def test_what_the_broker_does_not_take_is_refused(rig: Rig) -> None:
    target = await Publishing(rig).open()
    target.send(message())

    target.confirm(1, GONE)

    assert target.said == [(1, "the broker says: Quota exceeded")]


@pytest.mark.parametrize(
    ("given", "size"),
    [({}, 14), ({"qos": 0}, 12), ({"version": "3.1.1"}, 13), ({"topic": "a/" + 200 * "b"}, 214)],
)
async def test_a_packet_above_the_brokers_limit_is_refused(
    rig: Rig, given: dict[str, Any], size: int
) -> None:
    target = await Publishing(rig, **given).open(MaximumPacketSize=size)
    target.send(message())
    assert len(target.topics) == 1

    target = await Publishing(rig, **given).open(MaximumPacketSize=size - 1)
    target.send(message())
    assert len(target.topics) == 1
    assert target.said == [(1, f"{size} bytes do not fit into a packet of {size - 1}")]


@pytest.mark.parametrize(
    ("window", "connected", "room"),
    [(10, {}, 10), (10, {"ReceiveMaximum": 3}, 3), (2, {"ReceiveMaximum": 3}, 2)],
)
async def test_no_more_are_sent_than_the_broker_takes_at_a_time(
    rig: Rig, window: int, connected: dict[str, int], room: int
) -> None:
    target = await Publishing(rig, window).open(**connected)

    target.send(*(message(str(number)) for number in range(20)))
    assert target.topics == [str(number) for number in range(room)]

    target.confirm(1)
    assert len(target.topics) == room + 1


async def test_properties_go_out_as_they_came(rig: Rig) -> None:
    given = message(
        expiry_s=60,
        content_type="text/plain",
        response_topic="answers",
        correlation=b"\0c",
        user_properties=(("a", "1"),),
    )
    target = await Publishing(rig).open()

    target.send(given)

    properties = rig.paho.published[0][4]
    assert properties.MessageExpiryInterval == 60
    assert properties.ContentType == "text/plain"
    assert properties.ResponseTopic == "answers"
    assert properties.CorrelationData == b"\0c"
    assert not hasattr(properties, "PayloadFormatIndicator")
    assert properties.UserProperty == [("a", "1")]


async def test_an_old_broker_gets_no_properties(rig: Rig) -> None:
    target = await Publishing(rig, version="3.1.1").open()

    target.send(message(content_type="text/plain"))

    assert rig.paho.published[0][4] is None


async def test_what_cannot_be_sent_is_refused_and_the_next_one_goes(rig: Rig) -> None:
    long = message(user_properties=(("a", "x" * (topics.TEXT_BYTES_MAX + 1)),))
    target = await Publishing(rig).open()

    target.send(b"no AMQP", message("a/#"), long, message("c"))

    assert [mark for mark, _ in target.said] == [1, 2, 3]
    assert target.said[:2] == [(1, "it has no topic, which '{topic}' needs"), (2, "Invalid topic.")]
    assert target.topics == ["c"]


async def test_the_longest_text_goes_out(rig: Rig) -> None:
    pair = ("a", "x" * topics.TEXT_BYTES_MAX)
    target = await Publishing(rig).open()

    target.send(message(user_properties=(pair,)))

    assert pair in rig.paho.published[0][4].UserProperty
    with pytest.raises(struct.error):
        struct.pack("!H", topics.TEXT_BYTES_MAX + 1)


async def test_a_message_of_a_queue_goes_to_the_topic_of_its_key(rig: Rig) -> None:
    target = await Publishing(rig).open()

    target.send(pack_message(b"body", BasicProperties(), exchange="e", routing_key="a.b"))
    await asyncio.sleep(0)

    assert target.topics == ["a/b"]
