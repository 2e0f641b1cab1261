"""Clients that come and go leave the collector nothing to free, and the collector holds nobody up.

A server looks once at what survives, and never again (`gateway/collector.py`): a ring of objects
among it would never be freed.
"""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Final

import pytest

from compat.certificates import Certificates
from gateway.pravega.controller.rpc import controller_pb2 as pb
from hutch.pravega import messages as m
from hutch.pravega import table_messages as t
from hutch.pravega.wire_types import KeyAndValue, TableKey
from hutch.stream import messages as stream
from hutch.stream.codes import ResponseCode
from hutch.stream.offsets import FIRST
from tests.client import Client, ClosedByServer
from tests.controller_client import ControllerClient
from tests.early_rig import EarlyClient
from tests.http_client import Api, basic
from tests.integration.conftest import assert_no_traceback
from tests.integration.costs import TURN_S_MAX, amount
from tests.integration.garbage import Garbage
from tests.integration.server import HutchServer, StoreProcess
from tests.integration.test_every_port import ports_of
from tests.integration.tls_rig import context_of, tls_arguments, tls_endpoint
from tests.integration.turns import Turns
from tests.machine import is_within
from tests.mewbase_client import MewbaseClient
from tests.pravega_client import WireClient

MANY: Final = 100
LEFT_MAX: Final = 3
"""Objects that each may leave."""
VIRTUAL_HOSTS: Final = amount(10_000, 3_000)
STREAM: Final = {"durable": True, "arguments": {"x-queue-type": "stream"}}
GROUP: Final = {"single-active-consumer": "true", "name": "app"}
SEGMENT: Final = "mine/stream/0.#epoch.0"
PROJECTION: Final = """
[[projections]]
name = "replace"
channel = "channel1"
binder = "last"
id = "id"
"""
_numbers = count()


@pytest.fixture(scope="module")
def tls(made: Certificates) -> ssl.SSLContext:
    return context_of(made.ca)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, made: Certificates) -> Iterator[HutchServer]:
    """A server with a stream `s` and a channel `channel1`, of which a binder is made."""
    folder = tmp_path_factory.mktemp("collector")
    (folder / "projections.toml").write_text(PROJECTION)
    environment = {
        "HUTCH_USERS__ANONYMOUS": "guest",
        "HUTCH_MEWBASE__CHANNELS": "channel1",
        "HUTCH_MEWBASE__PROJECTIONS_FILE": str(folder / "projections.toml"),
    }
    mewbase = ("--mewbase-port", "0", "--mewbase-tls-port", "0")
    arguments = ("--durability", "os", *mewbase, *tls_arguments(made, asks_clients=False))
    with HutchServer(folder / "data", *arguments, environment=environment) as server:
        assert Api(*server.management).status("PUT", "queues/%2f/s", STREAM) == 201
        yield server
        server.terminate()
        assert_no_traceback(server)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreProcess]:
    """A store with a segment."""
    data = tmp_path_factory.mktemp("store") / "data"
    ports = ("--early-port", "0", "--controller-port", "0")
    with StoreProcess(data, "--durability", "os", *ports) as server:
        with WireClient(*server.store) as client:
            client.create(SEGMENT)
        yield server
        server.terminate()
        assert_no_traceback(server)


def check(server: HutchServer, use: Callable[[int], object]) -> None:
    """Have each of many come and go, and see what they left."""
    use(next(_numbers))  # what is made once, and kept
    with Garbage(server) as garbage:
        for _ in range(MANY):
            use(next(_numbers))
    assert garbage.count < LEFT_MAX * MANY, str(garbage)


# Entities


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("vhosts/v{}", {}),
        ("queues/%2f/q{}", STREAM),
        ("exchanges/%2f/e{}", {"type": "topic", "durable": True}),
        ("users/u{}", {"password": "secret", "tags": ""}),
        ("policies/%2f/p{}", {"pattern": "^x", "definition": {"max-age": "1D"}}),
    ],
)
def test_what_is_made_and_deleted_leaves_nothing(
    server: HutchServer, path: str, body: object
) -> None:
    connection = http.client.HTTPConnection(*server.management)
    head = {"Authorization": basic("guest", "guest")}

    def use(number: int) -> None:
        place = f"/api/{path.format(number)}"
        for method in ("PUT", "DELETE"):
            connection.request(method, place, json.dumps(body), head)
            response = connection.getresponse()
            assert response.read() is not None
            assert response.status in (201, 204), (method, place, response.status)

    check(server, use)
    connection.close()


def test_a_super_stream_leaves_nothing(server: HutchServer) -> None:
    with Client.opened(*server.endpoint) as client:

        def use(number: int) -> None:
            name = f"super{number}"
            partitions = (f"{name}-0", f"{name}-1")
            request = stream.CreateSuperStream(name, partitions, ("0", "1"), {})
            client.must("create_super_stream", request)
            client.must("delete_super_stream", stream.DeleteSuperStream(name))

        check(server, use)


def test_a_stream_that_was_used_leaves_nothing(server: HutchServer) -> None:
    with Client.opened(*server.endpoint) as admin:

        def use(number: int) -> None:
            name = f"used{number}"
            admin.create(name)
            with Client.opened(*server.endpoint) as client:
                write_and_read(client, name)
            admin.must("delete_stream", stream.DeleteStream(name))

        check(server, use)


