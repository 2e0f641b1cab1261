"""A message of a topic as RabbitMQ puts it into its own stream, and as the bridge does.

The bridge reads it from RabbitMQ, and from mosquitto.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from compat.broker import RunningBroker
from tests.compat.bridge import ends, topics
from tests.compat.bridge.topics import TIMEOUT_S, Topical
from tests.integration.bridge.bridges import Bridge, route
from tests.integration.bridge.mosquitto import Mosquitto
from tests.integration.server import HutchServer

EXPIRY_S: Final = 3_600
UUID: Final = b"urn:uuid:123e4567-e89b-12d3-a456-426614174000"


def with_properties(**properties: object) -> Topical:
    return Topical("devices/one", properties=properties)


MESSAGES: Final[Mapping[str, Topical]] = {
    "version 3.1.1": Topical("devices/one"),
    "version 3.1.1, QoS 0": Topical("devices/one", qos=0),
    "no properties": with_properties(),
    "QoS 0": Topical("devices/one", qos=0, properties={}),
    "no payload": Topical("devices/one", b"", properties={}),
    "payload of 256 bytes": Topical("devices/one", bytes(range(256)), properties={}),
    "text": Topical("devices/one", "größe 🐇".encode(), properties={"PayloadFormatIndicator": 1}),
    "long text": Topical("devices/one", 300 * b"t", properties={"PayloadFormatIndicator": 1}),
    "no text": Topical("devices/one", b"some", properties={"PayloadFormatIndicator": 0}),
    "content type": with_properties(ContentType="text/plain"),
    "content type, no ASCII": with_properties(ContentType="text/ü"),
    "response topic": with_properties(ResponseTopic="answers/to me/é"),
    "response topic with dots": with_properties(ResponseTopic="answers/1.5/*"),
    "correlation": with_properties(CorrelationData=b"\x00\xff"),
    "correlation as text": with_properties(CorrelationData=b"some"),
    "correlation as a UUID": with_properties(CorrelationData=UUID),
    "correlation as a UUID, large": with_properties(CorrelationData=UUID[:9] + UUID[9:].upper()),
    "long correlation": with_properties(CorrelationData=bytes(range(256)) * 2),
    "user properties": with_properties(UserProperty=[("one", "1"), ("größe", "🐇"), ("empty", "")]),
    "user properties of one name": with_properties(
        UserProperty=[("one", "1"), ("two", "2"), ("one", "3")]
    ),
    "user properties with x-": with_properties(
        UserProperty=[("x-one", "1"), ("x-größe", "2"), ("x-one", "3"), ("two", "x-")]
    ),
    "long user property": with_properties(UserProperty=[("n" * 300, "v" * 5_000)]),
    "topic of many levels": Topical("devices/a/b/c//d", properties={}),
    "topic with a space": Topical("devices/größe 🐇", properties={}),
    "everything": with_properties(
        ContentType="text/plain",
        ResponseTopic="answers",
        CorrelationData=b"c",
        PayloadFormatIndicator=1,
        UserProperty=[("one", "1")],
    ),
}
WITH_EXPIRY: Final[Mapping[str, Topical]] = {
    "expiry": with_properties(MessageExpiryInterval=EXPIRY_S),
}
Stored = Mapping[str, tuple[bytes, bytes, bytes]]


@pytest.fixture(scope="module")
def stored(
    rabbitmq: RunningBroker, mosquitto: Mosquitto, tmp_path_factory: pytest.TempPathFactory
) -> Stored:
    """Each message as RabbitMQ has stored it, and as it came by the bridge from both brokers."""
    folder: Path = tmp_path_factory.mktemp("bridge")
    messages = {**MESSAGES, **WITH_EXPIRY}
    ends.publish(ends.amqp_uri(rabbitmq), {"bridge-topics": "stream"}, {})
    brokers = {"rabbitmq": ends.mqtt_uri(rabbitmq), "mosquitto": mosquitto.uri}
    bound = {"vhost": "%2F", "queue": "bridge-topics"}
    path = "bindings/{vhost}/e/amq.topic/q/{queue}".format(**bound)
    rabbitmq.management(path, "POST", {"routing_key": "devices.#"})
    with HutchServer(folder / "data") as hutch:
        uri = ends.stream_uri(hutch.endpoint)
        routes = [
            route(
                name,
                {"uri": source, "topics": ["devices/#"], "session_expiry_s": 60},
                {"uri": uri, "stream": name, "create": {}},
            )
            for name, source in brokers.items()
        ]
        with Bridge(folder / "bridge", routes) as bridge:
            bridge.wait_for("carrying", count=2)
            for source in brokers.values():
                topics.publish(source, messages)
            ours, also = (ends.records(hutch.endpoint, name, len(messages)) for name in brokers)
            assert bridge.terminate() == 0
    theirs = ends.records(rabbitmq.stream_address, "bridge-topics", len(messages))
    return dict(zip(messages, zip(theirs, ours, also, strict=True), strict=True))


@pytest.mark.parametrize("name", MESSAGES)
def test_a_message_of_a_topic_reads_alike_from_all_streams(stored: Stored, name: str) -> None:
    theirs, *ours = stored[name]
    for record in ours:
        assert ends.by_rstream(record) == ends.by_rstream(theirs)
        assert ends.by_us(record) == ends.by_us(theirs)


def test_rabbitmq_drops_the_expiry_and_the_bridge_keeps_it(stored: Stored) -> None:
    theirs, *ours = (ends.by_us(record).header for record in stored["expiry"])
    assert theirs == [True, None, None, True, 0]
    for header in ours:
        assert header is not None
        ttl = header[2]
        assert isinstance(ttl, int)
        assert EXPIRY_S - TIMEOUT_S < ttl / 1000 <= EXPIRY_S  # a broker takes off its own time
