"""Kills of the bridge and of each broker: nothing is missing, and little comes twice.

By day the bridge is killed once. With HUTCH_TEST_FACTOR above 1 it is killed five times, RabbitMQ
and Hutch twice each, and mosquitto is ended by SIGTERM twice, while 100,000 messages pass on each
route.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import aiormq
import pytest

from compat.broker import RunningBroker, obtain
from hutch.stream import messages as m
from tests.client import Client
from tests.compat.bridge import ends
from tests.integration.bridge import flows
from tests.integration.bridge.bridges import Bridge, route
from tests.integration.bridge.flows import ExchangeFeed, Feed, Sent, StreamFeed, TopicFeed
from tests.integration.bridge.mosquitto import Mosquitto
from tests.integration.conftest import StartServer
from tests.integration.server import HutchServer

IS_WHOLE: Final = float(os.environ.get("HUTCH_TEST_FACTOR") or 1) > 1
COUNT, BATCH, PAUSE_S = (100_000, 500, 0.3) if IS_WHOLE else (3_000, 100, 0.05)
WINDOW: Final = 1_000 if IS_WHOLE else 200
ROUND: Final = ("bridge", "rabbitmq", "hutch", "mosquitto")
KILLS: Final = (*ROUND, "bridge", *ROUND, "bridge", "bridge") if IS_WHOLE else ("bridge",)
LIMIT_S: Final = 2_400 if IS_WHOLE else 100
ENDS: Final[Mapping[str, tuple[str, ...]]] = {
    "queue-stream": ("rabbitmq", "hutch"),
    "exchange-super": ("rabbitmq", "hutch"),
    "topic-stream": ("mosquitto", "hutch"),
    "stream-exchange": ("hutch", "rabbitmq"),
    "stream-topic": ("hutch", "mosquitto"),
    "stream-in": (),
    "stream-out": (),
}
"""Brokers whose end may repeat a window of messages, beside the bridge's own; by route."""
PARTITIONS: Final = 3
STREAMS: Final = ("to-exchange", "to-topic", "to-rabbitmq")

pytestmark = [pytest.mark.compat, pytest.mark.timeout(LIMIT_S + 200)]


@pytest.fixture
def broker(request: pytest.FixtureRequest) -> Iterator[RunningBroker]:
    """A RabbitMQ: the one of all tests, if it need not be killed."""
    if not IS_WHOLE:
        yield request.getfixturevalue("rabbitmq")
        return
    found = obtain(found=False)
    yield found
    found.stop()


class Town:
    """All brokers, with the things at both ends of the routes."""

    def __init__(self, rabbitmq: RunningBroker, hutch: HutchServer, mosquitto: Mosquitto) -> None:
        self.rabbitmq, self.hutch, self.mosquitto = rabbitmq, hutch, mosquitto
        self.amqp = ends.amqp_uri(rabbitmq)
        asyncio.run(self._make_queues())
        with Client.opened(*rabbitmq.stream_address) as client:
            for stream in ("kills-in", "kills-out-stream"):
                client.code_of("delete_stream", m.DeleteStream(stream))
                client.create(stream)
        with Client.opened(*hutch.endpoint) as client:
            for stream in STREAMS:
                client.create(stream)
        flows.collect_from_now(mosquitto.port, "out/#")

    async def _make_queues(self) -> None:
        connection = await aiormq.connect(self.amqp)
        channel = await connection.channel()
        for queue in ("kills-queue", "kills-out", "hutch-bridge-exchange-super"):
            await channel.queue_delete(queue)
        for exchange in ("kills", "kills-out"):
            await channel.exchange_declare(exchange, exchange_type="topic", durable=True)
        for queue in ("kills-queue", "kills-out"):
            await channel.queue_declare(queue, durable=True, arguments={"x-queue-type": "quorum"})
        await channel.queue_bind("kills-out", "kills-out", "#")
        await connection.close()

    def routes(self) -> list[str]:
        """Return the bridge's file."""
        here = ends.stream_uri(self.hutch.endpoint)
        there = ends.stream_uri(self.rabbitmq.stream_address)
        amqp, mqtt = self.amqp, self.mosquitto.uri
        pairs = {
            "queue-stream": (
                {"uri": amqp, "queue": "kills-queue"},
                {"uri": here, "stream": "from-queue", "create": {}},
            ),
            "exchange-super": (
                {"uri": amqp, "exchange": "kills"},
                {
                    "uri": here,
                    "super_stream": "from-exchange",
                    "partitions": PARTITIONS,
                    "create": {},
                },
            ),
            "topic-stream": (
                {"uri": mqtt, "topics": ["in/#"]},
                {"uri": here, "stream": "from-topic", "create": {}},
            ),
            "stream-exchange": (
                {"uri": here, "stream": "to-exchange"},
                {"uri": amqp, "exchange": "kills-out", "routing_key": "key"},
            ),
            "stream-topic": (
                {"uri": here, "stream": "to-topic"},
                {"uri": mqtt, "topic": "out/{stream}"},
            ),
            "stream-in": (
                {"uri": there, "stream": "kills-in"},
                {"uri": here, "stream": "from-rabbitmq", "create": {}},
            ),
            "stream-out": (
                {"uri": here, "stream": "to-rabbitmq"},
                {"uri": there, "stream": "kills-out-stream"},
            ),
        }
        return [route(name, *pairs[name], window=WINDOW) for name in ENDS]

    def feeds(self) -> list[Feed]:
        """Return the publishers of all routes."""
        here, there = self.hutch.endpoint, self.rabbitmq.stream_address
        amounts = COUNT, BATCH, PAUSE_S
        return [
            ExchangeFeed(self.amqp, "", "kills-queue", *amounts),
            ExchangeFeed(self.amqp, "kills", "key.{}", *amounts),
            TopicFeed(self.mosquitto.port, "in/some", *amounts),
            *(StreamFeed(here, stream, *amounts) for stream in STREAMS),
            StreamFeed(there, "kills-in", *amounts),
        ]

    def found(self) -> dict[str, list[list[bytes]]]:
        """Return all that came: a list for each order that is kept, by route."""
        here = self.hutch.endpoint
        names = {"queue-stream": "from-queue", "topic-stream": "from-topic"}
        kept = {route: [_bodies(flows.stored(here, name))] for route, name in names.items()}
        partitions = [f"from-exchange-{number}" for number in range(PARTITIONS)]
        kept["exchange-super"] = [_bodies(flows.stored(here, each)) for each in partitions]
        count = asyncio.run(self._count("kills-out"))
        kept["stream-exchange"] = [
            [seen.body for seen in ends.consume(self.amqp, "kills-out", count)]
        ]
        kept["stream-topic"] = [flows.collected(self.mosquitto.port)]
        kept["stream-in"] = [flows.stored(here, "from-rabbitmq")]
        kept["stream-out"] = [flows.stored(self.rabbitmq.stream_address, "kills-out-stream")]
        return kept

    async def _count(self, queue: str) -> int:
        connection = await aiormq.connect(self.amqp)
        channel = await connection.channel()
        declared = await channel.queue_declare(queue, passive=True)
        await connection.close()
        return declared.message_count or 0


