"""What the log of a running server says: whose stream, whose connection, and codes in words."""

from __future__ import annotations

import json
import re
import socket

import grpc
import pytest

from gateway.pravega.controller.rpc import controller_pb2 as pb
from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode
from hutch.stream.offsets import FIRST
from tests.client import Client, Refused
from tests.controller_client import ControllerClient, basic
from tests.integration.administrator import hutch
from tests.integration.conftest import StartServer
from tests.integration.server import HutchServer
from tests.waiting import HANG_S

UNIT = 1024 * 1024


def used(server: HutchServer) -> None:
    """Make a stream of the virtual host `eu`, have it trimmed, read, refused, and deleted."""
    for command in ("add_vhost eu", "set_permissions -p eu guest .* .* .*"):
        hutch(server.data_dir, "ctl", *command.split())
    with Client(*server.endpoint) as client:
        client.handshake(virtual_host="eu")
        client.create("orders", {"max-length-bytes": str(2 * UNIT)})
        client.declare(1, "orders")
        for number in range(12):
            client.publish(1, {number: b"x" * (UNIT // 2)})
            client.confirmed_ids(1)
        server.wait_for_log("records removed")
        properties = {"single-active-consumer": "true", "name": "group"}
        client.subscribe(1, "orders", FIRST, properties=properties)
        client.next_of("consumer_update")
        assert client.code_of("create_stream", m.CreateStream("orders", {"max-age": "1D"})) == (
            ResponseCode.PRECONDITION_FAILED
        )
        client.send_request("store_offset", m.StoreOffset("app", "none", 1))
        client.must("delete_stream", m.DeleteStream("orders"))
        client.close()
    server.wait_for_log("stream deleted")


def test_lines_name_the_virtual_host_of_a_stream_the_peer_and_a_code_in_words(
    start_server: StartServer,
) -> None:
    server = start_server("--log-level", "debug")

    used(server)

    server.wait_for_log("client closes")
    lines = [line for line in server.stderr.splitlines() if " gateway.stream." in line]
    assert [line for line in lines if "peer=127.0.0.1:" not in line] == []
    streams = [line for line in server.stderr.splitlines() if re.search(r"\bstream=\w", line)]
    assert [line for line in streams if "virtual_host=eu" not in line] == []
    assert any("code=precondition failed reason=" in line for line in lines)
    assert any("client closes" in line and "code=ok " in line for line in lines)
    assert re.search(
        r"INFO gateway\.broker\.streams\.retention: records removed stream=orders virtual_host=eu"
        r" bytes=\d+ first_offset=\d+",
        server.stderr,
    )


def test_to_machines_the_virtual_host_is_a_field(start_server: StartServer) -> None:
    server = start_server("--log-format", "json")

    used(server)

    removed = next(
        line
        for line in map(json.loads, server.stderr.splitlines())
        if "records removed" in line["message"]
    )
    assert (removed["stream"], removed["virtual_host"]) == ("orders", "eu")
    assert removed["bytes"] > 0


def test_a_virtual_host_that_does_not_exist_is_told_from_one_that_may_not_be_entered(
    start_server: StartServer,
) -> None:
    server = start_server(environment={"HUTCH_STREAM__REFUSAL_DELAY_MS": "0"})
    hutch(server.data_dir, "ctl", "add_vhost", "closed")

    for name in ("nowhere", "closed"):
        with Client(*server.endpoint) as client, pytest.raises(Refused):
            client.handshake(virtual_host=name)

    server.wait_for_log("host='nowhere' reason=there is none of that name")
    server.wait_for_log("host='closed' reason=the user may not enter it")


def test_everything_that_is_written_to_standard_error_is_json(start_server: StartServer) -> None:
    ports = ("--store-port", "0", "--store-controller-port", "0")
    server = start_server("--log-format", "json", "--log-level", "debug", *ports)
    found = re.search(r" controller=127\.0\.0\.1:(\d+)", server.ready_line)
    assert found is not None
    with ControllerClient(int(found[1]), basic("guest", "hunter2")) as client:
        assert client.refusal("listScopes", pb.ScopesRequest()) is grpc.StatusCode.UNAUTHENTICATED
    with socket.create_connection(("127.0.0.1", int(found[1])), HANG_S) as client:
        client.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9))
        while client.recv(4_096):
            pass
    server.terminate()

    lines = [json.loads(line) for line in server.stderr.splitlines()]
    ready = next(line for line in lines if line["message"] == "management ready")
    assert ready["address"] == f"127.0.0.1:{server.management.port}"
    assert [line for line in lines if "=" in line["message"]] == []
    assert "protocol error" in {line["message"] for line in lines}
    assert basic("guest", "hunter2").split()[1] not in server.stderr
