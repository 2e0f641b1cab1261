"""Topics of MQTT as ends of a route, by aiomqtt and the paho client beneath it.

aiomqtt acknowledges on arrival, and takes a refusal of the broker for a confirm. So the callbacks
of paho are ours; aiomqtt connects, subscribes and moves the bytes.
"""

import asyncio
import struct
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, Self, cast

import aiomqtt
from paho.mqtt.client import Client as Paho
from paho.mqtt.client import MQTTMessage
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from gateway.bridge.ends import (
    Arrivals,
    EndLink,
    EndUnreachable,
    Judge,
    Parcel,
    RouteSource,
    RouteTarget,
    TakenOver,
)
from gateway.bridge.routes import Route, TopicsSource, TopicTarget
from gateway.bridge.templates import Missing
from hutch.formats.amqp.writing import Unpackable
from hutch.formats.mqtt import MqttMessage, mqtt_of, pack_mqtt

CONNECT_S: Final = 10
TEXT_BYTES_MAX: Final = 0xFFFF
"""The longest text of MQTT."""
PACKET_BYTES_MAX: Final = 0xFFFFFFF
_FAULTS: Final = (aiomqtt.MqttError, OSError, ValueError, TimeoutError)
_REFUSED: Final = 0x80
_TAKEN_OVER: Final = "Session taken over"
_PROPERTIES: Final = {
    "expiry_s": "MessageExpiryInterval",
    "content_type": "ContentType",
    "response_topic": "ResponseTopic",
    "correlation": "CorrelationData",
}
"""Fields of a message, each with paho's name."""


def paho_of(client: aiomqtt.Client) -> Paho:
    """Return the client beneath, whose acknowledgements can be given by hand."""
    return client._client  # noqa: SLF001  # aiomqtt 2.5 has no other name for it


def _is_refusal(code: Any) -> bool:  # noqa: ANN401  # a number, or paho's reason
    return int(getattr(code, "value", code)) >= _REFUSED


class MqttLink(EndLink):
    """A connection to a broker."""

    client: aiomqtt.Client
    paho: Paho
    _watch: "asyncio.Future[None]"

    @classmethod
    async def to(
        cls,
        end: TopicsSource | TopicTarget,
        window: int,
        prepare: Callable[[Paho], None],
        session: str | None = None,
        expiry_s: int = 0,
    ) -> Self:
        """Connect.

        Args:
            end: Where to.
            window: Messages under way, in each direction.
            prepare: Sets the callbacks.
            session: The name of a session that is to be kept; None for one that ends.
            expiry_s: How long it is kept; 0: it is ended.

        Raises:
            Unreachable: In one line, why not.
        """
        link = cls(end)
        is_5 = end.version == "5"
        properties: Any = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        if is_5:
            properties.SessionExpiryInterval = expiry_s
            properties.ReceiveMaximum = window
        try:
            link.client = aiomqtt.Client(
                *end.place,
                username=end.login[0],
                password=end.login[1],
                identifier=session,
                protocol=aiomqtt.ProtocolVersion.V5 if is_5 else aiomqtt.ProtocolVersion.V311,
                clean_session=None if is_5 else not expiry_s,
                clean_start=not expiry_s,
                properties=properties if is_5 else None,
                tls_context=end.tls(),
                timeout=CONNECT_S,
                max_inflight_messages=window,
                max_queued_outgoing_messages=0,
            )
            link.paho = paho_of(link.client)
            prepare(link.paho)
            await link.client.__aenter__()
        except _FAULTS as error:
            raise link.unreachable(error) from None
        link._watch = asyncio.ensure_future(link._watched())
        return link

    async def _watched(self) -> None:
        """Wait for the end of the connection."""
        try:
            async for _ in self.client.messages:
                pass
        except aiomqtt.MqttError as error:
            why = error.__cause__ or error
            is_taken = _TAKEN_OVER in str(why)
            self.fail(TakenOver(f"{self.end.name}: {why}") if is_taken else why)

    async def close(self) -> None:
        self._watch.cancel()
        with suppress(*_FAULTS):
            await self.client.__aexit__(None, None, None)


