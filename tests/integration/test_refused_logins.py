"""A refused or a missing login at each port is one line, with what helps."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import suppress

import grpc
import pytest

from compat.certificates import Certificates
from gateway.pravega.controller.rpc import controller_pb2 as pb
from hutch.pravega import messages as m
from hutch.stream import messages as stream
from hutch.stream.codec import encode_request
from tests.client import Client
from tests.controller_client import ControllerClient, basic
from tests.http_client import Api
from tests.integration.administrator import IMPATIENT
from tests.integration.conftest import StartServer
from tests.integration.server import Endpoint, HutchServer
from tests.integration.tls_rig import context_of, tls_arguments, tls_endpoint
from tests.mewbase_client import frame
from tests.pravega_client import WireClient
from tests.waiting import HANG_S

_ADDRESS = re.compile(r"\b(\w+)=127\.0\.0\.1:(\d+)")
ALL_ON = ("--mewbase-port", "0", "--store-port", "0", "--store-controller-port", "0")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HutchServer]:
    data = tmp_path_factory.mktemp("refused") / "data"
    with HutchServer(data, *ALL_ON, "--durability", "os", environment=IMPATIENT) as server:
        yield server
        assert "Traceback" not in server.logs


def port_of(server: HutchServer, word: str) -> Endpoint:
    ports = {found: int(port) for found, port in _ADDRESS.findall(server.ready_line)}
    return Endpoint("127.0.0.1", ports[word])


def lines(server: HutchServer, protocol: str) -> list[str]:
    """Return what the log says of refused logins at a port, without addresses."""
    server.wait_for_log(f" protocol={protocol} ")
    found = [line for line in server.logs.splitlines() if f" protocol={protocol} " in line]
    return [
        re.sub(r"^.*login refused peer=127\.0\.0\.1\S* | unsaid=\d+$", "", line) for line in found
    ]


def test_a_mechanism_that_is_not_offered_names_the_setting(server: HutchServer) -> None:
    with Client(*server.endpoint) as client:
        client.request("peer_properties", stream.PeerProperties({}))
        client.request("sasl_handshake", stream.SaslHandshake())
        code = client.code_of("sasl_authenticate", stream.SaslAuthenticate("ANONYMOUS", b""))
    assert code == 7
    assert lines(server, "stream") == [
        (
            "protocol=stream user='' mechanism='ANONYMOUS' reason=the mechanism is not offered"
            " helps=users.anonymous"
        )
    ]


def test_a_request_over_http_without_a_login_is_a_line_and_not_one_for_each(
    server: HutchServer,
) -> None:
    for _ in range(20):
        assert Api(*server.management, None).status("GET", "whoami") == 401
    [line] = lines(server, "http")
    assert line.startswith("protocol=http user='' mechanism='' reason=no name and password came")
    assert "the tag management" in line


def test_a_caller_of_the_controller_without_a_login_is_told_of_the_environment(
    server: HutchServer,
) -> None:
    with ControllerClient(port_of(server, "controller").port) as client:
        for _ in range(5):
            with pytest.raises(grpc.RpcError):
                client.ask("listScopes", pb.ScopesRequest())
    [line] = lines(server, "controller")
    assert "user='' mechanism='' reason=no name and password came helps=" in line
    assert "pravega_client_auth_username" in line


def test_a_request_of_segments_without_a_token_is_told_of_the_controller(
    server: HutchServer,
) -> None:
    with WireClient(*port_of(server, "store")) as client:
        for number in range(5):
            client.send(m.GetStreamSegmentInfo(number, "s/t/0.#epoch.0", ""))
            client.receive()
    [line] = lines(server, "pravega")
    assert "reason=this server asks for a token helps=" in line
    assert "wire.controller_port" in line


def test_a_request_of_mewbase_before_a_login_is_a_line(server: HutchServer) -> None:
    with socket.create_connection(port_of(server, "mewbase"), HANG_S) as client:
        client.sendall(frame("PING", {}))
        with suppress(ConnectionError):
            while client.recv(4_096):
                pass
    [line] = lines(server, "mewbase")
    assert "reason=a request came before CONNECT helps=CONNECT has a user's name" in line


@pytest.mark.parametrize(
    ("user", "helps"),
    [("nobody", "hutch ctl add_user nobody"), ("guest", "hutch ctl change_password guest")],
)
def test_a_wrong_password_names_the_user_and_the_command(
    start_server: StartServer, user: str, helps: str
) -> None:
    server = start_server(environment=IMPATIENT)
    for _ in range(3):
        Api(*server.management, (user, "wrong")).status("GET", "whoami")
    assert lines(server, "http") == [
        (
            f"protocol=http user='{user}' mechanism='PLAIN' reason=unknown user or wrong password"
            f" helps={helps}"
        )
    ]


REFUSED = bytes.fromhex("0000000a 8013 0001 00000003 0008")
"""SaslAuthenticate's reply, code 8 and no challenge: RabbitMQ 4.3.6 sends just this after 3 s, then
ends the connection; with a certificate that names no user, and without one."""


@pytest.mark.parametrize("data", [b"", b"guest", None])
def test_a_refused_external_is_answered_as_by_rabbitmq(
    start_server: StartServer, made: Certificates, data: bytes | None
) -> None:
    server = start_server(*tls_arguments(made), environment=IMPATIENT)
    tls = context_of(made.ca)
    plain = socket.create_connection(tls_endpoint(server), HANG_S)
    with tls.wrap_socket(plain, server_hostname="localhost") as client:
        steps = {
            "peer_properties": stream.PeerProperties({}),
            "sasl_handshake": stream.SaslHandshake(),
        }
        for number, (command, message) in enumerate(steps.items(), 1):
            client.sendall(encode_request(command, message, correlation_id=number))
            assert client.recv(4_096)
        request = stream.SaslAuthenticate("EXTERNAL", data)
        client.sendall(encode_request("sasl_authenticate", request, correlation_id=3))
        answer = b""
        while received := client.recv(4_096):
            answer += received
    assert answer == REFUSED


def test_what_the_controller_does_is_logged_with_the_user(server: HutchServer) -> None:
    of = pb.StreamInfo(scope="logged", stream="s")
    scaling = pb.ScalingPolicy(minNumSegments=1)
    port = port_of(server, "controller").port
    with ControllerClient(port, basic("guest", "guest")) as client:
        client.ask("createScope", pb.ScopeInfo(scope="logged"))
        client.ask("createScope", pb.ScopeInfo(scope="logged"))
        client.ask("createStream", pb.StreamConfig(streamInfo=of, scalingPolicy=scaling))
        halves = [pb.ScaleRequest.KeyRangeEntry(start=a, end=a + 0.5) for a in (0.0, 0.5)]
        client.ask("scale", pb.ScaleRequest(streamInfo=of, sealedSegments=[0], newKeyRanges=halves))
        client.ask("sealStream", of)
        client.ask("deleteStream", of)
        client.ask("deleteScope", pb.ScopeInfo(scope="logged"))
    server.wait_for_log("scope deleted")
    done = [line.partition("controller.service: ")[2] for line in server.logs.splitlines()]
    assert [line for line in done if "name=logged" in line] == [
        "scope created name=logged by='guest'",
        "stream created name=logged/s by='guest'",
        "stream scaled name=logged/s by='guest'",
        "stream sealed name=logged/s by='guest'",
        "stream deleted name=logged/s by='guest'",
        "scope deleted name=logged by='guest'",
    ]