def test_a_virtual_host_that_was_used_leaves_nothing(server: HutchServer) -> None:
    api = Api(*server.management)

    def use(number: int) -> None:
        name = f"used{number}"
        assert api.status("PUT", f"vhosts/{name}") == 201
        body = {"configure": ".*", "write": ".*", "read": ".*"}
        assert api.status("PUT", f"permissions/{name}/guest", body) in (201, 204)
        with Client.opened(*server.endpoint, virtual_host=name) as client:
            client.create("s")
            write_and_read(client)
        assert api.status("DELETE", f"vhosts/{name}") == 204

    check(server, use)


# Clients


def write_and_read(client: Client, name: str = "s") -> None:
    client.declare(1, name)
    client.publish(1, {1: b"x"})
    client.confirmed_ids(1)
    client.must("subscribe", stream.Subscribe(1, name, FIRST, 10, {}))
    client.delivery()


def test_clients_of_streams_leave_nothing(server: HutchServer) -> None:
    def use(_: int) -> None:
        with Client.opened(*server.endpoint) as client:
            write_and_read(client)
            client.close()

    check(server, use)


def test_clients_of_streams_that_vanish_leave_nothing(server: HutchServer) -> None:
    def use(_: int) -> None:
        with Client.opened(*server.endpoint) as client:
            write_and_read(client)

    check(server, use)


def test_members_of_groups_leave_nothing(server: HutchServer) -> None:
    def use(_: int) -> None:
        with Client.opened(*server.endpoint) as client, Client.opened(*server.endpoint) as other:
            for each in (client, other):
                each.must("subscribe", stream.Subscribe(1, "s", FIRST, 10, GROUP))
            client.answer_consumer_update(FIRST)

    check(server, use)


def test_clients_of_streams_that_are_refused_leave_nothing(server: HutchServer) -> None:
    def use(_: int) -> None:
        with Client.opened(*server.endpoint) as client:
            code = client.code_of("delete_stream", stream.DeleteStream("none"))
            assert code == ResponseCode.STREAM_DOES_NOT_EXIST
            client.send(b"\0\0\0\x04\x7f\0\0\1")  # no such command
            with pytest.raises(ClosedByServer):
                client.receive()

    check(server, use)


def test_clients_over_tls_leave_nothing(server: HutchServer, tls: ssl.SSLContext) -> None:
    def use(_: int) -> None:
        with Client.opened(*tls_endpoint(server), tls=tls) as client:
            write_and_read(client)

    check(server, use)


def test_clients_of_the_api_leave_little(server: HutchServer) -> None:
    api = Api(*server.management)

    def use(_: int) -> None:
        assert api.status("GET", "overview") == 200

    check(server, use)


@pytest.mark.parametrize("is_tls", [False, True])
def test_clients_of_mewbase_leave_nothing(
    server: HutchServer, tls: ssl.SSLContext, *, is_tls: bool
) -> None:
    port = ports_of(server)["mewbase_tls" if is_tls else "mewbase"].port

    def use(number: int) -> None:
        with MewbaseClient(port, tls if is_tls else None) as client:
            client.connect()
            client.publish("channel1", {"id": "x", "n": number})
            client.subscribe("channel1", startPos=0)
            client.events(1)
            client.socket.close()
        with MewbaseClient(port, tls if is_tls else None) as client:
            client.connect()
            client.subscribe("channel1", startPos=0, durableID=f"d{number}")
            client.events(1)
        with MewbaseClient(port, tls if is_tls else None) as client:
            client.connect()
            client.send("QUERY", queryID=1, binder="last", docID="x")
            client.must("QUERYRESULT")
            assert client.ask("STARTTX", sessID=1, rID=50)["ok"]
            fields = {"channel": "channel1", "sessID": 1, "event": {"id": "y"}, "rID": 51}
            assert client.ask("PUB", **fields)["ok"]

    check(server, use)


def test_clients_of_the_store_leave_nothing(store: StoreProcess) -> None:
    table = "mine/t/table"
    with WireClient(*store.store) as client:
        client.ask(t.CreateTableSegment(1, table, ""), m.SegmentCreated)

    def use(number: int) -> None:
        with WireClient(*store.store) as client:
            client.hello()
            client.set_up(SEGMENT)
            client.append(number + 1, b"event")
            client.read(SEGMENT)
            entry = KeyAndValue(TableKey(b"%d" % number), b"value")
            client.ask(t.UpdateTableEntries(1, table, "", (entry,)), t.TableEntriesUpdated)
            client.send(m.ReadSegment(SEGMENT, 1 << 30, 8, "", number))  # waits

    check(store, use)


def test_early_clients_of_the_store_leave_nothing(store: StoreProcess) -> None:
    end = 0

    def use(_: int) -> None:
        nonlocal end
        with EarlyClient(*ports_of(store)["early"]) as client:
            end = client.set_up()
            client.append(end, b"event")
            client.read()

    check(store, use)


def test_clients_of_the_controller_leave_nothing(store: StoreProcess) -> None:
    def use(number: int) -> None:
        with ControllerClient(ports_of(store)["controller"].port) as client:
            client.ask("createScope", pb.ScopeInfo(scope=f"scope{number}"))
            client.ask("listScopes", pb.ScopesRequest())

    check(store, use)


# Turns


def test_no_turn_is_long_while_virtual_hosts_come(tmp_path: Path) -> None:
    with HutchServer(tmp_path / "data", "--durability", "os") as server:
        hosts = [{"name": f"v{number}"} for number in range(VIRTUAL_HOSTS)]
        with Turns(server) as turns:
            assert Api(*server.management).status("POST", "definitions", {"vhosts": hosts}) == 204
            longest_s = turns.longest_s
        server.terminate()
    assert is_within(longest_s, TURN_S_MAX)