class TopicMessages(RouteSource[TopicsSource]):
    """Messages of topics, in a session that outlives the connection.

    QoS 2 is read as 1: paho takes a message over (PUBREC) on arrival, before the target has it.
    """

    link: MqttLink

    def __init__(self, route: Route, end: TopicsSource) -> None:
        """Keep the source to read."""
        super().__init__(route, end)
        self._messages: Arrivals[MQTTMessage] = Arrivals()

    async def open(self) -> None:
        def prepare(paho: Paho) -> None:
            paho.manual_ack_set(on=True)
            paho.on_message = lambda _client, _data, message: self._messages.put(message)

        end, route = self.end, self.route
        self.link = await MqttLink.to(end, route.window, prepare, route.owned, end.session_expiry_s)
        self.links.append(self.link)
        for topic in end.topics:
            try:
                codes = await self.link.client.subscribe(topic, qos=min(end.qos, 1))
            except _FAULTS as error:
                raise self.link.unreachable(error) from None
            if any(_is_refusal(code) for code in codes):
                raise EndUnreachable(f"{end.name}: the broker refuses {topic!r}: {codes[0]}")

    async def take(self) -> Sequence[Parcel]:
        return [_parcel(message) for message in await self._messages.take(self.links)]

    async def settle(self, parcels: Sequence[Parcel]) -> None:
        for parcel in parcels:
            mid, qos = cast("tuple[int, int]", parcel.mark)
            if qos:
                self.link.paho.ack(mid, qos)

    async def remove(self) -> None:
        self.links.append(await MqttLink.to(self.end, 1, lambda _: None, self.route.owned))


def _parcel(message: MQTTMessage) -> Parcel:
    given, mark = message.properties, (message.mid, message.qos)
    properties: Any = {name: getattr(given, paho, None) for name, paho in _PROPERTIES.items()}
    try:
        record = pack_mqtt(
            MqttMessage(
                topic=message.topic,
                payload=bytes(message.payload),
                is_durable=message.qos > 0,
                user_properties=tuple(getattr(given, "UserProperty", ())),
                **properties,
            )
        )
    except (Unpackable, UnicodeError) as error:
        return Parcel(bytes(message.payload), mark, refusal=f"as a record: {error}")
    return Parcel(record, mark, is_repeated=message.dup)


class TopicPublisher(RouteTarget[TopicTarget]):
    """Publishes to a topic."""

    link: MqttLink

    def __init__(self, route: Route, end: TopicTarget, judge: Judge) -> None:
        """Keep where to publish."""
        super().__init__(route, end, judge)
        self._room = route.window
        self._most = PACKET_BYTES_MAX
        self._next: deque[Parcel] = deque()
        self._sent: dict[int, Parcel] = {}

    async def open(self) -> None:
        def prepare(paho: Paho) -> None:
            connected: Any = paho.on_connect

            def on_connect(client: Paho, *told: Any) -> None:  # noqa: ANN401  # paho's
                # paho would send more at a time than the broker takes.
                self._room = min(getattr(told[-1], "ReceiveMaximum", self._room), self._room)
                self._most = getattr(told[-1], "MaximumPacketSize", PACKET_BYTES_MAX)
                connected(client, *told)

            paho.on_connect = on_connect
            paho.on_publish = lambda _client, _data, mid, code, _given: self._confirmed(mid, code)

        self.link = await MqttLink.to(self.end, self.route.window, prepare)
        self.links.append(self.link)

    def send(self, parcels: Sequence[Parcel]) -> None:
        self._next.extend(parcels)
        self._send()

    def _send(self) -> None:
        """Send as many as the broker takes."""
        while self._next and len(self._sent) < self._room:
            parcel = self._next.popleft()
            message = mqtt_of(parcel.record)
            try:
                properties = _properties(message) if self.end.version == "5" else None
                topic = self.end.topic.of(parcel.record, parcel.place)
                if len(parcel.record) > TEXT_BYTES_MAX or self._most < 4 * TEXT_BYTES_MAX:
                    self._measure(topic, message.payload, properties)
                info = self.link.paho.publish(
                    topic, message.payload, self.end.qos, self.end.retain, properties
                )
            except (Missing, ValueError, struct.error) as error:
                self.judge(parcel, str(error))
                continue
            if self.end.qos:
                self._sent[info.mid] = parcel
            else:  # it is confirmed by none
                self.judge(parcel, None)

    def _measure(self, topic: str, payload: bytes, properties: Any) -> None:  # noqa: ANN401  # paho's
        """Raise ValueError or struct.error for a message that the broker, or paho, cannot take.

        A broker ends the connection at a packet that is too large, and paho counts what it cannot
        write as under way.
        """
        packed = b"" if properties is None else properties.pack()
        size = 2 + len(topic.encode()) + (2 if self.end.qos else 0) + len(packed) + len(payload)
        size += 1 + -(-size.bit_length() // 7)  # its kind, and its size in seven bits a byte
        if size > self._most:
            raise ValueError(f"{size} bytes do not fit into a packet of {self._most}")

    def _confirmed(self, mid: int, code: Any) -> None:  # noqa: ANN401  # paho's
        parcel = self._sent.pop(mid, None)
        if parcel is not None:
            self.judge(parcel, f"the broker says: {code}" if _is_refusal(code) else None)
        self._send()


def _properties(message: MqttMessage) -> Any:  # noqa: ANN401  # paho's, which have no types
    properties: Any = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
    for name, paho in _PROPERTIES.items():
        if (value := getattr(message, name)) is not None:
            setattr(properties, paho, value)
    if message.user_properties:
        properties.UserProperty = list(message.user_properties)
    return properties
