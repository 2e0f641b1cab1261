"""Steps of the rows of bridges: `hutch bridge`, and RabbitMQ's shovel, between the same two ends.

Both ends are in a RabbitMQ of the step's own. The rate is that of the target's stream: from the
first look at which it has messages to the one at which it has all.
"""

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import aio_pika

from compat.bench.errors import BenchError, CheckFailed
from compat.bench.jobs import Figures
from compat.bench.scale import Scale
from compat.bench.servers import HUTCH_OS, RABBITMQ, Server
from compat.bench.steps import Results, Step
from compat.bench.usage import cpu_seconds, tree_of
from compat.broker import BrokerUnavailable, RunningBroker, obtain
from hutch.client import Client, Login

BODY_BYTES: Final = 1024
WINDOW: Final = 1_000
PUBLISHERS: Final = 500
LOOK_S: Final = 0.05
LIMIT_S: Final = 300.0
SOURCE, TARGET = "bench-source", "bench-target"


def measured(server: Server, scale: Scale, wanted: Collection[str]) -> Results:
    """Carry messages from a queue, and from a stream, into a stream."""
    results: Results = {}
    for row in sorted(wanted):
        try:
            broker = obtain()
        except BrokerUnavailable as error:
            raise BenchError(str(error)) from error
        try:
            results[row] = _carried(server, broker, row, scale.bridge_messages)
        finally:
            broker.stop()
    return results


def _carried(server: Server, broker: RunningBroker, row: str, count: int) -> Figures:
    is_stream = row == "bridge_streams"
    asyncio.run(_fill(broker, count, "stream" if is_stream else "classic"))
    host, port = broker.stream_address
    with Client(host, port, login=Login()) as client:
        client.create_stream(TARGET)
        carries = _shovel if server.name == RABBITMQ else _bridge
        with carries(broker, is_stream=is_stream) as bridge:
            roots = [*bridge, *filter(None, [broker.pid])]
            begin = _await(client, 1)
            cpu, began = cpu_seconds(tree_of(roots)), time.monotonic()
            _await(client, count)
            took, used = time.monotonic() - began, cpu_seconds(tree_of(roots)) - cpu
    left = count - begin
    return {"rate": left / max(took, LOOK_S), "cpu": used * 1e6 / max(left, 1)}


def _await(client: Client, count: int) -> int:
    """Wait until the target has so many records; return how many it has."""
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        found = client.statistics(TARGET)["committed_offset"] + 1
        if found >= count:
            return found
        time.sleep(LOOK_S)
    raise CheckFailed(f"the target did not have {count} messages after {LIMIT_S:.0f} s")


async def _fill(broker: RunningBroker, count: int, kind: str) -> None:
    """Declare the source, and publish messages to it, with confirms."""
    connection = await aio_pika.connect(f"amqp://guest:guest@{broker.host}:{broker.ports.amqp}/")
    async with connection:
        channel = await connection.channel()
        await channel.declare_queue(SOURCE, durable=True, arguments={"x-queue-type": kind})
        message = aio_pika.Message(
            b"\0" * BODY_BYTES, delivery_mode=aio_pika.DeliveryMode.PERSISTENT
        )
        for first in range(0, count, PUBLISHERS):
            published = (
                channel.default_exchange.publish(message, SOURCE)
                for _ in range(min(PUBLISHERS, count - first))
            )
            await asyncio.gather(*published)


@contextmanager
def _shovel(broker: RunningBroker, *, is_stream: bool) -> Iterator[tuple[int, ...]]:
    """Let RabbitMQ carry the messages by itself."""
    uri = f"amqp://guest:guest@{broker.host}:{broker.ports.amqp}"
    value: dict[str, object] = {
        "src-uri": uri,
        "src-queue": SOURCE,
        "src-prefetch-count": WINDOW,
        "dest-uri": uri,
        "dest-queue": TARGET,
        "dest-queue-args": {"x-queue-type": "stream"},
        "ack-mode": "on-confirm",
    }
    if is_stream:
        value |= {
            "src-consumer-args": {"x-stream-offset": "first"},
            "src-queue-args": {"x-queue-type": "stream"},
        }
    place = "parameters/shovel/%2f/bench"
    broker.management(place, "PUT", {"value": value})
    try:
        yield ()
    finally:
        broker.management(place, "DELETE")


@contextmanager
def _bridge(broker: RunningBroker, *, is_stream: bool) -> Iterator[tuple[int, ...]]:
    """Run `hutch bridge`."""
    streams = f"rabbitmq-stream://guest:guest@{broker.host}:{broker.ports.stream}"
    queues = f"amqp://guest:guest@{broker.host}:{broker.ports.amqp}/"
    source = (
        f'{{ uri = "{streams}", stream = "{SOURCE}" }}'
        if is_stream
        else f'{{ uri = "{queues}", queue = "{SOURCE}" }}'
    )
    target = f'{{ uri = "{streams}", stream = "{TARGET}" }}'
    with tempfile.TemporaryDirectory(prefix="bridge-") as folder:
        file = Path(folder) / "bridge.toml"
        file.write_text(
            f'[[routes]]\nname = "bench"\nsource = {source}\ntarget = {target}\nwindow = {WINDOW}\n'
        )
        with (Path(folder) / "output").open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "gateway", "bridge", str(file)], stderr=output
            )
        try:
            yield (process.pid,)
        finally:
            process.terminate()
            process.wait(60)


BRIDGE_STEPS: Final = (
    Step(
        ("bridge_queue", "bridge_streams"),
        measured,
        servers=frozenset({HUTCH_OS, RABBITMQ}),
    ),
)
