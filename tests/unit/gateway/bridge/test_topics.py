"""Topics as a source of a route: what paho and aiomqtt are given, and what they say."""

import asyncio
from types import SimpleNamespace
from typing import Any

import aiomqtt
import pytest
from paho.mqtt.client import Client as Paho
from paho.mqtt.client import MQTTMessage
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from gateway.bridge.ends import EndUnreachable, TakenOver
from gateway.bridge.routes import TopicsSource
from gateway.bridge.topics import MqttLink, TopicMessages, paho_of
from hutch.formats.mqtt import MqttMessage, pack_mqtt
from tests.unit.gateway.bridge.bridge_rig import ended, route
from tests.unit.gateway.bridge.topics_rig import SOURCE, URI, Rig, code


def arrived(
    topic: str = "a/b",
    payload: bytes = b"body",
    mid: int = 1,
    qos: int = 1,
    **given: Any,  # noqa: ANN401
) -> MQTTMessage:
    message = MQTTMessage(mid=mid, topic=topic.encode())
    message.payload, message.qos, message.dup = payload, qos, given.pop("dup", False)
    properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
    for name, value in given.items():
        setattr(properties, name, value)
    message.properties = properties
    return message


# ---- what is private --------------------------------------------------------------------------


async def test_the_client_beneath_is_paho_with_acknowledgements_by_hand() -> None:
    client = aiomqtt.Client("h")

    paho = paho_of(client)

    assert isinstance(paho, Paho)
    paho.manual_ack_set(True)  # noqa: FBT003  # paho's
    assert callable(paho.ack)
    assert callable(paho.on_message)
    assert callable(paho.on_publish)
    assert callable(paho.on_connect)


async def test_a_broker_that_is_not_there_is_said_without_a_password() -> None:
    end = TopicsSource(uri="mqtt://ann:secret@127.0.0.1:1", topics=["a"])

    error = await ended(MqttLink.to(end, 1, lambda _: None))

    assert isinstance(error, EndUnreachable)
    assert str(error).startswith("topics ['a'] at 127.0.0.1:1: ")
    assert "refused" in str(error)
    assert "secret" not in str(error)


@pytest.mark.parametrize(
    ("why", "kind"),
    [("Session taken over", TakenOver), ("Server shutting down", EndUnreachable)],
)
async def test_a_session_that_another_client_takes_is_told_apart(
    why: str, kind: type[Exception]
) -> None:
    class Messages:
        def __aiter__(self) -> "Messages":
            return self

        async def __anext__(self) -> None:
            raise aiomqtt.MqttError("Disconnected") from aiomqtt.MqttError(why)

    link = MqttLink(SOURCE)
    link.client = SimpleNamespace(messages=Messages())  # type: ignore[assignment]

    await link._watched()

    error = link.lost.exception()
    assert type(error) is kind
    assert str(error) == f"topics ['a/#', 'b'] at h: {why}"


# ---- topics as the source ---------------------------------------------------------------------


@pytest.mark.parametrize(("qos", "asked"), [(0, 0), (1, 1), (2, 1)])
async def test_topics_are_subscribed_in_a_session_of_the_routes_own(
    rig: Rig, qos: int, asked: int
) -> None:
    end = TopicsSource(uri=URI, topics=["a/#", "$share/g/b"], qos=qos, session_expiry_s=60)
    source = TopicMessages(route(source=end, window=7), end)

    await source.open()

    assert rig.calls == [(end, 7, "hutch-bridge-r", 60)]
    assert rig.subscribed == [("a/#", asked), ("$share/g/b", asked)]
    assert rig.paho.is_manual


@pytest.mark.parametrize("refusal", [code(0x87), 0x80])
async def test_a_topic_that_the_broker_refuses_is_said(rig: Rig, refusal: Any) -> None:  # noqa: ANN401
    rig.codes = [refusal]

    error = await ended(TopicMessages(route(source=SOURCE), SOURCE).open())

    assert isinstance(error, EndUnreachable)
    assert str(error).startswith("topics ['a/#', 'b'] at h: the broker refuses 'a/#': ")


