"""Connections to a broker of MQTT that a test makes up, and what they were given."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.reasoncodes import ReasonCode

from gateway.bridge.routes import TopicsSource
from gateway.bridge.topics import MqttLink

URI = "mqtt://ann:secret@h"
SOURCE = TopicsSource(uri=URI, topics=["a/#", "b"])
GONE = 0x97


def code(number: int) -> ReasonCode:
    return ReasonCode(PacketTypes.PUBACK, identifier=number)


class FakePaho:
    """The client beneath, with what it was given.

    Attributes:
        published: Arguments of each message.
        acknowledged: Its number and QoS.
    """

    def __init__(self) -> None:
        self.published: list[tuple[Any, ...]] = []
        self.acknowledged: list[tuple[int, int]] = []
        self.is_manual = False
        self.connected: list[object] = []
        self.on_message: Any = None
        self.on_publish: Any = None
        self.on_connect: Any = lambda *told: self.connected.append(told)

    def manual_ack_set(self, *, on: bool) -> None:
        self.is_manual = on

    def ack(self, mid: int, qos: int) -> None:
        self.acknowledged.append((mid, qos))

    def publish(self, topic: str, *more: Any) -> Any:  # noqa: ANN401  # paho's
        if not topic or "#" in topic:
            raise ValueError("Invalid topic.")
        self.published.append((topic, *more))
        return SimpleNamespace(mid=len(self.published))


class Rig:
    """Connections that were made.

    Attributes:
        calls: Arguments of each connection.
        codes: What a subscription is answered.
        subscribed: Topics with their QoS.
    """

    def __init__(self) -> None:
        self.paho = FakePaho()
        self.calls: list[tuple[Any, ...]] = []
        self.codes: list[Any] = [code(0)]
        self.subscribed: list[tuple[str, int]] = []
        self.links: list[MqttLink] = []

    async def to(
        self,
        end: Any,  # noqa: ANN401
        window: int,
        prepare: Callable[[Any], None],
        *session: Any,  # noqa: ANN401
    ) -> MqttLink:
        self.calls.append((end, window, *session))
        link = MqttLink(end)
        link.paho = self.paho  # type: ignore[assignment]
        link.client = SimpleNamespace(subscribe=self.subscribe)  # type: ignore[assignment]
        prepare(self.paho)
        self.links.append(link)
        return link

    async def subscribe(self, topic: str, *, qos: int) -> Any:  # noqa: ANN401
        self.subscribed.append((topic, qos))
        return self.codes
