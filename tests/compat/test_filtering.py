"""A client that filters sees the same messages from Hutch as from RabbitMQ, however those are
grouped into chunks."""

import random
import uuid
from pathlib import Path

import pytest

from compat.broker import RunningBroker
from hutch.stream import messages as m
from hutch.stream.offsets import FIRST
from tests.client import Client
from tests.integration.server import HutchServer

NAMED = ("", "a", "b", "c", "d", "e")
VALUES = (None, *NAMED)
END = "the end"

Message = tuple[int, str | None, bytes]


def frames(seed: int) -> list[list[Message]]:
    """Frames of messages whose bodies name their values."""
    chance = random.Random(seed)
    found: list[list[Message]] = []
    number = 0
    for _ in range(60):
        values = chance.sample(VALUES, chance.randrange(1, 3))
        frame: list[Message] = []
        for _ in range(chance.choice((1, 1, 2, 30))):
            value = chance.choice(values)
            filler = "x" * chance.choice((0, 10, 5_000))
            frame.append((number, value, f"{number} {value or ''} {filler}".encode()))
            number += 1
        found.append(frame)
    return found


def seen(address: tuple[str, int], stream: str, seed: int) -> list[list[bytes]]:
    """Publish the frames, read with several filters; what is left after the client's own look."""
    chance = random.Random(seed)
    with Client.opened(*address, timeout_s=20) as client:
        client.create(stream)
        try:
            client.declare(1, stream)
            for frame in frames(seed):
                client.publish_filtered(1, frame)
                if chance.random() < 0.5:
                    client.confirmed_ids(1)
            client.publish_filtered(1, [(1 << 40, END, END.encode())])
            found = []
            for subscription_id in range(8):
                wanted = set(chance.sample(NAMED, chance.randrange(1, 4)))
                properties = {f"filter.{at}": value for at, value in enumerate(sorted(wanted))}
                properties["filter.end"] = END
                if chance.random() < 0.5:
                    properties["match-unfiltered"] = "true"
                    wanted.add("")
                if "" in wanted:  # RabbitMQ looks for it only if it comes last, or is asked for so
                    properties["match-unfiltered"] = "true"
                found.append(_read(client, subscription_id, stream, properties, wanted))
            return found
        finally:
            client.code_of("delete_stream", m.DeleteStream(stream))


def _read(
    client: Client,
    subscription_id: int,
    stream: str,
    properties: dict[str, str],
    wanted: set[str],
) -> list[bytes]:
    client.subscribe(subscription_id, stream, FIRST, credit=10_000, properties=properties)
    bodies: list[bytes] = []
    while not bodies or bodies[-1] != END.encode():
        bodies += client.delivery().chunk.records()
    client.must("unsubscribe", m.Unsubscribe(subscription_id))
    return [body for body in bodies[:-1] if body.split(b" ")[1].decode() in wanted]


@pytest.mark.parametrize("seed", range(4))
def test_a_filtering_client_sees_the_same_messages(
    rabbitmq: RunningBroker, tmp_path: Path, seed: int
) -> None:
    stream = f"filtering-{uuid.uuid4().hex[:8]}"
    theirs = seen(rabbitmq.stream_address, stream, seed)
    with HutchServer(tmp_path / "data") as hutch:
        ours = seen((hutch.host, hutch.port), stream, seed)
        hutch.terminate()
        assert "Traceback" not in hutch.logs
    assert ours == theirs
    assert any(ours)