def _bodies(records: Sequence[bytes]) -> list[bytes]:
    bodies = [ends.by_us(record).body for record in records]
    return [body for body in bodies if isinstance(body, bytes)]


def check(name: str, orders: Sequence[Sequence[bytes]], kills: Sequence[str]) -> int:
    """Check what came on a route; return how many came again."""
    sent = [[Sent.of(body) for body in order] for order in orders]
    numbers = {each.number for order in sent for each in order}
    missing = sorted(set(range(COUNT)) - numbers)
    assert not missing, f"{name}: {len(missing)} are missing, such as {missing[:5]}"
    again = 0
    for order in sent:
        first = list(dict.fromkeys(order))
        assert first == sorted(first), f"{name}: the order is another one"
        again += len(order) - len(first)
    events = sum(kill == "bridge" or kill in ENDS[name] for kill in kills)
    most = events * WINDOW if ENDS[name] else 0
    assert again <= most, f"{name}: {again} came again, at most {most} may"
    return again


def test_kills_lose_nothing_and_keep_the_order(
    broker: RunningBroker, mosquitto: Mosquitto, start_server: StartServer, tmp_path: Path
) -> None:
    town = Town(broker, start_server(), mosquitto)
    feeds = town.feeds()
    with Bridge(tmp_path / "bridge", town.routes()) as bridge:
        kill: Mapping[str, Callable[[], None]] = {
            "rabbitmq": broker.crash,
            "hutch": town.hutch.restart,
            "mosquitto": mosquitto.restart,
        }
        bridge.wait_for("carrying", len(ENDS))
        for feed in feeds:
            feed.start()
        for number, which in enumerate(KILLS, 1):
            flows.wait_for_feeds(feeds, number / (len(KILLS) + 1), COUNT, LIMIT_S)
            if which == "bridge":
                bridge.kill()
                bridge.start()
            else:
                kill[which]()
        flows.wait_for_feeds(feeds, 1, COUNT, LIMIT_S)
        assert bridge.terminate() == 0, bridge.stderr
    with Bridge(tmp_path / "last", town.routes(), "--until-empty") as last:
        assert last.wait(LIMIT_S) == 0, last.stderr
    assert "Traceback" not in bridge.stderr + last.stderr
    assert "does not end in time" not in bridge.stderr
    again = {name: check(name, orders, KILLS) for name, orders in town.found().items()}
    sys.stdout.write(f"{COUNT:,} messages on each route; came again: {again}\n")
    assert not any(again[name] for name in ENDS if not ENDS[name])
