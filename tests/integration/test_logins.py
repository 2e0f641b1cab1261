"""Who guesses passwords is slowed down, and nobody else is; administrators see who it was."""

from __future__ import annotations

import socket
import time
from contextlib import ExitStack

from gateway.broker.access.password_check import WAITING_MAX
from hutch.stream import messages as m
from hutch.stream.codec import encode_request
from tests.client import Client, plain
from tests.integration.administrator import IMPATIENT, can_log_in, ctl
from tests.integration.conftest import StartServer
from tests.integration.server import HutchServer
from tests.waiting import HANG_S, wait_until

OTHER_ADDRESS = "127.0.0.2"
FLOOD = 600
TUNE = encode_request("tune", m.Tune(1 << 20, 60), correlation_id=None)


def guess(endpoint: tuple[str, int], password: str) -> socket.socket:
    """Try a password from another address; the answer is not waited for."""
    guesser = socket.create_connection(endpoint, HANG_S, source_address=(OTHER_ADDRESS, 0))
    guesser.sendall(
        encode_request("peer_properties", m.PeerProperties({}), correlation_id=1)
        + encode_request("sasl_handshake", m.SaslHandshake(), correlation_id=2)
        + encode_request("sasl_authenticate", plain("guest", password), correlation_id=3)
    )
    return guesser


def refused(endpoint: tuple[str, int], password: str) -> bool:
    """Try a password from the other address; tell whether the connection was ended for it."""
    with guess(endpoint, password) as guesser:
        received = b""
        while piece := guesser.recv(4096):
            received += piece
            if received.endswith(TUNE):
                return False
    return True


def is_over(guesser: socket.socket) -> bool:
    """Tell whether the server has refused the password and ended the connection."""
    guesser.setblocking(False)  # noqa: FBT003 - the standard library's signature
    try:
        while guesser.recv(4096):
            pass
    except BlockingIOError:
        return False
    except ConnectionResetError:
        pass
    return True


def test_who_fails_too_often_is_refused_for_a_second_and_counted(start_server: StartServer) -> None:
    limit = {"HUTCH_USERS__FAILED_LOGINS_A_SECOND_MAX": "1"}
    server = start_server(environment=IMPATIENT | limit)
    assert can_log_in(server, "guest", "guest")
    deadline = time.monotonic() + HANG_S

    while not unread(server):
        assert time.monotonic() < deadline
        assert refused(server.endpoint, "wrong")
    assert can_log_in(server, "guest", "guest")
    while refused(server.endpoint, "guest"):
        assert time.monotonic() < deadline

    [total] = ctl(server, "list_auth_attempts", "--by", "protocol")
    by_address = {one["remote_address"]: one for one in ctl(server, "list_auth_attempts")}
    assert by_address.keys() == {"127.0.0.1", OTHER_ADDRESS}
    assert by_address["127.0.0.1"]["auth_attempts_succeeded"] == 2
    assert by_address[OTHER_ADDRESS]["auth_attempts_succeeded"] == 1
    assert (total["protocol"], total["auth_attempts_succeeded"]) == ("stream", 3)
    assert total["auth_attempts_failed"] >= 2
    refusals = [line for line in server.logs.splitlines() if "login refused" in line]
    assert refusals, "one in ten seconds"
    assert all(f"peer={OTHER_ADDRESS}:" in line for line in refusals)
    ctl(server, "reset_auth_attempts")
    assert ctl(server, "list_auth_attempts") == []


def unread(server: HutchServer) -> int:
    counts = ctl(server, "list_auth_attempts", "--by", "protocol")
    return sum(one["auth_attempts_unread"] for one in counts)


def test_a_flood_of_passwords_from_one_address_keeps_nobody_else_out(
    start_server: StartServer,
) -> None:
    server = start_server(environment=IMPATIENT)
    with ExitStack() as sockets:
        flood = [
            sockets.enter_context(guess(server.endpoint, f"guess {number}"))
            for number in range(FLOOD)
        ]
        with Client(*server.endpoint) as client:
            client.handshake()
        waiting = sum(not is_over(guesser) for guesser in flood)

    # Some checks of a few tens of milliseconds each came first, and not the 256 that wait.
    assert waiting > WAITING_MAX * 2 // 3
    # The log says few of so many refusals, and on a slow machine not these; the count has them.
    wait_until(lambda: unread(server))
