"""The three recipes of the bridge's page: files and commands, taken from the page and run."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final
from urllib.request import urlopen

import aiomqtt
import aiormq
import pytest
from rstream import AMQPMessage

from compat.broker import RunningBroker
from hutch.client import Refused
from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from tests.client import Client
from tests.compat.bridge import ends
from tests.compat.pages import (
    ROOT,
    STREAM_PORT,
    forwarded,
    hutch_serving,
    path_with_us,
    section_of,
    usual_ports,
)
from tests.integration.bridge import flows
from tests.integration.bridge.mosquitto import HOST, Mosquitto
from tests.waiting import HANG_S, wait_until

PAGE: Final = ROOT / "docs" / "bridge.md"
AMQP_PORT, MQTT_PORT, METRICS_PORT = 5672, 1883, 9464
HUTCH: Final = (HOST, STREAM_PORT)
ORDERS: Final = 2_000
DEVICES, MEASURED = 9, 20

pytestmark = [pytest.mark.compat, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def town(
    rabbitmq: RunningBroker, mosquitto: Mosquitto, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningBroker]:
    """All three brokers where the page has them."""
    with ExitStack() as stack:
        stack.enter_context(usual_ports(STREAM_PORT, AMQP_PORT, MQTT_PORT, METRICS_PORT))
        stack.enter_context(forwarded(AMQP_PORT, ends.port_of(rabbitmq, "amqp")))
        stack.enter_context(forwarded(MQTT_PORT, mosquitto.port))
        stack.enter_context(hutch_serving(tmp_path_factory.mktemp("hutch") / "data"))
        yield rabbitmq


def files_of(heading: str, folder: Path) -> list[str]:
    """Write the files of a recipe; return its commands."""
    section = section_of(PAGE, f"### {heading}")
    section.write(folder)
    return section.commands


def environment() -> dict[str, str]:
    return {**os.environ, "PATH": path_with_us()}


def run(command: str, folder: Path) -> str:
    """Run a command that ends by itself; return what it printed."""
    done = subprocess.run(
        command.split(),
        check=False,
        cwd=folder,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=HANG_S,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def running(command: str, folder: Path) -> Iterator[None]:
    """Run a command until the end of the block, and then end it as Ctrl-C does."""
    log = folder / "said"
    with log.open("wb") as said:
        process = subprocess.Popen(
            command.split(),
            cwd=folder,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
        )
    try:
        wait_until(lambda: "carrying" in log.read_text() or process.poll() is not None)
        assert process.poll() is None, log.read_text()
        yield
        process.send_signal(signal.SIGINT)
        assert process.wait(HANG_S) == 0, log.read_text()
    finally:
        process.kill()
        process.wait(HANG_S)


def bodies(stream: str) -> list[bytes]:
    """Return the bodies of a stream's messages; none while it is not made."""
    try:
        found = [ends.by_us(record).body for record in flows.stored(HUTCH, stream)]
    except Refused:
        return []
    return [body for body in found if isinstance(body, bytes)]


def test_a_queue_is_emptied_into_a_stream(town: RunningBroker, tmp_path: Path) -> None:
    sent = [b"order %d" % number for number in range(ORDERS)]
    messages = {str(n): ends.Published(ends.Properties(), body) for n, body in enumerate(sent)}
    ends.publish(ends.amqp_uri(town), {"orders": "quorum"}, messages)
    check, empty = files_of("Empty a queue into a stream", tmp_path)

    run(check, tmp_path)
    with Client.opened(*HUTCH) as client:
        assert client.code_of("delete_stream", m.DeleteStream("orders")) != ResponseCode.OK
    assert run(empty, tmp_path).splitlines()[-1] == f"orders: {ORDERS} delivered"
    assert bodies("orders") == sent


@pytest.mark.usefixtures("town")
def test_devices_come_by_mqtt_into_a_super_stream(mosquitto: Mosquitto, tmp_path: Path) -> None:
    async def measure() -> None:
        async with aiomqtt.Client(HOST, mosquitto.port) as client:
            for number in range(MEASURED):
                for device in range(DEVICES):
                    body = f"{device} {number}"
                    await client.publish(f"devices/{device}/temperature", body, qos=1)

    def found() -> list[list[bytes]]:
        return [bodies(f"devices-{number}") for number in range(3)]

    (command,) = files_of("Devices by MQTT into a super stream", tmp_path)
    with running(command, tmp_path):
        asyncio.run(measure())
        wait_until(lambda: sum(map(len, found())) == DEVICES * MEASURED)
        with urlopen(f"http://{HOST}:{METRICS_PORT}/metrics") as page:
            assert (
                f'taken_messages_total{{route="devices"}} {DEVICES * MEASURED}'
                in page.read().decode()
            )
    partitions = [[body.decode().split() for body in partition] for partition in found()]
    for device in map(str, range(DEVICES)):
        (measured,) = filter(None, ([n for d, n in part if d == device] for part in partitions))
        assert measured == [str(number) for number in range(MEASURED)]


def test_a_stream_goes_back_to_an_exchange(town: RunningBroker, tmp_path: Path) -> None:
    countries = ("se", "no", "fi")
    records = [
        bytes(AMQPMessage(body=b"%d" % n, application_properties={"country": countries[n % 3]}))
        for n in range(300)
    ]
    ends.store(HUTCH, "invoices", records)
    expected = {
        one: [b"%d" % n for n in range(300) if countries[n % 3] == one] for one in countries
    }

    async def make_queues() -> None:
        connection = await aiormq.connect(ends.amqp_uri(town))
        channel = await connection.channel()
        await channel.exchange_declare("invoices", exchange_type="topic", durable=True)
        for country in countries[:2]:
            await channel.queue_declare(f"invoices-{country}", durable=True)
            await channel.queue_bind(f"invoices-{country}", "invoices", f"invoice.{country}")
        await connection.close()

    asyncio.run(make_queues())
    (command,) = files_of("A stream back to an exchange", tmp_path)
    with running(command, tmp_path):
        for country in countries[:2]:
            seen = ends.consume(ends.amqp_uri(town), f"invoices-{country}", 100)
            assert [one.body for one in seen] == expected[country]
        wait_until(lambda: len(bodies("invoices-refused")) == 100)
    assert bodies("invoices-refused") == expected["fi"]
