"""Strangers fill neither the log nor the sockets, and keep nobody out who may log in."""

from __future__ import annotations

import socket
from contextlib import ExitStack, suppress

import pytest

from hutch.stream import messages as m
from hutch.stream.codec import encode_request
from tests.client import Client
from tests.http_client import Api, basic
from tests.integration.administrator import IMPATIENT, can_log_in, ctl
from tests.integration.conftest import StartServer
from tests.integration.server import Endpoint, HutchServer
from tests.waiting import HANG_S

HERE, THERE = "127.0.0.1", "127.0.0.2"
ATTEMPTS = 200
LOG_BYTES_MAX = 200_000
"""Of ten lines in ten seconds about an address, for longer than a test may take."""
GREETING = encode_request(
    "peer_properties", m.PeerProperties({}), correlation_id=1
) + encode_request("sasl_handshake", m.SaslHandshake(), correlation_id=2)


def said_to(endpoint: tuple[str, int], data: bytes) -> None:
    """Say something, and wait for the end of the connection."""
    with socket.create_connection(endpoint, HANG_S) as stranger, suppress(ConnectionResetError):
        stranger.sendall(data)
        while stranger.recv(4096):
            pass


def login(request: m.SaslAuthenticate) -> bytes:
    return GREETING + encode_request("sasl_authenticate", request, correlation_id=3)


REFUSED = {
    "wrong password": login(m.SaslAuthenticate("PLAIN", b"\0" + b"\xff" * 7_000 + b"\0x")),
    "no password": login(m.SaslAuthenticate("PLAIN", b"\0" + b"\xff" * 7_000 + b"\0")),
    "malformed": login(m.SaslAuthenticate("PLAIN", b"\xff" * 7_000)),
    "mechanism": login(m.SaslAuthenticate("\x00" * 7_000, b"")),
    "no frame": b"\xff" * 7_000,
    "wrong frame": (7_000).to_bytes(4) + b"\xff" * 7_000,
}


@pytest.mark.parametrize("said", REFUSED.values(), ids=REFUSED.keys())
def test_what_a_stranger_says_takes_little_of_the_log(
    start_server: StartServer, said: bytes
) -> None:
    server = start_server(environment=IMPATIENT | {"HUTCH_USERS__FAILED_LOGINS_A_SECOND_MAX": "1"})

    for _ in range(ATTEMPTS):
        said_to(server.endpoint, said)
    with Client.opened(*server.endpoint):
        pass

    assert len(server.logs) < LOG_BYTES_MAX
    assert server.logs.count("WARNING") < ATTEMPTS / 2
    if said.startswith(GREETING):
        (counts,) = ctl(server, "list_auth_attempts", "--by", "protocol")
        assert counts["auth_attempts_failed"] == ATTEMPTS


def test_what_a_stranger_asks_over_http_takes_little_of_the_log(start_server: StartServer) -> None:
    server = start_server(environment={"HUTCH_USERS__FAILED_LOGINS_A_SECOND_MAX": "1"})
    api = Api(*server.management)

    for _ in range(ATTEMPTS):
        assert api.by("\x80" * 1_400, "x").ask("GET", "whoami").status in {401, 503}

    assert len(server.logs) < LOG_BYTES_MAX
    assert api.status("GET", "whoami") == 200


def without_password(server: HutchServer) -> None:
    """Try every login that costs nothing, more often than guesses may fail."""
    for said in ("no password", "malformed", "mechanism"):
        for _ in range(3):
            said_to(server.endpoint, REFUSED[said])
    for password in ("", "\0"):
        for _ in range(3):
            assert Api(*server.management, ("guest", password)).ask("GET", "whoami").status == 401


def test_logins_without_a_password_keep_nobody_behind_the_same_address_out(
    start_server: StartServer,
) -> None:
    limit = {"HUTCH_USERS__FAILED_LOGINS_A_SECOND_MAX": "1"}
    server = start_server(environment=IMPATIENT | limit)

    without_password(server)
    assert can_log_in(server, "guest", "guest")
    without_password(server)
    assert Api(*server.management).status("GET", "whoami") == 200


def test_a_password_that_was_right_passes_while_others_guess_at_its_user(
    start_server: StartServer,
) -> None:
    server = start_server(environment=IMPATIENT | {"HUTCH_USERS__FAILED_LOGINS_A_SECOND_MAX": "1"})
    api = Api(*server.management)
    assert api.status("GET", "whoami") == 200

    for _ in range(5):
        assert not can_log_in(server, "guest", "wrong")
        assert can_log_in(server, "guest", "guest")
        assert api.status("GET", "whoami") == 200
    assert not can_log_in(server, "guest", "wrong")


def silent(endpoint: Endpoint, count: int, stack: ExitStack, address: str) -> list[socket.socket]:
    """Connect and say nothing."""
    return [
        stack.enter_context(socket.create_connection(endpoint, HANG_S, source_address=(address, 0)))
        for _ in range(count)
    ]


@pytest.mark.parametrize("address", [HERE, THERE])
def test_strangers_that_take_every_socket_keep_no_client_out(
    start_server: StartServer, address: str
) -> None:
    server = start_server(environment={"HUTCH_STREAM__CONNECTIONS_MAX": "50"})
    with ExitStack() as stack:
        first = silent(server.endpoint, 400, stack, address)[0]
        clients = [stack.enter_context(Client.opened(*server.endpoint)) for _ in range(50)]
        silent(server.endpoint, 400, stack, address)

        assert first.recv(1) == b"", "the oldest goes first"
        for client in clients:
            client.request("metadata", m.Metadata(("none",)))
        assert not can_log_in(server, "guest", "guest"), "there are as many as may be"


def test_wrong_passwords_on_every_http_connection_keep_no_administrator_out(
    start_server: StartServer,
) -> None:
    server = start_server(environment={"HUTCH_USERS__FAILED_LOGINS_A_SECOND_MAX": "0"})
    with ExitStack() as stack:
        for number, stranger in enumerate(silent(server.management, 140, stack, THERE)):
            # Its requests wait for each other, so that it never stops asking.
            guesses = (basic("guest", f"{number} {guess}") for guess in range(40))
            stranger.sendall(b"".join(map(asked_by, guesses)))
        for _ in range(5):
            assert Api(*server.management).status("GET", "whoami") == 200
    assert can_log_in(server, "guest", "guest")


def asked_by(authorization: str) -> bytes:
    head = "GET /api/whoami HTTP/1.1\r\nHost: localhost\r\n"
    return f"{head}Authorization: {authorization}\r\n\r\n".encode()
