"""Bad input at the ends of the bridge: one line that says it, and nothing is lost.

These tests need no RabbitMQ: the other end is a Hutch or mosquitto. `test_bad_queues.py` has those
that need one.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from compat.certificates import Certificates
from hutch.client import Refused
from hutch.stream import messages as m
from tests.client import Client
from tests.integration.bridge import flows
from tests.integration.bridge.bridges import Bridge, route, run
from tests.integration.bridge.flows import StreamFeed
from tests.integration.bridge.mosquitto import PACKET_BYTES_MAX, Mosquitto
from tests.integration.conftest import StartServer
from tests.integration.server import HutchServer
from tests.integration.small_disk import small_disk
from tests.waiting import wait_until

MARK: Final = "hutch: route 'some': "
EXIT_STOPPED, EXIT_NOT_OPENED = 1, 2
COUNT: Final = 500


def uri(server: HutchServer, login: str = "guest:guest@") -> str:
    return f"rabbitmq-stream://{login}{server.host}:{server.port}/"


def one(source: Mapping[str, object], target: Mapping[str, object], **more: object) -> list[str]:
    return [route("some", source, target, **more)]


def between(server: HutchServer, source: str, target: str, **more: object) -> list[str]:
    """Return a route between two streams of one server; the second is made."""
    at = {"uri": uri(server)}
    return one({**at, "stream": source}, {**at, "stream": target, "create": {}}, **more)


def fill(server: HutchServer, stream: str, count: int = COUNT, first: int = 0) -> None:
    """Publish numbers to a stream, which is made."""
    with Client.opened(*server.endpoint) as client:
        client.code_of("create_stream", m.CreateStream(stream, {}))
        client.declare(1, stream)
        for begin in range(first, first + count, 100):
            ids = range(begin, min(begin + 100, first + count))
            client.publish(1, {number: f"{number}".encode() for number in ids})
            client.confirmed_ids(len(ids))


def numbers(server: HutchServer, stream: str) -> list[int]:
    try:
        return [int(record) for record in flows.stored(server.endpoint, stream)]
    except Refused:  # it is not made yet
        return []


def complaint(bridge: Bridge, status: int) -> str:
    """Return the one line that a bridge, which has ended, complained in."""
    assert bridge.process.returncode == status, bridge.stderr
    lines = [line for line in bridge.stderr.splitlines() if not line.startswith("20")]
    assert len(lines) == 1, bridge.stderr
    assert lines[0].startswith(MARK), lines
    return lines[0].removeprefix(MARK)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (
            {"uri": "rabbitmq-stream://guest:guest@127.0.0.1:1/", "stream": "s"},
            "Connection refused",
        ),
        ({"uri": "rabbitmq-stream://nobody.invalid/", "stream": "s"}, "nobody.invalid"),
        ({"uri": "amqp://127.0.0.1:1/", "queue": "q"}, "queue 'q' at 127.0.0.1:1"),
        ({"uri": "mqtt://127.0.0.1:1", "topics": ["t"]}, "refused"),
    ],
    ids=["no server of streams", "no host", "no AMQP", "no MQTT"],
)
def test_an_address_without_a_server_is_one_line_at_the_start(
    server: HutchServer, tmp_path: Path, source: dict[str, object], said: str
) -> None:
    target = {"uri": uri(server), "stream": "target", "create": {}}
    bridge = run(tmp_path / "bridge", one(source, target))
    assert said in complaint(bridge, EXIT_NOT_OPENED)


@pytest.mark.parametrize("end", ["source", "target"])
def test_a_wrong_password_is_one_line_without_the_password(
    server: HutchServer, tmp_path: Path, end: str
) -> None:
    fill(server, "source", 1)
    logins = {"source": "guest:guest@", "target": "guest:guest@"} | {end: "guest:secret@"}
    source = {"uri": uri(server, logins["source"]), "stream": "source"}
    target = {"uri": uri(server, logins["target"]), "stream": "target", "create": {}}
    bridge = run(tmp_path / "bridge", one(source, target))
    assert "refused user 'guest'" in complaint(bridge, EXIT_NOT_OPENED)
    assert "secret" not in bridge.stderr


@pytest.mark.parametrize("target", ["stream", "super_stream"])
def test_a_missing_stream_is_one_line_at_the_start(
    server: HutchServer, tmp_path: Path, target: str
) -> None:
    fill(server, "source", 1)
    routes = one({"uri": uri(server), "stream": "source"}, {"uri": uri(server), target: "none"})
    assert "does not exist" in complaint(run(tmp_path / "bridge", routes), EXIT_NOT_OPENED)


def test_a_route_that_waits_begins_when_its_stream_is_there(
    server: HutchServer, tmp_path: Path
) -> None:
    with Bridge(tmp_path / "bridge", between(server, "source", "target"), "--wait") as bridge:
        bridge.wait_for("an end is lost")
        fill(server, "source")
        bridge.wait_for("the route is back")
        assert bridge.stderr.count("an end is lost") == 1
        wait_until(lambda: numbers(server, "target")[-1:] == [COUNT - 1])
        assert bridge.terminate() == 0
    assert numbers(server, "target") == list(range(COUNT))


@pytest.mark.parametrize("is_made", [True, False], ids=["with create", "without create"])
def test_a_target_that_is_deleted_is_made_again_if_the_route_says_so(
    server: HutchServer, tmp_path: Path, *, is_made: bool
) -> None:
    fill(server, "source")
    with Client.opened(*server.endpoint) as client:
        client.create("target")
    create: dict[str, object] = {"create": {}} if is_made else {}
    target = {"uri": uri(server), "stream": "target", **create}
    with Bridge(
        tmp_path / "bridge", one({"uri": uri(server), "stream": "source"}, target)
    ) as bridge:
        wait_until(lambda: numbers(server, "target")[-1:] == [COUNT - 1])
        with Client.opened(*server.endpoint) as client:
            client.must("delete_stream", m.DeleteStream("target"))
        bridge.wait_for("an end is lost")
        fill(server, "source", first=COUNT)
        if not is_made:
            time.sleep(2)
            with Client.opened(*server.endpoint) as client:
                client.create("target")
        bridge.wait_for("the route is back")
        wait_until(lambda: numbers(server, "target")[-1:] == [2 * COUNT - 1])
        assert bridge.terminate() == 0
    assert numbers(server, "target") == list(range(COUNT, 2 * COUNT))


def large_and_small(server: HutchServer) -> None:
    """Make a stream of three records, of which the second fits into no frame of 4,096 bytes."""
    with Client.opened(*server.endpoint) as client:
        client.create("source")
        client.declare(1, "source")
        client.publish(1, {0: b"0", 1: bytes(100_000), 2: b"2"})
        client.confirmed_ids(3)


@pytest.fixture
def small_frames(start_server: StartServer) -> HutchServer:
    """A server that takes frames of 64 KiB."""
    return start_server(environment={"HUTCH_STREAM__FRAME_BYTES_MAX": "65536"})


def test_a_message_above_the_frame_stops_the_route(
    server: HutchServer, small_frames: HutchServer, tmp_path: Path
) -> None:
    large_and_small(server)
    source = {"uri": uri(server), "stream": "source"}
    target = {"uri": uri(small_frames), "stream": "target", "create": {}}
    for attempt in range(2):
        bridge = run(tmp_path / f"bridge-{attempt}", one(source, target))
        line = complaint(bridge, EXIT_STOPPED)
        assert "100000 bytes do not fit into a frame of 65536" in line
        assert "stream source, offset 1" in line
    skipping = run(tmp_path / "skip", one(source, target, refused="skip"), "--until-empty")
    assert skipping.process.returncode == 0
    assert skipping.counts()["some"][1] == 1
    assert skipping.stderr.count("a message was refused") == 1
    assert numbers(small_frames, "target") == [0, 2]


def test_a_message_above_the_frame_goes_to_the_stream_of_refused_ones(
    server: HutchServer, small_frames: HutchServer, tmp_path: Path
) -> None:
    large_and_small(server)
    source = {"uri": uri(server), "stream": "source"}
    target = {"uri": uri(small_frames), "stream": "target", "create": {}}
    refused = {"uri": uri(server), "stream": "refused", "create": {}}
    bridge = run(tmp_path / "bridge", one(source, target, refused=refused), "--until-empty")
    assert bridge.counts() == {"some": (2, 1, 0)}, bridge.stderr
    assert numbers(small_frames, "target") == [0, 2]
    (letter,) = flows.stored(server.endpoint, "refused")
    assert letter.endswith(bytes(100_000))
    for fact in (b"x-bridge-route", b"x-bridge-reason", b"x-bridge-stream", b"x-bridge-offset"):
        assert fact in letter


def test_a_message_above_the_packets_of_a_broker_stops_the_route(
    start_server: StartServer, mosquitto: Mosquitto, tmp_path: Path
) -> None:
    server = start_server(environment={"HUTCH_STREAM__FRAME_BYTES_MAX": "2000000"})
    # Kind 1, size 3, topic 3, number 2, properties 28: what is no message has a content type.
    largest = PACKET_BYTES_MAX - 37
    with Client.opened(*server.endpoint) as client:
        client.create("source")
        client.declare(1, "source")
        for number, body in enumerate((b"0", bytes(largest), bytes(largest + 1), b"3")):
            client.publish(1, {number: body})
            client.confirmed_ids(1)
    source = {"uri": uri(server), "stream": "source"}
    target = {"uri": mosquitto.uri, "topic": "t"}
    line = complaint(run(tmp_path / "bridge", one(source, target)), EXIT_STOPPED)
    assert f"bytes do not fit into a packet of {PACKET_BYTES_MAX}" in line
    assert "stream source, offset 2" in line
    skipping = run(tmp_path / "skip", one(source, target, refused="skip"), "--until-empty")
    assert skipping.counts() == {"some": (1, 1, 0)}, skipping.stderr


def test_a_certificate_of_another_authority_is_one_line(
    start_server: StartServer, made: Certificates, tmp_path: Path
) -> None:
    pair = made.server
    server = start_server("--tls-cert", str(pair.certificate), "--tls-key", str(pair.key))
    fill(server, "source", 1)
    found = server.ready_line.partition("tls")[2]
    port = int(found.partition(":")[2].split()[0].rstrip(",)"))
    target = {"uri": f"rabbitmq-stream+tls://localhost:{port}/", "stream": "target", "create": {}}
    source = {"uri": uri(server), "stream": "source"}
    line = complaint(run(tmp_path / "bridge", one(source, target)), EXIT_NOT_OPENED)
    assert "unable to get local issuer certificate" in line
    trusting = one(source, {**target, "tls_ca": str(made.ca)})
    assert run(tmp_path / "trusting", trusting, "--until-empty").counts() == {"some": (1, 0, 0)}


def test_a_certificate_of_another_authority_is_one_line_for_mqtt(
    server: HutchServer, made: Certificates, tmp_path: Path
) -> None:
    with Mosquitto(tmp_path / "mosquitto", made) as broker:
        source = {"uri": f"mqtts://localhost:{broker.tls_port}", "topics": ["t"]}
        target = {"uri": uri(server), "stream": "target", "create": {}}
        line = complaint(run(tmp_path / "bridge", one(source, target)), EXIT_NOT_OPENED)
        assert "certificate verify failed" in line
        trusting = one({**source, "tls_ca": str(made.ca)}, target)
        assert run(tmp_path / "trusting", trusting, "--until-empty").process.returncode == 0


def test_the_second_bridge_of_a_route_takes_over_when_the_first_is_killed(
    server: HutchServer, tmp_path: Path
) -> None:
    fill(server, "source")
    routes = between(server, "source", "target")
    with Bridge(tmp_path / "first", routes) as first:
        wait_until(lambda: numbers(server, "target")[-1:] == [COUNT - 1])
        with Bridge(tmp_path / "second", routes) as second:
            second.wait_for("carrying")
            fill(server, "source", first=COUNT)
            wait_until(lambda: numbers(server, "target")[-1:] == [2 * COUNT - 1])
            first.kill()
            fill(server, "source", first=2 * COUNT)
            wait_until(lambda: numbers(server, "target")[-1:] == [3 * COUNT - 1])
            assert second.terminate() == 0
    assert numbers(server, "target") == list(range(3 * COUNT))


def test_two_bridges_that_take_a_session_from_each_other_stop(
    server: HutchServer, mosquitto: Mosquitto, tmp_path: Path
) -> None:
    source = {"uri": mosquitto.uri, "topics": ["taken/#"]}
    routes = one(source, {"uri": uri(server), "stream": "target", "create": {}})
    with Bridge(tmp_path / "first", routes) as first:
        first.wait_for("carrying")
        with Bridge(tmp_path / "second", routes) as second:
            second.wait_for("carrying")
            first.wait()
            assert "another bridge takes the messages" in complaint(first, EXIT_STOPPED)
            assert second.terminate() == 0


@pytest.mark.parametrize("count", [2_000, 10_000])
def test_a_stream_is_emptied_to_its_last_record(
    server: HutchServer, tmp_path: Path, count: int
) -> None:
    fill(server, "source", count)
    routes = between(server, "source", "target")
    assert run(tmp_path / "bridge", routes, "--until-empty").counts() == {"some": (count, 0, 0)}
    assert run(tmp_path / "again", routes, "--until-empty").counts() == {"some": (0, 0, 0)}
    assert numbers(server, "target") == list(range(count))


def test_a_stop_stores_the_place_of_all_that_was_confirmed(
    server: HutchServer, tmp_path: Path
) -> None:
    feed = StreamFeed(server.endpoint, "source", 3_000, 100, 0.02)
    with Client.opened(*server.endpoint) as client:
        client.create("source")
    routes = between(server, "source", "target")
    feed.start()
    for attempt in range(4):
        with Bridge(tmp_path / f"bridge-{attempt}", routes) as bridge:
            bridge.wait_for("carrying")
            time.sleep(0.3)
            began = time.monotonic()
            assert bridge.terminate() == 0
            assert time.monotonic() - began < 8
    flows.wait_for_feeds([feed], 1, 3_000, 60)
    run(tmp_path / "last", routes, "--until-empty")
    bodies = flows.stored(server.endpoint, "target")
    assert [flows.Sent.of(body).number for body in bodies] == list(range(3_000))


def test_a_removed_route_begins_anew(server: HutchServer, tmp_path: Path) -> None:
    fill(server, "source")
    routes = between(server, "source", "target")
    assert run(tmp_path / "first", routes, "--until-empty").counts() == {"some": (COUNT, 0, 0)}
    removed = run(tmp_path / "remove", routes, "--remove", "some")
    assert removed.process.returncode == 0
    assert removed.stdout == "route 'some': removed\n"
    again = run(tmp_path / "again", routes, "--until-empty")
    assert again.counts() == {"some": (COUNT, 0, 0)}
    wrong = run(tmp_path / "wrong", routes, "--remove", "other")
    assert wrong.process.returncode == EXIT_NOT_OPENED
    assert wrong.stderr.endswith(": no route 'other'\n")


@pytest.mark.timeout(240)
def test_a_full_disk_at_the_target_is_waited_for(
    server: HutchServer, start_server: StartServer, tmp_path: Path
) -> None:
    with small_disk(tmp_path, 64 * 1024 * 1024) as disk:
        full = start_server("--durability", "os", data=disk)
        with Client.opened(*server.endpoint) as client:
            client.create("source")
            client.declare(1, "source")
            for number in range(60):
                client.publish(1, {number: f"{number:05}".encode() + bytes(500_000)})
                client.confirmed_ids(1)
        source = {"uri": uri(server), "stream": "source"}
        target = {"uri": uri(full), "stream": "target", "create": {}}
        filler = disk / "filler"
        filler.write_bytes(bytes(40 * 1024 * 1024))
        with Bridge(tmp_path / "bridge", one(source, target), "--until-empty") as bridge:
            time.sleep(5)
            assert bridge.process.poll() is None, bridge.stderr
            assert bridge.stderr.count("an end is lost") <= 1, bridge.stderr
            filler.unlink()
            assert bridge.wait() == 0, bridge.stderr
        found = [int(record[:5]) for record in flows.stored(full.endpoint, "target")]
        assert found == list(range(60))
        full.kill()
