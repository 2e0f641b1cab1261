"""A message of AMQP 1.0 as RabbitMQ gives it to a subscriber of MQTT, and as the bridge does.

RabbitMQ gives no stream to a subscriber: it gets the message from an exchange, by a client of AMQP
1.0; the bridge has the same bytes from a stream.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import pytest

from compat.broker import RunningBroker
from tests.compat.bridge import ends, topics
from tests.compat.bridge.stored import NO_MESSAGE, RECORDS
from tests.compat.bridge.topics import Received
from tests.integration.bridge.bridges import Bridge, route
from tests.integration.bridge.mosquitto import Mosquitto
from tests.integration.server import HutchServer
from tests.waiting import HANG_S

TOPIC: Final = "bridge/out"
STREAM: Final = "bridge-to-topics"
SENDER: Final = Path(__file__).with_name("raw_sender.py")
LOST: Final = {"time to live": ("MessageExpiryInterval",)}
PUBLISHED: Final = "annotations: where it was published"
OCTETS: Final = "application/octet-stream"
Pairs = Mapping[str, tuple[Received, Received]]


def send_by_proton(rabbitmq: RunningBroker, records: Iterable[bytes]) -> None:
    python = shutil.which("python3", path="/usr/bin")
    if python is None:
        pytest.skip("Apache Qpid Proton is not installed (Debian: python3-qpid-proton)")
    server = f"{rabbitmq.host}:{ends.port_of(rabbitmq, 'amqp')}"
    address = f"/exchanges/amq.topic/{TOPIC.replace('/', '.')}"
    done = subprocess.run(
        [python, str(SENDER), server, address],
        input="\n".join(record.hex() for record in records),
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    if "No module named 'proton'" in done.stderr:
        pytest.skip("Apache Qpid Proton is not installed (Debian: python3-qpid-proton)")
    assert not done.returncode, done.stderr


@pytest.fixture(scope="module")
def pairs(
    rabbitmq: RunningBroker, mosquitto: Mosquitto, tmp_path_factory: pytest.TempPathFactory
) -> Pairs:
    """Each message as RabbitMQ gives it, and as it comes by the bridge."""
    folder: Path = tmp_path_factory.mktemp("bridge")
    records = {**RECORDS, "no message": NO_MESSAGE}
    with topics.subscribed(ends.mqtt_uri(rabbitmq), TOPIC, len(RECORDS)) as theirs:
        send_by_proton(rabbitmq, RECORDS.values())
    with (
        HutchServer(folder / "data") as hutch,
        topics.subscribed(mosquitto.uri, TOPIC, len(records)) as ours,
    ):
        ends.store(hutch.endpoint, STREAM, list(records.values()))
        source = {"uri": ends.stream_uri(hutch.endpoint), "stream": STREAM}
        routes = [route("out", source, {"uri": mosquitto.uri, "topic": TOPIC})]
        with Bridge(folder / "bridge", routes, "--until-empty") as bridge:
            assert bridge.wait() == 0, bridge.stderr
        assert bridge.counts() == {"out": (len(records), 0, 0)}, bridge.stderr
    assert ours[-1].payload == NO_MESSAGE
    assert ours[-1].properties["ContentType"] == OCTETS
    return dict(zip(RECORDS, zip(theirs, ours[:-1], strict=True), strict=True))


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_is_the_same_message_from_rabbitmq_and_from_the_bridge(
    pairs: Pairs, name: str
) -> None:
    # QoS is the route's. Both leave out what has no form as text.
    theirs, ours = pairs[name]
    given = {key: ours.properties[key] for key in ours.properties if key not in LOST.get(name, ())}
    wanted = {key: theirs.properties[key] for key in theirs.properties if name != PUBLISHED}
    assert ours._replace(properties=given, qos=1) == theirs._replace(properties=wanted, qos=1)


def test_rabbitmq_drops_the_time_to_live_and_the_bridge_keeps_it(pairs: Pairs) -> None:
    theirs, ours = pairs["time to live"]
    assert theirs.properties == {}
    assert ours.properties == {"MessageExpiryInterval": 1_000}


def test_where_a_record_was_published_is_no_property_for_a_subscriber(pairs: Pairs) -> None:
    theirs, ours = pairs[PUBLISHED]
    assert theirs.properties == {
        "UserProperty": [("x-exchange", "amq.topic"), ("x-routing-key", "some.key")]
    }
    assert ours.properties == {}
