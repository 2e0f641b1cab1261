"""Bad input at queues and exchanges, on RabbitMQ: one line that says it, and nothing is lost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Final, TypeVar

import aiormq
import pytest
from aiormq.abc import AbstractChannel
from pamqp.common import FieldValue

from compat.broker import RunningBroker
from hutch.formats.amqp.message import message_of
from hutch.stream import messages as m
from tests.client import Client
from tests.compat.bridge import ends
from tests.compat.bridge.ends import Properties, Published
from tests.integration.bridge import flows
from tests.integration.bridge.bridges import Bridge, route, run
from tests.integration.bridge.test_bad_input import (
    EXIT_NOT_OPENED,
    EXIT_STOPPED,
    complaint,
    one,
    uri,
)
from tests.integration.server import HutchServer
from tests.waiting import wait_until

T = TypeVar("T")
QUEUE: Final = "bad-queue"
ROUTE: Final = "some"


pytestmark = [pytest.mark.compat, pytest.mark.timeout(300)]


def on_channel(broker: RunningBroker, work: Callable[[AbstractChannel], Awaitable[T]]) -> T:
    async def connected() -> T:
        connection = await aiormq.connect(ends.amqp_uri(broker))
        try:
            return await work(await connection.channel(publisher_confirms=True))
        finally:
            await connection.close()

    return asyncio.run(connected())


def ready_in(broker: RunningBroker, queue: str) -> int:
    """Return how many messages of a queue nobody has taken."""

    async def count(channel: AbstractChannel) -> int:
        return (await channel.queue_declare(queue, passive=True)).message_count or 0

    return on_channel(broker, count)


def queue_of(broker: RunningBroker, *bodies: bytes, kind: str = "quorum") -> dict[str, object]:
    """Make the queue with these messages; return it as a source."""
    messages = {str(number): Published(Properties(), body) for number, body in enumerate(bodies)}
    ends.publish(ends.amqp_uri(broker), {QUEUE: kind}, messages)
    return {"uri": ends.amqp_uri(broker), "queue": QUEUE}


def stream_of(server: HutchServer) -> dict[str, object]:
    return {"uri": uri(server), "stream": "target", "create": {}}


def bodies(server: HutchServer, stream: str) -> list[object]:
    found = [message_of(record) for record in flows.stored(server.endpoint, stream)]
    return [message.body for message in found if message is not None]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ({"queue": "none"}, "no queue 'none' in vhost '/'"),
        ({"exchange": "none"}, "no exchange 'none' in vhost '/'"),
    ],
    ids=["queue", "exchange"],
)
def test_a_missing_source_is_one_line_at_the_start(
    rabbitmq: RunningBroker,
    server: HutchServer,
    tmp_path: Path,
    source: dict[str, object],
    said: str,
) -> None:
    routes = one({"uri": ends.amqp_uri(rabbitmq), **source}, stream_of(server))
    assert said in complaint(run(tmp_path / "bridge", routes), EXIT_NOT_OPENED)


@pytest.mark.parametrize("scheme", ["amqp", "mqtt"])
def test_a_wrong_password_is_one_line_without_the_password(
    rabbitmq: RunningBroker, server: HutchServer, tmp_path: Path, scheme: str
) -> None:
    address = f"{scheme}://guest:secret@{rabbitmq.host}:{ends.port_of(rabbitmq, scheme)}"
    source = {"queue": QUEUE} if scheme == "amqp" else {"topics": ["t"]}
    bridge = run(tmp_path / "bridge", one({"uri": address, **source}, stream_of(server)))
    line = complaint(bridge, EXIT_NOT_OPENED).lower()
    assert "access_refused" in line or "not authori" in line or "bad user" in line
    assert "secret" not in bridge.stderr


def test_a_queue_that_is_deleted_is_waited_for(
    rabbitmq: RunningBroker, server: HutchServer, tmp_path: Path
) -> None:
    source = queue_of(rabbitmq, b"first")
    with Bridge(tmp_path / "bridge", one(source, stream_of(server))) as bridge:
        bridge.wait_for("carrying")
        wait_until(lambda: not ready_in(rabbitmq, QUEUE))

        async def delete(channel: AbstractChannel) -> None:
            await channel.queue_delete(QUEUE)

        time.sleep(1)
        on_channel(rabbitmq, delete)
        bridge.wait_for("an end is lost")
        queue_of(rabbitmq, b"second")
        bridge.wait_for("the route is back")
        assert bridge.terminate() == 0
        assert len(bridge.stderr.splitlines()) == 3, bridge.stderr
    assert bodies(server, "target") == [b"first", b"second"]


def test_a_message_that_fits_into_no_frame_stays_in_its_queue(
    rabbitmq: RunningBroker, server: HutchServer, tmp_path: Path
) -> None:
    source = queue_of(rabbitmq, b"first", bytes(2 << 20), b"third")
    for attempt in range(2):
        bridge = run(tmp_path / f"bridge-{attempt}", one(source, stream_of(server)))
        assert "do not fit into a frame of 1048576" in complaint(bridge, EXIT_STOPPED)
        wait_until(lambda: ready_in(rabbitmq, QUEUE) == 2)
    skipping = run(
        tmp_path / "skip", one(source, stream_of(server), refused="skip"), "--until-empty"
    )
    assert skipping.counts()[ROUTE][:2] == (1, 1)
    assert not ready_in(rabbitmq, QUEUE)
    assert bodies(server, "target")[0] == b"first"
    assert bodies(server, "target")[-1] == b"third"


@pytest.fixture
def small_messages(rabbitmq: RunningBroker) -> Iterator[RunningBroker]:
    """A broker that takes messages of 100,000 bytes."""
    if rabbitmq.way == "environment":
        pytest.skip("there is no rabbitmqctl beside a broker that was merely found")
    before = rabbitmq.control("eval", "persistent_term:get(max_message_size).")
    rabbitmq.control("eval", "persistent_term:put(max_message_size, 100000).")
    yield rabbitmq
    rabbitmq.control("eval", f"persistent_term:put(max_message_size, {before}).")


@pytest.mark.parametrize("window", [1, 1_000])
def test_a_message_above_the_limit_of_a_broker_stops_the_route(
    small_messages: RunningBroker, server: HutchServer, tmp_path: Path, window: int
) -> None:
    queue = queue_of(small_messages)
    with Client.opened(*server.endpoint) as client:
        client.create("source")
        client.declare(1, "source")
        client.publish(1, {0: b"0", 1: bytes(100_000), 2: bytes(100_001), 3: b"3"})
        client.confirmed_ids(4)
    routes = one({"uri": uri(server), "stream": "source"}, queue, window=window)
    line = complaint(run(tmp_path / "bridge", routes), EXIT_STOPPED)
    assert "100001 bytes are more than the 100000 that the broker takes" in line
    assert "stream source, offset 2" in line
    skipping = run(tmp_path / "skip", [f'{routes[0]}refused = "skip"\n'], "--until-empty")
    assert skipping.counts()[ROUTE][:2] == (1, 1), skipping.stderr


@pytest.mark.parametrize("is_source", [True, False], ids=["source", "target"])
def test_queues_are_reached_by_tls_if_the_certificate_fits(
    rabbitmq: RunningBroker, server: HutchServer, tmp_path: Path, *, is_source: bool
) -> None:
    if rabbitmq.certificates is None:
        pytest.skip("a broker that was merely found has certificates of its own")
    by_name = {**queue_of(rabbitmq, b"first"), "uri": f"amqps://localhost:{rabbitmq.ports.amqps}/"}
    by_address = {**by_name, "uri": f"amqps://{rabbitmq.host}:{rabbitmq.ports.amqps}/"}
    authority = {"tls_ca": str(rabbitmq.certificates.ca)}

    def between(queue: dict[str, object]) -> list[str]:
        if is_source:
            return one(queue, stream_of(server))
        return one({"uri": uri(server), "stream": "target"}, queue)

    ends.store(server.endpoint, "target", [b"second"])
    unknown = complaint(run(tmp_path / "unknown", between(by_name)), EXIT_NOT_OPENED)
    assert "certificate verify failed" in unknown
    misfit = complaint(run(tmp_path / "misfit", between(by_address | authority)), EXIT_NOT_OPENED)
    assert "certificate is not valid for" in misfit or "IP address mismatch" in misfit
    bridge = run(tmp_path / "fits", between(by_name | authority), "--until-empty")
    assert bridge.counts() == {ROUTE: (1, 0, 0)}, bridge.stderr


UNROUTABLE: Final = {"exchange": "amq.direct", "routing_key": "nobody"}


def test_what_no_queue_takes_stops_the_route_and_stays(
    rabbitmq: RunningBroker, server: HutchServer, tmp_path: Path
) -> None:
    with Client.opened(*server.endpoint) as client:
        client.create("source")
        client.declare(1, "source")
        client.publish(1, {0: b"0", 1: b"1"})
        client.confirmed_ids(2)
    source = {"uri": uri(server), "stream": "source"}
    target = {"uri": ends.amqp_uri(rabbitmq), **UNROUTABLE}
    for attempt in range(2):
        bridge = run(tmp_path / f"bridge-{attempt}", one(source, target))
        line = complaint(bridge, EXIT_STOPPED)
        assert "no queue takes it, stream source, offset 0" in line
    dead = {"uri": uri(server), "stream": "dead", "create": {}}
    burying = run(tmp_path / "bury", one(source, target, refused=dead), "--until-empty")
    assert burying.counts() == {ROUTE: (0, 2, 0)}
    assert bodies(server, "dead") == [b"0", b"1"]


def test_of_two_messages_with_one_id_the_unroutable_one_is_refused(
    rabbitmq: RunningBroker, tmp_path: Path
) -> None:
    """The library finds a returned message by its id."""

    async def prepare(channel: AbstractChannel) -> None:
        for queue in (QUEUE, "bad-known"):
            await channel.queue_delete(queue)
            await channel.queue_declare(queue, durable=True)
        await channel.queue_bind("bad-known", "amq.direct", "known")
        for number in range(100):
            headers: dict[str, FieldValue] = {"to": "known" if number % 2 else "unknown"}
            properties = Properties(message_id="same", headers=headers)
            await channel.basic_publish(b"%d" % number, routing_key=QUEUE, properties=properties)

    on_channel(rabbitmq, prepare)
    source = {"uri": ends.amqp_uri(rabbitmq), "queue": QUEUE}
    target = {
        "uri": ends.amqp_uri(rabbitmq),
        "exchange": "amq.direct",
        "routing_key": "{header.to}",
    }
    bridge = run(tmp_path / "bridge", one(source, target, refused="skip"), "--until-empty")
    assert bridge.counts() == {ROUTE: (50, 50, 0)}, bridge.stderr
    found = ends.consume(ends.amqp_uri(rabbitmq), "bad-known", 50)
    assert [int(seen.body) for seen in found] == list(range(1, 100, 2))


@pytest.mark.parametrize("kind", ["quorum", "classic"])
def test_the_second_bridge_of_a_queue_says_that_the_first_is_there(
    rabbitmq: RunningBroker, server: HutchServer, tmp_path: Path, kind: str
) -> None:
    routes = one(queue_of(rabbitmq, b"first", kind=kind), stream_of(server))
    with Bridge(tmp_path / "first", routes) as first:
        first.wait_for("carrying")
        line = complaint(run(tmp_path / "second", routes), EXIT_NOT_OPENED)
        assert "another consumer reads queue" in line
        assert first.terminate() == 0


@pytest.mark.parametrize("count", [2_000, 10_000])
def test_a_queue_is_emptied_to_its_last_message(
    rabbitmq: RunningBroker, server: HutchServer, tmp_path: Path, count: int
) -> None:
    sent = [b"%d" % number for number in range(count)]
    routes = one(queue_of(rabbitmq, *sent), stream_of(server))
    assert run(tmp_path / "bridge", routes, "--until-empty").counts() == {ROUTE: (count, 0, 0)}
    assert bodies(server, "target") == sent
    assert ready_in(rabbitmq, QUEUE) == 0


def test_a_rabbitmq_stream_is_emptied_to_its_last_record(
    rabbitmq: RunningBroker, server: HutchServer, tmp_path: Path
) -> None:
    """Places that are stored take offsets there."""
    ends.store(rabbitmq.stream_address, "bad-stream", [b"%d" % number for number in range(2_000)])
    source = {"uri": ends.stream_uri(rabbitmq.stream_address), "stream": "bad-stream"}
    routes = one(source, stream_of(server), window=100)
    assert run(tmp_path / "bridge", routes, "--until-empty").counts() == {ROUTE: (2_000, 0, 0)}
    assert run(tmp_path / "again", routes, "--until-empty").counts() == {ROUTE: (0, 0, 0)}
    with Client.opened(*rabbitmq.stream_address) as client:
        client.must("delete_stream", m.DeleteStream("bad-stream"))


def test_a_stop_acknowledges_all_that_was_confirmed(
    rabbitmq: RunningBroker, server: HutchServer, tmp_path: Path
) -> None:
    sent = [b"%d" % number for number in range(3_000)]
    routes = one(queue_of(rabbitmq, *sent), stream_of(server), window=200)
    for attempt in range(6):
        with Bridge(tmp_path / f"bridge-{attempt}", routes) as bridge:
            bridge.wait_for("carrying")
            time.sleep(0.05 * attempt)
            began = time.monotonic()
            assert bridge.terminate() == 0
            assert time.monotonic() - began < 8
    run(tmp_path / "last", routes, "--until-empty")
    assert bodies(server, "target") == sent


def test_removing_a_route_takes_its_queue_away(
    rabbitmq: RunningBroker, server: HutchServer, tmp_path: Path
) -> None:
    source = {"uri": ends.amqp_uri(rabbitmq), "exchange": "amq.direct", "keys": ["key"]}
    routes = [route("bad-removed", source, stream_of(server))]
    run(tmp_path / "bridge", routes, "--until-empty")
    assert ready_in(rabbitmq, "hutch-bridge-bad-removed") == 0
    removed = run(tmp_path / "remove", routes, "--remove", "bad-removed")
    assert removed.stdout == "route 'bad-removed': removed\n", removed.stderr
    with pytest.raises(aiormq.exceptions.ChannelNotFoundEntity):
        ready_in(rabbitmq, "hutch-bridge-bad-removed")
