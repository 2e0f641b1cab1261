"""A record of a stream as RabbitMQ gives it to a consumer of AMQP 0-9-1, and as the bridge does."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from compat.broker import RunningBroker
from tests.compat.bridge import ends
from tests.compat.bridge.ends import Seen
from tests.compat.bridge.stored import NO_MESSAGE, RECORDS, UNDELIVERED
from tests.integration.bridge.bridges import route, run
from tests.integration.server import HutchServer

STREAM, QUEUE = "bridge-records", "bridge-records-out"
Pairs = Mapping[str, tuple[Seen, Seen]]


def carried(rabbitmq: RunningBroker, folder: Path, records: Mapping[str, bytes]) -> list[Seen]:
    """Return what a consumer has of records that went from Hutch to RabbitMQ by the bridge."""
    uri = ends.amqp_uri(rabbitmq)
    ends.publish(uri, {QUEUE: "classic"}, {})
    with HutchServer(folder / "data") as hutch:
        ends.store(hutch.endpoint, STREAM, list(records.values()))
        source = {"uri": ends.stream_uri(hutch.endpoint), "stream": STREAM}
        routes = [route("out", source, {"uri": uri, "queue": QUEUE})]
        bridge = run(folder / "bridge", routes, "--until-empty")
    assert bridge.counts() == {"out": (len(records), 0, 0)}, bridge.stderr
    return ends.consume(uri, QUEUE, len(records))


@pytest.fixture(scope="module")
def pairs(rabbitmq: RunningBroker, tmp_path_factory: pytest.TempPathFactory) -> Pairs:
    """Each record as RabbitMQ gives it, and as it comes by the bridge."""
    ends.store(rabbitmq.stream_address, STREAM, list(RECORDS.values()))
    first = {"x-stream-offset": "first"}
    theirs = ends.consume(ends.amqp_uri(rabbitmq), STREAM, len(RECORDS), **first)
    ours = carried(rabbitmq, tmp_path_factory.mktemp("bridge"), RECORDS)
    return dict(zip(RECORDS, zip(theirs, ours, strict=True), strict=True))


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_is_the_same_message_from_rabbitmq_and_from_the_bridge(
    pairs: Pairs, name: str
) -> None:
    theirs, ours = pairs[name]
    assert ours.body == theirs.body
    given, wanted = dict(ours.properties), dict(theirs.properties)
    headers = wanted["headers"]
    assert isinstance(headers, dict)
    offset = headers.pop("x-stream-offset")
    wanted["headers"] = headers or None
    if wanted["message_id"] is None:  # what names the message for its receiver
        assert given.pop("message_id") == f"{STREAM}/{offset}"
        del wanted["message_id"]
    assert given == wanted


def test_what_rabbitmq_does_not_deliver_the_bridge_does(
    rabbitmq: RunningBroker, tmp_path: Path
) -> None:
    seen = carried(rabbitmq, tmp_path, UNDELIVERED)
    assert [message.body for message in seen] == len(UNDELIVERED) * [b"body"]
    headers = dict(zip(UNDELIVERED, (each.properties["headers"] for each in seen), strict=True))
    assert headers["applications: UUID"] == {"some": "123e4567-e89b-12d3-a456-426614174000"}
    assert headers["applications: char"] == {"some": "a"}


def test_a_record_that_is_no_message_goes_out_as_its_bytes(
    rabbitmq: RunningBroker, tmp_path: Path
) -> None:
    records = {"none": NO_MESSAGE, "empty": b""}
    for message, record in zip(carried(rabbitmq, tmp_path, records), records.values(), strict=True):
        assert message.body == record
        assert message.properties["content_type"] == "application/octet-stream"
