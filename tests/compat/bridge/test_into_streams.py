"""A message of a queue as RabbitMQ puts it into its own stream, and as the bridge does."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest
from pamqp.common import FieldValue

from compat.broker import RunningBroker
from tests.compat.bridge import ends
from tests.compat.bridge.ends import Properties, Published
from tests.integration.bridge.bridges import route, run
from tests.integration.server import HutchServer

TIME: Final = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
UUID: Final = "123e4567-e89b-12d3-a456-426614174000"
TEXT_MAX: Final = 4096


def with_headers(**headers: FieldValue) -> Published:
    return Published(Properties(headers=headers))


def with_names(headers: dict[str, FieldValue]) -> Published:
    return Published(Properties(headers=headers))


MESSAGES: Final[Mapping[str, Published]] = {
    "nothing": Published(Properties()),
    "every property": Published(
        Properties(
            content_type="text/plain",
            content_encoding="gzip",
            delivery_mode=2,
            priority=3,
            correlation_id="correlation",
            reply_to="replies",
            expiration="60000000",
            message_id="id",
            timestamp=TIME,
            message_type="kind",
            user_id="guest",
            app_id="app",
        )
    ),
    "transient": Published(Properties(delivery_mode=1)),
    "priority 0": Published(Properties(priority=0)),
    "no ASCII": Published(
        Properties(content_type="text/ü", content_encoding="ü", message_type="ü", app_id="ü")
    ),
    "long texts": Published(Properties(message_id="m" * 255, correlation_id="c" * 255)),
    "reply to a queue with a space": Published(Properties(reply_to="réplies to/me")),
    "uuids": Published(
        Properties(message_id=f"urn:uuid:{UUID}", correlation_id=f"urn:uuid:{UUID.upper()}")
    ),
    "uuids without urn": Published(Properties(message_id=UUID, correlation_id=UUID)),
    "int": with_headers(zero=0, small=127, more=128, negative=-1, short=-32768, word=65535),
    "big int": with_headers(int=1 << 31, low=-(1 << 31), long=(1 << 63) - 1, lowest=-(1 << 63)),
    "float": with_headers(half=1.5, tenth=0.1, negative=-2.25),
    "bool": with_headers(yes=True, no=False),
    "text": with_headers(empty="", some="größe 🐇", uuid=f"urn:uuid:{UUID}"),
    "text of 256 bytes": with_headers(at=255 * "t", above=256 * "t", no_ascii=200 * "é"),
    "text of 4,096 bytes": with_headers(at=TEXT_MAX * "t", above=(TEXT_MAX + 1) * "t"),
    "text of 4,096 bytes, no ASCII": with_headers(
        at=TEXT_MAX // 2 * "é", above=(TEXT_MAX // 2 + 1) * "é"
    ),
    "text with a zero": with_names({"some": "a\0b", "x-some": "a\0b"}),
    "bytes": with_headers(some=bytearray(b"\x00\xff"), long=bytearray(300)),
    "timestamp": with_headers(time=TIME),
    "list": with_headers(list=[1, "two"], other="stays"),
    "table": with_headers(table={"one": 1}, other="stays"),
    "null": with_headers(nothing=None),
    "x- headers": with_names(
        {
            "x-int": 1,
            "x-float": 0.1,
            "x-text": "text",
            "x-bytes": bytearray(b"\xff"),
            "x-time": TIME,
            "x-null": None,
            "x-list": [1, "two", True, None, 0.5, [TIME], 5000 * "t"],
            "x-table": {"one": {"two": [3]}, "time": TIME},
            "x-empty-list": [],
            "x-empty-table": {},
        }
    ),
    "CC": with_names({"CC": ["other", "more"], "BCC": ["blind"], "some": 1}),
    "order of names": with_headers(b=1, a=2, B=3),
    "long name": with_names({128 * "n": 1}),
    "300 headers": with_names({f"name {number}": number for number in range(300)}),
    "empty body": Published(Properties(), b""),
    "body of 256 bytes": Published(Properties(), bytes(range(256))),
    "body of many frames": Published(Properties(), bytes(range(256)) * 2_000),
}
Pairs = Mapping[str, tuple[bytes, bytes]]


@pytest.fixture(scope="module")
def pairs(rabbitmq: RunningBroker, tmp_path_factory: pytest.TempPathFactory) -> Pairs:
    """Each message as RabbitMQ has stored it, and as it came by the bridge."""
    folder: Path = tmp_path_factory.mktemp("bridge")
    queues = {"bridge-source": "classic", "bridge-theirs": "stream"}
    ends.publish(ends.amqp_uri(rabbitmq), queues, MESSAGES)
    theirs = ends.records(rabbitmq.stream_address, "bridge-theirs", len(MESSAGES))
    with HutchServer(folder / "data") as hutch:
        source = {"uri": ends.amqp_uri(rabbitmq), "queue": "bridge-source"}
        uri = ends.stream_uri(hutch.endpoint)
        target = {"uri": uri, "stream": "ours", "create": {}}
        bridge = run(folder / "bridge", [route("in", source, target)], "--until-empty")
        assert bridge.counts() == {"in": (len(MESSAGES), 0, 0)}, bridge.stderr
        ours = ends.records(hutch.endpoint, "ours", len(MESSAGES))
    return dict(zip(MESSAGES, zip(theirs, ours, strict=True), strict=True))


@pytest.mark.parametrize("name", MESSAGES)
def test_a_message_of_a_queue_reads_alike_from_both_streams(pairs: Pairs, name: str) -> None:
    theirs, ours = pairs[name]
    assert ends.by_rstream(ours) == ends.by_rstream(theirs)
    assert ends.by_us(ours) == ends.by_us(theirs)