async def test_a_connection_that_breaks_at_a_subscription_is_a_line(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(_topic: str, *, qos: int) -> None:
        raise aiomqtt.MqttError(f"Disconnected, {qos}")

    monkeypatch.setattr(rig, "subscribe", broken)

    error = await ended(TopicMessages(route(source=SOURCE), SOURCE).open())

    assert str(error) == "topics ['a/#', 'b'] at h: Disconnected, 1"


async def test_a_connection_is_closed_however_it_ends() -> None:
    left: list[tuple[object, ...]] = []

    async def leave(*told: object) -> None:
        left.append(told)
        raise aiomqtt.MqttError("it had gone")

    link = MqttLink(SOURCE)
    link.client = SimpleNamespace(__aexit__=leave)  # type: ignore[assignment]
    link._watch = asyncio.ensure_future(asyncio.sleep(100))

    await link.close()

    assert left == [(None, None, None)]
    await asyncio.sleep(0)
    assert link._watch.cancelled()


async def opened(rig: Rig) -> TopicMessages:
    source = TopicMessages(route(source=SOURCE), SOURCE)
    await source.open()
    assert rig.paho.on_message is not None
    return source


async def test_messages_are_acknowledged_when_they_are_settled_and_not_before(rig: Rig) -> None:
    source = await opened(rig)
    for mid, qos in ((5, 1), (0, 0), (6, 2)):
        rig.paho.on_message(None, None, arrived(mid=mid, qos=qos))

    parcels = await source.take()
    assert rig.paho.acknowledged == []
    await source.settle(parcels)

    assert rig.paho.acknowledged == [(5, 1), (6, 2)]


@pytest.mark.parametrize("dup", [True, False])
async def test_a_message_that_the_broker_sends_again_is_known(
    rig: Rig,
    dup: bool,  # noqa: FBT001  # of the table
) -> None:
    source = await opened(rig)
    rig.paho.on_message(None, None, arrived(dup=dup))

    assert (await source.take())[0].is_repeated == dup


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (arrived(), {"is_durable": True}),
        (arrived(qos=0), {}),
        (
            arrived(
                MessageExpiryInterval=60,
                ContentType="text/plain",
                ResponseTopic="answers",
                CorrelationData=b"\0c",
                UserProperty=[("a", "1"), ("x-b", "2")],
            ),
            {
                "is_durable": True,
                "expiry_s": 60,
                "content_type": "text/plain",
                "response_topic": "answers",
                "correlation": b"\0c",
                "user_properties": (("a", "1"), ("x-b", "2")),
            },
        ),
        (arrived(PayloadFormatIndicator=1), {"is_durable": True}),
    ],
)
async def test_a_message_is_the_record_of_what_came(
    rig: Rig, message: MQTTMessage, expected: dict[str, Any]
) -> None:
    source = await opened(rig)
    rig.paho.on_message(None, None, message)

    (parcel,) = await source.take()

    given = MqttMessage(**{"topic": "a/b", "payload": b"body"} | expected)
    assert parcel.record == pack_mqtt(given)


async def test_a_message_of_an_old_broker_has_no_properties(rig: Rig) -> None:
    message = arrived()
    message.properties = None
    source = await opened(rig)
    rig.paho.on_message(None, None, message)

    (parcel,) = await source.take()

    assert parcel.record == pack_mqtt(MqttMessage(topic="a/b", payload=b"body", is_durable=True))


@pytest.mark.parametrize("topic", [b"a", b"\xff"])
async def test_half_a_character_makes_no_record_and_is_refused(rig: Rig, topic: bytes) -> None:
    message = arrived(UserProperty=[("a", "\ud800")])
    message.topic = topic
    source = await opened(rig)
    rig.paho.on_message(None, None, message)

    (parcel,) = await source.take()

    assert parcel.refusal is not None
    assert parcel.refusal.startswith("as a record: ")
    assert (parcel.record, parcel.mark) == (b"body", (1, 1))


async def test_removing_a_route_ends_its_session(rig: Rig) -> None:
    source = TopicMessages(route(source=SOURCE), SOURCE)

    await source.remove()

    assert rig.calls == [(SOURCE, 1, "hutch-bridge-r")]
    assert source.links == list(rig.links)
